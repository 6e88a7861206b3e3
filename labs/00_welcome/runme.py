"""Every rank says who it is, and all ranks integrate pi together.

    mpirun -n 2 python -m mpi4py labs/00_welcome/runme.py

You will see one hello from each rank, and pi from rank 0. It takes about a second.
The area under 4 / (1 + x*x) between 0 and 1 is pi. We cut it into thin strips, give each rank its share of the strips,
and add up what the ranks found.
"""

import argparse
import os
import time

import numpy as np
from mpi4py import MPI  # Distributed: this import also starts MPI

from scaleout import data, records


def strips_sum(first: int, last: int, strips: int, block: int = 20_000) -> float:
    """The area of the strips first, ..., last - 1 out of so many, by the midpoint rule; block by block, in cache."""
    total = 0.0
    for start in range(first, last, block):
        middle = (np.arange(start, min(start + block, last)) + 0.5) / strips  # (block,) or fewer
        total += float(np.sum(4.0 / (1.0 + middle * middle)))
    return total / strips


def main(args: argparse.Namespace) -> float:
    comm = MPI.COMM_WORLD  # Distributed: everybody who takes part
    # TODO 1: ask the communicator who I am and how many we are.  (1 line)
    rank, ranks = 0, 1
    cores = sorted(os.sched_getaffinity(0))
    print(f"Hello from rank {rank} of {ranks}: process {os.getpid()} may run on cores {cores}.", flush=True)

    # TODO 2: the strips from first to last - 1 are mine; together the ranks take each strip once.  (2 lines)
    first, last = 0, args.strips

    step_s = []
    for _ in range(1 + args.repeats):  # the first time warms up: memory, caches, clock
        start = time.perf_counter()
        part = strips_sum(first, last, args.strips)
        step_s.append(time.perf_counter() - start)

    # TODO 3: add up the parts of all ranks, so that every rank knows pi.  (1 line)
    pi = part

    share = {"rank": rank, "first": first, "last": last, "part": part, "pi": pi, "cores": cores, "step_s": step_s[1:]}
    shares = comm.gather(share, root=0)  # Distributed: rank 0 gets a list, the others None
    if rank == 0 and shares:  # Distributed: one report, not one from each rank
        slowest_s = np.max([share["step_s"] for share in shares], axis=0)  # (repeats,)
        print(f"pi = {pi:.12f}, off by {abs(pi - np.pi):.1e}", flush=True)
        records.write(
            lab="00_welcome",
            ranks=ranks,
            warmup_steps=1,
            step_s=slowest_s,  # Distributed: the job is as fast as its slowest rank
            rate=args.strips / np.median(slowest_s),
            rate_unit="strips/s",
            metrics={"pi": pi, "strips": args.strips, "shares": shares},
        )
    return pi


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--strips", type=int, default=10_000_001, help="strips to cut the area into (count)")
    parser.add_argument("--repeats", type=int, default=5, help="timed repeats (count)")
    main(parser.parse_args())
