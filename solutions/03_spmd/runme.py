"""Allreduce by hand, three ways: every rank brings an array, and every rank gets the sum of all of them.

    mpirun -n 2 python -m mpi4py solutions/03_spmd/runme.py

For each size and way you will see whether it agrees with MPI's own Allreduce, how long a call takes, and how many bytes
the busiest rank sends, counted and by the formula. It takes about 5 seconds.
"""

import argparse
import itertools
import time

import numpy as np
from mpi4py import MPI  # Distributed: this import also starts MPI

from scaleout import data, records


class Counting(MPI.Intracomm):
    """A communicator that counts the bytes this rank sends."""

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
    # BEGIN SOLUTION
    return [slice(n * rank // ranks, n * (rank + 1) // ranks) for rank in range(ranks)]
    # STARTER: return [slice(0, n)] + [slice(n, n)] * (ranks - 1)
    # END SOLUTION


def ring(comm: Counting, x: np.ndarray, spare: np.ndarray) -> None:
    """Blocks go around from left to right: each rank adds its part to what passes; then the sums go around once more."""
    rank, ranks, block = comm.rank, comm.size, blocks(len(x), comm.size)
    left, right = (rank - 1) % ranks, (rank + 1) % ranks
    # TODO 2: reduce-scatter. In ranks - 1 steps give block rank - step, take the one before it and add.  (4 lines)
    # BEGIN SOLUTION
    for step in range(ranks - 1):
        give, take = block[(rank - step) % ranks], block[(rank - step - 1) % ranks]
        comm.Sendrecv(x[give], right, spare[take], left)  # Distributed: partial sums move on by one rank
        x[take] += spare[take]
    # STARTER: pass
    # END SOLUTION
    # TODO 3: allgather. Block rank + 1 is whole here: in ranks - 1 steps give it, take the one before it.  (3 lines)
    # BEGIN SOLUTION
    for step in range(ranks - 1):
        give, take = block[(rank + 1 - step) % ranks], block[(rank - step) % ranks]
        comm.Sendrecv(x[give], right, x[take], left)  # Distributed: whole sums move on by one rank
    # STARTER: pass
    # END SOLUTION


WAYS = {"gather-broadcast": gather_broadcast, "tree": tree, "ring": ring}
WAYS["mpi"] = lambda comm, x, spare: comm.Allreduce(MPI.IN_PLACE, x)  # Distributed: what the three imitate


def main(args: argparse.Namespace) -> np.ndarray:
    comm, p = Counting(MPI.COMM_WORLD), MPI.COMM_WORLD.size
    busiest = {"gather-broadcast": p - 1, "tree": (p - 1).bit_length(), "ring": 2 * (p - 1) / p}  # times the array
    for n, way in itertools.product(args.sizes, WAYS if args.algorithm == "all" else [args.algorithm]):
        x = np.random.default_rng(comm.rank).integers(-99, 100, n).astype(args.dtype)  # (n,) whole: any order is exact
        total, spare, comm.sent, step_s = x.copy(), np.empty_like(x), 0, []
        comm.Allreduce(MPI.IN_PLACE, total)  # Distributed: the sum to compare with
        WAYS[way](comm, x, spare)
        right = [bool((x == total)[data.shard(n, rank, p)].all()) for rank in range(p)]  # (p,) block by block
        seen = comm.allgather((right, comm.sent))  # Distributed: everybody must have the sum, not only rank 0
        for _ in range(args.warmup + args.repeats):
            x[:] = 0  # sums of sums would grow without end
            comm.Barrier()  # Distributed: all begin together
            start = time.perf_counter()
            WAYS[way](comm, x, spare)
            step_s.append(comm.allreduce(time.perf_counter() - start, op=MPI.MAX))  # Distributed: the slowest counts
        metrics = {"n": n, "bytes": x.nbytes, "right": [r for r, _ in seen], "sent_bytes": [sent for _, sent in seen]}
        metrics |= {"formula_bytes": busiest.get(way, 0) * x.nbytes, "blocks": [[b.start, b.stop] for b in blocks(n, p)]}
        assert total.shape == (n,) and len(step_s) == args.warmup + args.repeats
        if comm.rank == 0:  # Distributed: one report, not one from each rank
            timed = {"warmup_steps": args.warmup, "step_s": step_s[args.warmup :]}
            records.write(lab="03_spmd", variant=way, ranks=p, metrics=metrics, **timed)
            says = "agrees" if np.all(metrics["right"]) else "WRONG"
            sent = f"{max(metrics['sent_bytes']):>12,} sent, {metrics['formula_bytes']:>12,.0f} by the formula"
            print(f"{x.nbytes:>10,} bytes {way:>16} {says} {1e6 * np.median(step_s):>9.1f} us {sent}", flush=True)
    return total


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--algorithm", choices=["all", *WAYS], default="all", help="one way, or all")
    parser.add_argument("--sizes", type=lambda text: [int(n) for n in text.split(",")], help="array lengths (elements)")
    parser.add_argument("--dtype", choices=["float32", "float64"], default="float32", help="4 or 8 bytes an element")
    parser.add_argument("--repeats", type=int, default=5 if data.quick() else 20, help="timed calls (count)")
    parser.add_argument("--warmup", type=int, default=3, help="calls before those (count)")
    parser.set_defaults(sizes=[4**k for k in range(12)])
    main(parser.parse_args())
