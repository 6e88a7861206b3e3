"""Figures of 01: what they say follows from the numbers, and the guess stands where it belongs."""

import pandas as pd
from matplotlib.figure import Figure

from scaleout import plots


def _frame(**ms: float) -> pd.DataFrame:
    library = {"Conv2D": "oneDNN", "FusedBatchNormV3": "oneDNN"}
    rows = [(op, op, library.get(op, "Eigen"), 1.0, time) for op, time in ms.items()]
    frame = pd.DataFrame(rows, columns=["name", "op", "library", "calls", "time_ms"])
    frame.attrs = {"step_ms": sum(ms.values()) + 10}
    return frame


def _words(figure: Figure) -> str:
    return str(figure.get_label())


def test_the_bar_says_which_operation_is_the_longest() -> None:
    before = _frame(Mean=50.0, Conv2D=40.0, Mul=30.0)
    figure = plots.operations({"Keras": before}, guess="conv2d")
    assert "The longest operation: Mean 50 ms, 38 % of a step." in _words(figure)
    assert "your guess: conv2d." in _words(figure) and "Conv2D 40 ms" in _words(figure)
    after = _frame(Conv2D=40.0, FusedBatchNormV3=10.0)
    both = plots.operations({"Keras": before, "fused": after})
    assert both.get_suptitle() == "A step takes 130 ms with Keras, and 60 ms with fused."
    assert "guess" not in _words(both)


def test_a_guess_is_marked_where_it_is_and_named_where_it_is_not() -> None:
    before = _frame(Conv2DBackpropInput=50.0, Conv2D=40.0)
    for guess, wanted in (
        ("conv2d", "your guess: conv2d"),
        ("Softmax", "your guess: Softmax (too small to be shown)"),
    ):
        figure = plots.operations({"Keras": before}, guess=guess)
        labels = figure.axes[0].get_legend_handles_labels()[1]
        assert wanted in labels
    (star,) = [
        line.get_ydata()[0]
        for line in plots.operations({"Keras": before}, guess="conv2d").axes[0].lines
    ]
    assert star == 20, "Conv2D is oneDNN's, so it lies below; not Conv2DBackpropInput"
