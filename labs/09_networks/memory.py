"""How much memory a training step takes, tried in a process of its own.

There is nothing to fill in here. Each trial starts a Python, as only a fresh
one counts all that it holds: the framework's libraries, too. It ends after
its trial, and one that dies takes nobody with it.
"""

import argparse
import json
import math
import re
import subprocess
import sys
from pathlib import Path

from common import made_up, trainer

from scaleout import data

TRIAL = "import sys, memory; memory.steps(*sys.argv[1:])"


def in_fresh_process(args: argparse.Namespace, batch: int,
                     rank: int) -> float:
    """MiB that some steps take at most; infinity if they do not end well."""
    what = json.dumps({**vars(args), "batch": batch})
    # What a framework says when it runs out of memory is not for the reader.
    done = subprocess.run([sys.executable, "-c", TRIAL, what, str(rank)],
                          cwd=Path(__file__).parent, text=True,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL)
    return math.inf if done.returncode else float(done.stdout.split()[-1])


def steps(what: str, rank: str) -> None:
    """What is tried: one training step or two, and what they held, in MiB."""
    args = argparse.Namespace(**json.loads(what))
    network = trainer(args, int(rank))
    x, y = network.batch(*made_up(args, args.batch, int(rank)))
    for _ in range(1 if data.quick() else 2):
        network.alone(x, y)
    print(peak_mib())


def peak_mib() -> float:
    """The most that this process has held so far.

    What Linux counts for a child (ru_maxrss) begins with its parent's peak.
    """
    status = Path("/proc/self/status").read_text()
    return int(re.search(r"VmHWM:\s+(\d+)", status)[1]) / 1024
