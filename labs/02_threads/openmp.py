"""Who obeys OMP_NUM_THREADS: what TensorFlow's library is linked to, its knobs
one by one, and the OpenMP build that `make intel` brings to .side/intel.
"""

import subprocess
from importlib.util import find_spec
from pathlib import Path

from scaleout.base.errors import ScaleoutError
from scaleout.base.paths import show, side

# What GCC, Intel and LLVM call their OpenMP.
RUNTIMES = ("libgomp", "libiomp5", "libomp")
KNOBS = ("OMP_NUM_THREADS", "TF_NUM_INTEROP_THREADS", "TF_NUM_INTRAOP_THREADS")


def python() -> str:
    """The path of the OpenMP build's Python, for lab.run(python=...)."""
    folder = side("intel")
    if not folder:
        raise ScaleoutError("The OpenMP build of TensorFlow is not here: type "
                            " make intel  in a terminal (370 MB, Python "
                            "3.11).")
    return show(folder / "bin" / "python")


def settings(cpus: int) -> dict[str, dict]:
    """The variants of a comparison: 1, half of the CPUs and all of them, as
    inter-op x intra-op; and OMP_NUM_THREADS alone. The first sets all to 1."""
    most = max(2, cpus)
    counts = sorted({1, most // 2, most})
    chosen = {"1 x 1": (1, 1, 1), "OMP_NUM_THREADS": (most, 1, 1)}
    for inter in counts:
        for intra in counts:
            chosen.setdefault(f"{inter} x {intra}", (1, inter, intra))
    return {name: {"env": dict(zip(KNOBS, map(str, numbers), strict=True))}
            for name, numbers in chosen.items()}


def ldd() -> list[str]:
    """The lines of ldd: what TensorFlow's library is linked to."""
    spec = find_spec("tensorflow")  # which does not load it
    folder = Path(spec.submodule_search_locations[0])
    file = next(folder.glob("libtensorflow_cc.so*"))
    done = subprocess.run(["ldd", str(file)], text=True, check=True,
                          capture_output=True)
    return [line.strip() for line in done.stdout.splitlines()]


def proof(lines: list[str]) -> str:
    """What follows from these lines of ldd about OpenMP."""
    names = [line.split()[0] for line in lines]
    found = [name for name in names if name.startswith(RUNTIMES)]
    if found:
        return (f"Linked to {len(names)} libraries; {', '.join(found)} is "
                "OpenMP: it can read OMP_NUM_THREADS.")
    return (f"Linked to {len(names)} libraries, of which none is an OpenMP "
            f"runtime ({', '.join(RUNTIMES)}).")
