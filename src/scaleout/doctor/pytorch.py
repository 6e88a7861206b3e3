"""What the doctor concludes about PyTorch, where `make torch` has brought it."""

import json
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..paths import show
from .checks import Check

FIX = "rm -r .side/torch && make torch"
LIMIT_S = 60.0  # to load PyTorch from a cold disk; a warm one needs 3 s
PROBE = """
import json, torch, torch.distributed as dist
from mpi4py import MPI
from scaleout.doctor.probe import mpi_libraries
with open("/proc/self/maps") as file:
    libraries = mpi_libraries(file.read())
print(json.dumps({"version": torch.__version__, "gloo": dist.is_available() and dist.is_gloo_available(),
                  "threads": torch.get_num_threads(), "libmpi": libraries}))
"""


def ask(folder: Path, environ: Mapping[str, str]) -> dict[str, Any]:
    """What the PyTorch in a side environment says of itself, given one thread."""
    words = [str(folder / "bin" / "python"), "-c", PROBE]
    try:
        done = subprocess.run(
            words,
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
            stdin=subprocess.DEVNULL,
            env={**environ, "OMP_NUM_THREADS": "1"},
        )
    except subprocess.TimeoutExpired:
        return {"error": f"it did not load within {LIMIT_S:g} s"}
    except OSError as error:
        return {"error": f"its Python cannot be started: {error.strerror}"}
    if done.returncode:
        return {"error": (done.stderr.strip().splitlines() or ["it said nothing"])[-1]}
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def pytorch(said: Mapping[str, Any]) -> Check:
    """Version, Gloo, threads as asked, and one MPI."""
    if "error" in said:
        return Check("PyTorch", "warn", said["error"], FIX)
    seen = f"{said['version']} in .side/torch"
    if not said["gloo"]:
        return Check("PyTorch", "warn", f"{seen} was built without Gloo: ranks cannot talk", FIX)
    if len(said["libmpi"]) != 1:
        names = ", ".join(show(Path(path)) for path in said["libmpi"]) or "none"
        variables = [name for name in ("LD_LIBRARY_PATH", "LD_PRELOAD") if os.environ.get(name)]
        fix = f"unset {' '.join(variables)}" if variables else FIX
        return Check("PyTorch", "warn", f"{seen} loads not one MPI but: {names}", fix)
    if said["threads"] != 1:
        many = f"{seen} takes {said['threads']} threads where OMP_NUM_THREADS says 1"
        return Check("PyTorch", "warn", many, FIX)
    return Check("PyTorch", "ok", f"{seen}, Gloo built, one MPI, threads as asked")
