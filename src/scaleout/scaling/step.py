"""Put together the time of a training step on many ranks from what was measured on few.

step = compute + what of the ring allreduce, with its adding, is not hidden behind it + waiting for
the slowest.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from .messages import ring_allreduce_s

QUARTILES_APART = 1.349  # in standard deviations, where times are normal


@dataclass(frozen=True)
class Network:
    """The link between ranks, by name.

    Parameters
    ----------
    name : str
    alpha_s : float
        Seconds until the first byte of a message arrives.
    beta_s : float
        Seconds for each byte more.
    """

    name: str
    alpha_s: float
    beta_s: float


# By their nominal bandwidth; alpha is an order of magnitude. Measure yours with 03, and use
# fit_alpha_beta.
NETWORKS = {
    network.name: network
    for network in (
        Network("1 Gb/s Ethernet", 50e-6, 8 / 1e9),
        Network("10 Gb/s Ethernet", 20e-6, 8 / 10e9),
        Network("25 Gb/s Ethernet", 10e-6, 8 / 25e9),
        Network("100 Gb/s InfiniBand", 2e-6, 8 / 100e9),
        Network("200 Gb/s InfiniBand", 1.5e-6, 8 / 200e9),
    )
}


@dataclass(frozen=True)
class Step:
    """A step of synchronous training, in which each rank has a batch of its own (weak scaling).

    Parameters
    ----------
    compute_s : float
        Seconds that a rank computes in a step.
    gradient_bytes : float
        What the ranks average in each step.
    network : Network
        What is between them.
    overlap : float
        The part of the compute behind which the exchange can hide, from 0 to 1.
    spread_s : float
        The standard deviation of the compute, from step to step.
    gamma_s : float
        Seconds that a rank takes to add a byte of what has come to a byte of its own.
    """

    compute_s: float
    gradient_bytes: float
    network: Network
    overlap: float = 0.0
    spread_s: float = 0.0
    gamma_s: float = 0.0

    @classmethod
    def measured(
        cls,
        compute_s: Sequence[float],
        gradient_bytes: float,
        network: Network,
        overlap: float = 0.0,
        gamma_s: float = 0.0,
    ) -> Self:
        """Make a step of the compute times of many.

        Parameters
        ----------
        compute_s : sequence of float
            Seconds of each step on one rank, without any exchange. Their median becomes the
            compute; the distance of their quartiles, divided by 1.349, the spread.
        gradient_bytes, network, overlap, gamma_s
            As in the class.

        Returns
        -------
        Step
        """
        import numpy as np

        low, middle, high = np.quantile(compute_s, [0.25, 0.5, 0.75]).tolist()
        spread_s = (high - low) / QUARTILES_APART
        return cls(middle, float(gradient_bytes), network, overlap, spread_s, gamma_s)

    def exchange_s(self, ranks: int) -> float:
        """Predict the seconds of the whole ring allreduce, hidden or not, with its adding."""
        messages_s = ring_allreduce_s(
            self.gradient_bytes, ranks, self.network.alpha_s, self.network.beta_s
        )
        return messages_s + self.gamma_s * self.gradient_bytes * (ranks - 1) / ranks

    def parts(self, ranks: int) -> dict[str, float]:
        """Predict what a step on so many ranks consists of.

        Returns
        -------
        dict
            Seconds: "compute"; "exchange", what of it shows; "stragglers", how much later than the
            average the slowest rank is (Blom, "Statistical Estimates and Transformed Beta-Variables",
            1958).
        """
        shows = max(0.0, self.exchange_s(ranks) - self.overlap * self.compute_s)
        return {
            "compute": self.compute_s,
            "exchange": shows,
            "stragglers": self.spread_s * _slowest(ranks),
        }

    def seconds(self, ranks: int) -> float:
        """Predict the seconds of a step on so many ranks: the sum of its parts."""
        return sum(self.parts(ranks).values())

    def efficiency(self, ranks: int) -> float:
        """Predict the part of a step that is compute, from 0 to 1."""
        return self.compute_s / self.seconds(ranks)


def _slowest(ranks: int) -> float:
    """Estimate how many standard deviations the slowest of so many is late, on average, where times
    are normal."""
    from statistics import NormalDist

    return NormalDist().inv_cdf((ranks - 0.375) / (ranks + 0.25)) if ranks > 1 else 0.0
