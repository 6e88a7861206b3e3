"""Which measurement would narrow an interval most: what to run next, and how often.

Each candidate of the fit is taken for the truth in turn. It says what a run on so many nodes would
give; the other candidates are then believed as far as they agree with that, and the interval that
is left is what the run would have bought, on average (Lindley, "On a measure of the information
provided by an experiment", Annals of Mathematical Statistics 27 (4), 1956)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..errors import ScaleoutError
from .rates import RateFit

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float64]


TRUTHS = 48  # candidates taken for the truth in turn
MOST_APART = 100.0  # of logarithms; beyond, all intervals are alike
BELIEVED = 1000  # candidates that are then weighed again


@dataclass(frozen=True)
class Experiment:
    """A run on so many nodes, so often, and what it should do to the interval on another number."""

    nodes: int
    repeats: int
    node_runs: int
    width_now: float
    width: float


def next_experiment(
    fit: RateFit, goal: int, most: int | None = None, node_runs: int | None = None
) -> list[Experiment]:
    """Runs that may be tried next, the one that narrows the interval on `goal` nodes most first."""
    import numpy as np

    largest = fit.nodes[-1]
    most = most or max(int(largest), min(int(2 * largest), goal // 2))
    if most < 1 or goal < 1:
        raise ScaleoutError("An experiment needs at least 1 node, and so does its goal.")
    cost = node_runs or most
    goal_rates, pick = fit.measured(goal), np.random.default_rng(1956).permutation(len(fit.error))
    rest = pick[:BELIEVED]
    truths = pick[-TRUTHS:]
    now = _width(goal_rates[rest], np.ones((1, BELIEVED)))[0]
    found = []
    for nodes in _counts(fit.nodes, most):
        repeats = min(8, cost // nodes)
        if repeats < 1:
            continue
        said = fit.log_rates(nodes)
        error = fit.error / np.sqrt(repeats)
        seen = said[truths] + error[truths] * np.random.default_rng(nodes).standard_normal(TRUTHS)
        belief = np.exp(-(((seen[:, None] - said[rest]) / error[rest]) ** 2) / 2) / error[rest]
        width = float(np.median(_width(goal_rates[rest], belief)))
        found.append(Experiment(nodes, repeats, nodes * repeats, float(now), width))
    return sorted(found, key=lambda trial: (trial.width, trial.node_runs))


def _counts(measured: Sequence[float], most: int) -> list[int]:
    """What was measured, what lies half-way between, and quarters of the way on to the most."""
    largest = int(measured[-1])
    on = {largest + round((most - largest) * part / 4) for part in range(1, 5)}
    between = {int(n + m) // 2 for n, m in zip(measured, measured[1:], strict=False)}
    return sorted(n for n in {int(n) for n in measured} | between | on if 1 <= n <= most)


def _width(logs: "Array", belief: "Array") -> "Array":
    """High over low of the 95 % interval of logs (draws,), for each row of belief."""
    import numpy as np

    order = np.argsort(logs)
    sums = np.cumsum(belief[:, order], axis=1)
    sums /= sums[:, -1:]
    last = len(logs) - 1
    ends = [np.minimum((sums < part).sum(axis=1), last) for part in (0.025, 0.975)]
    apart = logs[order][ends[1]] - logs[order][ends[0]]
    found: Array = np.exp(np.minimum(apart, MOST_APART))
    return found
