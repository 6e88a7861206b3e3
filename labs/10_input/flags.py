"""Numbers on the command line, and what is said of those that make no sense.

There is nothing to fill in here. The same file stands in several labs.
"""

import argparse

from mpi4py import MPI

MOST = 999_999_999  # nothing that a lab counts is larger


def number(text: str, least: int) -> int:
    """The whole number that was typed, in digits."""
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(
            f"it takes {least} or more, not {text}")
    if len(text) > len(str(MOST)):
        raise argparse.ArgumentTypeError(
            f"it takes {MOST:,} at most, not {text[:12]}...")
    if int(text) < least:
        raise argparse.ArgumentTypeError(
            f"it takes {least} or more, not {text}")
    return int(text)


def zero_or_more(text: str) -> int:
    """The value of a flag that may be 0."""
    return number(text, least=0)


def one_or_more(text: str) -> int:
    """The value of a flag that counts something."""
    return number(text, least=1)


def above_zero(text: str) -> float:
    """The value of a flag that may be a fraction."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not value > 0:
        raise argparse.ArgumentTypeError(f"it takes more than 0, not {text}")
    if not 1e-8 <= value <= MOST:
        raise argparse.ArgumentTypeError(
            f"it takes 0.00000001 to {MOST:,}, not {text[:12]}")
    return value


def refuse(problem: str) -> None:
    """Ends the job with one sentence about what was typed."""
    rank = MPI.COMM_WORLD.Get_rank()
    # Distributed: all ranks leave together, and rank 0 says why
    MPI.Finalize()
    raise SystemExit(problem if rank == 0 else 1)
