"""A setting that others recommend for TensorFlow on CPUs, to measure a sweep's best against."""

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from .points import Point

SOURCE = "Intel, Maximize TensorFlow Performance on CPU, 2019 and 2022"


def published(
    axes: Iterable[str], cores: int, sockets: int, kept: Mapping[str, str] = MappingProxyType({})
) -> Point:
    """That setting: a rank for each socket, a thread for each of its cores, as many operations at
    a time as there are sockets.
    """
    threads = max(1, cores // sockets)
    given = {**kept, "TF_ENABLE_ONEDNN_OPTS": "1", "TF_NUM_INTEROP_THREADS": str(sockets)}
    names = [name for name in axes if name not in ("ranks", "threads")]
    if any(name.startswith(("KMP_", "OMP_")) for name in names):
        given |= {"KMP_AFFINITY": "granularity=fine,compact,1,0", "KMP_BLOCKTIME": "1"}
    return Point(
        sockets, threads, tuple((name, given.get(name)) for name in dict.fromkeys([*names, *given]))
    )
