"""A job beside which others computed is noticed, said, and run once more."""

from collections.abc import Iterator
from typing import Any

import pytest

from scaleout import settings
from scaleout.jobs.site import Site
from scaleout.machine import noise
from scaleout.machine.noise import Ticks
from scaleout.sweeps import loaded
from scaleout.sweeps.journal import Journal
from scaleout.sweeps.loaded import Load, Watch
from scaleout.sweeps.points import Point
from scaleout.sweeps.rates import Metric
from scaleout.sweeps.work import Work


@pytest.fixture(autouse=True)
def _judged(monkeypatch: pytest.MonkeyPatch) -> None:
    """As a sweep judges it outside of `make test`."""
    monkeypatch.setattr(settings, "quick", lambda: False)
    monkeypatch.setattr(loaded, "OTHERS", 0.10)
    monkeypatch.setattr(loaded, "STOLEN", 0.05)


@pytest.mark.parametrize(
    ("idle", "stolen", "own", "others", "disturbs"),
    [
        (20, 0, 180, 0.0, False),  # the job alone
        (10, 0, 150, 0.2, True),  # somebody else took a fifth of two full CPUs
        (100, 0, 60, 0.2, False),  # he found CPUs that the job left free
        (80, 20, 100, 0.0, True),  # the machine below took a tenth
        (0, 0, 260, 0.0, False),  # counters that disagree by a tick
    ],
)
def test_who_took_what(
    monkeypatch: pytest.MonkeyPatch,
    idle: int,
    stolen: int,
    own: float,
    others: float,
    disturbs: bool,
) -> None:
    hertz = loaded.os.sysconf("SC_CLK_TCK")
    ticks = iter([Ticks(1000, 0, 500), Ticks(1200, stolen, 500 + idle)])
    used = iter([3.0, 3.0 + own / hertz])
    monkeypatch.setattr(noise, "ticks", lambda: next(ticks))
    monkeypatch.setattr(loaded, "_own_s", lambda: next(used))
    load = Watch().load()
    assert load.others == pytest.approx(others) and load.disturbs is disturbs
    assert (load.idle, load.stolen) == (idle / 200, stolen / 200)


def test_a_system_that_counts_nothing_disturbs_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(noise, "ticks", Ticks)
    assert Watch().load() == Load() and not Load().disturbs


def test_this_machine_counts() -> None:
    watch = Watch()
    while not (load := watch.load()).idle < 1.0:
        sum(range(10_000))
    assert 0 <= load.others <= 1 and 0 <= load.stolen <= 1


def _work(results: Any, rows: Iterator[float], said: list[str]) -> Work:
    work = Work(["true"], Site(), 2, Metric(), 10.0, Journal("mine"), said.append)
    work._job = lambda point, early: {"disturbed": next(rows), "status": "ok"}  # type: ignore[method-assign]
    return work


def test_a_disturbed_job_runs_once_more_and_the_second_counts(results) -> None:
    said: list[str] = []
    work = _work(results, iter([0.3, 0.0]), said)
    assert work.at_rest(Point(1, 1))["disturbed"] == 0.0
    assert len(said) == 1 and "30% of the CPUs' time" in said[0] and "once more" in said[0]


def test_a_machine_without_rest_is_said_once(results) -> None:
    said: list[str] = []
    work = _work(results, iter([0.3, 0.2, 0.4, 0.5]), said)
    assert [work.at_rest(Point(1, 1))["disturbed"] for _ in range(2)] == [0.2, 0.5]
    assert sum("not at rest" in line for line in said) == 1


def test_the_short_form_repeats_nothing(results, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings, "quick", lambda: True)
    said: list[str] = []
    assert _work(results, iter([0.3]), said).at_rest(Point(1, 1))["disturbed"] == 0.3
    assert not said
