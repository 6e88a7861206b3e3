"""Laws of scaling, fitted to what was measured, each with how sure it is; and predictions from them."""

from .amdahl import Amdahl, efficiency, fit_amdahl, knee
from .messages import AlphaBeta, fit_alpha_beta, gather_broadcast_s, ring_allreduce_s, tree_allreduce_s
from .published import PUBLISHED, Published
from .rates import Prediction, RateFit, fit_rates
from .simulated import RECORDED, Simulated, simulate, smpi_missing
from .step import NETWORKS, Network, Step
from .table import main, read_table

__all__ = [
    "NETWORKS",
    "PUBLISHED",
    "RECORDED",
    "AlphaBeta",
    "Amdahl",
    "Network",
    "Prediction",
    "Published",
    "RateFit",
    "Simulated",
    "Step",
    "efficiency",
    "fit_alpha_beta",
    "fit_amdahl",
    "fit_rates",
    "gather_broadcast_s",
    "knee",
    "main",
    "read_table",
    "ring_allreduce_s",
    "simulate",
    "smpi_missing",
    "tree_allreduce_s",
]
