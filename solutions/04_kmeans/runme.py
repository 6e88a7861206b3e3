"""A photograph in a few colours: K-means finds them, on several ranks.

    mpirun -n 2 python -m mpi4py solutions/04_kmeans/runme.py --colours 16

Each rank works on its own pixels, and all ranks find one palette: in each
iteration daal4py adds up what each has found. You will see how long the fit
took and how well the palette fits. The picture in its new colours,
quantised.png, lies beside the record. It takes 3 seconds.
"""

import argparse
import os

import daal4py as d4p
import numpy as np

# Distributed: this import also starts MPI
from mpi4py import MPI

from scaleout import data, records
from scaleout.flags import (
    Parser,
    above_zero,
    one_or_more,
    refuse,
    zero_or_more,
)

# What daal4py calls NumPy's two precisions.
FPTYPE = {"float32": "float", "float64": "double"}


def main(args: argparse.Namespace) -> np.ndarray:
    # Distributed: which copy of the program this is
    rank = d4p.my_procid()
    # Distributed: how many copies there are
    ranks = d4p.num_procs()
    # Distributed: the same ranks for mpi4py, which you need in TODO 3 and 4
    comm = MPI.COMM_WORLD

    # Every rank opens the whole picture; `take` keeps its part.
    picture = photo(args)  # (h, w, 3), or None for random points
    n = args.rows or picture.shape[0] * picture.shape[1]
    # TODO 1: the rows of this rank, such that the ranks together have each of
    # the n rows once.  (1 line)
    # BEGIN SOLUTION
    # Distributed: each rank has its own part of the rows
    mine = data.shard(n, rank, ranks)
    # STARTER: mine = slice(0, n)
    # END SOLUTION
    rows, k = take(args, picture, mine)  # (rows_local, columns), and colours
    refuse_unusable(rows, k, rank)

    # The algorithm: `init` draws the first palette, and `lloyd` improves it.
    # The engine makes the random numbers.
    fptype = FPTYPE[args.dtype]
    engine = d4p.engines_mt2203(seed=args.seed)
    # TODO 2: let all ranks look for one palette, from one start.
    # (one more argument in each of the two calls)
    # BEGIN SOLUTION
    # Distributed: one start, drawn from the rows of all ranks
    init = d4p.kmeans_init(k, fptype, "plusPlusDense", engine=engine,
                           distributed=True)
    # Distributed: in each iteration the sums of all ranks are added up
    lloyd = d4p.kmeans(k, args.iterations, fptype, distributed=True)
    # STARTER: init = d4p.kmeans_init(k, fptype, "plusPlusDense",
    # STARTER:                        engine=engine)
    # STARTER: lloyd = d4p.kmeans(k, args.iterations, fptype)
    # END SOLUTION
    start = init.compute(rows).centroids  # (k, columns)

    # Book-keeping: the job times the fit alone, and writes the record.
    job = records.Job("04_kmeans", rank, ranks, warmup=0)
    with job.step(work=len(rows) * args.iterations):
        fitted = lloyd.compute(rows, start)
    palette = fitted.centroids  # (k, columns)

    # The label of each row: the number of its nearest colour.
    # TODO 3: label my rows by a second `d4p.kmeans`, with 0 iterations and
    # `assignFlag=True`, and add up the inertia of all ranks. The labels come
    # as a column: .ravel() makes it (rows_local,).  (3 lines)
    # BEGIN SOLUTION
    nearest = d4p.kmeans(k, 0, fptype, assignFlag=True).compute(rows, palette)
    labels = nearest.assignments.ravel()  # (rows_local,)
    # Distributed: the sum over all ranks
    inertia = comm.allreduce(float(nearest.objectiveFunction[0, 0]))
    # STARTER: distances = [((rows - c) ** 2).sum(axis=1) for c in palette]
    # STARTER: labels = np.argmin(distances, axis=0).astype(np.int32)
    # STARTER: inertia = float(fitted.objectiveFunction[0, 0])
    # END SOLUTION

    # TODO 4: bring the labels of all ranks to rank 0, in order; the pieces
    # differ in size.  (3 lines)
    # BEGIN SOLUTION
    # Distributed: rank 0 must know how long each piece is
    sizes = comm.allgather(len(labels))
    all_labels = np.empty(sum(sizes), np.int32) if rank == 0 else None  # (n,)
    # Distributed: pieces of unequal size, one behind the other
    comm.Gatherv(labels, (all_labels, sizes), root=0)
    # STARTER: all_labels = labels
    # END SOLUTION

    # Book-keeping from here on.
    job.note(first=mine.start, stop=mine.stop, start=start, palette=palette)
    quality = {}
    # Distributed: one picture, not one from each rank
    if rank == 0:
        # The mean squared error in decibels, at most 120 dB.
        error = max(inertia / rows.shape[1] / n, 1e-12)
        quality["psnr_db"] = -10 * np.log10(error)
        quality["count"] = np.bincount(all_labels, minlength=k)  # (k,)
        if picture is not None:
            data.save_quantised(records.folder(), picture.shape, palette,
                                all_labels)
    # Distributed: one record of all ranks; the slowest of them counts
    record = job.write(variant=args.dtype, seed=args.seed, rows=n, colours=k,
                       inertia=inertia, **quality)
    if rank == 0:
        print(f"{n:,} rows, {k} colours on {ranks} rank(s): "
              f"fit {record['step_s'][0]:.3f} s, "
              f"PSNR {quality['psnr_db']:.2f} dB", flush=True)
    return palette


# Helpers. The lesson is above.


def take(args: argparse.Namespace, picture: np.ndarray | None,
         mine: slice) -> tuple[np.ndarray, int]:
    """The rows of this rank, and for how many colours."""
    if picture is None:
        rows = data.points(mine, args.columns, args.seed, args.dtype)
        return rows, args.colours
    pixels = picture.reshape(-1, 3)  # (n, 3)
    # A picture with few colours needs no larger palette. As every rank has
    # opened the picture, each counts them alone: one whole number for each
    # colour, from its red, green and blue, 0 to 1.
    codes = np.rint(pixels * 255) @ (65536, 256, 1)  # (n,)
    k = min(args.colours, len(np.unique(codes)))
    return pixels[mine].astype(args.dtype), k


def photo(args: argparse.Namespace) -> np.ndarray | None:
    """The picture, (h, w, 3), which every rank opens itself; None for random
    points."""
    picture = None
    problem = ""
    try:
        if args.rows == 0:
            picture = data.photo(args.scale, args.photo)
    except Exception as error:
        # All ranks must hear of it.
        problem = str(error)
    end_together(problem)
    return picture


def refuse_unusable(rows: np.ndarray, k: int, rank: int) -> None:
    """Ends the job if any rank has too few rows, or rows without a value."""
    problem = ""
    if len(rows) < k:
        problem = (f"{k} colours need {k} rows a rank, rank {rank} has "
                   f"{len(rows)}: take fewer ranks or fewer --colours.")
    elif not np.isfinite(rows.sum(dtype=np.float64)):
        problem = (f"Rank {rank} has rows that are no numbers (NaN or "
                   "infinite), which spoil every colour: leave them out.")
    end_together(problem)


def end_together(problem: str) -> None:
    """Ends the job if any rank has a problem.

    A rank that ended alone would leave the others waiting for it for ever.
    A rank without a problem gives an empty text.
    """
    # Distributed: each rank hears the problems of all ranks
    problems = MPI.COMM_WORLD.allgather(problem)
    if any(problems):
        refuse(max(problems))


def settings() -> argparse.Namespace:
    """What was typed behind the name of this file."""
    parser = Parser(__doc__)
    parser.add_argument("--colours", type=one_or_more, default=16,
                        help="colours of the palette, the K of K-means (16)")
    parser.add_argument("--iterations", type=one_or_more, default=25,
                        help="iterations of Lloyd's algorithm (25)")
    parser.add_argument("--scale", type=above_zero, default=1.0,
                        help="factor for both sides of the picture (1.0)")
    parser.add_argument("--photo",
                        help="path to a picture of your own (china.jpg)")
    parser.add_argument("--rows", type=zero_or_more, default=0,
                        help="random points instead of a picture (0: none)")
    parser.add_argument("--columns", type=one_or_more, default=3,
                        help="numbers in each random point (3)")
    parser.add_argument("--dtype", choices=FPTYPE, default="float32",
                        help="precision of the rows (float32)")
    parser.add_argument("--seed", type=zero_or_more, default=0,
                        help="seed of the start and of the random points (0)")
    args = parser.parse_args()
    if data.quick():
        args.rows //= 10
        args.iterations = min(args.iterations, 3)
    return args


if __name__ == "__main__":
    # The threads of this rank: daal4py does not read this variable by itself.
    # With -1 it takes all the cores that it may run on.
    d4p.daalinit(int(os.environ.get("OMP_NUM_THREADS", -1)))
    try:
        main(settings())
    finally:
        d4p.daalfini()
