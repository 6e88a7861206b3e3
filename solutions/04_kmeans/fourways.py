"""One clustering, four ways: same rows, same start, same number of steps.

    mpirun -n 2 python -m mpi4py solutions/04_kmeans/fourways.py --way numpy

The ways are scikit-learn, the same patched by sklearnex, daal4py, and NumPy
with mpi4py. The first two know one process only.

You will see the seconds of one fit and the inertia, which must be the same
whichever way you take. It takes about 5 seconds.
"""

import os
from time import perf_counter

import numpy as np

# Distributed: this import also starts MPI
from mpi4py import MPI

from scaleout import data, records
from scaleout.flags import Parser, one_or_more, refuse, zero_or_more


def settings():
    """What was typed behind the name of this file."""
    parser = Parser(__doc__)
    parser.add_argument("--way", choices=WAYS, default="daal4py",
                        help="who clusters (daal4py)")
    parser.add_argument("--rows", type=one_or_more, default=1_000_000,
                        help="random points (1,000,000)")
    parser.add_argument("--columns", type=one_or_more, default=3,
                        help="numbers in each point (3)")
    parser.add_argument("--colours", type=one_or_more, default=64,
                        help="clusters (64)")
    parser.add_argument("--iterations", type=one_or_more, default=10,
                        help="iterations of Lloyd's algorithm (10)")
    parser.add_argument("--repeats", type=one_or_more, default=1,
                        help="timed fits (1)")
    parser.add_argument("--block", type=one_or_more, default=4096,
                        help="rows at a time, in the numpy way (4096)")
    parser.add_argument("--seed", type=zero_or_more, default=0,
                        help="seed of the points (0)")
    args = parser.parse_args()
    if data.quick():
        args.rows //= 10
        args.iterations = min(args.iterations, 2)
    return args


# Each way takes rows, (rows_local, columns), and start, (k, columns), and
# gives the palette, (k, columns), and its inertia.
def by_scikit_learn(rows, start, args):
    """All rows on one rank, in as many threads as it has."""
    from sklearn.cluster import KMeans

    kmeans = KMeans(
        n_clusters=len(start),
        init=start,
        n_init=1,
        max_iter=args.iterations,
        tol=0,
    )
    kmeans.fit(rows)
    return kmeans.cluster_centers_, float(kmeans.inertia_)


def by_sklearnex(rows, start, args):
    """The same lines, after sklearnex has put daal4py under scikit-learn.

    It must do so before scikit-learn is imported for the first time. For a
    script that you leave as it is: python -m sklearnex script.py.
    """
    from sklearnex import patch_sklearn

    patch_sklearn(verbose=False)
    return by_scikit_learn(rows, start, args)


def by_daal4py(rows, start, args):
    """The rows of each rank stay there; daal4py adds up the sums."""
    import daal4py as d4p

    comm = MPI.COMM_WORLD
    d4p.daalinit(int(os.environ.get("OMP_NUM_THREADS", -1)))
    k = len(start)
    # Distributed: with one rank there is nobody to add up with
    lloyd = d4p.kmeans(
        k, args.iterations, "float", distributed=comm.Get_size() > 1
    )
    palette = lloyd.compute(rows, start).centroids
    nearest = d4p.kmeans(k, 0, "float", assignFlag=True).compute(rows, palette)
    # Distributed: the sum over all ranks
    inertia = comm.allreduce(float(nearest.objectiveFunction[0, 0]))
    return palette, inertia


def by_numpy(rows, start, args):
    """The same in NumPy: we add up the sums ourselves."""
    comm = MPI.COMM_WORLD
    palette = start
    for _ in range(args.iterations):
        sums, counts, _ = one_pass(rows, palette, args.block)
        # Distributed: all that the ranks tell each other is two small tables
        comm.Allreduce(MPI.IN_PLACE, sums)
        # Distributed: the mean of a colour is over the rows of all ranks
        comm.Allreduce(MPI.IN_PLACE, counts)
        palette = (sums / np.maximum(counts, 1)).astype(rows.dtype)
    _, _, inertia = one_pass(rows, palette, args.block)
    # Distributed: the sum over all ranks
    return palette, comm.allreduce(inertia)


def one_pass(rows, palette, block):
    """Of my rows: the sums and the counts of each colour, and the inertia."""
    k, columns = palette.shape
    sums = np.zeros((k, columns))
    counts = np.zeros((k, 1))
    inertia = 0.0
    squares = (palette**2).sum(axis=1)  # (k,)
    for part in np.array_split(rows, 1 + len(rows) // block):
        # |row - colour|^2 = |row|^2 - 2 row.colour + |colour|^2, of which the
        # first term is the same for all colours and is added at the end.
        distances = squares - 2 * part @ palette.T  # (block, k)
        labels = distances.argmin(axis=1)  # (block,)
        inertia += float((part**2).sum(dtype=np.float64))
        inertia += float(distances.min(axis=1).sum(dtype=np.float64))
        counts[:, 0] += np.bincount(labels, minlength=k)
        for column in range(columns):
            sums[:, column] += np.bincount(labels, part[:, column], k)
    return sums, counts, inertia


WAYS = {
    "scikit-learn": by_scikit_learn,
    "sklearnex": by_sklearnex,
    "daal4py": by_daal4py,
    "numpy": by_numpy,
}


def main(args):
    # Distributed: everybody who takes part
    comm = MPI.COMM_WORLD
    rank = comm.Get_rank()
    ranks = comm.Get_size()
    if args.way in ("scikit-learn", "sklearnex") and ranks > 1:
        refuse("scikit-learn knows one process: start it with -n 1 and more "
               "threads.")
    if args.rows < args.colours * ranks:
        refuse(f"{args.colours} colours need {args.colours} rows a rank, and "
               f"{args.rows} in all are too few: take more --rows.")

    # Distributed: each rank makes its own part of the rows
    mine = data.shard(args.rows, rank, ranks)
    rows = data.points(mine, args.columns, args.seed)  # (rows_local, columns)
    first = slice(0, args.colours)
    start = data.points(first, args.columns, args.seed)  # (k, columns)

    # The first fit warms up: libraries, threads, memory.
    step_s = []
    for _ in range(1 + args.repeats):
        # Distributed: all clocks start together
        comm.Barrier()
        begin = perf_counter()
        palette, inertia = WAYS[args.way](rows, start, args)
        step_s.append(perf_counter() - begin)
    assert palette.shape == (args.colours, args.columns)

    # Distributed: the job is as fast as its slowest rank
    slowest_s = np.max(comm.allgather(step_s[1:]), axis=0)
    # Distributed: one report, not one from each rank
    if rank == 0:
        print(f"{args.way} on {ranks} rank(s): {np.median(slowest_s):.3f} s, "
              f"inertia {inertia:.6g}", flush=True)
        records.write(
            lab="04_kmeans",
            variant=args.way,
            ranks=ranks,
            warmup_steps=1,
            step_s=slowest_s,
            metrics={"inertia": inertia, "rows": args.rows,
                     "colours": args.colours},
        )
    return palette


if __name__ == "__main__":
    main(settings())
