"""Data or tensor parallelism: predict the step of each, then measure it.

    mpirun -n 2 python -m mpi4py labs/11_parallelism/which.py

Start it on two ranks or more, here two; it takes about 30 seconds. For each
width and batch it measures the products of a step without its messages, and
the messages without the products. One after the other, that is a prediction
of the whole step, which comes next. The two ways take turns, so that both meet
the same machine.
"""

import argparse

import numpy as np

# Distributed: this import also starts MPI
from mpi4py import MPI
from network import examples, layer
from runme import data_parallel
from tensor import my_pieces, tensor_parallel

from scaleout import data, records
from scaleout.flags import Parser, one_or_more, refuse

WAYS = {"data": data_parallel, "tensor": tensor_parallel}


def settings() -> argparse.Namespace:
    """What was typed behind the name of this file."""
    parser = Parser(__doc__)
    parser.add_argument("--widths", type=one_or_more, nargs="+",
                        default=[128, 256, 512],
                        help="numbers that a layer takes (128 256 512)")
    parser.add_argument("--parts", type=one_or_more, nargs="+",
                        default=[4, 8, 16, 32, 64],
                        help="batches, in sixteenths of the width "
                        "(4 8 16 32 64)")
    parser.add_argument("--layers", type=one_or_more, default=4,
                        help="layers of the network (4)")
    parser.add_argument("--repeats", type=one_or_more,
                        default=data.rounds(11),
                        help="steps of each, in turns (11)")
    args = parser.parse_args()
    ranks = MPI.COMM_WORLD.Get_size()
    if ranks < 2:
        refuse("Nothing travels on one rank: mpirun -n 2")
    if args.layers % 2:
        refuse(f"Layers go in pairs, and {args.layers} is odd.")
    if min(args.widths) < ranks:
        refuse(f"{min(args.widths)} columns are fewer than {ranks} ranks.")
    return args


class Silent(MPI.Intracomm):
    """A communicator that only notes what it is asked to add up."""

    def __init__(self, comm: MPI.Intracomm) -> None:
        self.sums = []

    def Allreduce(self, mine: object, total: np.ndarray) -> None:
        self.sums.append(np.zeros_like(total))


def products(comm: MPI.Intracomm, way: str, weights: list, x: np.ndarray,
             y: np.ndarray) -> list:
    """A step without its messages; gives arrays as large as they are."""
    silent = Silent(comm)
    WAYS[way](silent, weights, x, y)
    return silent.sums


def messages(comm: MPI.Intracomm, sums: list) -> None:
    """The messages of a step alone."""
    for each in sums:
        # Distributed: as in a step, everybody's part becomes the sum
        comm.Allreduce(MPI.IN_PLACE, each)


def measured(args: argparse.Namespace, width: int, batch: int) -> dict:
    """Seconds of products, messages and steps, in turns, for each way."""
    # Distributed: all ranks of the job
    comm = MPI.COMM_WORLD
    x, y = examples(batch, width, "float32")  # (batch, width)
    pieces = {"data": [(k, slice(None)) for k in range(args.layers)],
              "tensor": my_pieces(comm, args.layers, width)}
    found = {}
    for way in WAYS:
        weights = [layer(k, width, "float32")[part].copy()
                   for k, part in pieces[way]]
        found[way] = {"weights": weights,
                      "sums": products(comm, way, weights, x, y),
                      "products_s": [], "messages_s": [], "step_s": []}
    # All parts before the first step: a prediction comes first.
    for parts in (("products_s", "messages_s"), ("step_s",)):
        for _ in range(1 + args.repeats):
            for way, split in WAYS.items():
                each = found[way]
                work = {
                    "products_s": lambda way=way, each=each: products(
                        comm, way, each["weights"], x, y),
                    "messages_s": lambda each=each: messages(
                        comm, each["sums"]),
                    "step_s": lambda split=split, each=each: split(
                        comm, each["weights"], x, y),
                }
                for part in parts:
                    each[part].append(timed(comm, work[part]))
    return found


def timed(comm: MPI.Intracomm, work: object) -> float:
    """Seconds of the slowest rank."""
    # Distributed: all begin together
    comm.Barrier()
    start = MPI.Wtime()
    work()
    # Distributed: the slowest rank counts
    return comm.allreduce(MPI.Wtime() - start, op=MPI.MAX)


def main(args: argparse.Namespace) -> None:
    for width in args.widths:
        for part in args.parts:
            batch = max(1, width * part // 16)
            found = measured(args, width, batch)
            # Distributed: one report, not one from each rank
            if MPI.COMM_WORLD.rank == 0:
                for way in WAYS:
                    report(way, width, batch, found[way])


def report(way: str, width: int, batch: int, found: dict) -> None:
    """One line and one record."""
    seconds = {part: found[part][1:]  # the first was a warm-up
               for part in ("products_s", "messages_s", "step_s")}
    bytes_ = sum(each.nbytes for each in found["sums"])
    records.write(
        lab="11_parallelism",
        variant=way,
        ranks=MPI.COMM_WORLD.size,
        warmup_steps=1,
        step_s=seconds.pop("step_s"),
        metrics={"width": width, "batch": batch, "summed_bytes": bytes_,
                 **seconds},
    )
    parts = [1e3 * np.median(each) for each in seconds.values()]
    step = 1e3 * np.median(found["step_s"][1:])
    print(f"width {width:5} batch {batch:5} {way:7} {bytes_:11,} bytes: "
          f"{parts[0]:.2f} + {parts[1]:.2f} = {sum(parts):.2f} ms; the step "
          f"{step:.2f} ms", flush=True)


if __name__ == "__main__":
    main(settings())
