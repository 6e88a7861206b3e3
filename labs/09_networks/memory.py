"""How much memory a training step takes, tried in a child process.

There is nothing to fill in here. A child ends after its trial, so whatever it
took is given back, and a child that dies takes nobody with it.
"""

import argparse
import os
from collections.abc import Callable

from common import load, made_up, trainer

from scaleout import data, records

MOST = 4096  # images of a step: no larger batch is looked for


def in_child(trial: Callable[[], None]) -> tuple:
    """Runs the trial in a child: whether it ended well, and its peak, MiB."""
    child = os.fork()
    if child == 0:
        try:
            trial()
        except Exception:  # each library has its own for "no more memory"
            os._exit(1)
        os._exit(0)
    _, status, used = os.wait4(child, 0)
    # Linux counts in KiB.
    return status == 0, used.ru_maxrss / 1024


def search(args: argparse.Namespace, rank: int, ranks: int,
           largest_batch: Callable) -> None:
    """The largest batch of a rank whose step stays within --limit-mib."""
    # Once, here, and not in each child.
    load(args.framework)
    tried = []

    def step(batch: int) -> None:
        network = trainer(args, rank)
        x, y = network.batch(*made_up(args, batch, rank))
        for _ in range(1 if data.quick() else 2):
            network.alone(x, y)

    def fits(batch: int) -> bool:
        ended_well, held_mib = in_child(lambda: step(batch))
        tried.append([batch, held_mib])
        return ended_well and held_mib <= args.limit_mib

    asked = args.batch // ranks
    fits(asked)
    held_mib = tried.pop()[1]
    most = min(MOST, 2 * asked)
    largest = largest_batch(fits, most)
    # Distributed: what each rank has found
    found = records.gather({"held_mib": held_mib, "largest": largest,
                            "tried": tried})
    # Distributed: one report, not one from each rank
    if rank == 0:
        for at, mine in enumerate(found):
            print(f"rank {at} held {mine['held_mib']:.0f} MiB in steps of "
                  f"{asked} images and may take {args.limit_mib}: the largest "
                  f"batch that fits is {mine['largest']}", flush=True)
        records.write(lab="09_networks", ranks=ranks, batch_per_rank=asked,
                      variant=f"{args.network} {args.framework} limit",
                      metrics={"network": args.network, "found": found,
                               "most": most,
                               "framework": args.framework,
                               "limit_mib": args.limit_mib})
