"""Allreduce by hand, in three ways: everybody gets the sum of all arrays.

    mpirun -n 2 python -m mpi4py solutions/03_spmd/runme.py

On two ranks, as here, you will see a line for each size of the array and each
way: whether it agrees with MPI's own Allreduce, how many microseconds a call
takes, and how many bytes the busiest rank sends. It takes about 5 seconds.
"""

import argparse
from collections.abc import Callable
from functools import partial

import numpy as np
from counting import Counting  # mpi4py's communicator, and it counts

# Distributed: this import also starts MPI
from mpi4py import MPI
from trees import gather_broadcast, tree

from scaleout import data, records
from scaleout.kit.flags import Parser, one_or_more, zero_or_more


def blocks(n: int, ranks: int) -> list[slice]:
    """n elements as a list of slices, one for each rank."""
    # TODO 1: a slice for each rank, one behind the other: each of the n
    # elements is in exactly one, and their lengths differ by one at most, also
    # when n does not divide. data.shard(n, rank, ranks) is such a slice; can
    # you write it yourself?  (1 line)
    # BEGIN SOLUTION
    return [slice(n * r // ranks, n * (r + 1) // ranks) for r in range(ranks)]
    # STARTER: return [slice(0, n)] + [slice(n, n)] * (ranks - 1)
    # END SOLUTION


def ring(comm: Counting, x: np.ndarray, spare: np.ndarray,
         trips: int = 2) -> None:
    """Blocks go around to the right, twice. x becomes the sum.

    On the first trip each rank adds its own part to what passes, so that in
    the end rank r holds the whole sum of block r + 1. On the second trip these
    sums go around, and everybody keeps a copy.
    """
    rank = comm.rank
    ranks = comm.size
    left = (rank - 1) % ranks
    right = (rank + 1) % ranks
    block = blocks(len(x), ranks)
    assert len(block) == ranks, f"expected {ranks} blocks; saw {len(block)}"

    # TODO 2: the first trip, called reduce-scatter. In each of ranks - 1 steps
    # give a block to the right, take the one before it from the left into
    # `spare`, and add it to yours in `x`. In step 0 you give block `rank`; in
    # step s, block rank - s, what you have just added to. Take it % ranks.
    # comm.Sendrecv(x[give], right, spare[take], left) does both at once, where
    # give and take are slices out of `block`.  (5 lines)
    # BEGIN SOLUTION
    for step in range(ranks - 1):
        give = block[(rank - step) % ranks]
        take = block[(rank - step - 1) % ranks]
        # Distributed: sums that are not whole yet move on by one rank
        comm.Sendrecv(x[give], right, spare[take], left)  # (n / ranks,)
        x[take] += spare[take]
    # STARTER: pass
    # END SOLUTION
    if trips == 1:
        return  # the check of TODO 2 looks here

    # The second trip, called allgather. In step 0 each rank gives block
    # rank + 1, which is whole here; in each step after that, what it has just
    # taken.
    for step in range(ranks - 1):
        give = block[(rank + 1 - step) % ranks]
        take = block[(rank - step) % ranks]
        # TODO 3: let `give` and `take` travel, as on the first trip. But what
        # comes is whole: take it straight into `x`, where it belongs, and add
        # nothing.  (1 line)
        # BEGIN SOLUTION
        # Distributed: whole sums move on by one rank
        comm.Sendrecv(x[give], right, x[take], left)  # (n / ranks,)
        # STARTER: pass
        # END SOLUTION


def mpi(comm: Counting, x: np.ndarray, spare: np.ndarray) -> None:
    """MPI's own, which the other three imitate. x becomes the sum."""
    # Distributed: the library chooses the way
    comm.Allreduce(MPI.IN_PLACE, x)


WAYS = {
    "gather-broadcast": gather_broadcast,
    "tree": tree,
    "ring": ring,
    "mpi": mpi,
}


def arrays_sent(way: str, ranks: int) -> float:
    """What the busiest rank should send, in arrays."""
    if way == "gather-broadcast":
        return ranks - 1
    if way == "tree":
        return (ranks - 1).bit_length()
    if way == "ring":
        return 2 * (ranks - 1) / ranks
    return 0


def main(args: argparse.Namespace) -> None:
    comm = Counting(MPI.COMM_WORLD)
    ways = list(WAYS) if args.algorithm == "all" else [args.algorithm]
    for n in args.sizes:
        for way in ways:
            # Book-keeping: the books time the calls, and write the record.
            books = records.Books("03_spmd", comm.rank, comm.size,
                                  warmup=args.warmup)
            if way == "ring":
                first = compare(comm, partial(ring, trips=1), n)
                books.note(first_trip=first)
            found = compare(comm, WAYS[way], n)
            books.note(**found)

            x = np.zeros(n, np.float32)  # (n,)
            spare = np.empty_like(x)  # (n,)
            for _ in range(args.warmup + args.repeats):
                # Distributed: all begin together
                comm.Barrier()
                with books.step():
                    WAYS[way](comm, x, spare)

            size = 4 * n  # bytes
            cuts = [block.indices(n)[:2] for block in blocks(n, comm.size)]
            # Distributed: one record of all ranks; the slowest of them counts
            record = books.write(
                variant=way, bytes=size, blocks=cuts,
                formula_bytes=arrays_sent(way, comm.size) * size)
            # Distributed: one line, not one from each rank
            if comm.rank == 0:
                report(record)


# Helpers. The lesson is above.


def compare(comm: Counting, way: Callable[..., None], n: int) -> dict:
    """Which blocks this rank has right in the end, and the bytes it sent."""
    rng = np.random.default_rng(comm.rank)
    # Whole numbers: their sum is exact, in whatever order they are added.
    x = rng.integers(-99, 100, n).astype(np.float32)  # (n,)
    spare = np.empty_like(x)  # (n,)
    total = np.empty_like(x)  # (n,)
    # Distributed: the sum to compare with
    MPI.COMM_WORLD.Allreduce(x, total)
    comm.sent = 0
    way(comm, x, spare)
    same = x == total  # (n,)
    shards = [data.shard(n, rank, comm.size) for rank in range(comm.size)]
    return {"right": [bool(same[shard].all()) for shard in shards],
            "sent_bytes": comm.sent}


def report(record: dict) -> None:
    """One line for a way and a size."""
    found = record["metrics"]
    shares = found["shares"]  # what each rank has noted
    right = np.all([share["right"] for share in shares])
    sent = max(share["sent_bytes"] for share in shares)
    us = 1e6 * np.median(record["step_s"])
    print(f"{found['bytes']:10,} B {record['variant']:16} "
          f"{'agrees' if right else 'WRONG '} {us:9.1f} us {sent:10,} sent",
          flush=True)


def settings() -> argparse.Namespace:
    """What was typed behind the name of this file."""
    parser = Parser(__doc__)
    parser.add_argument("--algorithm", choices=["all", *WAYS], default="all",
                        help="one way, or all (all)")
    parser.add_argument("--sizes", type=zero_or_more, nargs="+",
                        default=[4**k for k in range(12)],
                        help="lengths of the array, in floats of 4 bytes "
                        "(1 4 16 ... 4194304)")
    parser.add_argument("--repeats", type=one_or_more,
                        default=5 if data.quick() else 20,
                        help="timed calls of each way (20)")
    parser.add_argument("--warmup", type=zero_or_more,
                        default=2 if data.quick() else 10,
                        help="calls before those, not timed (10)")
    return parser.parse_args()


if __name__ == "__main__":
    main(settings())
