"""A rank says where it stands, again and again, and is not harmed by it."""

import subprocess
import sys

from scaleout.base.stacks import DONE

ALARM = """
import signal, time
from scaleout.base import stacks

stacks.FIRST_S = stacks.EVERY_S = 0.05
stacks.dump_every_few_seconds()
heard = []
signal.signal(signal.SIGALRM, lambda number, frame: heard.append(number))
time.sleep(1)
print(heard)
"""
WAITS = """
import os, threading
from scaleout.base import stacks

stacks.FIRST_S = stacks.EVERY_S = 0.05
stacks.dump_every_few_seconds()
from mpi4py import MPI
threading.Timer(1, os._exit, [3]).start()
MPI.COMM_WORLD.recv()
"""


def _run(text: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=60)


def test_a_rank_that_computes_says_so_and_gets_no_signal() -> None:
    done = _run(ALARM)
    said = done.stderr.splitlines()
    assert done.returncode == 0 and done.stdout == "[]\n" and said[-1] == DONE
    assert said[:2] == ["Stack (most recent call first):", '  File "<string>", line 9 in <module>']


def test_a_rank_that_waits_in_a_library_says_so() -> None:
    done = _run(WAITS)
    said = done.stderr.splitlines()
    assert done.returncode == 3 and DONE not in said
    at = [i for i, line in enumerate(said) if line == "Stack (most recent call first):"]
    assert len(at) > 3 and said[at[-1] + 1] == '  File "<string>", line 9 in <module>'
