"""Fit the time of a message to what was measured, and predict from it the time of an allreduce.

A message of n bytes takes alpha + beta n seconds: alpha until its first byte arrives, beta for each
byte more (Hockney, "The communication challenge for MPP", Parallel Computing 20 (3), 1994). The
allreduce formulas put such messages one after another; they leave out the adding (Thakur,
Rabenseifner and Gropp, "Optimization of collective communication operations in MPICH",
International Journal of High Performance Computing Applications 19 (1), 2005)."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from ..base.errors import ScaleoutError

FEWEST_SIZES = 4  # two go into the line itself; the rest say how well it fits


@dataclass(frozen=True)
class AlphaBeta:
    """The time of a message over its bytes, as fitted: alpha_s + beta_s n.

    Attributes
    ----------
    alpha_s : float
        Seconds until the first byte arrives.
    beta_s : float
        Seconds for each byte more.
    alpha_error_s, beta_error_s : float
        The standard error of each, in the same units.
    alpha_range_s, beta_range_s : (float, float)
        The interval of each that holds the truth 95 times in 100.
    sizes : int
        How many different sizes were measured.
    scatter : float
        The standard deviation of the times about the line, relative: 0.05 is 5 %.
    """

    alpha_s: float
    beta_s: float
    alpha_error_s: float
    beta_error_s: float
    alpha_range_s: tuple[float, float]
    beta_range_s: tuple[float, float]
    sizes: int
    scatter: float

    def seconds(self, n: float) -> float:
        """Predict the seconds of a message of n bytes."""
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
    """Fit alpha + beta n to the times of messages of n bytes.

    Least squares of the logarithms, so that a small message counts as much as a large one; the
    intervals are Student's, of the logarithms of alpha and beta.

    Parameters
    ----------
    n : sequence of float
        Bytes of each message, 0 or more, with at least 4 different sizes; a size may come often.
    seconds : sequence of float
        The time of each, above 0; as many as n.

    Returns
    -------
    AlphaBeta

    Raises
    ------
    ScaleoutError
        The sizes are too few, or a value is out of range.
    """
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
    """Predict an allreduce through rank 0, which takes an array from every other rank, one after
    another, and sends one to each: 2 (ranks - 1) (alpha + beta n).

    Parameters
    ----------
    n : float
        Bytes of the array.
    ranks : int
    alpha, beta : float
        Seconds of a message, and of each of its bytes.

    Returns
    -------
    float
        Seconds; without the time of the adding.
    """
    return 2 * (ranks - 1) * (alpha + beta * n)


def ring_allreduce_s(n: float, ranks: int, alpha: float, beta: float) -> float:
    """Predict an allreduce around a ring: ranks - 1 steps of n / ranks bytes, twice, which is
    2 (ranks - 1) (alpha + beta n / ranks).

    Parameters
    ----------
    n : float
        Bytes of the array.
    ranks : int
    alpha, beta : float
        Seconds of a message, and of each of its bytes.

    Returns
    -------
    float
        Seconds; without the time of the adding.

    Notes
    -----
    Thakur, Rabenseifner and Gropp, "Optimization of collective communication operations in MPICH",
    International Journal of High Performance Computing Applications 19 (1), 2005.
    """
    return 2 * (ranks - 1) * (alpha + beta * n / ranks)
