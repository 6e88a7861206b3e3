"""The same clustering by scikit-learn, sklearnex, daal4py, and NumPy with mpi4py: same rows, same start, same steps.

    mpirun -n 2 python -m mpi4py solutions/04_kmeans/fourways.py --way numpy

Ways: scikit-learn, daal4py, numpy. For sklearnex nothing here changes, the line that starts it does:

    python -m sklearnex solutions/04_kmeans/fourways.py --way scikit-learn

You will see the seconds of one fit and the inertia, which must be the same each time. It takes about 5 seconds.
"""

import argparse
import os
import sys
import time

import numpy as np
from mpi4py import MPI  # Distributed: this import also starts MPI

from scaleout import data, records


def by_scikit_learn(rows: np.ndarray, start: np.ndarray, iterations: int, comm: MPI.Comm) -> tuple[np.ndarray, float]:
    from sklearn.cluster import KMeans

    fitted = KMeans(len(start), init=start, n_init=1, max_iter=iterations, tol=0).fit(rows)
    return fitted.cluster_centers_, float(fitted.inertia_)


def by_daal4py(rows: np.ndarray, start: np.ndarray, iterations: int, comm: MPI.Comm) -> tuple[np.ndarray, float]:
    import daal4py as d4p

    d4p.daalinit(int(os.environ.get("OMP_NUM_THREADS", -1)))
    k, together = len(start), comm.Get_size() > 1
    palette = d4p.kmeans(k, iterations, "float", distributed=together).compute(rows, start).centroids
    nearest = d4p.kmeans(k, 0, "float", assignFlag=True).compute(rows, palette)
    inertia = comm.allreduce(float(nearest.objectiveFunction[0, 0]))  # Distributed: one number from each rank
    return palette, inertia


def by_numpy(rows: np.ndarray, start: np.ndarray, iterations: int, comm: MPI.Comm) -> tuple[np.ndarray, float]:
    k, columns = start.shape
    palette = start.astype(np.float64)
    for step in range(iterations + 1):  # the last time is for the inertia
        sums = np.zeros((k, columns + 2))  # for each colour: the sum of its rows, how many, the sum of their squares
        for block in np.array_split(rows, 1 + len(rows) // BLOCK):
            # |row - colour|^2 = |row|^2 - 2 row.colour + |colour|^2: the first is the same for all colours
            labels = ((palette**2).sum(axis=1).astype("f4") - 2 * block @ palette.T.astype("f4")).argmin(axis=1)
            squares = np.einsum("nc,nc->n", block, block, dtype=np.float64)
            for column, weights in enumerate((*block.T, None, squares)):
                sums[:, column] += np.bincount(labels, weights, minlength=k)
        comm.Allreduce(MPI.IN_PLACE, sums)  # Distributed: this small table is all that the ranks tell each other
        if step < iterations:
            palette = sums[:, :columns] / np.maximum(sums[:, columns, None], 1)
    dots = (palette * sums[:, :columns]).sum()
    inertia = sums[:, columns + 1].sum() - 2 * dots + ((palette**2).sum(axis=1) * sums[:, columns]).sum()
    return palette, float(inertia)


WAYS = {"scikit-learn": by_scikit_learn, "daal4py": by_daal4py, "numpy": by_numpy}
BLOCK = 4096  # rows in a piece of the NumPy way: with its table of distances it stays in a core's cache


def main(args: argparse.Namespace) -> np.ndarray:
    comm = MPI.COMM_WORLD  # Distributed: everybody who takes part
    rank, ranks = comm.Get_rank(), comm.Get_size()
    if args.way == "scikit-learn" and ranks > 1:
        raise SystemExit("scikit-learn knows one process: start it with -n 1 and more threads.")
    rows = data.points(data.shard(args.rows, rank, ranks), args.columns, args.seed)  # (rows_local, columns)
    start = data.points(slice(0, args.colours), args.columns, args.seed)  # (k, columns), the same on every rank
    step_s = []
    for _ in range(1 + args.repeats):  # the first warms up: libraries, threads, memory
        comm.Barrier()  # Distributed: all clocks start together
        begin = time.perf_counter()
        palette, inertia = WAYS[args.way](rows, start, args.iterations, comm)
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
    parser.add_argument("--seed", type=int, default=0, help="of the points")
    main(parser.parse_args())
