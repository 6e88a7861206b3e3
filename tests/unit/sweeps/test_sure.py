"""How sure the best of a sweep is."""

from typing import Any

from scaleout.sweeps.journal import FIRST, LAST, POINT
from scaleout.sweeps.sure import sure


def jobs(role: str, *rates: float | None) -> list[dict[str, Any]]:
    return [{"role": role, "repeat": n, "rate": rate} for n, rate in enumerate(rates)]


DEFAULT = [*jobs(FIRST, 100, 101, 99, 100), *jobs(LAST, 101, 100, 99, 101)]


def test_a_gain_has_an_interval_that_is_wider_the_more_points_there_were() -> None:
    best = jobs(POINT, 130, 131, 129.5, 130)
    few, many = sure(DEFAULT, best, 2), sure(DEFAULT, best, 500)
    assert few == "The interval of that ratio (95 %, for the best of 2 points): 1.29 to 1.31."
    assert many.startswith("The interval of that ratio (95 %, for the best of 500 points): 1.2")
    assert many != few.replace("2 points", "500 points")


def test_for_times_less_is_better() -> None:
    said = sure(DEFAULT, jobs(POINT, 77, 77, 76.5, 77), 1, lower=True)
    assert said.endswith(": 1.29 to 1.31.")


def test_a_gain_within_the_defaults_own_drift_is_none() -> None:
    drifted = [*jobs(FIRST, 100, 101, 99), *jobs(LAST, 120, 121, 119)]
    said = sure(drifted, jobs(POINT, 122, 123, 121), 1)
    assert "the default alone varies by 2" in said and "That shows no gain" in said


def test_fewer_than_three_repeats_or_a_failed_one_say_nothing() -> None:
    assert sure(DEFAULT, jobs(POINT, 130, 131), 2) == ""
    assert sure(DEFAULT, jobs(POINT, 130, None, 131), 2) == ""
