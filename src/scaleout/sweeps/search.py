"""Fewer jobs than a whole grid: a search begins with settings that are usually good, goes where the
points so far promise most, and measures again only what may still be the best."""

import itertools
import math
import random
from collections.abc import Callable, Iterator, Mapping, Sequence

from ..words import sort_key
from . import race
from .points import Choices, Value
from .starts import starts
from .surrogate import alike, promise

Place = tuple[Value, ...]
TWICE = 2  # jobs at least of what is called the best


def ask(
    choices: Choices,
    trials: int,
    repeat: int,
    seed: int,
    cores: int,
    measure: Callable[[Place, int], float | None],
    lower: bool = False,
    settle: Callable[[Mapping[str, Value]], dict[str, Value]] = dict,
) -> dict[Place, list[float]]:
    """Measures points of the grid of choices, one after another, each chosen by what those before
    gave; then again those that may be the best.
    """

    def judged(place: Place, times: int) -> float | None:
        figure = measure(place, times)
        if figure is None or figure <= 0:
            return None
        return -math.log(figure) if lower else math.log(figure)

    def settled(place: Place) -> Place:
        return tuple(settle(dict(zip(choices, place, strict=True))).values())

    axes = [tuple(sorted(values, key=sort_key)) for values in choices.values()]
    points = list(dict.fromkeys(map(settled, itertools.product(*axes))))
    first = list(dict.fromkeys(map(settled, starts(choices, cores))))
    trials = min(trials, len(points))
    most, jobs = max(repeat, TWICE), trials * repeat
    spare = TWICE if repeat < TWICE and trials > 2 * TWICE else 0
    worth: dict[Place, list[float]] = {}
    for place in _places(points, first, seed, worth):
        if len(worth) >= trials - spare:
            break
        value = judged(place, 0)
        worth[place] = [] if value is None else [value]
        jobs -= 1
    jobs = race.halve(worth, repeat, jobs, judged)
    race.confirm(worth, most, jobs, judged)
    return worth


def _places(
    points: Sequence[Place], first: Sequence[Place], seed: int, worth: dict[Place, list[float]]
) -> Iterator[Place]:
    """The points of a grid, the most promising next by what `worth` holds then."""
    import numpy as np

    yield from first
    axes = [tuple(sorted(set(values), key=sort_key)) for values in zip(*points, strict=True)]
    points = list(points)
    random.Random(seed).shuffle(points)  # so that those that promise as much have the same chance
    index = [{value: i for i, value in enumerate(axis)} for axis in axes]
    at = np.array([[where[v] for where, v in zip(index, p, strict=True)] for p in points])
    sizes, ordered = [len(axis) for axis in axes], [_numbers(axis) for axis in axes]
    number = {place: i for i, place in enumerate(points)}
    while len(worth) < len(points):
        seen = [number[place] for place in worth]
        known = [value for values in worth.values() for value in values]
        values = np.array([v[0] if v else min(known, default=0.0) for v in worth.values()])
        hope = promise(alike(at[seen], at, sizes, ordered), seen, values, race.scatter(worth))
        hope[seen] = -math.inf
        yield points[int(np.argmax(hope))]


def _numbers(values: Place) -> bool:
    return not any(math.isinf(place) for place, _ in map(sort_key, values) if place > 0)
