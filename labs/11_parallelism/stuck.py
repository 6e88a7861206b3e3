"""A pipeline whose stages wait for each other, and so for ever.

    mpirun -n 2 python -m mpi4py labs/11_parallelism/stuck.py

On two ranks. With short messages it ends in 2 seconds; with --width 512 it
takes as long as you let it. Both stages follow 1F1B, and both use Send, which
may wait until somebody receives. After --say-s seconds each rank says what it
waits for.
"""

import argparse
import threading

import numpy as np

# Distributed: this import also starts MPI
from mpi4py import MPI
from schedules import one_forward_one_backward

from scaleout import records
from scaleout.flags import Parser, above_zero, one_or_more, refuse


def settings() -> argparse.Namespace:
    """What was typed behind the name of this file."""
    parser = Parser(__doc__)
    parser.add_argument("--width", type=one_or_more, default=8,
                        help="of the activations that travel (8)")
    parser.add_argument("--rows", type=one_or_more, default=64,
                        help="of a micro-batch (64)")
    parser.add_argument("--micro-batches", type=one_or_more, default=4,
                        help="that go through (4)")
    parser.add_argument("--say-s", type=above_zero, default=3.0,
                        help="seconds until each rank says where it is (3)")
    args = parser.parse_args()
    if MPI.COMM_WORLD.Get_size() != 2:
        refuse("This pipeline has two stages: mpirun -n 2")
    return args


class Talkative(MPI.Intracomm):
    """A communicator that knows what this rank is doing."""

    doing = ""

    def Send(self, x: np.ndarray, dest: int) -> None:
        self.doing = f"Send to rank {dest}"
        # Distributed: may wait until somebody receives
        super().Send(x, dest)

    def Recv(self, x: np.ndarray, source: int) -> None:
        self.doing = f"Recv from rank {source}"
        # Distributed: waits until it is there
        super().Recv(x, source)


def forward(comm: Talkative, h: np.ndarray) -> None:
    """One micro-batch to the right."""
    if comm.rank == 0:
        # Distributed: activations
        comm.Send(h, 1)
    else:
        # Distributed: what rank 0 sends
        comm.Recv(h, 0)


def backward(comm: Talkative, g: np.ndarray) -> None:
    """One gradient to the left."""
    if comm.rank == 1:
        # Distributed: gradients
        comm.Send(g, 0)
    else:
        # Distributed: what rank 1 sends
        comm.Recv(g, 1)


def main(args: argparse.Namespace) -> None:
    # Distributed: two stages
    comm = Talkative(MPI.COMM_WORLD)
    x = np.zeros((args.rows, args.width), np.float32)  # (rows, width)

    def say() -> None:
        print(f"micro-batch {now[1]}, {now[0]}: I wait in {comm.doing}",
              flush=True)

    clock = threading.Timer(args.say_s, say)
    clock.start()
    for now in one_forward_one_backward(comm.rank, 2, args.micro_batches):
        if now[0] == "forward":
            forward(comm, x)
        else:
            backward(comm, x)
    clock.cancel()
    # Distributed: one report, not one from each rank
    if comm.rank == 0:
        records.write(lab="11_parallelism", variant="stuck", ranks=2,
                      metrics={"bytes": x.nbytes})
        print(f"{x.nbytes:,} bytes a message: the job came to its end.",
              flush=True)


if __name__ == "__main__":
    main(settings())
