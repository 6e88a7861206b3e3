"""Numbers on the command line, and what is said of those that make no sense.

There is nothing to fill in here.
"""

import argparse
import sys

import horovod.tensorflow as hvd


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


def refuse(problem: str) -> None:
    """Ends the job with one sentence about what was wrong."""
    hvd.init()
    if hvd.rank() == 0:
        print(problem, file=sys.stderr, flush=True)
    # Distributed: nobody leaves before rank 0 has said why
    hvd.broadcast_object(problem, root_rank=0)
    raise SystemExit(2)
