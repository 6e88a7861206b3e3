"""A race between points of a sweep: who is out is not measured again.

Each round measures again the better half of those that are still in, and none whose interval lies
below the leader's. (Successive halving: Karnin, Koren and Somekh, "Almost optimal exploration in
multi-armed bandits", ICML 2013. Leaving the hopeless out: Maron and Moore, "Hoeffding races", NIPS
1993.)"""

import math
import statistics
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import TypeVar

Place = TypeVar("Place", bound=Hashable)

SCATTER = 0.035  # relative, of two jobs of one point, as likely before any were seen
CERTAINTY = 3.0  # how many repeats that guess is worth
APART = 2.0  # standard errors: beyond, chance alone does not swap two points


def scatter(worth: Mapping[Place, Sequence[float]]) -> float:
    """How much jobs of one point differ, from all that were repeated."""
    again = [values for values in worth.values() if len(values) > 1]
    squares = sum((v - statistics.fmean(values)) ** 2 for values in again for v in values)
    repeats = sum(len(values) - 1 for values in again)
    return math.sqrt((CERTAINTY * SCATTER**2 + squares) / (CERTAINTY + repeats))


def leader(worth: Mapping[Place, Sequence[float]]) -> Place | None:
    """The place with the best median; None where all failed."""
    found = {place: statistics.median(values) for place, values in worth.items() if values}
    return max(found, key=lambda place: found[place]) if found else None


def least(worth: Mapping[Place, Sequence[float]]) -> float | None:
    """The low end of the leader's interval; None where all failed."""
    first = leader(worth)
    if first is None:
        return None
    values = worth[first]
    return statistics.median(values) - APART * scatter(worth) / math.sqrt(len(values))


def hopeless(worth: Mapping[Place, Sequence[float]]) -> set[Place]:
    """The places whose interval lies below the leader's, and those that failed."""
    lowest = least(worth)
    if lowest is None:
        return set(worth)
    one = APART * scatter(worth)
    return {
        place
        for place, values in worth.items()
        if not values or statistics.median(values) + one / math.sqrt(len(values)) < lowest
    }


def halve(
    worth: dict[Place, list[float]],
    repeat: int,
    jobs: int,
    measure: Callable[[Place, int], float | None],
) -> int:
    """Measures the better half of those still in once more, then the better half of these."""
    for times in range(1, repeat):
        out = hopeless(worth)
        still = [p for p, values in worth.items() if len(values) == times and p not in out]
        still.sort(key=lambda place: -statistics.median(worth[place]))
        for place in still[: max(1, math.ceil(len(still) / 2))]:
            if jobs < 1:
                return jobs
            jobs -= 1
            _once_more(worth, place, measure)
    return jobs


def confirm(
    worth: dict[Place, list[float]],
    repeat: int,
    jobs: int,
    measure: Callable[[Place, int], float | None],
) -> None:
    """Measures the leader until it leads with so many jobs."""
    while jobs > 0 and (first := leader(worth)) is not None and len(worth[first]) < repeat:
        jobs -= 1
        _once_more(worth, first, measure)


def _once_more(
    worth: dict[Place, list[float]], place: Place, measure: Callable[[Place, int], float | None]
) -> None:
    value = measure(place, len(worth[place]))
    worth[place] = [] if value is None else [*worth[place], value]
