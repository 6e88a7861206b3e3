"""From rates on few nodes to a rate on many: laws that might hold, weighed by what they foretold.

Nobody knows beforehand which trouble rules, so no law is fitted and then believed. Each law of
`laws` offers thousands of candidates, and each candidate is believed as far as it agrees with the
rates. A law as a whole is weighed forward: how likely were the rates on the larger counts, said a
law that had seen only the smallest two (Dawid, "Present position and potential developments:
statistical theory, the prequential approach", JRSS A 147, 1984)? A prediction is the median of what
the candidates say, and its interval holds 95 % of it, the next measurement's own scatter included.
So whatever the points cannot yet rule out, such as a server that is full soon, is in the interval.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ..errors import ScaleoutError
from .belief import Points, log_sum, student
from .laws import LAWS, Law, candidates
from .points import FEWEST_COUNTS, count_points

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float64]


UNSEEN = 2  # the smallest counts, with which a law begins
MOST_COUNTS = 200
DRAWS = 4000  # candidates kept, each as often as it is believed
WIDEST = 10.0  # an interval whose ends differ by more than this factor is no prediction
WILDEST = 0.5  # scatter; beyond it the rates follow no law
FARTHEST = 16  # times the most nodes measured


@dataclass(frozen=True)
class Prediction:
    """The rate on so many nodes, and the interval that a measurement there falls into, 95 in 100."""

    nodes: int
    rate: float
    low: float
    high: float
    efficiency: float
    low_law: str = ""

    def node_hours(self, work: float) -> float:
        """What so many units of work cost, in node hours."""
        return self.nodes * work / self.rate / 3600


@dataclass(frozen=True)
class _Believed:
    """The candidates of one law that are believed, each as often as it is.

    log_one: the logarithm of a node's rate.  error: of a single measurement, relative; both
    (draws,).
    """

    law: Law
    candidates: "Array"  # (draws, 4)
    log_one: "Array"
    error: "Array"

    def log_rates(self, nodes: float, most: float) -> "Array":
        import numpy as np

        slowdown = self.law.slowdown(np.array([nodes], float), self.candidates, most)[:, 0]
        found: Array = self.log_one + np.log(nodes) - np.log(slowdown)
        return found


@dataclass(frozen=True)
class RateFit:
    """Laws weighed by a table of rates."""

    weights: dict[str, float]
    nodes: tuple[float, ...]
    points: int
    scatter: float
    believed: tuple[_Believed, ...] = field(repr=False)

    @property
    def one(self) -> float:
        """The rate of one node, by the laws."""
        return self.rate(1)

    def rate(self, nodes: float) -> float:
        """The rate on so many nodes, without a word on how sure it is."""
        import numpy as np

        return float(np.exp(np.median(self.log_rates(nodes))))

    def log_rates(self, nodes: float) -> "Array":
        """What the candidates say of so many nodes, as logarithms, the same ones in the same order
        for any number; (draws,)."""
        import numpy as np

        return np.concatenate([part.log_rates(nodes, self.nodes[-1]) for part in self.believed])

    @property
    def error(self) -> "Array":
        """Of a single measurement, relative, by each candidate; (draws,)."""
        import numpy as np

        return np.concatenate([part.error for part in self.believed])

    def measured(self, nodes: float) -> "Array":
        """What a measurement may give, as logarithms: the same with its scatter; (draws,)."""
        error = self.error
        return self.log_rates(nodes) + error * student(self.points, len(error))

    def predict(self, nodes: int) -> Prediction:
        """The rate on so many nodes, with its interval."""
        import numpy as np

        if nodes < 1:
            raise ScaleoutError(f"A prediction needs at least 1 node; asked for {nodes}.")
        if nodes > FARTHEST * self.nodes[-1]:
            raise ScaleoutError(
                f"{nodes} nodes are more than {FARTHEST} times the {self.nodes[-1]:g} that were "
                "measured, too far to trust any law: measure on at least "
                f"{math.ceil(nodes / FARTHEST)} nodes."
            )
        if self.scatter > WILDEST:
            raise ScaleoutError(
                f"No law comes nearer to these rates than {100 * self.scatter:.0f} %: look for a "
                "wrong number in the table, or measure again."
            )
        seen = self.measured(nodes)
        low, high = np.exp(np.quantile(seen, [0.025, 0.975])).tolist()
        if high > WIDEST * low:
            raise ScaleoutError(
                f"The rate on {nodes} nodes lies anywhere between {low:.3g} and {high:.3g}, which "
                "is no prediction: measure more often, or on more nodes."
            )
        here, one = self.log_rates(nodes), self.log_rates(1)
        efficiency = float(np.exp(np.median(here - one))) / nodes
        names = np.repeat(
            [part.law.name for part in self.believed], [len(part.error) for part in self.believed]
        )
        slow, counts = np.unique(names[seen <= math.log(low)], return_counts=True)
        return Prediction(
            nodes, self.rate(nodes), low, high, efficiency, str(slow[np.argmax(counts)])
        )


def fit_rates(nodes: Sequence[float], rates: Sequence[float]) -> RateFit:
    """Weighs the laws by rates on so many nodes."""
    import numpy as np

    n, r = np.asarray(nodes, float), np.asarray(rates, float)  # (points,)
    different = count_points(n, r, "rate", "nodes")
    if different < FEWEST_COUNTS:
        raise ScaleoutError(
            f"{different} different numbers of nodes are too few to say how sure a prediction is: "
            f"measure at least {FEWEST_COUNTS}, such as 1, 2, 4 and 8."
        )
    if different > MOST_COUNTS:
        raise ScaleoutError(
            f"{different} different numbers of nodes are more than a fit takes: choose {MOST_COUNTS} or fewer."
        )
    points = Points.of(n, np.log(r))
    begin, most, shapes = points.smallest(UNSEEN), float(n.max()), candidates()
    said, belief, foretold = [], [], []
    for law in LAWS:
        slowdown = law.slowdown(points.counts, shapes, most)
        log_rates = np.log(points.counts) - np.log(slowdown)  # (draws, counts), of 1 a node alone
        likely = points.log_likelihood(log_rates)
        all_of_it = log_sum(likely)
        foretold.append(all_of_it - log_sum(begin.log_likelihood(log_rates[:, :UNSEEN])))
        belief.append(np.exp(likely - all_of_it))
        said.append(log_rates)
    weights = np.exp(np.array(foretold) - max(foretold)) * [law.before for law in LAWS]
    weights /= weights.sum()
    # Each candidate as often as it is believed, in even steps, so the same each time.
    sums = np.cumsum(weights[:, None] * np.array(belief))  # (laws x candidates,)
    chosen = np.searchsorted(sums, (np.arange(DRAWS) + 0.5) / DRAWS * sums[-1])
    believed, best = [], math.inf
    for index, law in enumerate(LAWS):
        mine = chosen[chosen // len(shapes) == index] % len(shapes)
        if len(mine):
            here = said[index][mine]
            part = _Believed(law, shapes[mine], points.levels(here), points.errors(here))
            believed.append(part)
            best = min(best, float(points.squares(here).min()))
    return RateFit(
        {law.name: float(weight) for law, weight in zip(LAWS, weights, strict=True)},
        tuple(points.counts.tolist()),
        points.total,
        math.sqrt(best / (points.total - 1)),
        tuple(believed),
    )
