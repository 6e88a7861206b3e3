"""The three MPI libraries of the workshop, each from a wheel: which are here, and how a job starts on each.

MPICH is in the workshop's own environment. Intel MPI and Open MPI are in folders of their own, which `make mpis` fills.
One mpi4py serves all three: Intel MPI has MPICH's binary interface and takes the place of its libmpi.so.12; for Open
MPI, mpi4py brings a second build.
"""

import os
from pathlib import Path

from .paths import home, show
from .site import Site

__all__ = ["FOLDERS", "WHOLE", "missing", "site", "sites"]

FOLDERS = {"Intel MPI": "impi", "Open MPI": "openmpi"}
WHOLE = ".whole"  # stands in a folder once a job has run on what is in it


def site(name: str, folder: Path) -> Site:
    """How a job starts on the library called `name` that is installed in `folder`."""
    lib = folder / "lib"
    if name == "Intel MPI":
        # Its mpirun is a script that looks for files the wheel lacks; mpiexec.hydra is what it would start.
        env = {"I_MPI_ROOT": str(folder), "LD_PRELOAD": str(lib / "libmpi.so.12"), "LD_LIBRARY_PATH": str(lib)}
        return Site(mpirun=show(folder / "bin" / "mpiexec.hydra"), env=env)
    env = {"MPI4PY_MPIABI": "openmpi", "LD_LIBRARY_PATH": str(lib), "OPAL_PREFIX": str(folder)}
    if os.geteuid() == 0:  # it refuses to run as root, who a person in a container is
        env |= {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    return Site(mpirun=show(folder / "bin" / "mpirun"), env=env, launcher="openmpi")


def sites() -> dict[str, Site]:
    """The MPI libraries that are here, by name, as sites to run a lab on: lab.run(site=sites()["Open MPI"])."""
    side = home() / ".side"
    whole = {name: side / part for name, part in FOLDERS.items() if (side / part / WHOLE).exists()}
    return {"MPICH": Site()} | {name: site(name, folder) for name, folder in whole.items()}


def missing() -> list[str]:
    """The names of those that are not here; `make mpis` brings them."""
    return sorted(set(FOLDERS) - set(sites()))
