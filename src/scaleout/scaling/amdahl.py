"""Amdahl's law: a part of the work is done by one rank alone, however many there are.

T(p) = T(1) (s + (1 - s) / p), where s is the serial part (Amdahl, "Validity of the single processor
approach to achieving large scale computing capabilities", AFIPS 30, 1967)."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ..errors import ScaleoutError
from .points import count_points

__all__ = ["Amdahl", "efficiency", "fit_amdahl", "knee"]

FEWEST_RUNS = 3
FEWEST_OF_TWO = 3  # runs on each, where a machine has no third number of ranks


@dataclass(frozen=True)
class Amdahl:
    """A fitted law. one_s: seconds on one rank.  serial: the serial part, 0 to 1, and its 95 %
    interval.

    counts: how many different numbers of ranks it rests on; two decide it, a third begins to test
    it."""

    one_s: float
    serial: float
    serial_range: tuple[float, float]
    counts: int
    scatter: float

    def seconds(self, ranks: float) -> float:
        """The time on so many ranks."""
        return self.one_s * (self.serial + (1 - self.serial) / ranks)

    def speed_up(self, ranks: float) -> float:
        """How many times faster than one rank."""
        return self.one_s / self.seconds(ranks)

    def __str__(self) -> str:
        low, high = (100 * end for end in self.serial_range)
        most = (
            f"never more than {1 / self.serial:.3g} times faster"
            if self.serial > 0
            else "no limit seen"
        )
        tested = (
            ""
            if self.counts > 2
            else "; two numbers of ranks decide the law, a third would test it"
        )
        return f"serial part {100 * self.serial:.2g} % ({low:.2g} to {high:.2g}): {most}{tested}"


def fit_amdahl(ranks: Sequence[float], seconds: Sequence[float]) -> Amdahl:
    """Fits the law to times of the same work, one pair a run: on at least 3 numbers of ranks, or on
    2 at least 3 times each.

    Least squares of relative errors; the interval comes from the scatter of the runs and Student's
    t, and holds as far as the law does.

    Raises
    ------
    ScaleoutError
        When the runs are too few, or a number is no count or no time.
    """
    import numpy as np
    from scipy.optimize import lsq_linear
    from scipy.stats import t

    p, y = np.asarray(ranks, float), np.asarray(seconds, float)  # (runs,)
    counts = count_points(p, y, "time", "ranks")
    if counts < 2 or len(p) < FEWEST_RUNS:
        raise ScaleoutError(
            f"{len(p)} runs on {counts} numbers of ranks are too few to tell a serial part and how "
            f"sure it is: measure at least 3 numbers of ranks."
        )
    if counts == 2 and min(np.unique(p, return_counts=True)[1]) < FEWEST_OF_TWO:
        raise ScaleoutError(
            "2 numbers of ranks decide a serial part, and nothing is left to say how sure it is: "
            f"measure a third number, or both {FEWEST_OF_TWO} times."
        )
    # (runs, 2): the serial time and the parallel one
    basis = np.stack([np.ones_like(p), 1 / p], axis=1) / y[:, None]
    serial_s, parallel_s = lsq_linear(basis, np.ones_like(p), bounds=(0, np.inf)).x
    one_s = serial_s + parallel_s
    scatter = math.sqrt(float(np.sum((basis @ [serial_s, parallel_s] - 1) ** 2)) / (len(p) - 2))
    covariance = scatter**2 * np.linalg.inv(basis.T @ basis)
    slope = np.array([parallel_s, -serial_s]) / one_s**2  # how the serial part follows the two
    reach = t.ppf(0.975, len(p) - 2) * math.sqrt(float(slope @ covariance @ slope))
    serial = float(serial_s / one_s) if serial_s > 1e-9 * one_s else 0.0
    return Amdahl(
        float(one_s), serial, (max(0.0, serial - reach), min(1.0, serial + reach)), counts, scatter
    )


def efficiency(one_s: float, seconds: float, ranks: int, weak: bool = False) -> float:
    """The part of ranks' time that was worth it: speed-up over ranks; weak: each rank had as much
    work as the one."""
    return one_s / seconds if weak else one_s / seconds / ranks


def knee(
    seconds: Callable[[float], float], gain: float = 1.5, most: int = 2**20, weak: bool = False
) -> int | None:
    """The smallest power of two from which twice the ranks give less than `gain` times the speed;
    None: beyond `most`.

    seconds: of a law, for so many ranks.  weak: seconds are of a step in which each rank has work
    of its own."""
    p = 1
    while p <= most:
        if seconds(p) / seconds(2 * p) * (2 if weak else 1) < gain:
            return p
        p *= 2
    return None
