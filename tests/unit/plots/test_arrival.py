"""Figures of 10_input, from made-up records with known answers."""

import pandas as pd
import pytest
from matplotlib.figure import Figure

from scaleout import plots


def _device(step_ms: float, took_ms: float) -> pd.DataFrame:
    return pd.DataFrame([{"step_s": [took_ms / 1e3] * 3, "metrics": {"step_ms": step_ms}}])


def _roofline(guess: float | None = None, off: float = 1.0) -> Figure:
    jobs = [(0, 30.0), (10, 30.0 * off), (60, 60.0)]
    return plots.input_roofline([_device(*job) for job in jobs], guess)


def test_the_roofline_says_how_far_it_is_off() -> None:
    assert _roofline().axes[0].get_title("left").endswith("0 % off at most")
    assert "20 % off at most" in _roofline(off=1.2).axes[0].get_title("left")
    (line,) = [line for line in _roofline().axes[0].lines if line.get_linestyle() == "--"]
    assert list(line.get_ydata()[:2]) == pytest.approx([30, 30])
    assert line.get_ydata()[-1] == line.get_xdata()[-1]


def test_each_turn_is_a_point_and_the_middle_one_counts() -> None:
    turns = {0: [0.02, 0.03, 0.09], 60: [0.06, 0.06, 0.06]}
    rows = [
        {"step_s": [9.0], "metrics": {"step_ms": ms, "turns_s": turns_s}}
        for ms, turns_s in turns.items()
    ]
    figure = plots.input_roofline([pd.DataFrame(rows)])
    assert figure.axes[0].get_title("left").startswith("Input alone takes 30")
    assert [len(each.get_offsets()) for each in figure.axes[0].collections] == [3, 3]


def _waits(guess: float | None = None) -> Figure:
    row = {"variant": "naive", "metrics": {"waited": [0.6, 0.1], "computed": [0.3, 0.3]}}
    return plots.waits([pd.DataFrame([row])], guess)


def test_the_parts_of_a_step_add_up_to_it() -> None:
    bars = _waits().axes[0].patches
    for rank in (0, 1):
        widths = [bar.get_width() for bar in bars if round(bar.get_y() + 0.375) == rank]
        assert len(widths) == 3 and sum(widths) == pytest.approx(100)
    assert "naive, rank 1: 10 % waited for images" in _waits().get_label()


def _formats(guess: str | None = None) -> Figure:
    rows = [
        {
            "variant": form,
            "rate": 100.0,
            "step_s": [0.1],
            "metrics": {"cache": cache, "order": order, "opens": opens, "images": 10},
        }
        for form, opens in (("files", 10), ("lmdb", 1))
        for cache in ("cold", "warm")
        for order in ("in order", "shuffled")
    ]
    return plots.format_rates(pd.DataFrame(rows), guess)


def test_each_form_has_its_opens_beneath_it() -> None:
    names = [tick.get_text() for tick in _formats().axes[0].get_xticklabels()]
    assert names == ["files\n10", "lmdb\n1"]


@pytest.mark.parametrize(
    ("figure", "words"),
    [
        (_roofline(100), "your guess: 100 ms"),
        (_waits(20), "your guess: 20 %"),
        (_formats("lmdb"), "your guess: lmdb"),
    ],
)
def test_the_guess_comes_back(figure: Figure, words: str) -> None:
    legends = [axes.get_legend() for axes in figure.axes] + figure.legends
    assert words in [text.get_text() for legend in legends if legend for text in legend.get_texts()]
