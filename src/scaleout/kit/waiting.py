"""How a rank without work waits for the others."""

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mpi4py import MPI


def sleep_until_all_are_here(comm: "MPI.Comm") -> None:
    """Wait for all ranks, and leave the cores to those who still compute."""
    # MPI's own barrier asks again and again, and keeps a core busy. Even once a millisecond took a
    # seventh of their rate from two ranks that trained beside it on two cores.
    request = comm.Ibarrier()
    while not request.Test():
        time.sleep(0.01)
