"""A parameter server against a ring: who sends how much, and how long does it take, while the ranks grow?

    mpirun -n 4 python -m mpi4py labs/03_spmd/servers.py

You will see the time of an update and the bytes that the busiest rank sends: for the ring of your runme.py, for one
server, for two, and for one on every rank. It takes about 3 seconds.
Every rank has a gradient and wants the sum of all. A server adds up its share of it and sends the sum to everybody.
"""

import argparse

import numpy as np
from mpi4py import MPI  # Distributed: this import also starts MPI
from runme import Counting, blocks, ring

from scaleout import data, records

PUSH, PULL = 1, 2  # tags: a gradient on its way to a server, a sum on its way back


class Posting(Counting):
    """Counts the bytes of messages that do not wait for their receiver, too."""

    def Isend(self, x: np.ndarray, dest: int, tag: int) -> MPI.Request:
        self.sent += x.nbytes
        return super().Isend(x, dest, tag)  # Distributed: returns at once; the request says when x may be changed


def parameter_servers(comm: Posting, x: np.ndarray, spare: np.ndarray, servers: int) -> None:
    """Ranks 0 to servers - 1 serve a share of the parameters each; all ranks work. In the end x is the sum on all."""
    share = blocks(len(x), servers)
    elsewhere = [server for server in range(servers) if server != comm.rank]
    pushes = [comm.Isend(x[share[server]], server, PUSH) for server in elsewhere]  # Distributed: my gradient, in shares
    pulls = []
    if comm.rank < servers:  # Distributed: I serve one share myself
        mine = x[share[comm.rank]]  # (n / servers,)
        for _ in range(comm.size - 1):
            comm.Recv(spare[: len(mine)], MPI.ANY_SOURCE, PUSH)  # Distributed: from whoever is ready first
            mine += spare[: len(mine)]
        workers = [worker for worker in range(comm.size) if worker != comm.rank]
        pulls = [comm.Isend(mine, worker, PULL) for worker in workers]  # Distributed: the sum of my share, to all
    MPI.Request.Waitall(pushes)  # Distributed: before the sums come to where the gradient was
    for server in elsewhere:
        comm.Recv(x[share[server]], server, PULL)  # Distributed: the sum of that server's share
    MPI.Request.Waitall(pulls)


def main(args: argparse.Namespace) -> np.ndarray:
    comm = Posting(MPI.COMM_WORLD)
    gradient = np.random.default_rng(comm.rank).integers(-99, 100, args.parameters).astype(np.float32)  # (n,)
    total, spare = np.empty_like(gradient), np.empty_like(gradient)
    comm.Allreduce(gradient, total)  # Distributed: the sum to compare with
    for servers in sorted({1, min(2, comm.size), comm.size, 0}):
        step_s = []
        for _ in range(args.warmup + args.repeats):
            x, comm.sent = gradient.copy(), 0  # (n,)
            comm.Barrier()  # Distributed: all begin together
            start = MPI.Wtime()
            if servers:
                parameter_servers(comm, x, spare, servers)
            else:
                ring(comm, x, spare)
            step_s.append(comm.allreduce(MPI.Wtime() - start, op=MPI.MAX))  # Distributed: the slowest rank counts
        seen = comm.gather((bool((x == total).all()), comm.sent))  # Distributed: everybody's answer
        assert x.shape == total.shape == (args.parameters,)
        if comm.rank == 0:  # Distributed: one report, not one from each rank
            right, sent = zip(*seen, strict=True)
            way, timed = f"{servers} server{'s' * (servers > 1)}" if servers else "ring", step_s[args.warmup :]
            about = {"warmup_steps": args.warmup, "step_s": timed}
            metrics = {"servers": servers, "bytes": x.nbytes, "right": right, "sent_bytes": sent}
            records.write(lab="03_spmd", variant=way, ranks=comm.size, metrics=metrics, **about)
            says, ms = "agrees" if all(right) else "WRONG ", 1e3 * np.median(timed)
            print(f"{way:10} {says} {ms:8.2f} ms, the busiest rank sends {max(sent):11,} bytes", flush=True)
    return total


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--parameters", type=int, default=262_144, help="length of the gradient (elements of 4 bytes)")
    parser.add_argument("--repeats", type=int, default=5 if data.quick() else 15, help="timed updates (count)")
    parser.add_argument("--warmup", type=int, default=2, help="updates before those (count)")
    args = parser.parse_args()
    if min(args.parameters, args.warmup, args.repeats - 1) < 0:
        parser.error("--parameters and --warmup are 0 or more, --repeats is 1 or more.")
    main(args)
