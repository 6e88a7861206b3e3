"""Amdahl's law: a part of the work is done by one rank alone, however many there are.

T(p) = T(1) (s + (1 - s) / p), where s is the serial part (Amdahl, "Validity of the single processor
approach to achieving large scale computing capabilities", AFIPS 30, 1967)."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Self

from ..comparisons.intervals import Ratio
from ..errors import ScaleoutError
from .points import FEWEST_COUNTS, count_points


@dataclass(frozen=True)
class Amdahl:
    """The law with its serial part."""

    one_s: float
    serial: float
    serial_range: tuple[float, float]
    counts: int
    scatter: float

    @classmethod
    def assumed(cls, ranks: int, speed_up: Ratio) -> Self:
        """What one measured speed-up would mean if the law held, which it cannot tell."""
        if ranks < 2:
            raise ScaleoutError(f"A speed-up needs at least 2 ranks; asked for {ranks}.")

        def serial(times: float) -> float:
            if times <= 0:  # after a round or two the interval is everything
                return 1.0
            return min(1.0, max(0.0, (ranks / times - 1) / (ranks - 1)))

        ends = serial(speed_up.high), serial(speed_up.low)
        return cls(1.0, serial(speed_up.middle), ends, 2, 0.0)

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
        tested = "" if self.counts > 2 else "; if the law holds, which two counts cannot tell"
        return f"serial part {100 * self.serial:.2g} % ({low:.2g} to {high:.2g}): {most}{tested}"


def fit_amdahl(ranks: Sequence[float], seconds: Sequence[float]) -> Amdahl:
    """Fits the law to times of the same work."""
    import numpy as np
    from scipy.optimize import lsq_linear
    from scipy.stats import t

    p, y = np.asarray(ranks, float), np.asarray(seconds, float)  # (runs,)
    counts = count_points(p, y, "time", "ranks")
    if counts < FEWEST_COUNTS:
        raise ScaleoutError(
            f"{counts} different numbers of ranks are too few to tell a serial part and how sure it "
            f"is: measure at least {FEWEST_COUNTS}, such as 1, 2, 4 and 8."
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
    """The part of the ranks' time that was worth it: speed-up over ranks."""
    return one_s / seconds if weak else one_s / seconds / ranks


def knee(
    seconds: Callable[[float], float], gain: float = 1.5, most: int = 2**20, weak: bool = False
) -> int | None:
    """The smallest power of two from which twice the ranks are not worth it."""
    p = 1
    while p <= most:
        if seconds(p) / seconds(2 * p) * (2 if weak else 1) < gain:
            return p
        p *= 2
    return None
