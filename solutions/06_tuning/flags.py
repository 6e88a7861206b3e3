"""Numbers on the command line, and what is said of those that make no sense.

There is nothing to fill in here.
"""

import argparse
import sys

import horovod.tensorflow as hvd

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


def refuse(problem: str) -> None:
    """Ends the job with one sentence about what was wrong."""
    hvd.init()
    if hvd.rank() == 0:
        print(problem, file=sys.stderr, flush=True)
    # Distributed: nobody leaves before rank 0 has said why
    hvd.broadcast_object(problem, root_rank=0)
    raise SystemExit(2)
