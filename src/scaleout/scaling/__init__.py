"""Fit laws of scaling to what was measured, and predict from them, with how sure that is."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from .fit import LAWS, Amdahl, Prediction, Published, RateFit, fit_rates, published
from .messages import AlphaBeta, fit_alpha_beta, gather_broadcast_s, ring_allreduce_s
from .step import NETWORKS, Network, Step
from .table import Measured, read_measured

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = [
    "LAWS",
    "NETWORKS",
    "AlphaBeta",
    "Amdahl",
    "Measured",
    "Network",
    "Prediction",
    "Published",
    "RateFit",
    "Step",
    "efficiency_of_networks",
    "fit_alpha_beta",
    "fit_rates",
    "gather_broadcast_s",
    "published",
    "read_measured",
    "ring_allreduce_s",
]


def efficiency_of_networks(
    networks: Mapping[str, Sequence[Step]],
    most: int = 1024,
    guess: float | None = None,
    within: tuple[float, float] = (1.0, 1.0),
) -> "Figure":
    """Draw the part of a step that is compute, over the ranks.

    A panel for each network that is trained, a line for each network between the ranks. Beside its
    last point stands its range: from no overlap with ten times the alpha to full overlap with a
    tenth of it.

    Parameters
    ----------
    networks : Mapping of str to sequence of Step
        The steps of a network that is trained: one for each network between the ranks.
    most : int
        The largest number of ranks; the powers of 2 up to it are drawn.
    guess : float, optional
        The reader's guess of the efficiency (0 to 1) on `most` ranks, in the last panel.
    within : (float, float)
        How many times as long as its formula says the exchange may take, at least and at most: for
        the upper and the lower end of a range.

    Returns
    -------
    matplotlib.figure.Figure
    """
    from . import picture  # loads matplotlib

    return picture.efficiency_of_networks(networks, most, guess, within)
