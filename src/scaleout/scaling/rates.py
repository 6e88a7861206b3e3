"""From rates on few nodes to a rate on many: three laws, each with a reason, weighed by how well they fit.

The time of a unit of work on one node, nodes / rate, grows with the nodes p in one of three ways:
    Amdahl      c + d (p - 1)          something is done one after another, or each further node adds a delay
    ring        c + d (p - 1) / p      an allreduce of large arrays: nearly all of it is there at two nodes
    stragglers  c + d sqrt(2 ln p)     all wait for the slowest, who grows slower with their number
Each alone is fitted by least squares. Nobody knows beforehand which one rules, so a prediction is their mean, weighted
by likelihood, and its interval covers that of each law that the points do not rule out.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ..errors import ScaleoutError

__all__ = ["Prediction", "RateFit", "fit_rates"]

FEWEST_NODES = 4  # different node counts: two go into a law, two say how well it fits
PRECISION = 0.005  # relative: no rate is known better than this, so that no law wins by a rounding
CREDIBLE = 0.05  # a law with less weight than this is ruled out
WIDEST = 3.0  # an interval whose ends differ by more than this factor is no prediction
FARTHEST = 16  # times the most nodes measured
LAWS: dict[str, Callable[[float], float]] = {
    "Amdahl": lambda p: p - 1,
    "ring": lambda p: (p - 1) / p,
    "stragglers": lambda p: math.sqrt(2 * math.log(p)),
}


@dataclass(frozen=True)
class Prediction:
    """The rate on so many nodes and its 95 % interval; efficiency is against as many times the rate of one node."""

    nodes: int
    rate: float
    low: float
    high: float
    efficiency: float

    def node_hours(self, work: float) -> float:
        """What so many units of work cost, in node hours."""
        return self.nodes * work / self.rate / 3600


@dataclass(frozen=True)
class _Law:
    name: str
    coefficients: tuple[float, float]
    covariance: tuple[tuple[float, float], tuple[float, float]]
    scatter: float  # relative, of single points
    weight: float

    def time(self, p: float) -> float:
        return self.coefficients[0] + self.coefficients[1] * LAWS[self.name](p)

    def error(self, p: float) -> float:
        """The standard error of a new measurement: the law's own and the scatter of single points."""
        f = LAWS[self.name](p)
        (a, b), (_, c) = self.covariance
        return math.sqrt(max(0.0, a + 2 * f * b + f * f * c) + (self.scatter * self.time(p)) ** 2)


@dataclass(frozen=True)
class RateFit:
    """Laws fitted to a table of rates, together with how much each counts."""

    laws: tuple[_Law, ...]
    nodes: tuple[float, ...]
    points: int

    @property
    def weights(self) -> dict[str, float]:
        """How much each law counts, together 1."""
        return {law.name: law.weight for law in self.laws}

    @property
    def one(self) -> float:
        """The rate of one node, by the laws."""
        return 1 / self.time(1)

    @property
    def scatter(self) -> float:
        """How far single points lie from the best law, relative."""
        return max(self.laws, key=lambda law: law.weight).scatter

    def time(self, nodes: float) -> float:
        """Node seconds of a unit of work."""
        return sum(law.weight * law.time(nodes) for law in self.laws)

    def rate(self, nodes: float) -> float:
        """The rate on so many nodes, without a word on how sure it is."""
        return nodes / self.time(nodes)

    def predict(self, nodes: int) -> Prediction:
        """The rate on so many nodes, with its interval; ScaleoutError where these points cannot tell."""
        from scipy.stats import t

        def at(p: int, law: _Law, errors: float) -> float:
            return law.time(p) + errors * law.error(p)

        if nodes < 1:
            raise ScaleoutError(f"A prediction needs at least 1 node; asked for {nodes}.")
        if nodes > FARTHEST * max(self.nodes):
            raise ScaleoutError(
                f"{nodes} nodes are more than {FARTHEST} times the {max(self.nodes):g} that were measured, too far to "
                f"trust any law: measure on at least {math.ceil(nodes / FARTHEST)} nodes."
            )
        reach = float(t.ppf(0.975, self.points - 2))
        ends = [  # no law lets a node do more among many than alone
            (max(at(nodes, law, -reach), at(1, law, -reach)), at(nodes, law, reach))
            for law in self.laws
            if law.weight >= CREDIBLE
        ]
        fast, slow = min(low for low, _ in ends), max(high for _, high in ends)
        if fast <= 0 or slow / fast > WIDEST:
            between = f"{nodes / slow:.3g} and {nodes / fast:.3g}" if fast > 0 else f"{nodes / slow:.3g} and anything"
            raise ScaleoutError(
                f"The rate on {nodes} nodes lies anywhere between {between}, which is no prediction: measure more "
                "often, or on more nodes."
            )
        return Prediction(nodes, self.rate(nodes), nodes / slow, nodes / fast, self.time(1) / self.time(nodes))


def fit_rates(nodes: Sequence[float], rates: Sequence[float]) -> RateFit:
    """Fits the laws to rates on so many nodes, a pair a measurement; each node has the same batch at any number.

    ScaleoutError when there are fewer than 4 different node counts: that is too few to say how sure it is.
    """
    import numpy as np

    p, r = np.asarray(nodes, float), np.asarray(rates, float)  # (points,)
    if p.shape != r.shape or not (np.isfinite(r).all() and (r > 0).all() and np.isfinite(p).all() and (p >= 1).all()):
        raise ScaleoutError("A fit needs one rate above 0 for each number of nodes, which is 1 or more.")
    counts = len(np.unique(p))
    if counts < FEWEST_NODES:
        raise ScaleoutError(
            f"{counts} different numbers of nodes are too few to say how sure a prediction is: "
            f"measure at least {FEWEST_NODES}, such as 1, 2, 4 and 8."
        )
    y = p / r
    found = [(name, *_least_squares(np.array([law(x) for x in p]), y)) for name, law in LAWS.items()]
    log_likelihood = np.array([-len(p) / 2 * math.log(rss / len(p) + PRECISION**2) for *_, rss in found])
    weights = np.exp(log_likelihood - log_likelihood.max())
    weights /= weights.sum()
    laws = []
    for (name, coefficients, inverse, rss), weight in zip(found, weights, strict=True):
        scatter = math.sqrt(max(rss / (len(p) - 2), PRECISION**2))
        covariance = (scatter**2 * inverse).tolist()
        laws.append(_Law(name, tuple(coefficients.tolist()), tuple(map(tuple, covariance)), scatter, float(weight)))
    return RateFit(tuple(laws), tuple(sorted(set(p.tolist()))), len(p))


def _least_squares(f, y):  # type: ignore[no-untyped-def]
    """The coefficients c, d >= 0 of c + d f, (2,); the inverse of the normal matrix, (2, 2); the sum of squares.

    f, y: (points,). Errors count relative to y.
    """
    import numpy as np
    from scipy.optimize import lsq_linear

    basis = np.stack([np.ones_like(f), f], axis=1) / y[:, None]  # (points, 2)
    found = lsq_linear(basis, np.ones_like(y), bounds=(0, np.inf)).x
    return found, np.linalg.inv(basis.T @ basis), float(np.sum((basis @ found - 1) ** 2))
