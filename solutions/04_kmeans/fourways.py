"""One clustering, four ways: same rows, same start, same number of steps.

    mpirun -n 2 python -m mpi4py solutions/04_kmeans/fourways.py --way numpy

The ways are scikit-learn, the same patched by sklearnex, daal4py, and NumPy
with mpi4py. The first two know one process only.

You will see the seconds of one fit and the inertia, which must be the same
whichever way you take. It takes about 5 seconds.
"""

import os

import numpy as np

# Distributed: this import also starts MPI
from mpi4py import MPI

from scaleout import data, records
from scaleout.kit.flags import Parser, one_or_more, refuse

COLUMNS = 3  # numbers in each point
BLOCK = 4096  # rows at a time, in the numpy way


def settings():
    """What was typed behind the name of this file."""
    parser = Parser(__doc__)
    parser.add_argument("--way", choices=WAYS, default="daal4py",
                        help="who clusters (daal4py)")
    parser.add_argument("--rows", type=one_or_more, default=1_000_000,
                        help="random points (1,000,000)")
    parser.add_argument("--colours", type=one_or_more, default=64,
                        help="clusters (64)")
    parser.add_argument("--iterations", type=one_or_more, default=10,
                        help="iterations of Lloyd's algorithm (10)")
    args = parser.parse_args()
    if data.quick():
        args.rows //= 10
        args.iterations = min(args.iterations, 2)
    return args


# Each way takes rows, (rows_local, COLUMNS), start, (k, COLUMNS), and how many
# iterations, and gives the inertia.
def by_scikit_learn(rows, start, iterations):
    """All rows on one rank, in as many threads as it has."""
    from sklearn.cluster import KMeans

    kmeans = KMeans(len(start), init=start, n_init=1, max_iter=iterations,
                    tol=0)
    return float(kmeans.fit(rows).inertia_)


def by_sklearnex(rows, start, iterations):
    """The same lines, after sklearnex has put daal4py under scikit-learn.

    It must do so before scikit-learn is imported for the first time. For a
    script that you leave as it is: python -m sklearnex script.py.
    """
    from sklearnex import patch_sklearn

    patch_sklearn(verbose=False)
    return by_scikit_learn(rows, start, iterations)


def by_daal4py(rows, start, iterations):
    """The rows of each rank stay there; daal4py adds up the sums."""
    import daal4py as d4p

    comm = MPI.COMM_WORLD
    d4p.daalinit(int(os.environ.get("OMP_NUM_THREADS", -1)))
    k = len(start)
    # Distributed: with one rank there is nobody to add up with
    lloyd = d4p.kmeans(k, iterations, "float", distributed=comm.size > 1)
    palette = lloyd.compute(rows, start).centroids
    nearest = d4p.kmeans(k, 0, "float", assignFlag=True).compute(rows, palette)
    # Distributed: the sum over all ranks
    return comm.allreduce(float(nearest.objectiveFunction[0, 0]))


def by_numpy(rows, start, iterations):
    """The same in NumPy: we add up the sums ourselves."""
    comm = MPI.COMM_WORLD
    palette = start
    for _ in range(iterations):
        sums, _ = one_pass(rows, palette)
        # Distributed: all that the ranks tell each other is a small table
        comm.Allreduce(MPI.IN_PLACE, sums)
        palette = sums[:, 1:] / np.maximum(sums[:, :1], 1)
        palette = palette.astype(rows.dtype)
    # Distributed: the sum over all ranks
    return comm.allreduce(one_pass(rows, palette)[1])


def one_pass(rows, palette):
    """Of my rows: count and sums of each colour, (k, 4), and the inertia."""
    k = len(palette)
    sums = np.zeros((k, 1 + COLUMNS))
    inertia = float((rows**2).sum(dtype=np.float64))
    squares = (palette**2).sum(axis=1)  # (k,)
    for part in np.array_split(rows, 1 + len(rows) // BLOCK):
        # |row - colour|^2 = |row|^2 - 2 row.colour + |colour|^2, of which the
        # first term is the same for all colours: the inertia has it already.
        distances = squares - 2 * part @ palette.T  # (block, k)
        labels = distances.argmin(axis=1)  # (block,)
        inertia += float(distances.min(axis=1).sum(dtype=np.float64))
        sums[:, 0] += np.bincount(labels, minlength=k)
        for column in range(COLUMNS):
            sums[:, 1 + column] += np.bincount(labels, part[:, column], k)
    return sums, inertia


WAYS = {
    "scikit-learn": by_scikit_learn,
    "sklearnex": by_sklearnex,
    "daal4py": by_daal4py,
    "numpy": by_numpy,
}


def main(args):
    # Distributed: everybody who takes part
    comm = MPI.COMM_WORLD
    rank = comm.rank
    ranks = comm.size
    if args.way in ("scikit-learn", "sklearnex") and ranks > 1:
        refuse("scikit-learn knows one process: start it with -n 1 and more "
               "threads.")
    if args.rows < args.colours * ranks:
        refuse(f"{args.colours} colours need {args.colours} rows a rank, and "
               f"{args.rows} in all are too few: take more --rows.")

    # Distributed: each rank makes its own part of the rows
    mine = data.shard(args.rows, rank, ranks)
    rows = data.points(mine, COLUMNS)  # (rows_local, COLUMNS)
    start = data.points(slice(0, args.colours), COLUMNS)  # (k, COLUMNS)

    # The first fit warms up: libraries, threads, memory.
    books = records.Books("04_kmeans", rank, ranks, warmup=1)
    for _ in range(2):
        # Distributed: all clocks start together
        comm.Barrier()
        with books.step():
            inertia = WAYS[args.way](rows, start, args.iterations)
    # Distributed: one record of all ranks; the slowest of them counts
    record = books.write(variant=args.way, inertia=inertia, rows=args.rows,
                         colours=args.colours)
    # Distributed: one report, not one from each rank
    if rank == 0:
        print(f"{args.way} on {ranks} rank(s): {record['step_s'][0]:.3f} s, "
              f"inertia {inertia:.6g}", flush=True)


if __name__ == "__main__":
    main(settings())
