"""Linear regression in three modes: batch, distributed and online.

    mpirun -n 2 python -m mpi4py solutions/04_kmeans/linear.py

Batch: one rank holds all rows. Distributed: each rank holds a part of them.
Online: one rank takes in a block of rows, forgets it and takes the next. You
will see the seconds and the first coefficients: 0.5, 1, 2, 3 and so on, but
for some noise. It takes about 4 seconds.

The ranks tell each other sums of products, a table of columns x columns,
however many rows there are.
"""

import os
from time import perf_counter

import daal4py as d4p
import numpy as np

# Distributed: this import also starts MPI
from mpi4py import MPI

from scaleout import data, records
from scaleout.flags import Parser, one_or_more, refuse, zero_or_more


def settings():
    """What was typed behind the name of this file."""
    parser = Parser(__doc__)
    parser.add_argument("--mode", default="distributed",
                        choices=["batch", "distributed", "online"],
                        help="how the rows come (distributed)")
    parser.add_argument("--rows", type=one_or_more, default=1_000_000,
                        help="random points (1,000,000)")
    parser.add_argument("--columns", type=one_or_more, default=10,
                        help="numbers in each point (10)")
    parser.add_argument("--block", type=one_or_more, default=50_000,
                        help="rows in memory at a time, online (50,000)")
    parser.add_argument("--seed", type=zero_or_more, default=0,
                        help="seed of the points (0)")
    return parser.parse_args()


def table(part, columns, seed):
    """These rows of x, (rows, columns), and of y, (rows, 1).

    y = 0.5 + 1 x[0] + 2 x[1] + 3 x[2] + ... + noise
    """
    points = data.points(part, columns + 1, seed, "float64")
    x = np.ascontiguousarray(points[:, :columns])
    noise = points[:, columns] - 0.5
    y = 0.5 + x @ np.arange(1.0, columns + 1) + noise  # (rows,)
    return x, y[:, None]


def train_online(args):
    """The coefficients, (1, 1 + columns), and the seconds: block by block."""
    training = d4p.linear_regression_training(
        interceptFlag=True, streaming=True
    )
    fit_s = 0.0
    for first in range(0, args.rows, args.block):
        part = slice(first, min(first + args.block, args.rows))
        x, y = table(part, args.columns, args.seed)
        begin = perf_counter()
        training.compute(x, y)
        fit_s += perf_counter() - begin
    begin = perf_counter()
    model = training.finalize().model
    fit_s += perf_counter() - begin
    return model.Beta, fit_s


def train_at_once(args, mine):
    """The same from all rows of this rank, with or without the others'."""
    x, y = table(mine, args.columns, args.seed)
    # Distributed: all clocks start together
    MPI.COMM_WORLD.Barrier()
    begin = perf_counter()
    # Distributed: the sums become those of all ranks
    training = d4p.linear_regression_training(
        interceptFlag=True, distributed=args.mode == "distributed"
    )
    model = training.compute(x, y).model
    return model.Beta, perf_counter() - begin


def main(args):
    # Distributed: everybody who takes part
    comm = MPI.COMM_WORLD
    rank = comm.Get_rank()
    ranks = comm.Get_size()
    if args.mode != "distributed" and ranks > 1:
        refuse(f"The {args.mode} mode knows one process: start it with -n 1.")
    if args.rows < ranks:
        refuse(f"{ranks} ranks need {ranks} rows: take more --rows.")

    d4p.daalinit(int(os.environ.get("OMP_NUM_THREADS", -1)))
    if args.mode == "online":
        beta, fit_s = train_online(args)
    else:
        # Distributed: each rank has its own part of the rows
        mine = data.shard(args.rows, rank, ranks)
        beta, fit_s = train_at_once(args, mine)
    # The intercept comes first; every rank has the same coefficients.
    beta = beta.ravel()  # (1 + columns,)
    assert beta.shape == (1 + args.columns,)

    # Distributed: the job is as fast as its slowest rank
    fit_s = comm.allreduce(fit_s, op=MPI.MAX)
    # Distributed: one report, not one from each rank
    if rank == 0:
        first = " ".join(f"{value:.4f}" for value in beta[:4])
        print(f"{args.mode} on {ranks} rank(s): {fit_s:.3f} s, "
              f"coefficients {first} ...", flush=True)
        records.write(
            lab="04_kmeans",
            variant=f"linear, {args.mode}",
            ranks=ranks,
            step_s=[fit_s],
            metrics={"rows": args.rows, "columns": args.columns,
                     "beta": beta},
        )
    return beta


if __name__ == "__main__":
    try:
        main(settings())
    finally:
        d4p.daalfini()
