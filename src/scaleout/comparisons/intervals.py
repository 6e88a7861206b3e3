"""How many times as fast, with its interval: variants against a baseline that ran twice a round.

The method, and why it is not the percentile bootstrap of the ratio of medians: see `paired`.
`docs/compare.md` gives the figures of both on simulated jobs.
"""

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

LEVEL = 0.95
WITHIN = 0.05  # an interval that reaches no farther from 1 shows no difference
ROUNDS = 3  # fewer tell nothing
SPREADS, SHARE = 6.0, 0.3  # a run is disturbed when it is both so many spreads and 30 % off
NORMAL = 1.4826  # the standard deviation of a normal distribution, in median distances

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Ratio:
    """How many times as fast as the baseline."""

    middle: float
    low: float
    high: float
    rounds: int

    @property
    def width(self) -> float:
        """How far the interval reaches from the middle, as a share: 0.05 is 5 %."""
        return self.high / self.middle - 1

    @property
    def reach(self) -> float:
        """The largest difference from the baseline that the interval holds, as a share."""
        return max(self.high, 1 / self.low if self.low else math.inf) - 1


@dataclass(frozen=True)
class Paired:
    """What rounds of a baseline, run twice, and its variants tell."""

    ratios: dict[str, Ratio]
    null: Ratio
    noise: float
    disturbed: list[tuple[int, int, float]]
    drift: float
    drifted: bool


def paired(
    baseline: ArrayLike,
    variants: Mapping[str, ArrayLike],
    compared: int = 0,
    order: ArrayLike | None = None,
) -> Paired:
    """Estimate the ratios of variants to a baseline measured in rounds, each with its interval.

    Each round gives one logarithm of a ratio: the variant over the (geometric) mean of the two
    baselines. Their mean has a Student t interval. Where the two baselines of a round differ more
    than the variant does from them, the spread is that of both (which has twice the degrees of
    freedom), else the variant's own. With several variants each interval has the level
    1 - (1 - 0.95) / count, after Bonferroni, so that all hold at once.

    The percentile bootstrap of the ratio of medians was the first candidate (Efron and Tibshirani,
    An Introduction to the Bootstrap, 1993). With three rounds it called equal variants different in
    a quarter of all simulated comparisons, with five in 6 %: it has too few rounds to draw from.

    A run that is off by 30 % and by six spreads from what its round and its variant let expect is
    disturbed, and its round is left out (of that variant's ratio; of all, where it is a baseline's),
    as long as three rounds remain.
    """
    columns = [np.asarray(values, float) for values in variants.values()]
    logs = np.log(np.column_stack([np.asarray(baseline, float), *columns]))
    alpha = (1 - LEVEL) / max(1, compared or len(columns))
    off = _off(logs)
    clean = off == 0
    ratios, halves = {}, []
    for column, name in enumerate(variants, 2):
        kept = _kept(clean[:, [0, 1, column]])
        gaps, twins = _gaps(logs[kept], column), _twins(logs[kept])
        ratios[name] = _interval(gaps, alpha, twins)
        halves.append(_noise(gaps, twins, alpha))
    twins = _twins(logs[_kept(clean[:, :2])])
    own = _interval(twins, alpha)
    width = max(halves, default=math.log(own.high / own.middle))
    null = replace(own, low=own.middle * math.exp(-width), high=own.middle * math.exp(width))
    noise = math.expm1(max(width, abs(math.log(own.middle))))
    disturbed = [
        (int(r), int(c), math.expm1(off[r, c])) for r, c in zip(*np.nonzero(off), strict=True)
    ]
    when = np.arange(logs.size).reshape(logs.shape) if order is None else np.asarray(order, float)
    return Paired(ratios, null, noise, disturbed, *_drift(logs, clean, when))


def between(first: ArrayLike, second: ArrayLike, level: float = LEVEL) -> Ratio:
    """Estimate how many times as fast one is as the other, from the ratio of each round."""
    return _interval(np.log(np.asarray(first, float) / np.asarray(second, float)), 1 - level)


def mean_interval(values: Sequence[float], looks: int = 1) -> tuple[float, float]:
    """Return the mean of two values or more, and half the width of its interval, after Student.

    It is as wide as it takes for so many looks at such values at once.
    """
    middle, freedom = statistics.fmean(values), len(values) - 1
    error = statistics.stdev(values) / math.sqrt(len(values))
    return middle, _t(freedom, (1 - LEVEL) / looks) * error


def difference(pairs: Iterable[tuple[float, float]], looks: int = 1) -> tuple[float, float, float]:
    """Estimate by how much the second of each pair is larger than the first, in the mean.

    Parameters
    ----------
    pairs : iterable of (float, float)
        Two figures of the same seed, say.
    looks : int
        How many such differences there were to choose from.

    Returns
    -------
    tuple of float
        The mean of the differences, and the ends of its interval at 95 %, after Student; of one
        pair they are infinite, of none all three are not a number.
    """
    gaps = [second - first for first, second in pairs]
    if len(gaps) < 2:
        return (gaps[0], -math.inf, math.inf) if gaps else (math.nan, math.nan, math.nan)
    middle, half = mean_interval(gaps, looks)
    return middle, middle - half, middle + half


def verdict(ratio: Ratio, noise: float) -> str:
    """Judge a ratio: faster, slower, no difference shown, or unclear."""
    size = max(ratio.middle, 1 / ratio.middle) - 1
    if ratio.low > 1 and size > noise:
        return "faster"
    if ratio.high < 1 and size > noise:
        return "slower"
    return "no difference shown" if ratio.reach <= WITHIN else "unclear"


def _kept(clean: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Mark the rounds without a disturbed run; all of them, where too few would remain."""
    kept: NDArray[np.bool_] = clean.all(axis=1)
    return kept if kept.sum() >= ROUNDS else np.ones_like(kept)


def _gaps(logs: Array, column: int) -> Array:
    """Subtract the baselines' mean from a variant, a figure a round."""
    gaps: Array = logs[:, column] - logs[:, :2].mean(axis=1)
    return gaps


def _twins(logs: Array) -> Array:
    """Subtract the first baseline from the second, a figure a round."""
    gaps: Array = logs[:, 1] - logs[:, 0]
    return gaps


def _interval(gaps: Array, alpha: float, twins: Array | None = None) -> Ratio:
    """Return the mean of the gaps with its t interval.

    The baselines' spread is borrowed where it is the larger.
    """
    rounds, middle = len(gaps), float(np.mean(gaps))
    if rounds < ROUNDS:
        return Ratio(math.exp(middle), 0.0, math.inf, rounds)
    own, freedom = float(np.var(gaps, ddof=1)), rounds - 1
    if twins is not None:
        # of A and A' the difference varies by 2 units, of B and their mean by 1.5
        borrowed = 0.75 * float(np.var(twins, ddof=1))
        if borrowed >= own:
            own, freedom = (own + borrowed) / 2, 2 * freedom
    half = _t(freedom, alpha) * math.sqrt(own / rounds)
    return Ratio(math.exp(middle), math.exp(middle - half), math.exp(middle + half), rounds)


def _noise(gaps: Array, twins: Array, alpha: float) -> float:
    """Compute half the interval of what two means of equal runs differ by.

    Twins' spread and gaps' count as one.
    """
    rounds = len(gaps)
    if rounds < ROUNDS:
        return math.inf
    both = float(np.var(gaps, ddof=1)) / 1.5 + float(np.var(twins, ddof=1)) / 2
    return _t(2 * (rounds - 1), alpha) * math.sqrt(both / rounds)


def _t(freedom: int, alpha: float) -> float:
    from scipy.special import stdtrit

    return float(stdtrit(freedom, 1 - alpha / 2))


def _off(logs: Array) -> Array:
    """Measure how far each disturbed run is from what its variant and round let expect; else 0."""
    rounds, runs = logs.shape
    off = np.zeros_like(logs)
    if rounds < ROUNDS:
        return off
    groups: list[list[int]] = [[0, 1], *([column] for column in range(2, runs))]
    rest = logs.copy()
    for _ in range(2):  # Tukey's median polish
        _centre(rest, groups)
        rest -= np.median(rest, axis=1, keepdims=True)
    _centre(rest, groups)
    # the polish takes up some of the spread: scaled by the share of what is left free
    common = (
        NORMAL * float(np.median(np.abs(rest))) * math.sqrt(logs.size / ((rounds - 1) * (runs - 1)))
    )
    for columns in groups:
        free = rounds / (rounds - 1) if len(columns) == 1 else 1.0
        own = NORMAL * float(np.median(np.abs(rest[:, columns]))) * math.sqrt(free)
        limit = max(SPREADS * common, SPREADS * own, math.log1p(SHARE))
        off[:, columns] = np.where(np.abs(rest[:, columns]) > limit, rest[:, columns], 0)
    return off


def _centre(rest: Array, groups: Sequence[list[int]]) -> None:
    for columns in groups:
        rest[:, columns] -= np.median(rest[:, columns])


def _drift(logs: Array, clean: NDArray[np.bool_], when: Array) -> tuple[float, bool]:
    """Fit the trend of all runs, each against the median of its variant.

    It is taken from the first run to the last; also tell whether it is more than chance (99 %).
    """
    if len(logs) < ROUNDS:
        return math.nan, False
    rest = logs.copy()
    _centre(rest, [[0, 1], *([column] for column in range(2, logs.shape[1]))])
    x, y = when[clean] - when[clean].mean(), rest[clean] - rest[clean].mean()
    slope = float(x @ y / (x @ x))
    freedom = len(x) - logs.shape[1]  # a slope, and a median each variant
    error = math.sqrt(float(np.sum((y - slope * x) ** 2)) / freedom / float(x @ x))
    return math.expm1(slope * float(when.max() - when.min())), abs(slope) > _t(
        freedom, 0.01
    ) * error
