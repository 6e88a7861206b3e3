"""The same clustering by scikit-learn, sklearnex, daal4py, and NumPy with mpi4py: same rows, same start, same steps.

    mpirun -n 2 python -m mpi4py labs/04_kmeans/fourways.py --way numpy

Ways: scikit-learn, daal4py, numpy. For sklearnex nothing here changes, the line that starts it does:

    python -m sklearnex labs/04_kmeans/fourways.py --way scikit-learn

You will see the seconds of one fit and the inertia, which must be the same each time. It takes about 5 seconds.
"""

import argparse
import os
import sys
import time

import numpy as np
from mpi4py import MPI  # Distributed: this import also starts MPI

from scaleout import data, records


def by_scikit_learn(rows: np.ndarray, start: np.ndarray, args: argparse.Namespace) -> tuple[np.ndarray, float]:
    from sklearn.cluster import KMeans

    fitted = KMeans(len(start), init=start, n_init=1, max_iter=args.iterations, tol=0).fit(rows)
    return fitted.cluster_centers_, float(fitted.inertia_)


def by_daal4py(rows: np.ndarray, start: np.ndarray, args: argparse.Namespace) -> tuple[np.ndarray, float]:
    import daal4py as d4p

    d4p.daalinit(int(os.environ.get("OMP_NUM_THREADS", -1)))
    comm, k = MPI.COMM_WORLD, len(start)
    together = comm.Get_size() > 1
    palette = d4p.kmeans(k, args.iterations, "float", distributed=together).compute(rows, start).centroids
    nearest = d4p.kmeans(k, 0, "float", assignFlag=True).compute(rows, palette)
    inertia = comm.allreduce(float(nearest.objectiveFunction[0, 0]))  # Distributed: one number from each rank
    return palette, inertia


def by_numpy(rows: np.ndarray, start: np.ndarray, args: argparse.Namespace) -> tuple[np.ndarray, float]:
    comm, palette = MPI.COMM_WORLD, start  # (k, columns)
    for step in range(args.iterations + 1):  # the last pass is for the inertia alone
        squares = (palette**2).sum(axis=1)  # (k,)
        sums, inertia = np.zeros((len(start), start.shape[1] + 1)), 0.0  # of the rows of each colour, and their count
        for block in np.array_split(rows, 1 + len(rows) // args.block):
            # |row - colour|^2 = |row|^2 - 2 row.colour + |colour|^2; the first part is the same for all colours
            distances = squares - 2 * block @ palette.T  # (block, k)
            labels = distances.argmin(axis=1)  # (block,)
            inertia += float((block**2).sum(dtype=np.float64) + distances.min(axis=1).sum(dtype=np.float64))
            for column, weights in enumerate((*block.T, None)):
                sums[:, column] += np.bincount(labels, weights, minlength=len(start))
        comm.Allreduce(MPI.IN_PLACE, sums)  # Distributed: a small table is all that the ranks tell each other
        inertia = comm.allreduce(inertia)  # Distributed: one number from each rank
        if step < args.iterations:
            palette = (sums[:, :-1] / np.maximum(sums[:, -1:], 1)).astype(start.dtype)
    return palette, inertia


WAYS = {"scikit-learn": by_scikit_learn, "daal4py": by_daal4py, "numpy": by_numpy}


def main(args: argparse.Namespace) -> np.ndarray:
    comm = MPI.COMM_WORLD  # Distributed: everybody who takes part
    rank, ranks = comm.Get_rank(), comm.Get_size()
    if args.way == "scikit-learn" and ranks > 1:
        MPI.Finalize()  # Distributed: all leave in order, with one sentence
        raise SystemExit("scikit-learn knows one process: start it with -n 1 and more threads." if rank == 0 else 1)
    rows = data.points(data.shard(args.rows, rank, ranks), args.columns, args.seed)  # (rows_local, columns)
    start = data.points(slice(0, args.colours), args.columns, args.seed)  # (k, columns), the same on every rank
    step_s = []
    for _ in range(1 + args.repeats):  # the first warms up: libraries, threads, memory
        comm.Barrier()  # Distributed: all clocks start together
        begin = time.perf_counter()
        palette, inertia = WAYS[args.way](rows, start, args)
        step_s.append(time.perf_counter() - begin)
    assert palette.shape == (args.colours, args.columns)
    everyone_s = comm.gather(step_s[1:], root=0)  # Distributed: rank 0 gets a list, the others None
    if rank == 0:
        way = "sklearnex" if args.way == "scikit-learn" and "sklearnex" in sys.modules else args.way
        slowest_s = np.max(everyone_s, axis=0)
        print(f"{way} on {ranks} rank(s): {np.median(slowest_s):.3f} s, inertia {inertia:.6g}", flush=True)
        records.write(lab="04_kmeans", variant=way, ranks=ranks, warmup_steps=1, step_s=slowest_s,
                      metrics={"inertia": inertia, "rows": args.rows, "colours": args.colours})  # fmt: skip
    return palette


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--way", choices=list(WAYS), default="daal4py", help="who clusters")
    parser.add_argument("--rows", type=int, default=1_000_000, help="random points (count)")
    parser.add_argument("--columns", type=int, default=3, help="numbers in each point (count)")
    parser.add_argument("--colours", type=int, default=64, help="clusters (count)")
    parser.add_argument("--iterations", type=int, default=10, help="iterations of Lloyd's algorithm (count)")
    parser.add_argument("--repeats", type=int, default=1, help="timed fits (count)")
    parser.add_argument("--block", type=int, default=4096, help="rows that the numpy way works on at a time (count)")
    parser.add_argument("--seed", type=int, default=0, help="of the points")
    main(parser.parse_args())
