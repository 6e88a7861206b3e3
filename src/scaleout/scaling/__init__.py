"""Laws of scaling, fitted to what was measured, and predictions from them with how sure they are."""

from .fit import LAWS, Amdahl, Prediction, Published, RateFit, fit_rates, published
from .messages import AlphaBeta, fit_alpha_beta, gather_broadcast_s, ring_allreduce_s
from .step import NETWORKS, Network, Step
from .table import Measured, main, read_measured

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
    "fit_alpha_beta",
    "fit_rates",
    "gather_broadcast_s",
    "main",
    "published",
    "read_measured",
    "ring_allreduce_s",
]
