"""The waterfall shows what it was given."""

import numpy as np
from matplotlib.figure import Figure

from scaleout import plots


def _said(figure: Figure) -> list[str]:
    """What stands above the bars, from left to right."""
    return [text.get_text() for text in figure.axes[0].texts if text.get_text()]


def _bars(figure: Figure) -> list[tuple[float, float]]:
    """From where to where each bar goes."""
    return [(bar.get_y(), bar.get_y() + bar.get_height()) for bar in figure.axes[0].patches]


STEPS = {"start": [10.0], "one": [30.0, 20.0, 20.0], "other": [15.0], "all": [40.0]}


def test_one_after_another_each_step_begins_where_the_last_has_got_to() -> None:
    figure = plots.waterfall(STEPS, chain=True)
    assert _bars(figure) == [(0, 10), (10, 20), (15, 20), (0, 40)]
    assert _said(figure) == ["10.00", "2.00x", "0.75x", "40.00\n4.00x"]


def test_one_at_a_time_each_step_begins_at_the_start() -> None:
    figure = plots.waterfall(STEPS, "efficiency", ideal=50, goal=45, guess="other")
    assert _bars(figure) == [(0, 10), (10, 20), (10, 15), (0, 40)]
    assert _said(figure) == ["10.00", "+10.00", "+5.00", "40.00"]
    legend = [text.get_text() for text in figure.axes[0].get_legend().get_texts()]
    assert {"ideal", "to be reached: 45", "your guess: other"} <= set(legend)


def test_a_step_that_was_not_kept_stays_in_the_picture_with_its_reason() -> None:
    steps = {"start": [10.0], "one": [20.0], "other": [5.0], "absent": [], "all": [40.0]}
    figure = plots.waterfall(steps, chain=True, reasons={"other": "slower here"})
    assert _said(figure) == ["10.00", "2.00x", "1.0x", "1.0x", "40.00\n4.00x"]
    assert _bars(figure) == [(0, 10), (10, 20), (0, 40)]
    assert figure.axes[0].get_xlabel().splitlines() == [
        "1.0x  other: slower here",
        "1.0x  absent: not measured here",
    ]
    heights = [y for dots in figure.axes[0].collections for _, y in np.asarray(dots.get_offsets())]
    assert 5.0 in heights, "what was measured is drawn, though it was not kept"
