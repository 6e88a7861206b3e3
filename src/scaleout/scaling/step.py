"""The time of a training step on many nodes, put together from what was measured on few.

step = compute + what of the ring allreduce is not hidden behind it + waiting for the slowest.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from .messages import ring_allreduce_s

if TYPE_CHECKING:
    import pandas as pd


QUARTILES_APART = 1.349  # in standard deviations, where times are normal


@dataclass(frozen=True)
class Network:
    """A network by name."""

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
    """A step of synchronous training, each rank with a batch of its own."""

    compute_s: float
    gradient_bytes: float
    network: Network
    overlap: float = 0.0
    spread_s: float = 0.0

    @classmethod
    def measured(
        cls, records: "pd.DataFrame", network: Network, overlap: float = 0.0, **other: float
    ) -> Self:
        """A step whose compute and whose gradient are those of one job of 02_threads."""
        import numpy as np

        (job,) = (row for _, row in records.iterrows())
        low, high = np.quantile(job.step_s, [0.25, 0.75])
        found = {
            "compute_s": float(np.median(job.step_s)),
            "spread_s": float((high - low) / QUARTILES_APART),
            "gradient_bytes": float(job.metrics["shares"][0]["gradient_bytes"]),
        }
        return cls(**{**found, **other}, network=network, overlap=overlap)

    def exchange_s(self, ranks: int) -> float:
        """The whole ring allreduce."""
        return ring_allreduce_s(
            self.gradient_bytes, ranks, self.network.alpha_s, self.network.beta_s
        )

    def parts(self, ranks: int) -> dict[str, float]:
        """Seconds of a step on so many ranks: compute, exchange (what of it shows), stragglers."""
        shows = max(0.0, self.exchange_s(ranks) - self.overlap * self.compute_s)
        return {
            "compute": self.compute_s,
            "exchange": shows,
            "stragglers": self.spread_s * _slowest(ranks),
        }

    def seconds(self, ranks: int) -> float:
        """A step on so many ranks."""
        return sum(self.parts(ranks).values())

    def efficiency(self, ranks: int) -> float:
        """The part of the step that is compute."""
        return self.compute_s / self.seconds(ranks)


def _slowest(ranks: int) -> float:
    """How many standard deviations the slowest of so many is late, on average, where times are
    normal (Blom, 1958)."""
    from statistics import NormalDist

    return NormalDist().inv_cdf((ranks - 0.375) / (ranks + 0.25)) if ranks > 1 else 0.0
