"""TensorFlow's own parameter server: some ranks serve, some work, one leads.

    mpirun -n 4 python -m mpi4py solutions/11_parallelism/more/server.py

Rank 0 leads, the next --servers ranks hold the weights, and all others work:
here one server and two workers. It takes about 15 seconds, of which TensorFlow
needs half to start. You will see how long so many gradients take, how stale
they were, the loss that they lead to, and the bytes that a server sends. Then
add --rule sync, and each update waits for all workers; or --kill worker.

Each rank but 0 starts a TensorFlow process (task.py) and watches it. The
gradients are real; but so that all can share two cores, a worker sleeps
--step-ms in each, and the last worker --slow times as long.
"""

import argparse
import os
import socket

# Distributed: this import also starts MPI
from mpi4py import MPI
from watching import tell, watch

from scaleout import data
from scaleout.kit.flags import (
    Parser,
    above_zero,
    one_or_more,
    refuse,
    zero_or_more,
)


def settings() -> argparse.Namespace:
    """What was typed behind the name of this file."""
    parser = Parser(__doc__)
    parser.add_argument("--servers", type=one_or_more, default=1,
                        help="ranks that hold weights (1)")
    parser.add_argument("--rule", choices=["async", "sync", "both"],
                        default="async",
                        help="async: nobody waits; sync: an update waits for "
                        "a gradient of each worker; both: in turns (async)")
    parser.add_argument("--gradients", type=one_or_more,
                        default=60 if data.quick() else 210,
                        help="gradients to use in all (210)")
    parser.add_argument("--hidden", type=one_or_more, default=128,
                        help="width of the network's hidden layer (128)")
    parser.add_argument("--step-ms", type=zero_or_more, default=10,
                        help="a worker sleeps in each gradient, in "
                        "milliseconds (10)")
    parser.add_argument("--slow", type=above_zero, default=1.0,
                        help="how many times as long the last one does (1)")
    parser.add_argument("--rate", type=above_zero, default=0.03,
                        help="learning rate: step along the gradient (0.03)")
    parser.add_argument("--kill", choices=["worker", "server"],
                        help="end the last one by force, half way")
    args = parser.parse_args()
    args.workers = MPI.COMM_WORLD.Get_size() - 1 - args.servers
    if args.workers < 1:
        refuse(f"Rank 0 leads, {args.servers} serve, and nobody is left to "
               f"work: mpirun -n {args.servers + 2} or more")
    if args.kill == "worker" and args.workers == 1:
        refuse("Nobody would be left to work: two workers or more")
    if args.kill and args.rule == "both":
        refuse("Who is killed does not come back: --rule async or sync")
    return args


def main(args: argparse.Namespace) -> None:
    # Distributed: the role of a rank follows from its number
    comm = MPI.COMM_WORLD
    held = socket.socket()
    # This port is this rank's own until the end, and TensorFlow shares it.
    held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    held.bind(("127.0.0.1", 0))
    # Distributed: everybody's address
    ports = comm.allgather(held.getsockname()[1])
    addresses = [f"127.0.0.1:{port}" for port in ports[1:]]
    cluster = {"ps": addresses[: args.servers],
               "worker": addresses[args.servers :]}
    kept = []  # until the end of this rank
    # Distributed: one leads, some serve, the others work
    if comm.rank == 0:
        # Of a killed process TensorFlow would tell many times.
        level = "3" if args.kill else "2"
        os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", level)
        from leading import lead

        kept += lead(comm, args, cluster)
        tell(comm, "end", list(range(1, comm.size)))
    elif comm.rank <= args.servers:
        watch(comm, "ps", comm.rank - 1, cluster, 0)
    else:
        slow = args.slow if comm.rank == comm.size - 1 else 1
        watch(comm, "worker", comm.rank - 1 - args.servers, cluster,
              int(1000 * args.step_ms * slow))
    held.close()
    if comm.rank == 0:
        # At its end TensorFlow would wait for a killed worker, and for ever.
        # So this rank ends at once.  Distributed: but MPI as it should
        MPI.Finalize()
        os._exit(0)


if __name__ == "__main__":
    main(settings())
