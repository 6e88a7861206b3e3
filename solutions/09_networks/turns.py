r"""One process with all cores, or several that share them? They take turns.

    scaleout run solutions/09_networks/turns.py -n 3 -t 2 --bind none -- \
        --networks resnet50 --batches 8 64 --side 64

Rank 0 trains alone, with all threads that were asked for. The other ranks
share them, and the images of a step: first as independent copies, then
together, with averaged gradients. While one way works, the others sleep. You
will see images/s of each way, after a minute or so. There is nothing to fill
in here.
"""

import argparse
import os
import sys
from time import perf_counter

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "1")

import numpy as np
from common import made_up, trainer
from memory import in_fresh_process

# Distributed: this import also starts MPI
from mpi4py import MPI

from scaleout import records
from scaleout.kit.flags import Parser, one_or_more, refuse
from scaleout.kit.waiting import sleep_until_all_are_here

# The first of them twice: what these differ by is the noise.
COLUMNS = [("one process", 0), ("one process", 1), ("copies", 0),
           ("together", 0)]


def settings() -> argparse.Namespace:
    """What was typed behind the name of this file."""
    parser = Parser(__doc__)
    parser.add_argument("--networks", nargs="+", default=["resnet50"],
                        help="what to train (resnet50)")
    parser.add_argument("--framework", choices=["tensorflow", "torch"],
                        default="tensorflow", help="by what (tensorflow)")
    parser.add_argument("--batches", type=one_or_more, nargs="+",
                        default=[8, 64],
                        help="images of a step, on all ranks together (8 64)")
    parser.add_argument("--side", type=one_or_more, default=64,
                        help="pixels of a large network's image (64)")
    parser.add_argument("--rounds", type=one_or_more, default=5,
                        help="measurements of each (5)")
    parser.add_argument("--memory", action="store_true",
                        help="also look how much memory one process takes")
    args = parser.parse_args()
    several = MPI.COMM_WORLD.Get_size() - 1
    if several < 2 or any(batch % several for batch in args.batches):
        refuse("This script takes one rank and two or more others, by whose "
               "number each of --batches divides: try  -n 3")
    args.dtype = "float32"
    return args


def share_the_cores(comm: MPI.Comm) -> None:
    """Each rank but the first has its part of the threads, and is one of the
    ranks that train together. Before a framework is imported."""
    several = comm.size - 1
    threads = int(os.environ.get("OMP_NUM_THREADS") or several)
    if comm.rank > 0:
        part = str(max(1, threads // several))
        os.environ["OMP_NUM_THREADS"] = part
        os.environ["TF_NUM_INTRAOP_THREADS"] = part
        os.environ["RANK"] = str(comm.rank - 1)
        os.environ["WORLD_SIZE"] = str(several)


def seconds(comm: MPI.Comm, step, mine: bool) -> float:
    """How long this way takes for a step; a rank that has none sleeps."""
    took = 0.0
    # Distributed: one way at a time works
    sleep_until_all_are_here(comm)
    if mine:
        started = perf_counter()
        step()
        took = perf_counter() - started
    sleep_until_all_are_here(comm)
    # Distributed: the slowest rank counts
    return comm.allreduce(took, MPI.MAX)


def in_turns(comm: MPI.Comm, network, args: argparse.Namespace) -> dict:
    """The rows of a comparison for each batch, images/s."""
    alone = comm.rank == 0
    rows = {batch: [] for batch in args.batches}
    data = {}
    for batch in args.batches:
        own = batch if alone else batch // (comm.size - 1)
        data[batch] = network.batch(*made_up(args, own, comm.rank))
    # The first round is not counted: it makes graphs and fills caches.
    for turn in range(-1, args.rounds):
        for batch, (x, y) in data.items():
            ways = {"one process": (network.alone, alone),
                    "copies": (network.alone, not alone),
                    "together": (network.together, not alone)}
            for name, again in COLUMNS[::-1 if turn % 2 else 1]:
                step, mine = ways[name]
                took = seconds(comm, lambda s=step, x=x, y=y: s(x, y), mine)
                if turn >= 0:
                    rows[batch].append({
                        "round": turn, "place": len(rows[batch]),
                        "variant": name, "again": again,
                        "value": batch / took, "unit": "images/s"})
    return rows


def main(args: argparse.Namespace) -> None:
    # Distributed: one rank that trains alone, and those that train together
    comm = MPI.COMM_WORLD
    share_the_cores(comm)
    together = comm.Split(comm.rank > 0)
    for name in args.networks:
        args.network = name
        network = trainer(args, seed=comm.rank)
        if comm.rank > 0:
            # Distributed: without rank 0
            network.begin_together(together)
        for batch, rows in in_turns(comm, network, args).items():
            # Distributed: one report, not one from each rank
            if comm.rank == 0:
                report(args, network, comm.size - 1, batch, rows)
    # Distributed: nobody leaves while another still works
    sleep_until_all_are_here(comm)
    sys.stdout.flush()
    if comm.rank > 0:
        network.leave()


def report(args: argparse.Namespace, network, several: int, batch: int,
           rows: list) -> None:
    """A line and a record."""
    rates = {way: float(np.median([row["value"] for row in rows
                                   if row["variant"] == way]))
             for way, _ in COLUMNS}
    said = ", ".join(f"{way} {rate:.1f}" for way, rate in rates.items())
    print(f"{args.network}, batch {batch}: {said} images/s", flush=True)
    # Of one step in a process of its own.
    peak_mib = in_fresh_process(args, batch, 0) if args.memory else None
    records.write(lab="09_networks", ranks=several,
                  batch_per_rank=batch // several,
                  variant=f"{args.network}, batch {batch}",
                  rate=rates["one process"], rate_unit="images/s",
                  metrics={"network": args.network, "side": args.side,
                           "framework": args.framework, "batch": batch,
                           "flops_per_image": network.flops_per_image,
                           "parameters": network.parameters,
                           "peak_mib": peak_mib, "runs": rows})


if __name__ == "__main__":
    main(settings())
