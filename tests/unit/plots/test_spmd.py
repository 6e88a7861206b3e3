"""The pictures of 03_spmd show what they were given."""

import numpy as np
import pandas as pd
import pytest

from scaleout import plots


def _texts(figure) -> list[str]:
    return [text.get_text() for axes in figure.axes for text in axes.texts if text.get_text()]


def test_who_holds_names_the_pieces_and_those_in_a_sum() -> None:
    a, b = np.array([1, 2]), np.array([2**8, 2**9])
    held = [[("Reduce", a, a + b), ("Bcast", a, a)], [("Reduce", b, None), ("Bcast", None, a)]]
    figure = plots.who_holds(held)
    assert [axes.get_title("left") for axes in figure.axes] == ["Reduce", "Bcast"]
    first = [text.get_text() for text in figure.axes[0].texts if text.get_text()]
    assert first == ["a0", "a1", "b0", "b1", "a0", "b0", "a1", "b1", "nothing"]
    assert _texts(figure).count("nothing") == 2


def _sent(ranks: int) -> pd.DataFrame:
    arrays = {"gather-broadcast": ranks - 1, "tree": 1, "ring": 2 * (ranks - 1) / ranks}
    rows = [
        {"variant": way, "metrics.sent_bytes": [0, 100 * n], "metrics.bytes": 100}
        for way, n in arrays.items()
    ]
    return pd.DataFrame(rows).assign(ranks=ranks)


def test_bytes_sent_marks_what_was_counted() -> None:
    axes = plots.bytes_sent([_sent(2), _sent(4)], guess=3).axes[0]
    marks = {
        line.get_label(): line.get_xydata().tolist()
        for line in axes.lines
        if "counted" in str(line.get_label())
    }
    assert marks["gather and broadcast, counted"] == [[2, 1], [4, 3]]
    assert marks["ring, counted"] == [[2, 1], [4, 1.5]]
    assert "your guess: 3, for the ring" in [
        text.get_text() for text in axes.get_legend().get_texts()
    ]


def test_mpi_libraries_compares_two_only_where_both_are() -> None:
    rows = [
        {"metrics.bytes": n, "step_s": [1e-6 * n], "step_median_s": 1e-6 * n, "ranks": 2}
        for n in (4, 16)
    ]
    frame = pd.DataFrame(rows)
    assert len(plots.mpi_libraries({"MPICH": frame}, 1.27).axes) == 1
    twice = frame.assign(step_median_s=2 * frame.step_median_s)
    both = plots.mpi_libraries({"MPICH": frame, "Intel MPI": frame, "Open MPI": twice}, 1.27)
    assert both.axes[1].lines[0].get_ydata().tolist() == pytest.approx([2, 2])
