"""When a job of a search is ended while it runs."""

import math

import pytest

from scaleout.jobs.job import Enough
from scaleout.sweeps import early
from scaleout.sweeps.early import FEW, Early
from scaleout.sweeps.rates import Metric

FIGURE = Metric("([0-9.]+) images/s")


def _ends(watch: Early, *each: tuple[int, float]) -> bool:
    try:
        for rank, rate in each:
            watch(f"[{rank}] step: {rate:.3f} images/s")
    except Enough:
        return watch.hopeless
    assert not watch.hopeless
    return False


def test_it_ends_when_even_the_best_of_ten_figures_is_below_the_leaders_interval() -> None:
    poor = [(0, 80.0 + n) for n in range(FEW)]
    assert _ends(Early(FIGURE, 1, math.log(100), False), *poor)
    assert not _ends(Early(FIGURE, 1, math.log(85), False), *poor)
    assert not _ends(Early(FIGURE, 1, math.log(100), False), *poor[1:])
    once_good = [*poor[:-1], (0, 101.0)] * 4
    assert not _ends(Early(FIGURE, 1, math.log(100), False), *once_good)


def test_of_times_the_shortest_counts() -> None:
    slow = [(0, 0.2 + n / 100) for n in range(FEW)]
    assert _ends(Early(FIGURE, 1, -math.log(0.15), True), *slow)
    assert not _ends(Early(FIGURE, 1, -math.log(0.25), True), *slow)


def test_it_waits_for_every_rank_that_prints_the_figure() -> None:
    first, second = ([(rank, 40.0)] * FEW for rank in (0, 1))
    watch = Early(FIGURE, 2, math.log(100), False)
    assert not _ends(watch, *first, *second[1:])
    assert _ends(watch, second[0], *first)
    assert not _ends(Early(FIGURE, 2, math.log(70), False), *first, *second, *first, *second)


def test_warm_up_is_left_out_and_other_lines_are_none_of_its_concern() -> None:
    watch = Early(Metric("([0-9.]+) images/s", skip=5), 1, math.log(50), False)
    fast_warm_up = [(0, 99.0)] * 5 + [(0, 40.0)] * FEW
    watch("$ mpirun -n 1 python x.py")
    watch("[0] no figure")
    assert _ends(watch, *fast_warm_up, *[(0, 40.0)] * 5)


def test_what_is_no_figure_lets_the_job_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    watch = Early(Metric("step: (.*)"), 1, math.log(50), False)
    assert not _ends(watch, *[(0, 1.0)] * 20)
    monkeypatch.setattr(early, "MOST", 15)
    watch = Early(FIGURE, 1, math.log(0.5), False)
    assert not _ends(watch, *[(0, 1.0)] * 19)
    watch.least = math.log(50)  # it has given up looking
    assert not _ends(watch, *[(0, 1.0)] * 90)
