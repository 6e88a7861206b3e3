"""A photograph in a few colours: K-means finds them, on several ranks.

    mpirun -n 2 python -m mpi4py solutions/04_kmeans/runme.py --colours 16

mpirun starts this file twice, and each copy that runs is a rank. It works on
its own pixels, and all ranks find one palette: in each iteration daal4py adds
up what each has found. You will see how long the fit
took and how well the palette fits. The picture in its new colours,
quantised.png, lies beside the record. It takes 3 seconds.
"""

import argparse
import os

import daal4py as d4p
import numpy as np
import photos

# Distributed: this import also starts MPI
from mpi4py import MPI

from scaleout import data, records
from scaleout.kit.flags import Parser, one_or_more, zero_or_more


def main(args: argparse.Namespace) -> np.ndarray:
    # Distributed: which copy of the program this is
    rank = d4p.my_procid()
    # Distributed: how many copies there are
    ranks = d4p.num_procs()
    # Distributed: the same ranks for mpi4py, which you need in TODO 3 and 4
    comm = MPI.COMM_WORLD

    # Every rank opens the whole picture, and then keeps its own part.
    picture, k = photos.opened(args.photo, args.colours)  # (h, w, 3)
    pixels = picture.reshape(-1, 3)  # (n, 3)
    n = len(pixels)
    # TODO 1: the rows of this rank, such that the ranks together have each of
    # the n rows once.  (1 line)
    # BEGIN SOLUTION
    # Distributed: of two ranks, rank 0 has the first half of the rows
    mine = data.shard(n, rank, ranks)
    # STARTER: mine = slice(0, n)
    # END SOLUTION
    rows = pixels[mine]  # (rows_local, 3)

    # The algorithm: `init` draws the first palette, and `lloyd` improves it.
    # The engine makes the random numbers.
    fptype = "float"  # daal4py's name for float32
    engine = d4p.engines_mt2203(seed=args.seed)
    # TODO 2: let all ranks look for one palette, from one start.
    # (one more argument in each of the two calls)
    # BEGIN SOLUTION
    # Distributed: one start, drawn from the rows of all ranks
    init = d4p.kmeans_init(k, fptype, "plusPlusDense", engine=engine,
                           distributed=True)
    # Distributed: in each iteration the ranks add up their pixels' sums
    lloyd = d4p.kmeans(k, args.iterations, fptype, distributed=True)
    # STARTER: init = d4p.kmeans_init(k, fptype, "plusPlusDense",
    # STARTER:                        engine=engine)
    # STARTER: lloyd = d4p.kmeans(k, args.iterations, fptype)
    # END SOLUTION
    start = init.compute(rows).centroids  # (k, 3)

    # Book-keeping: the books time the fit alone, and write the record.
    books = records.Books("04_kmeans", rank, ranks, warmup=0)
    with books.step(work=len(rows) * args.iterations):
        fitted = lloyd.compute(rows, start)
    palette = fitted.centroids  # (k, 3)

    # The label of each row: the number of its nearest colour. The distributed
    # fit gives no labels, so each rank asks once more, for its own rows alone.
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

    # Distributed: all hear how many labels each rank has; rank 0 needs it
    sizes = comm.allgather(len(labels))
    # TODO 4: bring the labels of all ranks to rank 0, in order; the pieces
    # differ in length: `sizes` says how long each is.  (2 lines)
    # BEGIN SOLUTION
    all_labels = np.empty(sum(sizes), np.int32) if rank == 0 else None  # (n,)
    # Distributed: unequal pieces, in the order of ranks, to rank 0 alone
    comm.Gatherv(labels, (all_labels, sizes), root=0)
    # STARTER: all_labels = labels
    # END SOLUTION

    # Book-keeping from here on.
    books.note(first=mine.start, stop=mine.stop, start=start, palette=palette)
    quality = {}
    # Distributed: one picture, not one from each rank
    if rank == 0:
        # The mean squared error of values from 0 to 1, in dB, at most 120.
        error = max(inertia / 3 / n, 1e-12)
        quality["psnr_db"] = -10 * np.log10(error)
        quality["count"] = np.bincount(all_labels, minlength=k)  # (k,)
        photos.save(records.folder(), picture.shape, palette, all_labels)
    # Distributed: all ranks call this; the slowest of them counts
    record = books.write(seed=args.seed, rows=n, colours=k, inertia=inertia,
                         **quality)
    if rank == 0:
        print(f"{n:,} pixels, {k} colours on {ranks} rank(s): "
              f"fit {record['step_s'][0]:.3f} s, "
              f"PSNR {quality['psnr_db']:.2f} dB", flush=True)
    return palette


def settings() -> argparse.Namespace:
    """Read what was typed behind the name of this file."""
    parser = Parser(__doc__)
    parser.add_argument("--colours", type=one_or_more, default=16,
                        help="colours of the palette, the K of K-means (16)")
    parser.add_argument("--iterations", type=one_or_more, default=25,
                        help="iterations of Lloyd's algorithm (25)")
    parser.add_argument("--photo",
                        help="path to a picture of your own (china.jpg)")
    parser.add_argument("--seed", type=zero_or_more, default=0,
                        help="seed of the start (0)")
    args = parser.parse_args()
    if data.quick():
        args.iterations = min(args.iterations, 3)
    return args


if __name__ == "__main__":
    # daal4py starts, with the threads of this rank: it does not read this
    # variable by itself. With -1 it takes all the cores that it may run on.
    d4p.daalinit(int(os.environ.get("OMP_NUM_THREADS", -1)))
    try:
        main(settings())
    finally:
        d4p.daalfini()
