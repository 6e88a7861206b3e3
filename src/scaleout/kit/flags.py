"""A lab's command line: numbers that make sense, and one sentence from rank 0 for those that do
not."""

import argparse
import math
import os
import sys
import time
from typing import NoReturn


class Parser(argparse.ArgumentParser):
    """Read what was typed behind a lab's script; its docstring's first line is what --help shows."""

    def __init__(self, docstring: str | None) -> None:
        super().__init__(description=(docstring or "").partition("\n")[0])

    def error(self, message: str) -> NoReturn:
        """End the job with what is wrong, said once."""
        refuse(message)


def zero_or_more(text: str) -> int:
    """Read the value of a flag that may be 0."""
    return _number(text, least=0)


def one_or_more(text: str) -> int:
    """Read the value of a flag that counts something."""
    return _number(text, least=1)


def above_zero(text: str) -> float:
    """Read the value of a flag that may be a fraction."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < math.inf:
        raise argparse.ArgumentTypeError(f"it takes more than 0, not {text}")
    return value


def _number(text: str, least: int) -> int:
    if not text.isdecimal() or int(text) < least:
        raise argparse.ArgumentTypeError(f"it takes {least} or more, not {text}")
    return int(text)


def refuse(problem: str) -> NoReturn:
    """End the job with one sentence from rank 0, whatever has launched it. Every rank calls this.

    No rank leaves before rank 0 has spoken: a launcher ends the others as soon as one has failed.
    """
    if horovod := sys.modules.get("horovod.tensorflow"):
        horovod.init()
        _say(problem, horovod.rank())
        horovod.broadcast_object(None, root_rank=0)
        horovod.shutdown()
        if (mpi := sys.modules.get("mpi4py.MPI")) and not mpi.Is_finalized():
            mpi.Finalize()  # else mpi4py would abort, with a sentence of its own
    # Of torchrun alone, under which each rank is alone for MPI
    elif "TORCHELASTIC_USE_AGENT_STORE" in os.environ:
        _say(problem, int(os.environ["RANK"]))
        time.sleep(1)
    else:
        from mpi4py import MPI

        _say(problem, MPI.COMM_WORLD.Get_rank())
        MPI.Finalize()
    raise SystemExit(1)


def _say(problem: str, rank: int) -> None:
    if rank == 0:
        print(problem, file=sys.stderr, flush=True)
