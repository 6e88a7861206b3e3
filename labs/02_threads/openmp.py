"""Settings compared on the OpenMP build of TensorFlow, which `make intel`
brings to .side/intel.

Where it is missing, a comparison that a reference machine made takes its
place, and says so.
"""

import subprocess
from importlib.util import find_spec
from pathlib import Path

from scaleout import compare
from scaleout.base.paths import show, side
from scaleout.course.references import REFERENCE, reference, whose

MISSING = ("The OpenMP build of TensorFlow is not here: type  make intel  in "
           "a terminal (370 MB, Python 3.11).")

# What GCC, Intel and LLVM call their OpenMP.
RUNTIMES = ("libgomp", "libiomp5", "libomp")


def python() -> str | None:
    """The path of its Python, for lab.run(python=...); None when it is not
    here."""
    folder = side("intel")
    return show(folder / "bin" / "python") if folder else None


def build() -> str:
    """What a figure calls it."""
    return "OpenMP build" if python() else "OpenMP build, reference machine"


def on_openmp(lab, variants, *, name: str, **how):
    """Compare variants on the OpenMP build; where it is not here, take the
    reference machine's comparison of that name and say whose it is."""
    interpreter = python()
    if interpreter:
        return compare(lab.run, variants, name=name, python=interpreter,
                       **how)
    found = reference(lab.folder / REFERENCE, name, list(variants), MISSING)
    whose(found.records, MISSING, "The OpenMP build's numbers are")
    return found


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
