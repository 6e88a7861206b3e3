"""Tables that others have published: how many images a second so many nodes trained, with source and year."""

from dataclasses import dataclass

__all__ = ["PUBLISHED", "Published"]


@dataclass(frozen=True)
class Published:
    """A published table: rates[i] images/s on nodes[i] GPUs."""

    name: str
    source: str
    nodes: tuple[int, ...]
    rates: tuple[float, ...]
    unit: str = "images/s"


_PRACE = "PRACE Best Practice Guide Deep Learning, 2019: ResNet-50, fp32, a node is one GPU"
PUBLISHED = {
    "MXNet": Published("MXNet", _PRACE, (1, 4, 8, 16, 32), (182, 705, 1402, 2680, 5120)),
    "PyTorch + Horovod": Published("PyTorch + Horovod", _PRACE, (1, 4, 8, 16, 32), (208, 768, 1497, 2942, 5796)),
}
