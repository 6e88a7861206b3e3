"""How often is a gate wrong here, and how small a slow-down does it find? Asked of equal runs of one
command, whose rounds are replayed many times over, as they are and slowed by a share."""

import statistics
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..base.errors import ScaleoutError
from ..base.words import count, percent
from .comparison import Comparison
from .gate import FIRST, PASSES, SLOWER, UNKNOWN, judge, looks
from .intervals import Paired, paired

DRAWS = 200  # replays of each slow-down
FOUND = 0.95  # of them: so often a slow-down is to be found
SLOWED = (0.01, 0.02, 0.03, 0.05, 0.07, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5)
Array = NDArray[np.float64]


@dataclass(frozen=True)
class Replayed:
    """What a gate said of a command and of itself slowed by a share, of so many replays."""

    slowed: float
    red: float
    passed: float
    rounds: float  # until it said so, in the median

    @property
    def untold(self) -> float:
        return 1 - self.red - self.passed


@dataclass(frozen=True)
class Drawn:
    """The first rounds of a replay, as a gate asks a comparison."""

    values: Array  # (rounds, 3), more is better: the baseline, again, the variant
    baseline: str = "itself"
    variants: tuple[str, ...] = ("slowed",)

    @property
    def rounds(self) -> int:
        return len(self.values)

    def paired(self, level: float) -> Paired:
        return paired(self.values[:, :2], {"slowed": self.values[:, 2]}, level=level)


def replay(speeds: Array, share: float, slowed: float, draws: int = DRAWS) -> Replayed:
    """Ask a gate of equal runs, the last of each round slowed.

    Parameters
    ----------
    speeds : array of shape (rounds, 3)
        Of equal runs, in the order in which they ran; more is better.
    share : float
        Of the gate.
    slowed : float
        0.1 is a variant that is 10 % slower.
    draws : int
        Replays. Each begins with another round and goes on in their order, so that what lasts for
        several rounds does so here; which run of a round stands for the variant is drawn.

    Returns
    -------
    Replayed
    """
    draw = np.random.default_rng(0)
    said: Counter[int] = Counter()
    took: list[int] = []
    for _ in range(draws):
        order = np.roll(np.arange(len(speeds)), int(draw.integers(len(speeds))))
        values = draw.permuted(speeds[order], axis=1) * [1, 1, 1 - slowed]
        ends = looks(len(speeds))
        found = ((n, judge(Drawn(values[:n]), share).status) for n in ends)
        rounds, status = next((one for one in found if one[1] != UNKNOWN), (len(speeds), UNKNOWN))
        if status == UNKNOWN and len(speeds) not in ends:
            status = judge(Drawn(values), share).status
        said[status] += 1
        took.append(rounds)
    return Replayed(slowed, said[SLOWER] / draws, said[PASSES] / draws, statistics.median(took))


@dataclass(frozen=True)
class Calibrated:
    """What a gate does on this machine with a command, in the rounds that its minutes had."""

    share: float
    rounds: int
    spread: float
    replayed: Sequence[Replayed]

    @property
    def smallest(self) -> float | None:
        """The smallest slow-down that is found nearly always, and so are all larger ones."""
        found = None
        for one in reversed(self.replayed[1:]):
            if one.red < FOUND:
                break
            found = one.slowed
        return found

    def __str__(self) -> str:
        equal = self.replayed[0]
        lines = [f"{'slower by':>10} {'red':>8} {'passes':>8} {'cannot tell':>12} {'rounds':>8}"]
        for one in self.replayed:
            shares = (
                f"{100 * one.red:>6.1f} % {100 * one.passed:>6.1f} % {100 * one.untold:>10.1f} %"
            )
            lines.append(f"{100 * one.slowed:>8.0f} % {shares} {one.rounds:>8g}")
        found = (
            f"The smallest slow-down that it finds in {100 * FOUND:.0f} of 100: {percent(self.smallest)}."
            if self.smallest
            else f"It finds none of these in {100 * FOUND:.0f} of 100: give it more minutes."
        )
        return "\n".join(
            [
                *lines,
                f"False alarms of a gate of {percent(self.share)} on equal commands: {percent(equal.red)}. "
                f"{found}",
                f"It rests on {count(self.rounds, 'round')} of equal runs, which differ by "
                f"{percent(self.spread)} (a standard deviation), each row on {DRAWS} replays of them; "
                "slowed ones are the same figures, made worse by that share.",
            ]
        )


def calibrate(result: Comparison, share: float) -> Calibrated:
    """Replay a comparison of equal commands, as it is and slowed by several shares.

    ScaleoutError says where there are too few rounds.
    """
    if result.rounds < FIRST:
        raise ScaleoutError(
            f"{count(result.rounds, 'round')} came to an end in these minutes, and it takes {FIRST}: give "
            "it more, as in  --minutes 30"
        )
    speeds = result.speeds()
    within = np.log(speeds) - np.log(speeds).mean(axis=1, keepdims=True)
    spread = float(np.sqrt((within**2).sum() / (2 * len(speeds))))
    replayed = [replay(speeds, share, slowed) for slowed in (0.0, *SLOWED)]
    return Calibrated(share, result.rounds, spread, replayed)
