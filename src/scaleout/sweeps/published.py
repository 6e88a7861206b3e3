"""A setting that others recommend for TensorFlow on CPUs, to measure a sweep's best against."""

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from .points import Point

__all__ = ["SOURCE", "published"]

SOURCE = "Intel, Maximize TensorFlow Performance on CPU, 2019 and 2022"


def published(
    axes: Iterable[str], cores: int, sockets: int, kept: Mapping[str, str] = MappingProxyType({})
) -> Point:
    """That setting: a rank for each socket, a thread for each of its cores, as many operations at
    a time as there are sockets.

    Parameters
    ----------
    axes : iterable of str
        What the sweep varies: other variables that the source leaves alone are taken away, as in
        the default, and OpenMP's are set only where the sweep varies one of them.
    cores, sockets : int
        Of this machine.
    kept : mapping
        Variables without which there is no job, see `points.programs`.

    References
    ----------
    J. Xu, P. Venkatesh and H.-J. Tsai, "Maximize TensorFlow Performance on CPU: Considerations and
    Recommendations for Inference Workloads", Intel, 2019, last changed in 2022.
    """
    threads = max(1, cores // sockets)
    given = {**kept, "TF_ENABLE_ONEDNN_OPTS": "1", "TF_NUM_INTEROP_THREADS": str(sockets)}
    names = [name for name in axes if name not in ("ranks", "threads")]
    if any(name.startswith(("KMP_", "OMP_")) for name in names):
        given |= {"KMP_AFFINITY": "granularity=fine,compact,1,0", "KMP_BLOCKTIME": "1"}
    return Point(
        sockets, threads, tuple((name, given.get(name)) for name in dict.fromkeys([*names, *given]))
    )
