"""How far a candidate of a law is believed: as far as it agrees with the points.

What a node alone does and how much single measurements scatter are unknown too. Both are integrated
out: the first over all rates alike, the second over what is likely before any point was seen."""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float64]


SCATTER = 0.035  # relative, of single rates, as likely before any were seen; 1 to 10 % is usual
CERTAINTY = 1.5  # half of how many rates that guess is worth


@dataclass(frozen=True)
class Points:
    """Logarithms of rates, those on the same count put together."""

    counts: "Array"
    times: "Array"
    means: "Array"
    within: "Array"

    @classmethod
    def of(cls, nodes: "Array", log_rates: "Array") -> "Points":
        """Points from a pair a measurement."""
        import numpy as np

        counts, which, times = np.unique(nodes, return_inverse=True, return_counts=True)
        means = np.bincount(which, log_rates) / times
        within = np.bincount(which, (log_rates - means[which]) ** 2).astype(float)
        return cls(counts, times.astype(float), means, within)

    @property
    def total(self) -> int:
        """How many measurements."""
        return int(self.times.sum())

    def levels(self, said: "Array") -> "Array":
        """The logarithm of one node's rate that suits each candidate best."""
        found: Array = (self.means - said) @ self.times / self.total
        return found

    def squares(self, said: "Array") -> "Array":
        """What each candidate leaves unexplained, with its best level; (draws,)."""
        rest = self.means - said - self.levels(said)[:, None]
        found: Array = rest**2 @ self.times + self.within.sum()
        return found

    def log_likelihood(self, said: "Array") -> "Array":
        """Of each candidate; (draws,)."""
        import numpy as np

        before = 2 * CERTAINTY * SCATTER**2
        found: Array = -(CERTAINTY + (self.total - 1) / 2) * np.log(before + self.squares(said))
        return found

    def errors(self, said: "Array") -> "Array":
        """Of one more measurement, by each candidate, relative; (draws,)."""
        import numpy as np

        before = 2 * CERTAINTY * SCATTER**2
        scatter = (before + self.squares(said)) / (2 * CERTAINTY + self.total - 1)
        found: Array = np.sqrt(scatter * (1 + 1 / self.total))
        return found

    def smallest(self, counts: int) -> "Points":
        """Only the points on so many of the smallest counts."""
        parts = (self.counts, self.times, self.means, self.within)
        return Points(*(part[:counts] for part in parts))


def log_sum(logs: "Array") -> float:
    """The logarithm of the sum of what these are logarithms of."""
    highest = float(logs.max())
    return highest + math.log(float(_exp(logs - highest).sum()))


def student(points: int, draws: int) -> "Array":
    """Errors of a measurement in units of its scatter, in a fixed random order."""
    import numpy as np
    from scipy.special import stdtrit

    even = (np.arange(draws) + 0.5) / draws
    found: Array = stdtrit(2 * CERTAINTY + points - 1, np.random.default_rng(0).permutation(even))
    return found


def _exp(logs: "Array") -> "Array":
    import numpy as np

    found: Array = np.exp(logs)
    return found
