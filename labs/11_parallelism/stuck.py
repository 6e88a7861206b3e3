"""A pipeline whose stages wait for each other, and so for ever.

    mpirun -n 2 python -m mpi4py labs/11_parallelism/stuck.py

On two ranks. With short messages it ends in 2 seconds; with --width 512 it
takes as long as you let it. Both stages follow 1F1B, and both use Send, which
may wait until somebody receives. After 3 seconds each rank says what it waits
for.
"""

import argparse
import threading

import numpy as np

# Distributed: this import also starts MPI
from mpi4py import MPI
from schedules import one_forward_one_backward

from scaleout import records
from scaleout.kit.flags import Parser, one_or_more, refuse

ROWS = 64  # of a micro-batch
MICRO_BATCHES = 4
SAY_S = 3.0


def settings() -> argparse.Namespace:
    """What was typed behind the name of this file."""
    parser = Parser(__doc__)
    parser.add_argument("--width", type=one_or_more, default=8,
                        help="of the activations that travel (8)")
    args = parser.parse_args()
    if MPI.COMM_WORLD.Get_size() != 2:
        refuse("This pipeline has two stages: mpirun -n 2")
    return args


def main(args: argparse.Namespace) -> None:
    # Distributed: two stages
    comm = MPI.COMM_WORLD
    x = np.zeros((ROWS, args.width), np.float32)  # (rows, width)
    now = [""]

    def say() -> None:
        print(now[0], flush=True)

    clock = threading.Timer(SAY_S, say)
    clock.start()
    for way, m in one_forward_one_backward(comm.rank, 2, MICRO_BATCHES):
        # Distributed: activations go from rank 0 to rank 1, gradients back
        sends = (comm.rank == 0) == (way == "forward")
        call, to = ("Send", "to") if sends else ("Recv", "from")
        now[0] = (f"micro-batch {m}, {way}: I wait in {call} {to} rank "
                  f"{1 - comm.rank}")
        # Distributed: either may wait for the other rank
        getattr(comm, call)(x, 1 - comm.rank)
    clock.cancel()
    # Distributed: one report, not one from each rank
    if comm.rank == 0:
        records.write(lab="11_parallelism", variant="stuck", ranks=2,
                      metrics={"bytes": x.nbytes})
        print(f"{x.nbytes:,} bytes a message: the job came to its end.",
              flush=True)


if __name__ == "__main__":
    main(settings())
