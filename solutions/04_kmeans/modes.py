"""K-means in three modes, from one start: batch, distributed and online.

    mpirun -n 2 python -m mpi4py solutions/04_kmeans/modes.py --mode online

Batch: one rank holds all rows. Distributed: each rank holds a part of them.
Online: each rank keeps its part in a file, reads it anew in every iteration
and never holds more than one block, so the rows may outgrow the memory. The
rows are random points, which each rank makes for itself. You will see the
seconds, the inertia and the peak memory of a rank. It takes about 5 seconds.
"""

import os
import resource
import tempfile

import daal4py as d4p
import numpy as np

# Distributed: this import also starts MPI
from mpi4py import MPI

from scaleout import data, records
from scaleout.kit.flags import Parser, one_or_more, refuse, zero_or_more

# What daal4py calls NumPy's two precisions.
FPTYPE = {"float32": "float", "float64": "double"}


def settings():
    """What was typed behind the name of this file."""
    parser = Parser(__doc__)
    parser.add_argument("--mode", default="online",
                        choices=["batch", "distributed", "online"],
                        help="how the rows come (online)")
    parser.add_argument("--rows", type=one_or_more, default=2_000_000,
                        help="random points (2,000,000)")
    parser.add_argument("--columns", type=one_or_more, default=10,
                        help="numbers in each point (10)")
    parser.add_argument("--colours", type=one_or_more, default=8,
                        help="clusters (8)")
    parser.add_argument("--iterations", type=one_or_more, default=5,
                        help="iterations of Lloyd's algorithm (5)")
    parser.add_argument("--block", type=one_or_more, default=50_000,
                        help="rows in memory at a time, online (50,000)")
    parser.add_argument("--dtype", choices=FPTYPE, default="float32",
                        help="precision of the rows (float32)")
    parser.add_argument("--seed", type=zero_or_more, default=0,
                        help="seed of the points (0)")
    args = parser.parse_args()
    if data.quick():
        args.iterations = min(args.iterations, 2)
    return args


def peak_mib():
    """The most memory that this process has held so far, in MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def label(rows, palette):
    """The nearest colour of each row, (rows,), and the inertia of them."""
    kmeans = d4p.kmeans(
        len(palette), 0, FPTYPE[rows.dtype.name], assignFlag=True
    )
    nearest = kmeans.compute(rows, palette.astype(rows.dtype))
    return nearest.assignments.ravel(), float(nearest.objectiveFunction[0, 0])


def iterate(blocks, palette):
    """One pass over all rows: the next palette, and the inertia of this."""
    k, columns = palette.shape
    sums = np.zeros((k, columns))
    counts = np.zeros((k, 1))
    inertia = 0.0
    for rows in blocks:
        labels, of_block = label(rows, palette)
        inertia += of_block
        counts[:, 0] += np.bincount(labels, minlength=k)
        for column in range(columns):
            sums[:, column] += np.bincount(labels, rows[:, column], k)
    comm = MPI.COMM_WORLD
    # Distributed: the sums of all ranks; the rows stay where they are
    comm.Allreduce(MPI.IN_PLACE, sums)
    # Distributed: how many rows of all ranks have each colour
    comm.Allreduce(MPI.IN_PLACE, counts)
    # Distributed: the sum over all ranks
    inertia = comm.allreduce(inertia)
    return sums / np.maximum(counts, 1), inertia


def write_blocks(file, mine, args):
    """Puts the rows of this rank into its file, a block at a time."""
    for first in range(mine.start, mine.stop, args.block):
        part = slice(first, min(first + args.block, mine.stop))
        rows = data.points(part, args.columns, args.seed, args.dtype)
        rows.tofile(file)


def read_blocks(file, args):
    """The rows of the file, (block, columns) each; the last may be shorter."""
    file.seek(0)
    while True:
        numbers = np.fromfile(file, args.dtype, args.block * args.columns)
        if numbers.size == 0:
            return
        yield numbers.reshape(-1, args.columns)


def fit_online(args, mine, palette, books):
    """The palette and its inertia: blocks from a file."""
    # Distributed: each rank keeps its rows in a file of its own
    with tempfile.TemporaryFile() as file:
        write_blocks(file, mine, args)
        with books.step(work=(mine.stop - mine.start) * args.iterations):
            for _ in range(args.iterations):
                palette, _ = iterate(read_blocks(file, args), palette)
        _, inertia = iterate(read_blocks(file, args), palette)
    return palette, inertia


def fit_at_once(args, mine, start, books):
    """The same from all rows of this rank, with or without the others'."""
    rows = data.points(mine, args.columns, args.seed, args.dtype)
    # Distributed: in each iteration the sums of all ranks are added up
    lloyd = d4p.kmeans(
        args.colours, args.iterations, FPTYPE[args.dtype],
        distributed=args.mode == "distributed",
    )
    with books.step(work=len(rows) * args.iterations):
        palette = lloyd.compute(rows, start).centroids
    _, inertia = label(rows, palette)
    # Distributed: the sum over all ranks
    return palette, MPI.COMM_WORLD.allreduce(inertia)


def main(args):
    # Distributed: everybody who takes part
    comm = MPI.COMM_WORLD
    rank = comm.Get_rank()
    ranks = comm.Get_size()
    if args.mode == "batch" and ranks > 1:
        refuse("The batch mode knows one process: start it with -n 1.")
    if args.rows < args.colours * ranks:
        refuse(f"{args.colours} colours need {args.colours} rows a rank, and "
               f"{args.rows} in all are too few: take more --rows.")

    program_mib = peak_mib()
    d4p.daalinit(int(os.environ.get("OMP_NUM_THREADS", -1)))
    # Distributed: each rank has its own part of the rows
    mine = data.shard(args.rows, rank, ranks)
    # The first rows of all are the first palette, the same on every rank.
    first = slice(0, args.colours)
    start = data.points(first, args.columns, args.seed, args.dtype)
    fit = fit_online if args.mode == "online" else fit_at_once
    books = records.Books("04_kmeans", rank, ranks, warmup=0)
    palette, inertia = fit(args, mine, start, books)  # (colours, columns)

    held = mine.stop - mine.start  # rows at a time
    if args.mode == "online":
        held = min(held, args.block)
    rows_mib = held * start.itemsize * args.columns / 2**20
    shares = records.gather({"job": peak_mib(), "program": program_mib,
                             "rows": rows_mib})
    # Distributed: one record of all ranks; the slowest of them counts
    record = books.write(
        variant=args.mode, seed=args.seed, rows=args.rows, inertia=inertia,
        palette=palette,
        memory_mib=[share["job"] for share in shares],
        rows_mib=[share["rows"] for share in shares],
        program_mib=[share["program"] for share in shares],
    )
    # Distributed: one line, not one from each rank
    if rank == 0:
        print(f"{args.mode} on {ranks} rank(s): {record['step_s'][0]:.2f} s, "
              f"inertia {inertia:.8g}, "
              f"memory {max(share['job'] for share in shares):.0f} MiB a rank",
              flush=True)
    return palette


if __name__ == "__main__":
    try:
        main(settings())
    finally:
        d4p.daalfini()
