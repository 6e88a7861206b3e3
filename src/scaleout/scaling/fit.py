"""Fit laws of scaling to rates on few nodes, and predict the rate on many.

A law says how the node seconds of a unit of work grow with the nodes:
seconds(n) = alone + loss x shape(n), both 0 or more. The interval of a prediction comes from the
table itself: each rate is shaken by the scatter of the points, a thousand times; each time the
law that then fits best says what so many nodes would give; 95 of 100 answers lie inside (Efron,
"Bootstrap methods: another look at the jackknife", Annals of Statistics 7 (1), 1979).
"""

import csv
import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from ..base.errors import ScaleoutError
from ..base.words import rounded
from ..comparisons.intervals import Ratio

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float64]


def _logarithm(n: Any) -> Any:
    import numpy as np

    return np.log2(n)


# The shapes; docs/scaling.md shows what each further law would change.
LAWS: dict[str, Callable[[Any], Any]] = {
    "Amdahl": lambda n: n - 1,  # a part that one node does while the others wait
    "tree": _logarithm,  # messages up and down a tree; the slowest of many
    "coherence": lambda n: n * (n - 1),  # each node has something to tell every other
}
FEWEST_COUNTS = 4  # two draw a law, two say how well it fits
SHAKES = 1000
SCATTER = 0.05  # relative, of single rates, as likely before any were seen; 1 to 10 % is usual
CERTAINTY = 3  # how many rates that guess is worth
LARGEST_LOSS = 1000.0  # on the largest count, in units of what a node alone needs
WIDEST = 10.0  # an interval whose ends differ by more than this factor is no prediction
WILDEST = 0.5  # scatter; beyond it the rates follow no law
FASTER = 1.1  # growth of the rate beside that of the count; less may be scatter
CACHED = 1.25  # no scatter any more
FARTHEST = 16  # times the most nodes measured


@dataclass(frozen=True)
class Amdahl:
    """Amdahl's law, T(p) = T(1) (s + (1 - s) / p), with its serial part s (AFIPS 30, 1967).

    Attributes
    ----------
    serial : float
        s, from 0 to 1.
    serial_range : (float, float)
        The low and the high end of s.
    """

    serial: float
    serial_range: tuple[float, float]

    @classmethod
    def assumed(cls, ranks: int, speed_up: Ratio) -> Self:
        """Say what one measured speed-up would mean if the law held, which it cannot tell.

        Parameters
        ----------
        ranks : int
            On how many ranks it was measured, at least 2.
        speed_up : Ratio
            How many times as fast as one rank, with its interval: `Comparison.ratio`.

        Returns
        -------
        Amdahl

        Raises
        ------
        ScaleoutError
            There are fewer than 2 ranks.
        """
        if ranks < 2:
            raise ScaleoutError(f"A speed-up needs at least 2 ranks; asked for {ranks}.")

        def serial(times: float) -> float:
            if times <= 0:  # after a round or two the interval is everything
                return 1.0
            return min(1.0, max(0.0, (ranks / times - 1) / (ranks - 1)))

        return cls(serial(speed_up.middle), (serial(speed_up.high), serial(speed_up.low)))

    def speed_up(self, ranks: float) -> float:
        """Predict how many times as fast as one rank so many are."""
        return 1 / (self.serial + (1 - self.serial) / ranks)

    def __str__(self) -> str:
        low, high = (100 * end for end in self.serial_range)
        if self.serial == 0:
            most = "no limit is seen"
        else:
            least = rounded(100 / high)
            ends = f"{least} to {rounded(100 / low)}" if low else f"at least {least}"
            most = (
                f"no number of ranks is more than {rounded(1 / self.serial)} times as fast ({ends})"
            )
        return (
            f"The serial part is {rounded(100 * self.serial)} % ({rounded(low)} to {rounded(high)} %). "
            f"If Amdahl's law holds, which two counts cannot show, {most}."
        )


@dataclass(frozen=True)
class Prediction:
    """The rate on so many nodes, and the interval that a measurement there falls into, 95 in 100.

    Attributes
    ----------
    nodes : int
    rate, low, high : float
        In the unit of the rates that were fitted.
    efficiency : float
        The rate of a node, as a part of that of one node alone.
    low_law : str
        The law, of LAWS, that most often gives the low end.
    """

    nodes: int
    rate: float
    low: float
    high: float
    efficiency: float
    low_law: str = ""


@dataclass(frozen=True)
class RateFit:
    """The law that fits best each time that the rates were shaken; `fit_rates` makes it.

    Attributes
    ----------
    nodes : tuple of float
        The different counts that were measured, the largest last.
    points : int
        How many rates were measured.
    scatter : float
        The standard deviation of the rates about the law that fits them best, relative.
    laws : tuple of str
        The name of the best law each time, of LAWS; (SHAKES,).
    alone, loss : ndarray
        Its two parameters, in node seconds of a unit of work: what it takes without the loss, and
        the loss on the largest count; (SHAKES,).
    errors : ndarray
        Of one more measurement, as logarithms of rates; (SHAKES,).
    count : str
        What was counted, in the plural.
    faster : str
        Says where the rates grow faster than the count, which no law can; "" where they do not.
    highest : float
        The rate on the largest count (the median).
    excess : float
        By how much a step's rates have grown faster than the count, at most; 1 where they have not.
    """

    nodes: tuple[float, ...]
    points: int
    scatter: float
    laws: tuple[str, ...] = field(repr=False)
    alone: "Array" = field(repr=False)
    loss: "Array" = field(repr=False)
    errors: "Array" = field(repr=False)
    count: str = "nodes"
    faster: str = ""
    highest: float = 0.0
    excess: float = 1.0

    @property
    def weights(self) -> dict[str, float]:
        """Count how often each law fitted best, from 0 to 1."""
        times = Counter(self.laws)
        return {name: times[name] / len(self.laws) for name in LAWS}

    @property
    def near(self) -> bool:
        """Whether a law comes near enough to the rates to say anything by it."""
        return self.scatter <= WILDEST

    @property
    def one(self) -> float:
        """The rate of one node, as the laws have it."""
        return self.rate(1)

    def rate(self, nodes: float) -> float:
        """Predict the rate on so many nodes, without a word on how sure it is."""
        import numpy as np

        return float(np.exp(np.median(self.log_rates(nodes))))

    def log_rates(self, nodes: float) -> "Array":
        """Predict the logarithm of the rate on so many nodes, by each fit; (SHAKES,)."""
        import numpy as np

        most = self.nodes[-1]
        shape = {name: law(nodes) / law(most) for name, law in LAWS.items()}
        seconds = self.alone + self.loss * np.array([shape[name] for name in self.laws])
        found: Array = np.log(nodes) - np.log(seconds)
        return found

    def predict(self, nodes: int) -> Prediction:
        """Predict the rate on so many nodes, with its interval.

        Parameters
        ----------
        nodes : int
            At least 1, and no more than 16 times the most that were measured.

        Returns
        -------
        Prediction

        Raises
        ------
        ScaleoutError
            The nodes are out of range; no law comes nearer to the rates than 50 %; or the ends of
            the interval differ by more than a factor of 10.
        """
        import numpy as np

        if nodes < 1:
            raise ScaleoutError(
                f"A prediction needs at least 1 {self.count[:-1]}; asked for {nodes}."
            )
        if nodes > FARTHEST * self.nodes[-1]:
            raise ScaleoutError(
                f"{nodes} {self.count} are more than {FARTHEST} times the {self.nodes[-1]:g} that were "
                "measured, too far to trust any law: measure on at least "
                f"{math.ceil(nodes / FARTHEST)} {self.count}."
            )
        if not self.near:
            far = f"No law comes nearer to these rates than {100 * self.scatter:.0f} %"
            if self.faster:
                raise ScaleoutError(
                    f"{far}. {self.faster}: measure on more {self.count}, and leave out the counts "
                    "before that."
                )
            raise ScaleoutError(f"{far}: look for a wrong number in the table, or measure again.")
        answers = self.log_rates(nodes) + self.errors
        low, high = np.exp(np.quantile(answers, [0.025, 0.975])).tolist()
        if high > WIDEST * low:
            raise ScaleoutError(
                f"The rate on {nodes} {self.count} lies anywhere between {low:.3g} and {high:.3g}, "
                f"which is no prediction: measure more often, or on more {self.count}."
            )
        rate = self.rate(nodes)
        if self.excess > CACHED and nodes > self.nodes[-1] and rate < self.highest:
            raise ScaleoutError(
                f"{self.faster}: they give {nodes} {self.count} less than was measured on "
                f"{self.nodes[-1]:g}. Measure on more {self.count}, and leave out the counts before "
                "that."
            )
        if self.faster and nodes > self.nodes[-1]:  # what was seen once may come once more
            high = max(high, self.highest * self.excess * nodes / self.nodes[-1])
        slow = [self.laws[index] for index in np.flatnonzero(answers <= math.log(low))]
        (low_law, _), *_ = Counter(slow).most_common(1)
        return Prediction(nodes, rate, low, high, rate / self.one / nodes, low_law)


def fit_rates(nodes: Sequence[float], rates: Sequence[float], count: str = "nodes") -> RateFit:
    """Fit the laws to rates on so many nodes, and again to each shaken copy of the rates.

    Parameters
    ----------
    nodes : sequence of float
        The nodes (or ranks, or GPUs) of each point, 1 or more, with at least 4 different counts;
        a count may come often.
    rates : sequence of float
        Work per second of all nodes together, above 0; as many as nodes.
    count : str
        What was counted, in the plural: "ranks", "gpus".

    Returns
    -------
    RateFit
        The same for the same points: the random numbers are always the same.

    Raises
    ------
    ScaleoutError
        The counts are too few, or a value is out of range.

    Notes
    -----
    The head of this module says how, and docs/scaling.md how often the intervals were right. Each
    fit is least squares with parameters of 0 or more (Lawson and Hanson, "Solving Least Squares
    Problems", 1974).
    """
    import numpy as np
    from scipy.optimize import nnls

    n, r = np.asarray(nodes, float), np.asarray(rates, float)  # (points,)
    if n.shape != r.shape or not (
        np.isfinite(r).all() and (r > 0).all() and np.isfinite(n).all() and (n >= 1).all()
    ):
        raise ScaleoutError(
            f"A fit needs one rate above 0 for each number of {count}, which is 1 or more."
        )
    counts = np.unique(n)
    if len(counts) < FEWEST_COUNTS:
        raise ScaleoutError(
            f"{len(counts)} different numbers of {count} are too few to say how sure a prediction "
            f"is: measure at least {FEWEST_COUNTS}, such as 1, 2, 4 and 8."
        )
    shapes = {
        name: np.stack([np.ones_like(n), law(n) / law(counts[-1])], axis=1)  # (points, 2)
        for name, law in LAWS.items()
    }

    def best(seconds: "Array") -> "tuple[str, Array]":
        """Choose the law that comes nearest, relatively, with its alone and its loss."""
        fits = {
            name: nnls(shape / seconds[:, None], np.ones_like(n)) for name, shape in shapes.items()
        }
        name = min(fits, key=lambda name: float(fits[name][1]))
        alone, loss = fits[name][0]
        return name, np.array([max(alone, loss / LARGEST_LOSS), loss])

    law, parameters = best(n / r)
    curve = shapes[law] @ parameters  # (points,), node seconds
    squares = float(np.sum(np.log(n / r / curve) ** 2))
    freedom = CERTAINTY + len(n) - int(np.count_nonzero(parameters))
    variance = (CERTAINTY * SCATTER**2 + squares) / freedom
    rng = np.random.default_rng(1979)  # the same table gives the same answer
    # The scatter is known only from the points too.  (SHAKES, 1)
    scatters = np.sqrt(variance * freedom / rng.chisquare(freedom, (SHAKES, 1)))
    shaken = curve * np.exp(scatters * rng.standard_normal((SHAKES, len(n))))
    laws, found = zip(*(best(row) for row in shaken), strict=True)
    alone, loss = np.array(found).T
    errors = scatters[:, 0] * rng.standard_normal(SHAKES)
    middles = [float(np.median(r[n == one])) for one in counts]
    return RateFit(
        tuple(counts.tolist()),
        len(n),
        math.sqrt(squares / (len(n) - 2)),  # a law has two parameters
        laws,
        alone,
        loss,
        errors,
        count,
        *_faster(counts.tolist(), middles, count),
    )


def _faster(
    counts: Sequence[float], rates: Sequence[float], count: str
) -> tuple[str, float, float]:
    """Say where rates grow faster than the count does, the last rate, and by how much at most."""
    steps = zip(counts, rates, counts[1:], rates[1:], strict=False)
    found = [(at, to, rate / before, rate / before / (to / at)) for at, before, to, rate in steps]
    found = [step for step in found if step[-1] > FASTER]
    if not found:
        return "", rates[-1], 1.0
    each = [f"from {at:g} to {to:g} ({times:.3g} times)" for at, to, times, _ in found]
    said = (
        f"The rates grow faster than proportional (superlinear) to the {count}: {', '.join(each)}, "
        "most likely since the data then fit into the caches; no law here can say that"
    )
    return said, rates[-1], max(excess for *_, excess in found)


@dataclass(frozen=True)
class Published:
    """A table that others have published; published.csv names its source and its year.

    Attributes
    ----------
    name, unit : str
        Whose it is, and what its rates count.
    nodes : tuple of int
    rates : tuple of float
    """

    name: str
    unit: str
    nodes: tuple[int, ...]
    rates: tuple[float, ...]


def published() -> list[Published]:
    """Read the published tables that come with the package.

    Returns
    -------
    list of Published
    """
    tables: dict[tuple[str, str], list[tuple[int, float]]] = {}
    with open(Path(__file__).with_name("published.csv"), encoding="utf-8", newline="") as file:
        for row in csv.DictReader(line for line in file if not line.startswith("#")):
            rows = tables.setdefault((row["table"], row["unit"]), [])
            rows.append((int(row["nodes"]), float(row["rate"])))
    return [Published(*head, *zip(*rows, strict=True)) for head, rows in tables.items()]
