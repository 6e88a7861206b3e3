"""Figures of 08_precision, from made-up records with known answers."""

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

from scaleout import ladder, plots


def _few_bits() -> pd.DataFrame:
    rows = [{"variant": "fp32", "metrics.part": "int8", "metrics.accuracy": 0.96}]
    for bits, tensor, channel in ((8, 0.96, 0.96), (4, 0.90, 0.95), (2, 0.30, 0.50)):
        rows += [
            {"variant": f"{bits} bits, {per}", "metrics.part": "int8", "metrics.accuracy": value,
             "metrics.off": [1 / bits, 2 / bits]}
            for per, value in (("tensor", tensor), ("channel", channel))
        ]  # fmt: skip
    return pd.DataFrame(rows)


def _titles(figure: Figure) -> str:
    text = figure.get_suptitle() + " ".join(axes.get_title(loc="left") for axes in figure.axes)
    return " ".join(text.split())


def _legends(figure: Figure) -> str:
    found = [*figure.legends, *(axes.get_legend() for axes in figure.axes)]
    return " ".join(text.get_text() for legend in found if legend for text in legend.get_texts())


def test_the_fewest_bits_within_five_points_are_named() -> None:
    figure = plots.few_bits(_few_bits(), 3)
    assert "8 bits per tensor and 4 bits per channel" in _titles(figure)
    assert "your guess: 3" in _legends(figure) and "per channel 2 bits 50.0 %" in figure.get_label()


def test_none_is_within_five_points_where_none_is() -> None:
    frame = _few_bits()
    frame.loc[0, "metrics.accuracy"] = 1.0
    frame.loc[1:, "metrics.accuracy"] = 0.5
    assert "None is within" in _titles(plots.few_bits(frame))


def test_curves_show_every_seed_and_what_became_zero() -> None:
    frame = pd.DataFrame(
        [
            {"metrics.how": how, "metrics.losses": [[2.0, 1.0, 0.5], [2.2, 1.1, 0.6]],
             "metrics.accuracy": [0.9, 0.92], "metrics.lost": lost}
            for how, lost in (("fp32", 0.0), ("bf16", 0.0), ("fp16", 0.97))
        ]
    )  # fmt: skip
    figure = plots.loss_curves(frame, 50)
    assert "fp16: 90.0 to 92.0 %, 97 % to 0" in figure.get_label()
    assert "your guess: 50 %" in _legends(figure)
    points = [line for line in figure.axes[1].lines if line.get_linestyle() == "None"]
    assert [len(line.get_xdata()) for line in points[:3]] == [2, 2, 2]
    assert "to 0" not in plots.loss_curves(frame.drop(columns="metrics.lost")).get_label()


def test_calibrations_say_size_and_what_one_image_is_worth() -> None:
    frame = pd.DataFrame(
        {
            "variant": ["fp32", "int8, 10 batches", "int8, dark images"],
            "metrics.part": "models",
            "metrics.accuracy": [0.98, 0.975, 0.1],
            "metrics.bytes": [4096 * 100, 1024 * 100, 1024 * 100],
            "metrics.images": 200,
        }
    )
    figure = plots.calibrations(frame, 40)
    assert "0.25 of the size" in _titles(figure) and "0.50 points" in _titles(figure)
    star = next(line for line in figure.axes[0].lines if line.get_marker() == "*")
    assert (star.get_xdata()[0], star.get_ydata()[0]) == (2, 40)


def test_the_ladder_is_white_where_a_step_is_missing() -> None:
    table = pd.DataFrame(np.nan, index=list(ladder.STEPS), columns=["GEMM fp32", "GEMM int8", "CNN fp32"])  # fmt: skip
    table.loc["AVX2"] = [100, np.nan, 1000]
    table.loc["AVX512_CORE_VNNI"] = [150, 900, 1300]
    figure = plots.ladder(table, {"GEMM": "GFLOP/s", "CNN": "images/s"}, 4)
    assert "int8 on AVX512_CORE_VNNI, 9.0x (your guess: 4x)" in _titles(figure)
    cells = np.ma.masked_invalid(figure.axes[0].images[0].get_array())
    assert cells.mask.sum() == 10
    texts = [text.get_text() for text in figure.axes[0].texts]
    assert texts.count("none") == 1 and texts.count("") == 9
    ticks = [tick.get_text() for tick in figure.axes[0].get_yticklabels()]
    assert "AVX512_CORE_AMX (not measured)" in ticks and "GOP/s" in "".join(
        tick.get_text() for tick in figure.axes[0].get_xticklabels()
    )


@pytest.mark.parametrize("guess", [None, 16])
def test_streams_are_two_lines_with_a_point_for_each_batch(guess: float | None) -> None:
    frame = pd.DataFrame(
        [
            {
                "metrics.batch": batch,
                "metrics.runs": [
                    {"variant": way, "value": rate * batch}
                    for way, rate in (("one process", 10), ("one a core", 16))
                ],
                "metrics.took": {"one process": {"ms_99": 1.0 * batch}, "one a core": {"ms_99": 2.0 * batch}},
            }
            for batch in (1, 64)
        ]
    )  # fmt: skip
    figure = plots.streams(frame, guess)
    assert "one a core, batch 64: 1,024 images/s, 128.00 ms" in figure.get_label()
    assert ("your guess" in _legends(figure)) == (guess is not None)
    lines = {line.get_label(): list(line.get_xdata()) for line in figure.axes[0].lines}
    assert lines["one process"] == [10, 640]
