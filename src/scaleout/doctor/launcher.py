"""What the doctor concludes about mpirun: this environment's own, and
the one that is typed by hand."""

import os
import shlex
from pathlib import Path

from .. import machine
from ..machine import Machine
from .checks import Check, _inside, _pip, short


def mpirun(facts: Machine, pin: str) -> Check:
    """This environment's own mpirun."""
    path = Path(facts.mpirun)
    fix = _pip(f"mpich{pin}", "--force-reinstall")
    if not path.is_file():
        return Check("mpirun", "fail", f"there is no {short(path)}", fix)
    if facts.mpi == "unknown":
        return Check(
            "mpirun", "fail", f"{short(path)} does not run, or does not say which MPI it is", fix
        )
    if not _inside(real := os.path.realpath(path)):
        return Check(
            "mpirun", "warn", f"{short(path)} is {real} ({facts.mpi}), not this environment's", fix
        )
    return Check("mpirun", "ok", f"{facts.mpi} {facts.mpi_version}, {short(path)}")


def mpirun_on_path(facts: Machine, found: str | None, said: str) -> Check:
    """What a hand-typed `mpirun` starts."""
    name = "mpirun on PATH"
    if found is None:
        return Check(name, "ok", "none; scaleout run knows its own")
    if os.path.realpath(found) == os.path.realpath(facts.mpirun):
        return Check(name, "ok", "the same")
    seen = f"{found} ({' '.join(machine.parse_mpi_version(said))}): typed by hand, it can start worlds of one"
    return Check(
        name, "warn", seen, f"export PATH={shlex.quote(str(Path(facts.mpirun).parent))}:$PATH"
    )
