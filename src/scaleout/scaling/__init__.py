"""Laws of scaling, weighed by what was measured, and predictions from them with how sure they
are."""

from .amdahl import Amdahl, efficiency, fit_amdahl, knee
from .calibrated import calibration
from .experiment import Experiment, next_experiment
from .foretold import Foretold, foretell
from .imagined import imagined
from .laws import LAWS, Law
from .measured import Measured, read_measured, read_table
from .messages import (
    AlphaBeta,
    fit_alpha_beta,
    gather_broadcast_s,
    ring_allreduce_s,
    tree_allreduce_s,
)
from .published import LITERATURE, PUBLISHED, Published
from .rates import Prediction, RateFit, fit_rates
from .step import NETWORKS, Network, Step
from .table import main

__all__ = [
    "LAWS",
    "LITERATURE",
    "NETWORKS",
    "PUBLISHED",
    "AlphaBeta",
    "Amdahl",
    "Experiment",
    "Foretold",
    "Law",
    "Measured",
    "Network",
    "Prediction",
    "Published",
    "RateFit",
    "Step",
    "calibration",
    "efficiency",
    "fit_alpha_beta",
    "fit_amdahl",
    "fit_rates",
    "foretell",
    "gather_broadcast_s",
    "imagined",
    "knee",
    "main",
    "next_experiment",
    "read_measured",
    "read_table",
    "ring_allreduce_s",
    "tree_allreduce_s",
]
