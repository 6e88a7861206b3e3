"""The three MPI libraries of the workshop, each from a wheel: which are here, and how a job starts
on each.

MPICH is in the workshop's own environment. Intel MPI and Open MPI are in folders of their own,
which `make mpis` fills. One mpi4py serves all three: Intel MPI has MPICH's binary interface and
takes the place of its libmpi.so.12; for Open MPI, mpi4py brings a second build."""

import os
from pathlib import Path

from ..jobs.site import Site
from ..paths import show, side

FOLDERS = {"Intel MPI": "impi", "Open MPI": "openmpi"}


def site(name: str, folder: Path) -> Site:
    """How a job starts on another MPI library."""
    lib = folder / "lib"
    if name == "Intel MPI":
        # Its mpirun is a script that looks for files the wheel lacks; mpiexec.hydra is what it
        # would start.
        env = {
            "I_MPI_ROOT": str(folder),
            "LD_PRELOAD": str(lib / "libmpi.so.12"),
            "LD_LIBRARY_PATH": str(lib),
        }
        return Site(mpirun=show(folder / "bin" / "mpiexec.hydra"), env=env)
    env = {"MPI4PY_MPIABI": "openmpi", "LD_LIBRARY_PATH": str(lib), "OPAL_PREFIX": str(folder)}
    if os.geteuid() == 0:  # it refuses to run as root, who a person in a container is
        env |= {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    return Site(mpirun=show(folder / "bin" / "mpirun"), env=env, launcher="openmpi")


def sites() -> dict[str, Site]:
    """The MPI libraries that are here, by name, as sites to run a lab on:
    lab.run(site=sites()["Open MPI"])."""
    whole = {name: side(part) for name, part in FOLDERS.items()}
    return {"MPICH": Site()} | {
        name: site(name, folder) for name, folder in whole.items() if folder
    }


def missing() -> list[str]:
    """The names of those that are not here; `make mpis` brings them."""
    return sorted(set(FOLDERS) - set(sites()))


def oneccl_site(folder: Path) -> Site:
    """How a job starts on Horovod's oneCCL build in `folder`: Intel MPI, and that Horovod before
    the workshop's own.

    oneCCL finds its CPU through OpenCL, and warns where it has no core for threads of its own, as
    here."""
    env = {
        "I_MPI_ROOT": str(folder),
        "LD_LIBRARY_PATH": str(folder / "lib"),
        "PYTHONPATH": str(folder / "python"),
    }
    env |= {"OCL_ICD_FILENAMES": str(folder / "lib" / "libintelocl.so"), "CCL_LOG_LEVEL": "error"}
    return Site(mpirun=show(folder / "bin" / "mpiexec.hydra"), env=env)


def oneccl() -> Site | None:
    """The site of Horovod's oneCCL build; None where `make ccl` has not made it."""
    folder = side("ccl")
    return oneccl_site(folder) if folder else None
