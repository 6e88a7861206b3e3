"""Made-up scaling tables whose law is known, to ask how often an interval of ours holds the truth.

Ten kinds of trouble. Each is written down here from the trouble itself (steps, messages, queues),
not with the functions of scaleout.scaling.fit, so that a law of ours can be wrong about a table.
`tune` and `judge` draw from different ranges and different designs: the laws were chosen on the
first, and docs/scaling.md shows what came of it on the second."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np

Rng = np.random.Generator
Slowdown = Callable[[float], float]  # node seconds of a unit of work on n nodes; 1 is one node's


@dataclass(frozen=True)
class Table:
    """Rates measured on so many nodes, and what would be measured on 2 and 4 times the largest."""

    kind: str
    nodes: tuple[int, ...]
    rates: tuple[float, ...]
    noise: float  # standard deviation of the logarithm
    further: tuple[int, int]
    measured: tuple[float, float]  # on `further`, with the same noise
    truth: Slowdown = field(repr=False)  # the rate on any number, without noise


def _between(rng: Rng, low: float, high: float) -> float:
    """A number between the two, each order of magnitude as likely as the next."""
    return float(np.exp(rng.uniform(math.log(low), math.log(high))))


def _amdahl(rng: Rng, most: int, wide: float) -> Slowdown:
    serial = _between(rng, 0.02 / wide, 1.5 * wide) / most
    return lambda n: serial * n + 1 - serial


def _ring(rng: Rng, most: int, wide: float) -> Slowdown:
    transfer = _between(rng, 0.02 / wide, 0.8 * wide)
    latency = _between(rng, 0.003 / wide, 0.5 * wide) / most
    if rng.random() < 0.5:  # weak scaling: each rank keeps its batch
        return lambda n: 1 + transfer * (n - 1) / n + latency * (n - 1)
    transfer /= most  # strong scaling: what a rank computes shrinks, its messages do not
    return lambda n: n * (1 / n + transfer * (n - 1) / n + latency / most * (n - 1))


def _tree(rng: Rng, most: int, wide: float) -> Slowdown:
    depth = math.log2(most)
    cost = _between(rng, 0.03 / wide, 1.2 * wide) / depth
    if rng.random() < 0.5:
        return lambda n: 1 + cost * math.log2(n)
    return lambda n: n * (1 / n + cost / most * math.log2(n))


def _contention(rng: Rng, most: int, wide: float) -> Slowdown:
    contention = _between(rng, 0.02 / wide, 1.0 * wide) / most
    coherence = _between(rng, 0.02 / wide, 1.0 * wide) / most**2
    return lambda n: 1 + contention * (n - 1) + coherence * n * (n - 1)


def _server(rng: Rng, most: int, wide: float) -> Slowdown:
    capacity = most * _between(rng, 0.3 / wide, 4.0 * wide)
    knee = rng.uniform(1.5, 8)
    own = _between(rng, 0.005, 0.1 * wide)
    return lambda n: ((1 + (n / capacity) ** knee) ** (1 / knee)) * (1 + own * (n - 1) / n)


def _two_level(rng: Rng, most: int, wide: float) -> Slowdown:
    devices = int(rng.choice([4, 8])) if most >= 16 else int(rng.choice([2, 4]))
    inside = _between(rng, 0.01 / wide, 0.15 * wide)
    outside = _between(rng, 0.05 / wide, 0.8 * wide)
    latency = _between(rng, 0.003, 0.2 * wide) * devices / most

    def slowdown(n: float) -> float:
        mine, hosts = min(n, devices), math.ceil(n / devices)
        within = inside * (mine - 1) / mine
        return 1 + within + outside * (hosts - 1) / hosts + latency * (hosts - 1)

    return slowdown


def _stragglers(rng: Rng, most: int, wide: float) -> Slowdown:
    spread = _between(rng, 0.03 / wide, 0.8 * wide)
    way = rng.integers(3)
    if way == 0:  # the slowest of n normal times
        return lambda n: 1 + spread * math.sqrt(2 * math.log(n)) / math.sqrt(2 * math.log(most))
    if way == 1:  # the slowest of n exponential times
        return lambda n: 1 + spread * math.log(n) / math.log(most)
    return lambda n: 1 + spread * (math.sqrt(n) - 1) / math.sqrt(most)


def _imbalance(rng: Rng, most: int, wide: float) -> Slowdown:
    pieces = round(most * _between(rng, 2.5 / wide, 60 * wide))
    serial = _between(rng, 0.005, 0.1 * wide) / most
    return lambda n: math.ceil(pieces / n) * n / pieces + serial * (n - 1)


def _rank0(rng: Rng, most: int, wide: float) -> Slowdown:
    steps = int(_between(rng, 20, 200) * most)  # of an epoch on one rank
    evaluation = _between(rng, 0.02 / wide, 1.2 * wide) / most * steps
    return lambda n: n * (math.ceil(steps / n) + evaluation) / (steps + evaluation)


def _hidden(rng: Rng, most: int, wide: float) -> Slowdown:
    """An allreduce behind the backward pass: nothing shows until it no longer fits."""
    transfer = _between(rng, 0.2 / wide, 0.9 * wide)
    latency = _between(rng, 0.02, 0.5 * wide) / most
    behind = rng.uniform(0.1, 0.6)
    return lambda n: 1 + max(0.0, transfer * (n - 1) / n + latency * (n - 1) - behind)


KINDS: dict[str, Callable[[Rng, int, float], Slowdown]] = {
    "Amdahl": _amdahl,
    "ring": _ring,
    "tree": _tree,
    "contention and coherence": _contention,
    "saturating server": _server,
    "two-level network": _two_level,
    "stragglers": _stragglers,
    "sizes that do not divide": _imbalance,
    "rank 0 evaluates": _rank0,
    "hidden allreduce": _hidden,
}


def _design(rng: Rng, judge: bool) -> tuple[int, ...]:
    """4 to 8 numbers of nodes: doubled, or with steps between, or (judge alone) trebled."""
    points, first = int(rng.integers(4, 9)), int(rng.choice([1, 1, 1, 2, 4]))
    way = rng.integers(3 if judge else 2)
    if way == 0:
        return tuple(first * 2**k for k in range(points))
    if way == 1:
        return tuple(first * k for k in (1, 2, 3, 4, 6, 8, 12, 16)[:points])
    return tuple(first * k for k in (1, 3, 4, 9, 12, 27, 36, 81)[:points])


def tables(count: int, seed: int, judge: bool = True) -> Iterator[Table]:
    """So many tables, each kind in turn; the same ones for the same seed."""
    for number in range(count):
        rng = np.random.default_rng([seed, number, judge])
        kind = list(KINDS)[number % len(KINDS)]
        nodes = _design(rng, judge)
        slowdown = KINDS[kind](rng, nodes[-1], 1.4 if judge else 1.0)
        noise, one = rng.uniform(0.01, 0.10), _between(rng, 1, 1000)
        further = (2 * nodes[-1], 4 * nodes[-1])

        def truth(n: float, one: float = one, slowdown: Slowdown = slowdown) -> float:
            return one * n / slowdown(n)

        true = np.array([truth(n) for n in (*nodes, *further)])
        measured = (true * np.exp(noise * rng.standard_normal(len(true)))).tolist()
        two, four = measured[-2:]
        yield Table(kind, nodes, tuple(measured[:-2]), noise, further, (two, four), truth)
