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
from collections.abc import Callable
from pathlib import Path

from common import is_there, made_up, trainer

from scaleout import data, records
from scaleout.flags import refuse

MOST = 4096  # images of a step: no larger batch is looked for
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


def search(args: argparse.Namespace, rank: int, ranks: int,
           largest_batch: Callable) -> None:
    """The largest batch of a rank whose step stays within --limit-mib."""
    is_there(args.framework)
    tried = {}

    def fits(batch: int) -> bool:
        if batch in tried:
            refuse(f"largest_batch tries {batch} images a second time, and "
                   "would never end: go on only while there is a batch "
                   "between `good` and `bad`.")
        tried[batch] = (held_mib if batch == asked
                        else in_fresh_process(args, batch, rank))
        return tried[batch] <= args.limit_mib

    asked = args.batch // ranks
    held_mib = in_fresh_process(args, asked, rank)
    most = min(MOST, 2 * asked)
    largest = largest_batch(fits, most)
    # Distributed: what each rank has found
    found = records.gather({"held_mib": held_mib, "largest": largest,
                            "tried": [list(each) for each in tried.items()]})
    # Distributed: one report, not one from each rank
    if rank == 0:
        for at, mine in enumerate(found):
            print(f"rank {at} held {mine['held_mib']:.0f} MiB in steps of "
                  f"{asked} images and may take {args.limit_mib} MiB: the "
                  f"largest batch that fits is {mine['largest']}", flush=True)
        records.write(lab="09_networks", ranks=ranks, batch_per_rank=asked,
                      variant=f"{args.network} {args.framework} limit",
                      metrics={"network": args.network, "found": found,
                               "most": most,
                               "framework": args.framework,
                               "limit_mib": args.limit_mib})
