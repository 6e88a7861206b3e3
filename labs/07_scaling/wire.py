"""The step of a training, over the wire that MPI takes between two ranks.

    mpirun -n 2 python -m mpi4py labs/07_scaling/wire.py --compute 0.01

Two ranks exchange messages from 8 bytes to 64 MiB, for alpha and beta. Then
they compute for so many seconds, add as much as a ring does on each of them,
and at last do both with the exchange: a step. You will see the time of each,
after some seconds.
"""

import argparse
import math
from collections.abc import Callable
from functools import partial
from time import perf_counter

import numpy as np

# Distributed: this import also starts MPI
from mpi4py import MPI

from scaleout import data, records
from scaleout.kit.flags import Parser, one_or_more, refuse

WIDTH = 256
SIZES = [8, 512, 8 << 10, 128 << 10, 1 << 20, 8 << 20, 64 << 20]


def settings() -> argparse.Namespace:
    """What was typed behind the name of this file."""
    parser = Parser(__doc__)
    parser.add_argument("--bytes", type=one_or_more, nargs="+",
                        default=[1 << 20],
                        help="of a gradient; several are several steps "
                        "(1048576)")
    parser.add_argument("--compute", type=float, nargs="+", default=[0.01],
                        help="seconds of each step's compute (0.01)")
    args = parser.parse_args()
    if len(args.bytes) != len(args.compute):
        refuse("Give as many --compute as --bytes: one for each step")
    if MPI.COMM_WORLD.Get_size() != 2:
        refuse("The wire takes two ranks: mpirun -n 2")
    return args


def seconds(comm: MPI.Comm, work: Callable, repeats: int) -> list[float]:
    """How long the work took the slower rank, each time."""
    found = []
    for _ in range(1 + repeats):
        # Distributed: all begin together
        comm.Barrier()
        start = perf_counter()
        work()
        # Distributed: the slower rank counts
        found.append(comm.allreduce(perf_counter() - start, op=MPI.MAX))
    return found[1:]  # the first is warm-up


def message_s(comm: MPI.Comm, n: int, repeats: int) -> float:
    """Seconds until n bytes have come, while as many go: the median."""
    # Not zeros: pages that nobody has written are all one and the same.
    give = np.ones(n, np.uint8)
    take = np.ones(n, np.uint8)
    other = 1 - comm.rank

    def exchange() -> None:
        # Distributed: one message of the ring, on both ranks at once
        comm.Sendrecv(give, other, recvbuf=take, source=other)

    return float(np.median(seconds(comm, exchange, repeats)))


def multiply(matrix: np.ndarray, times: int) -> None:
    """Stands in for the compute of a step."""
    for _ in range(times):
        matrix @ matrix  # (WIDTH, WIDTH)


def add(block: np.ndarray, other: np.ndarray) -> None:
    """What each of two ranks adds in a ring: half of the gradient."""
    MPI.SUM.Reduce_local(other, block)  # as MPI does it in an Allreduce


def train(comm: MPI.Comm, compute: Callable, gradient: np.ndarray) -> None:
    """One step: compute, then exchange."""
    compute()
    # Distributed: the sum of both ranks' gradients
    comm.Allreduce(MPI.IN_PLACE, gradient)


def products_in(comm: MPI.Comm, matrix: np.ndarray, compute_s: float) -> int:
    """How many matrix products take that long or longer, on both ranks."""
    once = np.median(seconds(comm, lambda: matrix @ matrix, 20))
    return math.ceil(compute_s / once)


def main(args: argparse.Namespace) -> None:
    # Distributed: everybody who takes part
    comm = MPI.COMM_WORLD
    few, many = (2, 3) if data.quick() else (5, 30)
    messages_s = [message_s(comm, n, few if n > 1 << 20 else many)
                  for n in SIZES]

    matrix = np.ones((WIDTH, WIDTH), np.float32)
    steps = []
    for n, compute_s in zip(args.bytes, args.compute, strict=True):
        gradient = np.ones(n // 4, np.float32)
        products = products_in(comm, matrix, compute_s)

        halves = np.split(gradient[:gradient.size // 2 * 2], 2)
        parts = {
            "compute_s": partial(multiply, matrix, products),
            "add_s": partial(add, *halves),
        }
        parts["step_s"] = partial(train, comm, parts["compute_s"], gradient)
        repeats = few if n > 16 << 20 else many
        times = {what: seconds(comm, part, repeats)
                 for what, part in parts.items()}
        steps.append({"bytes": n, **times})

    # Distributed: one record of both ranks
    if comm.rank == 0:
        for step in steps:
            took = [f"{1e3 * np.median(step[what]):.2f} ms"
                    for what in ("compute_s", "add_s", "step_s")]
            print(f"{step['bytes']:,} bytes: compute {took[0]}, adding "
                  f"{took[1]}, with the exchange {took[2]}", flush=True)
        records.write(
            lab="07_scaling", variant="wire", ranks=2,
            step_s=steps[0]["step_s"],
            metrics={"sizes": SIZES, "messages_s": messages_s,
                     "steps": steps})


if __name__ == "__main__":
    main(settings())
