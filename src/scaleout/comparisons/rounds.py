"""In which order the runs of a comparison come, and when there are enough of them."""

import math
from collections.abc import Callable, Iterator, Sequence

from .comparison import Comparison
from .intervals import ROUNDS

Column = tuple[str, int]  # a variant, and 1 where it is the baseline's second run of a round
MORE = 2  # rounds at most that take the place of disturbed ones


def columns(names: Sequence[str]) -> list[Column]:
    """The runs of a round: the baseline twice, then each variant."""
    return [(names[0], 0), (names[0], 1), *((name, 0) for name in names[1:])]


def plan(
    round_of: Sequence[Column], first: int, enough: Callable[[], bool]
) -> Iterator[tuple[int, Column]]:
    """The runs to come.

    Every second round is the mirror image of the one before, so that a steady drift cancels, and
    each pair of rounds begins one place further on, so that nobody keeps a place.
    """
    number = first
    while not enough():
        shift = number // 2 % len(round_of)
        turn = [*round_of[shift:], *round_of[:shift]]
        for column in turn if number % 2 == 0 else reversed(turn):
            yield number, column
        number += 1


def enough(result: Comparison, rounds: int) -> bool:
    """Whether no further round is needed: every variant is settled, or all rounds are there."""
    if result.rounds < min(rounds, ROUNDS):
        return False
    settled = all(_settled(result, name) for name in result.variants)
    disturbed = {number for number, _, _ in result.found.disturbed}
    return settled or result.rounds >= rounds + min(MORE, len(disturbed))


def _settled(result: Comparison, name: str) -> bool:
    """Whether more rounds would change nothing: an interval that is narrow, and either far from 1
    (twice its half-width) or around it (by half of that at most).

    It does not stop at the first verdict: a test that is repeated after every round, until it says
    "different", says so more often than it should.
    """
    ratio, narrow = result.ratio(name), math.log1p(result.within / 2)
    half, size = math.log(ratio.high / ratio.middle), abs(math.log(ratio.middle))
    if result.verdict(name) == "no difference shown":
        return half + size <= narrow and size <= half / 2
    return result.verdict(name) != "unclear" and half <= max(narrow, size / 10) and half <= size / 2
