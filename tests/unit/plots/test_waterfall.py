"""The waterfall shows what each step was worth, and where all have got to."""

import matplotlib.pyplot as plt
import pytest

from scaleout.comparisons.intervals import Ratio
from scaleout.plots import primitives


def test_each_step_begins_where_those_that_were_kept_have_got_to() -> None:
    figure, axes = plt.subplots()
    steps = {
        "one": (Ratio(2.0, 1.8, 2.2, 5), "two times"),
        "other": (Ratio(0.5, 0.4, 0.6, 5), "not kept"),
        "last": (Ratio(0.75, 0.7, 0.8, 5), "harms"),
    }
    level, top = primitives.waterfall(axes, steps, dropped=["other"])
    plt.close(figure)
    bars = [(bar.get_y(), bar.get_y() + bar.get_height()) for bar in axes.patches]
    assert bars == [(0, 1), (1, 2), (1.5, 2)]
    assert (level, top) == (1.5, pytest.approx(2.2))
    assert [text.get_text() for text in axes.texts] == ["two times", "not kept", "harms"]
