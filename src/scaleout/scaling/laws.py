"""Laws of scaling: how the node seconds of a unit of work grow with the nodes, and what of each law
is likely before anything was measured.

On n nodes a law says  slowdown(n) = 1 + loss x shape(n) / shape(largest),  so `loss` is what it
costs on the largest count measured: 1 means that half of those nodes' time is lost there. A law's
`prior` draws many candidates, each a loss and the law's own parameters, spread evenly over orders
of magnitude. Sources: Amdahl, AFIPS 30, 1967; Gunther, "A simple capacity model of massively
parallel transaction systems", CMG 1993 (universal scalability); Thakur, Rabenseifner and Gropp,
IJHPCA 19 (1), 2005 (ring and tree)."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float64]


LOSSES = 0.003, 8.0  # at the largest count measured: from a perfect table to one that has collapsed
CANDIDATES = 4096  # of each law; a power of two, as their sequence wants


@dataclass(frozen=True)
class Law:
    """A law, with the sentence that explains it."""

    name: str
    reason: str
    slowdown: "Callable[[Array, Array, float], Array]"
    before: float = 1.0


def _spread(u: "Array", low: float, high: float) -> "Array":
    """Numbers in 0 to 1 as numbers in low to high, each order of magnitude alike; (draws, 1)."""
    import numpy as np

    found: Array = np.exp(np.log(low) + u[:, None] * np.log(high / low))
    return found


def _loss(u: "Array") -> "Array":
    return _spread(u[:, 0], *LOSSES)


def _amdahl(n: "Array", u: "Array", most: float) -> Any:
    return 1 + _loss(u) * (n - 1) / (most - 1)


def _ring(n: "Array", u: "Array", most: float) -> Any:
    """Bandwidth's part, all there at two ranks; and latency's, which grows with each."""
    latency = _spread(u[:, 1], 1e-2, 1)
    share = latency / (1 + latency)
    moved = ((n - 1) / n) / ((most - 1) / most)
    return 1 + _loss(u) * ((1 - share) * moved + share * (n - 1) / (most - 1))


def _tree(n: "Array", u: "Array", most: float) -> Any:
    """log2(n) messages after one another; beside a step that stays, or (u > 1/2) that shrinks."""
    import numpy as np

    strong = (u[:, 1] > 0.5)[:, None]
    steps = np.log(n) / np.log(most)
    return 1 + _loss(u) * np.where(strong, steps * n / most, steps)


def _universal(n: "Array", u: "Array", most: float) -> Any:
    """Waiting for one another (linear), and telling each other (every pair)."""
    coherence = _spread(u[:, 1], 0.1, 1e2)
    share = coherence / (1 + coherence)
    pairs = n * (n - 1) / (most * (most - 1))
    return 1 + _loss(u) * ((1 - share) * (n - 1) / (most - 1) + share * pairs)


def _saturating(n: "Array", u: "Array", most: float) -> Any:
    """A server, link or file system that gives no more than `capacity` nodes ask for."""
    capacity = most * _spread(u[:, 0], 0.1, 10)
    knee = _spread(u[:, 1], 1.2, 12)
    own = _spread(u[:, 2], 0.003, 0.3)
    return (1 + (n / capacity) ** knee) ** (1 / knee) * (1 + own * (n - 1) / n)


def _two_level(n: "Array", u: "Array", most: float) -> Any:
    """Two networks: between the devices of one node, and between nodes of 2 to 16 devices.

    Rings inside rings, or one ring over all, which is as slow as its slowest link from the second
    node on.
    """
    import numpy as np

    devices = 2.0 ** np.floor(1 + 4 * u[:, 3:])
    flat = 8 * u[:, 3:] % 2 < 1
    mine, hosts = np.minimum(n, devices), np.ceil(n / devices)
    latency = _spread(u[:, 2], 1e-2, 1)
    ring = np.where(flat, (n - 1) / n * (hosts > 1), (hosts - 1) / hosts)
    outside = (1 - latency) * ring + latency * (hosts - 1) * devices / most
    return 1 + _loss(u) * outside + _spread(u[:, 1], 0.003, 0.5) * (mine - 1) / mine


def _stragglers(n: "Array", u: "Array", most: float) -> Any:
    """All wait for the slowest: the root of log n (normal times), log n, or the root of n."""
    import numpy as np

    way = np.floor(3 * u[:, 1])[:, None]
    log = np.log(n) / np.log(most)
    root = (np.sqrt(n) - 1) / (np.sqrt(most) - 1)
    return 1 + _loss(u) * np.select([way == 0, way == 1], [np.sqrt(log), log], root)


def _imbalance(n: "Array", u: "Array", most: float) -> Any:
    """So many equal pieces, which do not divide: the one with a piece more is waited for."""
    import numpy as np

    pieces = np.round(most * _spread(u[:, 1], 1, 200))
    serial = _spread(u[:, 0], 0.001, 1)
    return np.ceil(pieces / n) * n / pieces + serial * (n - 1) / (most - 1)


def _hidden(n: "Array", u: "Array", most: float) -> Any:
    """An allreduce behind the backward pass: nothing shows until it no longer fits."""
    import numpy as np

    transfer, latency = _spread(u[:, 0], 0.05, 4), _spread(u[:, 1], 0.01, 4)
    behind = u[:, 2:3]
    whole = transfer * (n - 1) / n + latency * (n - 1) / (most - 1)
    return 1 + np.maximum(0, whole - behind)


LAWS = (
    Law("Amdahl", "a part is done by one alone", _amdahl),
    Law("ring", "an allreduce around a ring", _ring),
    Law("tree", "messages up and down a tree", _tree),
    Law("contention and coherence", "nodes wait for, and tell, one another", _universal, 2.0),
    Law("saturation", "something shared gives no more", _saturating, 2.0),
    Law("two-level network", "slower between nodes than inside one", _two_level),
    Law("stragglers", "all wait for the slowest", _stragglers),
    Law("sizes that do not divide", "one has a piece more than the others", _imbalance),
    Law("hidden allreduce", "messages behind the computing, until they no longer fit", _hidden),
)


@cache
def candidates() -> "Array":
    """The same points in the unit cube each time, spread evenly; (CANDIDATES, 4)."""
    from scipy.stats import qmc

    found: Array = qmc.Sobol(4, rng=1993).random(CANDIDATES)
    return found
