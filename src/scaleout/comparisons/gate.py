"""A verdict that a machine can act on: is it shown to be no slower than a given share?

A test that is repeated after every round, until it says so, says so more often than it should. So it
is asked after 5, 7, 10, 14, 20, 28 rounds and so on, and look k spends 1 / (k (k + 1)) of the 5 % by
which all looks together may be wrong: these shares add up to 1 (spending functions: K. K. G. Lan and
D. L. DeMets, "Discrete sequential boundaries for clinical trials", Biometrika, 1983).
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Literal, Protocol

from ..base.words import count, percent
from .intervals import LEVEL, Paired, Ratio

Status = Literal[0, 1, 3]  # of the command; 2 is bad input, and a job that fails
Says = Literal["passes", "slower", "cannot tell"]
PASSES: Status = 0
SLOWER: Status = 1
UNKNOWN: Status = 3
WORDS: Mapping[Status, Says] = {PASSES: "passes", SLOWER: "slower", UNKNOWN: "cannot tell"}
FIRST, STEP = 5, math.sqrt(2)
LATER = 1.1  # times as wide are the intervals of the looks to come
MOST_ROUNDS = 10_000  # more would be no advice


class Measured(Protocol):
    """A comparison, as far as a gate asks it."""

    @property
    def baseline(self) -> str: ...

    @property
    def rounds(self) -> int: ...

    def paired(self, level: float) -> Paired: ...


def looks(rounds: int) -> list[int]:
    """List the numbers of rounds after which a gate looks, up to so many."""
    return [*takewhile(lambda n: n <= rounds, (round(FIRST * STEP**k) for k in range(64)))]


def level(rounds: int) -> float:
    """Return the level of the intervals after so many rounds; between two looks it is the next one's."""
    past = looks(rounds)
    look = len(past) + (rounds not in past)
    return 1 - (1 - LEVEL) / (look * (look + 1))


@dataclass(frozen=True)
class Judged:
    """What a gate says of a comparison.

    Attributes
    ----------
    share : float
        By how much slower a variant may be: 0.05 is 5 %.
    status : int
        0: all variants are shown to be no slower than that. 1: one is shown to be slower. 3: nobody
        can tell yet.
    statuses, ratios : mapping
        The same of each variant, and its ratio, with an interval that all looks together keep.
    rounds : int
        How many there were.
    needed : mapping
        About how many would tell, for each variant of which nobody can tell; 0 where they would be
        more than anybody waits for.
    """

    share: float
    rounds: int
    baseline: str
    statuses: Mapping[str, Status] = field(default_factory=dict)
    ratios: Mapping[str, Ratio] = field(default_factory=dict)
    needed: Mapping[str, int] = field(default_factory=dict)

    @property
    def status(self) -> Status:
        found = set(self.statuses.values())
        return SLOWER if SLOWER in found else UNKNOWN if UNKNOWN in found else PASSES

    def __str__(self) -> str:
        return "\n".join([f"Gate of {percent(self.share)}: {WORDS[self.status]}.", *self.sentences])

    @property
    def sentences(self) -> list[str]:
        """A sentence each variant."""
        return [self._sentence(name) for name in self.statuses]

    def _sentence(self, name: str) -> str:
        status, ratio = self.statuses[name], self.ratios[name]
        rounds = count(self.rounds, "round")
        if not math.isfinite(ratio.high):
            return f"{name}: nobody can tell after {rounds}; it takes {FIRST}."
        times = (
            f"it is {ratio.middle:.3f} times as fast as {self.baseline} ({ratio.low:.3f} to "
            f"{ratio.high:.3f}; {rounds})"
        )
        if status == PASSES:
            return f"{name} is shown to be no more than {percent(self.share)} slower: {times}."
        if status == SLOWER:
            return f"{name} is shown to be more than {percent(self.share)} slower: {times}."
        needed = self.needed.get(name, 0)
        more = (
            f"about {needed:,} rounds would tell"
            if needed
            else f"{MOST_ROUNDS:,} rounds may not tell"
        )
        return (
            f"{name}: nobody can tell whether it is more than {percent(self.share)} slower: {times}. "
            f"{more[0].upper()}{more[1:]}."
        )


def judge(result: Measured, share: float) -> Judged:
    """Judge all variants of a comparison by the rounds that it has."""
    limit, found = 1 - share, result.paired(level(result.rounds))
    statuses: dict[str, Status] = {}
    needed: dict[str, int] = {}
    for name, ratio in found.ratios.items():
        statuses[name] = PASSES if ratio.low >= limit else SLOWER if ratio.high < limit else UNKNOWN
        if statuses[name] == UNKNOWN and math.isfinite(ratio.high):
            far = abs(math.log(ratio.middle / limit))
            half = LATER * math.log(ratio.high / ratio.middle)
            most = far * math.sqrt(MOST_ROUNDS / result.rounds)
            needed[name] = math.ceil(result.rounds * (half / far) ** 2) if half < most else 0
    return Judged(share, result.rounds, result.baseline, statuses, found.ratios, needed)


def told(result: Measured, share: float) -> bool:
    """Tell whether a gate may look after just so many rounds, and sees what it asks for."""
    return result.rounds in looks(result.rounds) and judge(result, share).status != UNKNOWN
