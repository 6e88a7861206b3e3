"""Data or tensor parallelism: forecast the step of each, then measure it.

    mpirun -n 2 python -m mpi4py labs/11_parallelism/which.py

Start it on two ranks or more, here two; it takes about 40 seconds. At two
widths it measures the products of a step without its messages, and the
messages without the products. From these it forecasts the whole step at a
third width, and then measures it, and its parts. The ways take turns in
changing order, as `scaleout compare` does; data parallelism comes twice, to
show how far equal steps differ.
"""

import argparse

import numpy as np

# Distributed: this import also starts MPI
from mpi4py import MPI
from network import examples, layer
from runme import data_parallel
from tensor import my_pieces, tensor_parallel

from scaleout import data, records
from scaleout.kit.flags import Parser, one_or_more, refuse

WAYS = {"data": data_parallel, "tensor": tensor_parallel,
        "data again": data_parallel}


def settings() -> argparse.Namespace:
    """What was typed behind the name of this file."""
    parser = Parser(__doc__)
    parser.add_argument("--widths", type=one_or_more, nargs=3,
                        default=[128, 256, 512],
                        help="numbers that a layer takes: two to measure, "
                        "and one to forecast (128 256 512)")
    parser.add_argument("--parts", type=one_or_more, nargs="+",
                        default=[4, 8, 16, 32, 64],
                        help="batches, in sixteenths of the width "
                        "(4 8 16 32 64)")
    parser.add_argument("--layers", type=one_or_more, default=4,
                        help="layers of the network (4)")
    parser.add_argument("--repeats", type=one_or_more,
                        default=data.rounds(12),
                        help="steps of each, in turns (12)")
    args = parser.parse_args()
    ranks = MPI.COMM_WORLD.Get_size()
    if ranks < 2:
        refuse("Nothing travels on one rank: mpirun -n 2")
    if args.layers % 2:
        refuse(f"Layers go in pairs, and {args.layers} is odd.")
    if min(args.widths) < ranks:
        refuse(f"{min(args.widths)} columns are fewer than {ranks} ranks.")
    if args.widths[0] == args.widths[1]:
        refuse("A forecast needs two different widths before the third.")
    return args


class Silent(MPI.Intracomm):
    """A communicator that only notes how large the sums would be."""

    def __init__(self, comm: MPI.Intracomm) -> None:
        self.shapes = []

    def Allreduce(self, mine: object, total: np.ndarray) -> None:
        self.shapes.append(total.shape)


def inputs(args: argparse.Namespace, way: str, width: int,
           batch: int) -> tuple:
    """The weights of this rank, and the examples: (batch, width) each."""
    pieces = [(k, slice(None)) for k in range(args.layers)]
    if way == "tensor":
        pieces = my_pieces(MPI.COMM_WORLD, args.layers, width)
    weights = [layer(k, width, "float32")[part].copy() for k, part in pieces]
    return weights, *examples(batch, width, "float32")


def messages(comm: MPI.Intracomm, sums: list) -> None:
    """The messages of a step alone."""
    for each in sums:
        # Distributed: as in a step, everybody's part becomes the sum
        comm.Allreduce(MPI.IN_PLACE, each)


def order(names: list, number: int) -> list:
    """The order of a round: every second one is the mirror image of the one
    before, and each two begin one place further on. So nobody keeps a place,
    and nobody always follows the same one."""
    first = number // 2 % len(names)
    turn = [*names[first:], *names[:first]]
    return turn[::-1] if number % 2 else turn


def in_turns(comm: MPI.Intracomm, work: dict, repeats: int) -> dict:
    """Seconds of each piece of work, round by round, after a warm-up."""
    seconds = {name: [] for name in work}
    for number in range(-1, repeats):
        for name in order(list(work), number):
            # Distributed: all begin together
            comm.Barrier()
            start = MPI.Wtime()
            work[name]()
            # Distributed: the slowest rank counts
            seconds[name].append(
                comm.allreduce(MPI.Wtime() - start, op=MPI.MAX))
    return {name: each[1:] for name, each in seconds.items()}


def parts(comm: MPI.Intracomm, args: argparse.Namespace, width: int,
          batch: int) -> dict:
    """For each way, milliseconds of its products and of its messages (the
    medians), and the bytes that it adds up."""
    work = {}
    bytes_ = {}
    for way in ("data", "tensor"):
        given = inputs(args, way, width, batch)
        silent = Silent(comm)
        WAYS[way](silent, *given)
        sums = [np.zeros(shape, np.float32) for shape in silent.shapes]
        bytes_[way] = sum(each.nbytes for each in sums)
        work[way, "products"] = (lambda way=way, given=given:
                                 WAYS[way](Silent(comm), *given))
        work[way, "messages"] = lambda sums=sums: messages(comm, sums)
    seconds = in_turns(comm, work, args.repeats)
    return {way: [1e3 * np.median(seconds[way, "products"]),
                  1e3 * np.median(seconds[way, "messages"]), bytes_[way]]
            for way in bytes_}


def forecast(widths: list, measured: list) -> list:
    """Milliseconds of the products and of the messages of a step at the third
    width, from what was measured at the first two.

    Batch and width grow together. So products grow as width**3, and messages
    as their bytes, width**2: a straight line over each goes through the two.
    """
    expected = []
    for column, power in ((0, 3), (1, 2)):
        work = [float(width) ** power for width in widths]
        line = np.polyfit(work[:2], [each[column] for each in measured], 1)
        expected.append(float(np.polyval(line, work[2])))
    return expected


def main(args: argparse.Namespace) -> None:
    # Distributed: all ranks of the job
    comm = MPI.COMM_WORLD
    *narrow, wide = args.widths
    for part in args.parts:
        # All parts before the first step: a forecast comes first.
        found = [parts(comm, args, width, max(1, width * part // 16))
                 for width in narrow]
        batch = max(1, wide * part // 16)
        given = {way: inputs(args, way, wide, batch) for way in WAYS}
        steps = in_turns(
            comm, {way: lambda way=way, given=given: WAYS[way](
                comm, *given[way]) for way in WAYS}, args.repeats)
        # The parts at this width, too: they tell where a forecast is off.
        found.append(parts(comm, args, wide, batch))
        # Distributed: one report, not one from each rank
        if comm.rank == 0:
            for way in WAYS:
                measured = [each[way.split()[0]] for each in found]
                report(args, way, batch, measured, steps[way])


def report(args: argparse.Namespace, way: str, batch: int, measured: list,
           step_s: list) -> None:
    """One line and one record."""
    expected = forecast(args.widths, measured[:2])
    predicted = sum(expected)
    records.write(
        lab="11_parallelism",
        variant=way,
        ranks=MPI.COMM_WORLD.size,
        warmup_steps=1,
        step_s=step_s,
        metrics={"widths": args.widths, "batch": batch,
                 "ratio": batch / args.widths[-1], "predicted_ms": predicted,
                 "predicted_parts": expected, "parts": measured},
    )
    print(f"width {args.widths[-1]} batch {batch:5} {way:10}: forecast "
          f"{predicted:.2f} ms; the step {1e3 * np.median(step_s):.2f} ms",
          flush=True)


if __name__ == "__main__":
    main(settings())
