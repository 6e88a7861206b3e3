"""Memory allocators that a job can take in place of the C library's: LD_PRELOAD=tcmalloc."""

import ctypes.util
import os
import subprocess
import sys
from pathlib import Path

from ..errors import ScaleoutError

# The names of each one's library, the better known first, and Debian's package of it
ALLOCATORS = {
    "jemalloc": (("jemalloc",), "libjemalloc2"),
    "mimalloc": (("mimalloc",), "libmimalloc2.0"),
    "tcmalloc": (("tcmalloc", "tcmalloc_minimal"), "libtcmalloc-minimal4"),
}


def library(name: str) -> str:
    """What LD_PRELOAD takes for an allocator's name; anything else is given back as it is."""
    if name not in ALLOCATORS:
        if _refused(name):
            raise ScaleoutError(
                f"LD_PRELOAD={name} names no library that can be loaded here: give its whole path, "
                f"or one of {', '.join(ALLOCATORS)}."
            )
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


def _refused(libraries: str) -> bool:
    """Whether the loader says that it leaves one of them out."""
    done = subprocess.run(
        ["true"], env={**os.environ, "LD_PRELOAD": libraries}, capture_output=True, check=False
    )
    return b"cannot be preloaded" in done.stderr
