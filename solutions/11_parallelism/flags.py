"""Numbers on the command line, and what is said of those that make no sense.

There is nothing to fill in here. The same file stands in several labs.
"""

import argparse

from mpi4py import MPI


def zero_or_more(text: str) -> int:
    """The value of a flag that may be 0."""
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"it takes 0 or more, not {text}")
    return int(text)


def one_or_more(text: str) -> int:
    """The value of a flag that counts something."""
    if not text.isdecimal() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"it takes 1 or more, not {text}")
    return int(text)


def above_zero(text: str) -> float:
    """The value of a flag that may be a fraction."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"it takes more than 0, not {text}")
    return value


def refuse(problem: str) -> None:
    """Ends the job with one sentence about what was typed."""
    rank = MPI.COMM_WORLD.Get_rank()
    # Distributed: all ranks leave together, and rank 0 says why
    MPI.Finalize()
    raise SystemExit(problem if rank == 0 else 1)
