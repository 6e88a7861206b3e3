"""Threads by library, and the rate over threads: what the titles say follows from the numbers."""

from typing import Any

import pandas as pd
import pytest
from helpers import guesses_in, read_figure
from matplotlib.figure import Figure

from scaleout import plots
from scaleout.errors import ScaleoutError


def _census(guess: Any = None) -> Figure:
    ranks = [{"threads": {"Python": 1, "Eigen": 4}, "cpus": {"Python": 0.1, "Eigen": 1.5}}]
    job = pd.DataFrame([{"metrics.shares": ranks, "metrics.cores": [[0], [1]]}])
    return plots.thread_census({"nothing set": job, "again": job}, guess)


def _rates(guess: Any = None) -> Figure:
    grid = pd.DataFrame(
        [(n, t, 10.0 * n + t) for n in (1, 2) for t in (1, 4)], columns=["ranks", "threads", "rate"]
    )
    return plots.rate_over_threads(grid, 2, guess)


def test_a_census_counts_threads_and_busy_cpus() -> None:
    words = read_figure(_census())
    assert "nothing set: 5 threads keep 1.6 of 2 cores busy." in words
    assert "Eigen: nothing set: 4.00, again: 4.00." in words


def test_the_highest_rate_of_one_rank_is_in_the_title() -> None:
    words = read_figure(_rates())
    assert words.startswith("One rank: highest median with 4 threads, 14.0 images/s.")


@pytest.mark.parametrize("draw", [_census, _rates])
def test_a_number_is_drawn_beside_the_measurement(draw: Any) -> None:
    assert guesses_in(draw(3)) == ["your guess: 3"] and guesses_in(draw()) == []
    with pytest.raises(ScaleoutError, match="Your guess is 'three': write a number, such as 1.5"):
        draw("three")
