"""Linear regression in three modes: batch (all rows at once), distributed, online (blocks of rows, one by one).

    mpirun -n 2 python -m mpi4py labs/04_kmeans/linear.py --mode distributed

You will see the seconds and the first coefficients, which are 0.5, 1, 2, 3 and so on but for some noise. It takes
about 4 seconds. The ranks tell each other sums of products, a table of columns x columns, however many rows there are.
"""

import argparse
import os
import time

import daal4py as d4p
import numpy as np
from mpi4py import MPI  # Distributed: this import also starts MPI

from scaleout import data, records


def table(mine: slice, columns: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """x, (rows_local, columns), and y = 0.5 + 1 x[0] + 2 x[1] + ... + noise, (rows_local, 1)."""
    points = data.points(mine, columns + 1, seed, "float64")
    x, noise = np.ascontiguousarray(points[:, :columns]), points[:, columns] - 0.5
    return x, (0.5 + x @ np.arange(1.0, columns + 1) + noise)[:, None]


def main(args: argparse.Namespace) -> np.ndarray:
    comm = MPI.COMM_WORLD  # Distributed: everybody who takes part
    rank, ranks = comm.Get_rank(), comm.Get_size()
    if args.mode != "distributed" and ranks > 1:
        MPI.Finalize()  # Distributed: all leave in order, with one sentence
        raise SystemExit(f"The {args.mode} mode knows one process: start it with -n 1." if rank == 0 else 1)
    d4p.daalinit(int(os.environ.get("OMP_NUM_THREADS", -1)))
    mine = data.shard(args.rows, rank, ranks)  # Distributed: each rank has its own rows
    if args.mode == "online":
        training = d4p.linear_regression_training(interceptFlag=True, streaming=True)
        fit_s = 0.0
        for first in range(0, args.rows, args.block):
            x, y = table(slice(first, min(first + args.block, args.rows)), args.columns, args.seed)
            begin = time.perf_counter()
            training.compute(x, y)
            fit_s += time.perf_counter() - begin
        begin = time.perf_counter()
        model = training.finalize().model
    else:
        x, y = table(mine, args.columns, args.seed)
        fit_s = 0.0
        comm.Barrier()  # Distributed: all clocks start together
        begin = time.perf_counter()
        together = args.mode == "distributed"  # Distributed: the sums become those of all ranks
        model = d4p.linear_regression_training(interceptFlag=True, distributed=together).compute(x, y).model
    fit_s += time.perf_counter() - begin
    beta = model.Beta.ravel()  # (1 + columns,), the intercept first, the same on every rank
    assert beta.shape == (1 + args.columns,)
    slowest_s = comm.reduce(fit_s, op=MPI.MAX, root=0)  # Distributed: the job is as fast as its slowest rank
    if rank == 0:
        first = " ".join(f"{value:.4f}" for value in beta[:4])
        print(f"{args.mode} on {ranks} rank(s): {slowest_s:.3f} s, coefficients {first} ...", flush=True)
        records.write(lab="04_kmeans", variant=f"linear, {args.mode}", ranks=ranks, step_s=[slowest_s],
                      metrics={"rows": args.rows, "columns": args.columns, "beta": beta})  # fmt: skip
    return beta


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mode", choices=["batch", "distributed", "online"], default="distributed", help="of training")
    parser.add_argument("--rows", type=int, default=1_000_000, help="random points (count)")
    parser.add_argument("--columns", type=int, default=10, help="numbers in each point (count)")
    parser.add_argument("--block", type=int, default=50_000, help="rows in memory at a time, online (count)")
    parser.add_argument("--seed", type=int, default=0, help="of the points")
    try:
        main(parser.parse_args())
    finally:
        d4p.daalfini()
