"""Six methods in which little travels: on one rank, on all, and by NumPy.

    mpirun -n 2 python -m mpi4py solutions/04_kmeans/linear.py

Batch: one rank holds all rows. Distributed: each rank holds a part of them.
You will see a line for each method: by how much each of the two differs from
NumPy, relative to the largest number of the answer. It takes about 3 seconds.
"""

import argparse
import os

import daal4py as d4p
import numpy as np

# Distributed: this import also starts MPI
from mpi4py import MPI

from scaleout import data, records
from scaleout.kit.flags import Parser, one_or_more, refuse, zero_or_more

RIDGE = 0.5  # how much ridge regression holds the coefficients down


def settings() -> argparse.Namespace:
    """What was typed behind the name of this file."""
    parser = Parser(__doc__)
    parser.add_argument("--rows", type=one_or_more, default=200_000,
                        help="random points (200,000)")
    parser.add_argument("--columns", type=one_or_more, default=10,
                        help="numbers in each point (10)")
    parser.add_argument("--seed", type=zero_or_more, default=0,
                        help="seed of the points (0)")
    return parser.parse_args()


def table(part: slice, columns: int, seed: int):
    """These rows of x, (rows, columns), and of y, (rows, 1).

    y = 0.5 + 1 x[0] + 2 x[1] + 3 x[2] + ... + noise
    """
    points = data.points(part, columns + 1, seed, "float64")
    x = np.ascontiguousarray(points[:, :columns])
    noise = points[:, columns] - 0.5
    y = 0.5 + x @ np.arange(1.0, columns + 1) + noise  # (rows,)
    return x, y[:, None]


def by_daal4py(x: np.ndarray, y: np.ndarray, distributed: bool) -> dict:
    """The six answers. Distributed, x and y are this rank's rows alone."""
    # Distributed: the sums become those of all ranks
    how = {"distributed": distributed}
    linear = d4p.linear_regression_training(interceptFlag=True, **how)
    ridge = d4p.ridge_regression_training(
        interceptFlag=True, ridgeParameters=np.array([[RIDGE]]), **how)
    return {
        "covariance": d4p.covariance(**how).compute(x).covariance,
        "pca": d4p.pca(**how).compute(x).eigenvalues.ravel(),
        "svd": d4p.svd(**how).compute(x).singularValues.ravel(),
        "qr": upper(d4p.qr(**how).compute(x).matrixR),
        "linear regression": linear.compute(x, y).model.Beta.ravel(),
        "ridge regression": ridge.compute(x, y).model.Beta.ravel(),
    }


def by_numpy(x: np.ndarray, y: np.ndarray) -> dict:
    """The same six answers from all rows, in another way where there is
    one."""
    ones = np.column_stack([np.ones(len(x)), x])  # (rows, 1 + columns)
    # The intercept, which comes first, is not held down.
    hold = RIDGE * np.diag([0.0] + [1.0] * x.shape[1])
    return {
        "covariance": np.cov(x, rowvar=False),
        "pca": np.linalg.eigvalsh(np.corrcoef(x, rowvar=False))[::-1],
        "svd": np.linalg.svd(x, compute_uv=False),
        "qr": upper(np.linalg.qr(x, mode="r")),
        "linear regression": np.linalg.lstsq(ones, y)[0].ravel(),
        "ridge regression": np.linalg.solve(ones.T @ ones + hold,
                                            ones.T @ y).ravel(),
    }


def upper(r: np.ndarray) -> np.ndarray:
    """R with a diagonal above 0: its rows' signs are anyone's choice."""
    return r * np.sign(np.diag(r))[:, None]


def main(args: argparse.Namespace) -> None:
    # Distributed: everybody who takes part
    comm = MPI.COMM_WORLD
    rank = comm.Get_rank()
    ranks = comm.Get_size()
    if args.rows < ranks * args.columns:
        refuse(f"{ranks} ranks need {args.columns} rows each: take more "
               "--rows.")
    d4p.daalinit(int(os.environ.get("OMP_NUM_THREADS", -1)))
    # Distributed: each rank has its own part of the rows
    mine = data.shard(args.rows, rank, ranks)
    together = by_daal4py(*table(mine, args.columns, args.seed), True)

    # Distributed: one rank does all again alone, and reports
    if rank == 0:
        whole = table(slice(0, args.rows), args.columns, args.seed)
        alone = by_daal4py(*whole, False)
        wanted = by_numpy(*whole)
        print(f"{'method':18} {'batch':>10} {ranks:>5} ranks", flush=True)
        for method, right in wanted.items():
            off = [float(np.abs(saw[method] - right).max()
                         / np.abs(right).max()) for saw in (alone, together)]
            print(f"{method:18} {off[0]:10.1e} {off[1]:11.1e}", flush=True)
            records.write(
                lab="04_kmeans", variant=method, ranks=ranks,
                metrics={"batch": off[0], "distributed": off[1],
                         "answer": together[method]})


if __name__ == "__main__":
    try:
        main(settings())
    finally:
        d4p.daalfini()
