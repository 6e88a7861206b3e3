"""Memory allocators that a job can take in place of the C library's: LD_PRELOAD=tcmalloc."""

import ctypes.util
import sys
from pathlib import Path

from ..errors import ScaleoutError

__all__ = ["ALLOCATORS", "library"]

# The names of each one's library, the better known first, and Debian's package of it
ALLOCATORS = {
    "jemalloc": (("jemalloc",), "libjemalloc2"),
    "mimalloc": (("mimalloc",), "libmimalloc2.0"),
    "tcmalloc": (("tcmalloc", "tcmalloc_minimal"), "libtcmalloc-minimal4"),
}


def library(name: str) -> str:
    """What LD_PRELOAD takes for an allocator's name; anything else is given back as it is.

    Raises
    ------
    ScaleoutError
        It is not installed: the loader would only warn, and the job would run without it.
    """
    if name not in ALLOCATORS:
        return name
    files, package = ALLOCATORS[name]
    for file in files:
        mine = sorted((Path(sys.prefix) / "lib").glob(f"lib{file}.so*"))
        if mine:
            return str(mine[0])
        if found := ctypes.util.find_library(file):
            return found
    raise ScaleoutError(
        f"There is no {name} on this machine: install it (Debian: {package}; conda: {name}), or "
        "leave it out."
    )
