"""Laws fitted to what was measured: the time of a message, and from it the time of an allreduce.

A message of n bytes takes alpha + beta n seconds: alpha until its first byte arrives, beta for each
byte more (Hockney, "The communication challenge for MPP", Parallel Computing 20 (3), 1994). The
allreduce formulas put such messages one after another; they leave out the adding (Thakur,
Rabenseifner and Gropp, "Optimization of collective communication operations in MPICH",
International Journal of High Performance Computing Applications 19 (1), 2005)."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from ..errors import ScaleoutError

FEWEST_SIZES = 4  # two go into the line itself; the rest say how well it fits


@dataclass(frozen=True)
class AlphaBeta:
    """A fitted line."""

    alpha_s: float
    beta_s: float
    alpha_error_s: float
    beta_error_s: float
    alpha_range_s: tuple[float, float]
    beta_range_s: tuple[float, float]
    sizes: int
    scatter: float

    def seconds(self, n: float) -> float:
        """The time of a message of n bytes."""
        return self.alpha_s + self.beta_s * n

    def __str__(self) -> str:
        alpha = "alpha is not known from these points: measure smaller messages too"
        if self.alpha_error_s < self.alpha_s:
            low, high = (1e6 * end for end in self.alpha_range_s)
            alpha = f"alpha = {1e6 * self.alpha_s:.3g} us ({low:.3g} to {high:.3g})"
        beta = "beta is not known from these points: measure larger messages too"
        if self.beta_error_s < self.beta_s:
            low, high = (1e9 * end for end in self.beta_range_s)
            beta = f"beta = {1e9 * self.beta_s:.3g} ns a byte ({low:.3g} to {high:.3g}), {1e-9 / self.beta_s:.3g} GB/s"
        return f"{alpha}; {beta}; from {self.sizes} sizes, scatter {100 * self.scatter:.0f} %"


def fit_alpha_beta(n: Sequence[float], seconds: Sequence[float]) -> AlphaBeta:
    """Fits alpha + beta n to the times of messages of n bytes."""
    import numpy as np
    from scipy.optimize import least_squares
    from scipy.stats import t

    x, y = np.asarray(n, float), np.asarray(seconds, float)  # (points,)
    sizes = len(np.unique(x))
    if x.shape != y.shape or not (np.isfinite(y).all() and (y > 0).all() and (x >= 0).all()):
        raise ScaleoutError(
            "A fit needs one time above 0 for each message, whose bytes are 0 or more."
        )
    if sizes < FEWEST_SIZES:
        raise ScaleoutError(
            f"{sizes} message sizes are too few to fit alpha and beta and to say how sure they are: "
            f"measure at least {FEWEST_SIZES}, from a few bytes to a few MiB."
        )
    with np.errstate(divide="ignore"):  # an empty message, -inf: then alpha alone counts
        log_x, log_y = np.log(x), np.log(y)
    start = [log_y.min(), log_y.max() - log_x.max()]
    fit = least_squares(lambda p: np.logaddexp(p[0], p[1] + log_x) - log_y, start, method="lm")
    # alpha's part of each time, (points,); how the logarithm follows those of alpha and beta
    share = np.exp(fit.x[0] - np.logaddexp(fit.x[0], fit.x[1] + log_x))
    slopes = np.stack([share, 1 - share], axis=1)  # (points, 2)
    scatter = math.sqrt(float(np.sum(fit.fun**2)) / (len(x) - 2))
    try:
        errors = scatter * np.sqrt(np.diag(np.linalg.inv(slopes.T @ slopes)))  # of the logarithms
    except np.linalg.LinAlgError:
        errors = np.full(2, math.inf)
    reach = t.ppf(0.975, len(x) - 2) * errors
    with np.errstate(over="ignore"):
        middle, low, high = np.exp([fit.x, fit.x - reach, fit.x + reach])
    (alpha, beta), (alpha_error, beta_error) = middle.tolist(), (middle * errors).tolist()
    alpha_range, beta_range = zip(low.tolist(), high.tolist(), strict=True)
    return AlphaBeta(alpha, beta, alpha_error, beta_error, alpha_range, beta_range, sizes, scatter)


def gather_broadcast_s(n: float, ranks: int, alpha: float, beta: float) -> float:
    """Seconds of an allreduce through rank 0: it takes an array from every other rank, then sends
    one.
    """
    return 2 * (ranks - 1) * (alpha + beta * n)


def ring_allreduce_s(n: float, ranks: int, alpha: float, beta: float) -> float:
    """Seconds of an allreduce around a ring: ranks - 1 steps of n / ranks bytes, twice."""
    return 2 * (ranks - 1) * (alpha + beta * n / ranks)
