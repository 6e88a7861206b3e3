"""A photograph in a few colours: K-means finds them, on several ranks.

    mpirun -n 2 python -m mpi4py labs/04_kmeans/runme.py --colours 16

mpirun starts this file twice, and each copy that runs is a rank. The ranks
share out the pixels and find one palette for all of them. You will see how
long that took and how well the palette fits. The picture in its new colours,
quantised.png, lies beside the record. It takes 3 seconds.
"""

import os

import daal4py as d4p
import numpy as np
import photos

# Distributed: this import also starts MPI
from mpi4py import MPI

from scaleout import data, flags, records

# Distributed: which copy of the program this is, and how many there are
rank, ranks = d4p.my_procid(), d4p.num_procs()
# Distributed: the same ranks for mpi4py, which you need in TODO 3 and 4
comm = MPI.COMM_WORLD


def fit(pixels, k, iterations, seed):
    """One palette for all pixels, (k, 3), its inertia, and on rank 0 the
    label of each pixel, (n,): the number of its nearest colour."""
    n = len(pixels)
    # TODO 1: the rows of this rank, such that the ranks together have each of
    # the n rows once.  (1 line)
    mine = slice(0, n)
    rows = pixels[mine]  # (rows_local, 3)

    # `init` draws the first palette, and `lloyd` improves it.
    engine = d4p.engines_mt2203(seed=seed)  # makes the random numbers
    # TODO 2: let all ranks look for one palette, from one start.
    # (one more argument in each of the two calls)
    init = d4p.kmeans_init(k, "float", "plusPlusDense",
                           engine=engine)
    lloyd = d4p.kmeans(k, iterations, "float")
    start = init.compute(rows).centroids  # (k, 3)
    fitted = lloyd.compute(rows, start)
    palette = fitted.centroids  # (k, 3)

    # TODO 3: replace the lines below: label my rows by a second `d4p.kmeans`
    # with 0 iterations and `assignFlag=True`, and add up all ranks' inertia.
    # The labels are a column: .ravel() makes it (rows_local,).  (3 lines)
    distances = [((rows - c) ** 2).sum(axis=1) for c in palette]
    labels = np.argmin(distances, axis=0).astype(np.int32)
    inertia = float(fitted.objectiveFunction[0, 0])

    # Distributed: all hear how many labels each rank has; rank 0 needs it
    sizes = comm.allgather(len(labels))
    all_labels = None  # (n,), on rank 0 alone
    # TODO 4: replace this line: bring the labels of all ranks to rank 0, in
    # order; the pieces differ in length, as `sizes` says.  (3 lines)
    all_labels = labels
    return palette, inertia, all_labels


def main(args):
    # Each rank opens the whole picture; fit() keeps its part of it.
    picture, k = photos.opened(args.photo, args.colours)  # (h, w, 3)
    pixels = picture.reshape(-1, 3)  # (n, 3)

    # Book-keeping: what follows with `books.` only times and records. Leave
    # it out, and the palette is the same.
    books = records.Books("04_kmeans", rank, ranks, warmup=0)
    with books.step(work=len(pixels) * args.iterations / ranks):
        palette, inertia, labels = fit(pixels, k, args.iterations, args.seed)

    quality = {}
    # Distributed: one picture, not one from each rank
    if rank == 0:
        quality = photos.saved(picture, palette, inertia, labels)
    # Distributed: all ranks call this; the slowest of them counts
    record = books.write(seed=args.seed, rows=len(pixels), colours=k,
                         inertia=inertia, palette=palette, **quality)
    if rank == 0:
        print(f"{len(pixels):,} pixels, {k} colours on {ranks} rank(s): "
              f"{record['step_s'][0]:.3f} s, "
              f"PSNR {quality['psnr_db']:.2f} dB", flush=True)


def settings():
    """Read what was typed behind the name of this file."""
    parser = flags.Parser(__doc__)
    iterations = 3 if data.quick() else 25
    parser.add_argument("--colours", type=flags.one_or_more, default=16,
                        help="colours of the palette, the K of K-means (16)")
    parser.add_argument("--iterations", type=flags.one_or_more,
                        default=iterations,
                        help=f"iterations of Lloyd's algorithm ({iterations})")
    parser.add_argument("--photo",
                        help="path to a picture of your own (china.jpg)")
    parser.add_argument("--seed", type=flags.zero_or_more, default=0,
                        help="seed of the start (0)")
    return parser.parse_args()


if __name__ == "__main__":
    # daal4py starts, with the threads of this rank: it does not read this
    # variable by itself. With -1 it takes all the cores that it may run on.
    d4p.daalinit(int(os.environ.get("OMP_NUM_THREADS", -1)))
    try:
        main(settings())
    finally:
        d4p.daalfini()
