"""Allreduce by hand, three ways: every rank brings an array, and every rank gets the sum of all of them.

    mpirun -n 2 python -m mpi4py labs/03_spmd/runme.py

You will see, by size and way: does it agree with MPI, microseconds a call, bytes the busiest rank sends. Takes 5 s.
"""

import argparse

import numpy as np
from mpi4py import MPI  # Distributed: this import also starts MPI

from scaleout import data, records


class Counting(MPI.Intracomm):
    """A communicator that counts the bytes this rank sends."""

    sent = 0

    def Send(self, x: np.ndarray, dest: int) -> None:
        super().Send(x, dest)  # Distributed: returns when x may be changed again
        self.sent += x.nbytes

    def Sendrecv(self, x: np.ndarray, dest: int, into: np.ndarray, source: int) -> None:
        super().Sendrecv(x, dest, recvbuf=into, source=source)  # Distributed: both at once, or all wait for each other
        self.sent += x.nbytes


def up_and_down(comm: Counting, x: np.ndarray, spare: np.ndarray, parent: int, children: list[int]) -> None:
    """Sums go up to rank 0, from child to parent; the sum of all comes down the same way."""
    for child in children:
        comm.Recv(spare, child)  # Distributed: the sum of that child and of all below it, (n,)
        x += spare
    if comm.rank > 0:
        comm.Send(x, parent)  # Distributed: the sum of me and of all below me
        comm.Recv(x, parent)  # Distributed: the sum of all
    for child in reversed(children):
        comm.Send(x, child)  # Distributed: the sum of all


def gather_broadcast(comm: Counting, x: np.ndarray, spare: np.ndarray) -> None:
    """A flat tree: rank 0 is everybody's parent."""
    up_and_down(comm, x, spare, 0, list(range(1, comm.size)) if comm.rank == 0 else [])


def tree(comm: Counting, x: np.ndarray, spare: np.ndarray) -> None:
    """A binary tree: 1 sends to 0 and 3 to 2, then 2 to 0. My parent is my rank without its lowest set bit."""
    bit = comm.rank & -comm.rank or comm.size
    children = [comm.rank + 2**k for k in range(bit.bit_length()) if 2**k < bit and comm.rank + 2**k < comm.size]
    up_and_down(comm, x, spare, comm.rank - bit, children)


def blocks(n: int, ranks: int) -> list[slice]:
    """n elements as one block a rank."""
    # TODO 1: each element in one block, and sizes that differ by one at most, also when it does not divide.  (1 line)
    return [slice(0, n)] + [slice(n, n)] * (ranks - 1)


def ring(comm: Counting, x: np.ndarray, spare: np.ndarray) -> None:
    """Blocks go around to the right, each rank adding its part to what passes; then the sums go around once more."""
    rank, ranks, block = comm.rank, comm.size, blocks(len(x), comm.size)
    left, right = (rank - 1) % ranks, (rank + 1) % ranks
    # TODO 2: reduce-scatter. In ranks - 1 steps give block rank - step, take the one before it and add.  (4 lines)
    pass
    # TODO 3: allgather. Block rank + 1 is whole here: in ranks - 1 steps give it, take the one before it.  (3 lines)
    pass


WAYS = {"gather-broadcast": gather_broadcast, "tree": tree, "ring": ring}
WAYS["mpi"] = lambda comm, x, spare: comm.Allreduce(MPI.IN_PLACE, x)  # Distributed: what the three imitate


def main(args: argparse.Namespace) -> np.ndarray:
    comm, p = Counting(MPI.COMM_WORLD), MPI.COMM_WORLD.size
    busiest = {"gather-broadcast": p - 1, "tree": (p - 1).bit_length(), "ring": 2 * (p - 1) / p}  # times the array
    for n, way in [(n, way) for n in args.sizes for way in WAYS if args.algorithm in ("all", way)]:
        x = np.random.default_rng(comm.rank).integers(-99, 100, n).astype(np.float32)  # (n,) whole: any order is exact
        total, spare, comm.sent, step_s = x.copy(), np.empty_like(x), 0, []
        comm.Allreduce(MPI.IN_PLACE, total)  # Distributed: the sum to compare with
        WAYS[way](comm, x, spare)
        assert x.shape == total.shape == (n,)
        same = [bool((x == total)[data.shard(n, rank, p)].all()) for rank in range(p)]  # (p,) block by block
        right, sent = zip(*comm.allgather((same, comm.sent)), strict=True)  # Distributed: all must have it, not rank 0
        for _ in range(args.warmup + args.repeats):
            x[:] = 0  # sums of sums would grow without end
            comm.Barrier()  # Distributed: all begin together
            start = MPI.Wtime()
            WAYS[way](comm, x, spare)
            step_s.append(comm.allreduce(MPI.Wtime() - start, op=MPI.MAX))  # Distributed: the slowest rank counts
        metrics = {"bytes": x.nbytes, "right": right, "blocks": [block.indices(n)[:2] for block in blocks(n, p)]}
        metrics |= {"sent_bytes": sent, "formula_bytes": busiest.get(way, 0) * x.nbytes}
        if comm.rank == 0:  # Distributed: one report, not one from each rank
            says, timed = "agrees" if np.all(right) else "WRONG ", step_s[args.warmup :]
            records.write(lab="03_spmd", variant=way, ranks=p, warmup_steps=args.warmup, step_s=timed, metrics=metrics)
            print(f"{x.nbytes:10,} B {way:16} {says} {1e6 * np.median(timed):9.1f} us {max(sent):10,} sent", flush=True)
    return total


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--algorithm", choices=["all", *WAYS], default="all", help="one way, or all")
    parser.add_argument("--sizes", type=int, nargs="+", default=[4**k for k in range(12)], help="lengths (floats)")
    parser.add_argument("--repeats", type=int, default=5 if data.quick() else 20, help="timed calls (count)")
    parser.add_argument("--warmup", type=int, default=10, help="calls before those (count)")
    args = parser.parse_args()
    if min(args.sizes) < 0 or min(args.repeats, args.warmup + 1) < 1:
        parser.error("a length is 0 or more, and so is --warmup; --repeats is 1 or more.")
    main(args)
