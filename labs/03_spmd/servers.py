"""A parameter server against a ring: who sends how much while ranks grow?

    mpirun -n 4 python -m mpi4py labs/03_spmd/servers.py

Start it on 2 ranks or more, here 4; it takes about 3 seconds. You will see
the time of an update and the bytes that the busiest rank sends: with one
server, with two, with one on every rank, and for the ring of your runme.py.

Every rank has a gradient and wants the sum of all. A server adds up its share
of the parameters, and sends the sum to everybody.
"""

import argparse

import numpy as np

# Distributed: this import also starts MPI
from mpi4py import MPI
from runme import Counting, blocks, ring

from scaleout import data, records
from scaleout.flags import Parser, one_or_more, zero_or_more

# The tags of a gradient on its way to a server, and of a sum on its way back.
PUSH = 1
PULL = 2


def settings() -> argparse.Namespace:
    """What was typed behind the name of this file."""
    parser = Parser(__doc__)
    parser.add_argument("--parameters", type=zero_or_more, default=262_144,
                        help="length of the gradient, in floats of 4 bytes "
                        "(262144)")
    parser.add_argument("--repeats", type=one_or_more,
                        default=5 if data.quick() else 15,
                        help="timed updates (15)")
    parser.add_argument("--warmup", type=zero_or_more, default=2,
                        help="updates before those, not timed (2)")
    return parser.parse_args()


class Posting(Counting):
    """Also counts the bytes of messages that do not wait for anybody."""

    def Isend(self, x: np.ndarray, dest: int, tag: int) -> MPI.Request:
        self.sent += x.nbytes
        # Distributed: returns at once; the request says when x may be changed
        return super().Isend(x, dest, tag)


def parameter_servers(comm: Posting, x: np.ndarray, spare: np.ndarray,
                      servers: int) -> None:
    """Ranks 0 to servers - 1 serve a share each. x becomes the sum."""
    share = blocks(len(x), servers)
    elsewhere = [server for server in range(servers) if server != comm.rank]
    workers = [worker for worker in range(comm.size) if worker != comm.rank]

    # Every rank is a worker: each server gets its share of my gradient.
    pushes = []
    for server in elsewhere:
        # Distributed: my gradient, in shares
        pushes.append(comm.Isend(x[share[server]], server, PUSH))

    # The first ranks are servers, too.
    pulls = []
    if comm.rank < servers:
        mine = x[share[comm.rank]]  # (n / servers,)
        theirs = spare[: len(mine)]  # (n / servers,)
        for _ in workers:
            # Distributed: from whoever is ready first
            comm.Recv(theirs, MPI.ANY_SOURCE, PUSH)
            mine += theirs
        for worker in workers:
            # Distributed: the sum of my share, to all
            pulls.append(comm.Isend(mine, worker, PULL))

    # Distributed: wait before the sums arrive where the gradient was
    MPI.Request.Waitall(pushes)
    for server in elsewhere:
        # Distributed: the sum of that server's share
        comm.Recv(x[share[server]], server, PULL)
    MPI.Request.Waitall(pulls)


def main(args: argparse.Namespace) -> None:
    comm = Posting(MPI.COMM_WORLD)
    rng = np.random.default_rng(comm.rank)
    # Whole numbers: their sum is exact, in whatever order they are added.
    gradient = rng.integers(-99, 100, args.parameters).astype(np.float32)
    spare = np.empty_like(gradient)  # (n,)
    total = np.empty_like(gradient)  # (n,)
    # Distributed: the sum to compare with
    comm.Allreduce(gradient, total)

    # 0 servers stands for the ring.
    for servers in sorted({0, 1, min(2, comm.size), comm.size}):
        step_s = []
        for _ in range(args.warmup + args.repeats):
            x = gradient.copy()  # (n,)
            comm.sent = 0
            # Distributed: all begin together
            comm.Barrier()
            start = MPI.Wtime()
            if servers == 0:
                ring(comm, x, spare)
            else:
                parameter_servers(comm, x, spare, servers)
            mine_s = MPI.Wtime() - start
            # Distributed: the slowest rank counts
            step_s.append(comm.allreduce(mine_s, op=MPI.MAX))
        right = bool((x == total).all())
        # Distributed: everybody's answer
        found = records.gather({"right": right, "sent": comm.sent})
        # Distributed: one report, not one from each rank
        if comm.rank == 0:
            report(servers, comm.size, args, step_s[args.warmup :], found)


def report(servers: int, ranks: int, args: argparse.Namespace,
           step_s: list[float], found: list[dict]) -> None:
    """One line and one record for a number of servers."""
    names = {0: "ring", 1: "1 server"}
    way = names.get(servers, f"{servers} servers")
    right = [each["right"] for each in found]  # (ranks,)
    sent = [each["sent"] for each in found]  # (ranks,)
    records.write(
        lab="03_spmd",
        variant=way,
        ranks=ranks,
        warmup_steps=args.warmup,
        step_s=step_s,
        metrics={
            "servers": servers,
            "bytes": 4 * args.parameters,
            "right": right,
            "sent_bytes": sent,
        },
    )
    says = "agrees" if all(right) else "WRONG "
    ms = 1e3 * np.median(step_s)
    print(f"{way:10} {says} {ms:8.2f} ms, "
          f"the busiest rank sends {max(sent):11,} bytes", flush=True)


if __name__ == "__main__":
    main(settings())
