"""Gradients or activations: which are cheaper to send?

    mpirun -n 2 python -m mpi4py labs/11_parallelism/which.py

Start it on two ranks or more, here two; it takes about 20 seconds. You will
see, for each width and batch, how long a step of data parallelism and one of
tensor parallelism wait for their sums, and how many bytes these have. The two
take turns, so that both meet the same machine.
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
                        default=1 if data.quick() else 21,
                        help="steps of each, in turns (21)")
    args = parser.parse_args()
    ranks = MPI.COMM_WORLD.Get_size()
    if ranks < 2:
        refuse("Nothing travels on one rank: mpirun -n 2")
    if args.layers % 2:
        refuse(f"Layers go in pairs, and {args.layers} is odd.")
    if min(args.widths) < ranks:
        refuse(f"{min(args.widths)} columns are fewer than {ranks} ranks.")
    return args


class Timed(MPI.Intracomm):
    """A communicator that counts bytes and seconds of its sums."""

    spent_s = 0.0
    summed = 0

    def Allreduce(self, mine: object, total: np.ndarray) -> None:
        # Distributed: who is late must not look like a slow sum
        self.Barrier()
        start = MPI.Wtime()
        super().Allreduce(mine, total)
        self.spent_s += MPI.Wtime() - start
        self.summed += total.nbytes


def main(args: argparse.Namespace) -> None:
    comm = Timed(MPI.COMM_WORLD)
    for width in args.widths:
        weights = {}
        for way in WAYS:
            pieces = [(k, slice(None)) for k in range(args.layers)]
            if way == "tensor":
                pieces = my_pieces(comm, args.layers, width)
            weights[way] = [layer(k, width, "float32")[part].copy()
                            for k, part in pieces]
        for part in args.parts:
            batch = max(1, width * part // 16)
            x, y = examples(batch, width, "float32")  # (batch, width)
            step_s = {way: [] for way in WAYS}
            sum_s = {way: [] for way in WAYS}
            summed = {}
            for _ in range(1 + args.repeats):
                for way, split in WAYS.items():
                    comm.spent_s = 0.0
                    comm.summed = 0
                    # Distributed: all begin together
                    comm.Barrier()
                    start = MPI.Wtime()
                    split(comm, weights[way], x, y)
                    mine_s = MPI.Wtime() - start
                    # Distributed: the slowest rank counts
                    step_s[way].append(comm.allreduce(mine_s, op=MPI.MAX))
                    sum_s[way].append(comm.allreduce(comm.spent_s, op=MPI.MAX))
                    summed[way] = comm.summed
            # Distributed: one report, not one from each rank
            if comm.rank == 0:
                for way in WAYS:
                    report(way, comm.size, width, batch, step_s[way][1:],
                           sum_s[way][1:], summed[way])


def report(way: str, ranks: int, width: int, batch: int, step_s: list[float],
           sum_s: list[float], summed: int) -> None:
    """One line and one record."""
    records.write(
        lab="11_parallelism",
        variant=way,
        ranks=ranks,
        warmup_steps=1,
        step_s=step_s,
        metrics={"width": width, "batch": batch, "sum_s": sum_s,
                 "summed_bytes": summed},
    )
    print(f"width {width:5} batch {batch:5} {way:7} {summed:11,} bytes "
          f"{1e3 * np.median(sum_s):8.2f} of {1e3 * np.median(step_s):8.2f} "
          "ms", flush=True)


if __name__ == "__main__":
    main(settings())
