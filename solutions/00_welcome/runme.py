"""Every rank says who it is, and all ranks integrate pi together.

    mpirun -n 2 python -m mpi4py solutions/00_welcome/runme.py

On two ranks, as here, you will see a hello from each of them, and then pi from
rank 0. It takes about a second.

The area under 4 / (1 + x*x) between 0 and 1 is pi. We cut this area into thin
strips, give each rank its share of them, and add up what the ranks found.
"""

import argparse
import os
from time import perf_counter

import numpy as np

# Distributed: this import also starts MPI
from mpi4py import MPI

from scaleout import data, records
from scaleout.kit.flags import Parser, one_or_more

# So many strips are added up at a time. Their arrays fit into the cache, and
# are small enough to get the same memory again, block after block.
BLOCK = 10_000


def settings() -> argparse.Namespace:
    """What was typed behind the name of this file."""
    parser = Parser(__doc__)
    parser.add_argument("--strips", type=one_or_more, default=10_000_001,
                        help="strips to cut the area into (10000001)")
    parser.add_argument("--repeats", type=one_or_more, default=5,
                        help="how often the sum is timed (5)")
    return parser.parse_args()


def area(first: int, last: int, strips: int) -> float:
    """The area of the strips first to last - 1, by the midpoint rule."""
    total = 0.0
    for start in range(first, last, BLOCK):
        stop = min(start + BLOCK, last)
        middle = (np.arange(start, stop) + 0.5) / strips  # (stop - start,)
        height = 4.0 / (1.0 + middle * middle)  # (stop - start,)
        total += float(np.sum(height))
    return total / strips


def main(args: argparse.Namespace) -> float:
    # Distributed: everybody who takes part
    comm = MPI.COMM_WORLD

    # TODO 1: ask the communicator who I am, and how many we are.
    # comm.Get_rank() gives the one, comm.Get_size() the other.  (2 lines)
    # BEGIN SOLUTION
    # Distributed: the one program learns which of its copies this is
    rank = comm.Get_rank()
    ranks = comm.Get_size()
    # STARTER: rank = 0
    # STARTER: ranks = 1
    # END SOLUTION

    cpus = sorted(os.sched_getaffinity(0))
    print(f"Hello from rank {rank} of {ranks}: "
          f"process {os.getpid()} may run on CPUs {cpus}.", flush=True)

    # TODO 2: the strips from first to last - 1 are mine. Together the ranks
    # take each strip once, and none takes more than it must: 10 strips on
    # 3 ranks are 3, 3 and 4. data.shard(n, rank, ranks) gives a slice with
    # such a .start and .stop; or do the arithmetic yourself.  (3 lines)
    # BEGIN SOLUTION
    # Distributed: each rank has its own part of the work
    mine = data.shard(args.strips, rank, ranks)
    first = mine.start
    last = mine.stop
    # STARTER: first = 0
    # STARTER: last = args.strips
    # END SOLUTION

    # The work. The first time warms up memory, caches and clock. The books
    # time each step of this rank: the adding, and the allreduce after it.
    books = records.Books("00_welcome", rank, ranks, warmup=1)
    allreduce_s = []
    for _ in range(1 + args.repeats):
        with books.step():
            part = area(first, last, args.strips)
            added = perf_counter()
            # TODO 3: add up the parts of all ranks, so that every rank knows
            # pi. comm.allreduce(x, op=MPI.SUM) gives everybody the sum of
            # all x.  (1 line)
            # BEGIN SOLUTION
            # Distributed: one number from each rank, and the sum back to all
            pi = comm.allreduce(part, op=MPI.SUM)
            # STARTER: pi = part
            # END SOLUTION
            allreduce_s.append(perf_counter() - added)

    # What each rank did, for the picture and the checks.
    books.note(rank=rank, first=first, last=last, part=part, pi=pi,
               cpus=cpus)
    strips_per_s = args.strips / np.median(books.slowest_s())
    # Distributed: the rank that comes last to the allreduce waits for nobody
    quickest_s = min(comm.allgather(np.median(allreduce_s[1:])))
    # Distributed: one record of all ranks; the slowest of them counts
    books.write(rate=strips_per_s, rate_unit="strips/s", pi=pi,
                strips=args.strips, allreduce_s=quickest_s)
    # Distributed: one line, not one from each rank
    if rank == 0:
        print(f"pi = {pi:.12f}, off by {abs(pi - np.pi):.1e}", flush=True)
    return pi


if __name__ == "__main__":
    main(settings())
