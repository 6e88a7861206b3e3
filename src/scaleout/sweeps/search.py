"""Fewer jobs than a whole grid: begin at its corners, go where the points so far promise most, and
measure again what may be the best.

What the points that were measured say of the others comes from a Gaussian process (Rasmussen and
Williams, "Gaussian Processes for Machine Learning", 2006), and the next point is the one with the
largest expected improvement (Mockus, 1974). The better half is measured once more, and so on
(successive halving: Karnin, Koren and Somekh, ICML 2013)."""

import importlib.util
import math
import random
import statistics
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from ..base.errors import ScaleoutError
from ..base.words import sort_key
from .points import Place, Value

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

TWICE = 2  # jobs at least of what is called the best
NOISE = 0.05  # of one job: its variance, as a share of that between the points

Worth = dict[Place, list[float]]  # of each point the logarithms of what its jobs gave
Measure = Callable[[Place, int], float | None]


def check() -> None:
    """Refuse a search where what it computes with is missing."""
    if importlib.util.find_spec("sklearn") is None:
        raise ScaleoutError(
            "--search needs scikit-learn, and this Python has none: type  pip install scikit-learn  "
            "or leave --search out, which measures the whole grid."
        )


def search(
    places: Sequence[Place],
    trials: int,
    repeat: int,
    measure: Measure,
    lower: bool = False,
    seed: int = 0,
) -> Worth:
    """Measure so many of the points, each chosen by what those before gave.

    Then measure the likely best again. `measure` takes a point and how often it was measured; None
    says that it failed.
    """
    worth: Worth = {}
    trials = min(trials, len(places))
    jobs = trials * repeat

    def once(place: Place) -> None:
        nonlocal jobs
        jobs -= 1
        figure = measure(place, len(worth.get(place, ())))
        if figure is None:
            worth[place] = []
        else:
            worth.setdefault(place, []).append(math.log(figure) * (-1 if lower else 1))

    # With one job a point, two of the jobs are kept for the best one's second look.
    spare = TWICE if repeat < TWICE and trials > 2 * TWICE else 0
    for place in _chosen(places, (trials + 1) // 2, worth, seed):
        if len(worth) >= trials - spare:
            break
        once(place)
    for times in range(1, repeat):
        still = [place for place, values in worth.items() if len(values) == times]
        still.sort(key=lambda place: -statistics.median(worth[place]))
        for place in still[: math.ceil(len(still) / 2)]:
            once(place)
    while jobs > 0 and (best := leader(worth)) and len(worth[best]) < max(repeat, TWICE):
        once(best)
    return worth


def leader(worth: Worth) -> Place | None:
    """Return the point with the best median; None where all failed."""
    known = {place: statistics.median(values) for place, values in worth.items() if values}
    return max(known, key=lambda place: known[place]) if known else None


def _chosen(places: Sequence[Place], corners: int, worth: Worth, seed: int) -> Iterator[Place]:
    """Yield the points in the order in which to measure them, given what `worth` holds by then."""
    import numpy as np

    places = list(places)
    random.Random(seed).shuffle(places)  # so that those that promise as much have the same chance
    axes = [sorted(set(values), key=sort_key) for values in zip(*places, strict=True)]
    yield from _corners(places, axes, corners)
    features = np.hstack([_columns(axis, [p[i] for p in places]) for i, axis in enumerate(axes)])
    number = {place: index for index, place in enumerate(places)}
    while len(worth) < len(places):
        seen = [number[place] for place in worth]
        known = [value for values in worth.values() for value in values]
        values = [given[0] if given else min(known, default=0.0) for given in worth.values()]
        hope = _improvement(features, seen, values)
        hope[seen] = -math.inf
        yield places[int(np.argmax(hope))]


def _corners(places: Sequence[Place], axes: Sequence[Sequence[Value]], most: int) -> list[Place]:
    """Choose points with the first or the last value on each axis, far from each other."""
    left = [
        place
        for place in places
        if all(value in (axis[0], axis[-1]) for value, axis in zip(place, axes, strict=True))
    ] or list(places)
    found = [left.pop()]
    while left and len(found) < most:
        found.append(
            max(
                left,
                key=lambda place: min(
                    sum(a != b for a, b in zip(place, other, strict=True)) for other in found
                ),
            )
        )
        left.remove(found[-1])
    return found


def _columns(axis: Sequence[Value], values: Sequence[Value]) -> "Array":
    """Place the values of an axis of numbers from 0 to 1, (points, 1); give words a column each."""
    import numpy as np

    where = np.array([axis.index(value) for value in values])
    if any(math.isinf(key) and key > 0 for key, _ in map(sort_key, axis)):
        found: Array = np.eye(len(axis))[where] / math.sqrt(2)  # any two words are 1 apart
        return found
    return where[:, None] / max(1, len(axis) - 1)


def _improvement(features: "Array", seen: Sequence[int], values: Sequence[float]) -> "Array":
    """Estimate how much better than the best so far each point will be, (points,)."""
    import numpy as np
    from scipy.special import ndtr
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import Matern, WhiteKernel

    # Ten points are too few to learn the kernel from as well, so it stays as it is.
    kernel = Matern(length_scale=1.0, nu=2.5) + WhiteKernel(NOISE)
    process = GaussianProcessRegressor(kernel, optimizer=None, normalize_y=True)
    process.fit(features[seen], values)
    mean, spread = process.predict(features, return_std=True)
    above, spread = mean - mean[seen].max(), np.maximum(spread, 1e-9)
    at = above / spread
    found: Array = above * ndtr(at) + spread * np.exp(-(at**2) / 2) / math.sqrt(2 * math.pi)
    return found
