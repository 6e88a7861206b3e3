"""The three MPI libraries of the workshop, each from a wheel: which are here, and how a job starts
on each.

MPICH is in the workshop's own environment. Intel MPI and Open MPI are in folders of their own,
which `make mpis` fills. One mpi4py serves all three: Intel MPI has MPICH's binary interface and
takes the place of its libmpi.so.12; for Open MPI, mpi4py brings a second build."""

import os
from pathlib import Path

from ..base.paths import show, side
from ..site import Site

FOLDERS = {"Intel MPI": "impi", "Open MPI": "openmpi"}


def site(name: str, folder: Path) -> Site:
    """Make the site on which a job starts with another MPI library.

    Parameters
    ----------
    name : {"Intel MPI", "Open MPI"}
    folder : Path
        The environment that holds the library, with its bin/ and lib/.

    Returns
    -------
    Site
    """
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
    """Return the MPI libraries that are here, each as a site to run a lab on.

    Returns
    -------
    dict of str to Site
        By name: always "MPICH"; "Intel MPI" and "Open MPI" once `make mpis` has brought them.

    Examples
    --------
    lab.run(site=sites()["Open MPI"])
    """
    whole = {name: side(part) for name, part in FOLDERS.items()}
    return {"MPICH": Site()} | {
        name: site(name, folder) for name, folder in whole.items() if folder
    }


def missing() -> list[str]:
    """List the MPI libraries that are not here; `make mpis` brings them.

    Returns
    -------
    list of str
        Their names, sorted.
    """
    return sorted(set(FOLDERS) - set(sites()))


def oneccl_site(folder: Path) -> Site:
    """Make the site on which a job starts with Horovod's oneCCL build.

    It starts with Intel MPI, and finds that Horovod before the workshop's own. oneCCL finds its CPU
    through OpenCL, and warns where it has no core for threads of its own, as here.

    Parameters
    ----------
    folder : Path
        The environment that holds the build.

    Returns
    -------
    Site
    """
    env = {
        "I_MPI_ROOT": str(folder),
        "LD_LIBRARY_PATH": str(folder / "lib"),
        "PYTHONPATH": str(folder / "python"),
    }
    env |= {"OCL_ICD_FILENAMES": str(folder / "lib" / "libintelocl.so"), "CCL_LOG_LEVEL": "error"}
    return Site(mpirun=show(folder / "bin" / "mpiexec.hydra"), env=env)


def oneccl() -> Site | None:
    """Return the site of Horovod's oneCCL build.

    Returns
    -------
    Site or None
        None where `make ccl` has not made it.
    """
    folder = side("ccl")
    return oneccl_site(folder) if folder else None
