"""A photograph in a few colours: K-means finds the palette, and each rank works on its own pixels.

    mpirun -n 2 python -m mpi4py solutions/04_kmeans/runme.py --colours 16

You will see how long it took, how well the palette fits, and where the new picture is. It takes about 3 seconds.
With --rows the points are random numbers in place of pixels, and each rank makes only its own.
"""

import argparse
import os
import resource
import sys
import time

import daal4py as d4p
import numpy as np
from mpi4py import MPI  # Distributed: this import also starts MPI

from scaleout import data, records


def end_together(comm: MPI.Comm, problem: str) -> None:
    """Ends all ranks when one has a problem; else the others would wait for it in their next collective call."""
    problems = [text for text in comm.allgather(problem) if text]  # Distributed: everybody hears of every problem
    if problems:
        last_words = problems[0] if comm.Get_rank() == 0 else 1  # Distributed: one sentence, not one from each rank
        MPI.Finalize()  # Distributed: all leave in order, so that nothing is aborted
        sys.exit(last_words)


def main(args: argparse.Namespace) -> np.ndarray:
    comm = MPI.COMM_WORLD
    rank, ranks = comm.Get_rank(), comm.Get_size()  # Distributed: which copy of the program this is, of how many
    problem, k = "", args.colours
    try:
        picture = None if args.rows else data.photo(args.scale, args.photo)  # (h, w, 3)
        if min(k, args.iterations, args.columns, args.rows + 1) < 1:
            raise ValueError("--colours, --iterations and --columns begin at 1, --rows at 0: type a larger number.")
    except Exception as error:  # whatever is wrong with the file of one rank, all have to hear of it
        problem = str(error)
    end_together(comm, problem)
    n, columns = (args.rows, args.columns) if picture is None else (picture.shape[0] * picture.shape[1], 3)

    # TODO 1: the rows of this rank, such that the ranks together have each of the n rows once.  (1 line)
    # BEGIN SOLUTION
    mine = data.shard(n, rank, ranks)  # Distributed: each rank has its own part of the rows
    # STARTER: mine = slice(0, n)
    # END SOLUTION
    if picture is None:
        rows = data.points(mine, columns, args.seed, args.dtype)  # (rows_local, columns)
    else:
        rows = picture.reshape(n, 3)[mine].astype(args.dtype)  # (rows_local, 3)
        codes = np.unique(np.rint(rows * 255) @ (65536, 256, 1))[:k]  # one number for each colour
        k = min(k, len(set().union(*comm.allgather(codes))))  # Distributed: no more colours than the picture has
    if len(rows) < k:
        problem = f"{len(rows)} rows on rank {rank} are too few for {k} colours: take fewer ranks or fewer --colours."
    elif not np.isfinite(rows.sum(dtype=np.float64)):
        problem = f"Rank {rank} has rows that are no numbers (NaN or infinite), which spoil every colour: mend them."
    end_together(comm, problem)

    d4p.daalinit(int(os.environ.get("OMP_NUM_THREADS", -1)))  # daal4py itself does not look at this variable
    fptype, engine = {"float32": "float", "float64": "double"}[args.dtype], d4p.engines_mt2203(seed=args.seed)
    # TODO 2: let all ranks look for one palette, from one start.  (one more argument in each line)
    # BEGIN SOLUTION
    first = d4p.kmeans_init(k, fptype, "plusPlusDense", engine=engine, distributed=True)  # Distributed: one start
    lloyd = d4p.kmeans(k, args.iterations, fptype, distributed=True)  # Distributed: sums of all ranks, each iteration
    # STARTER: first = d4p.kmeans_init(k, fptype, "plusPlusDense", engine=engine)
    # STARTER: lloyd = d4p.kmeans(k, args.iterations, fptype)
    # END SOLUTION
    clock = [time.perf_counter()]
    start = first.compute(rows).centroids  # (k, columns)
    clock.append(time.perf_counter())
    fitted = lloyd.compute(rows, start)
    clock.append(time.perf_counter())
    palette = fitted.centroids  # (k, columns)
    assert palette.shape == start.shape == (k, columns)

    # TODO 3: label my rows by the same routine with 0 iterations; add up the inertia of all ranks.  (3 lines)
    # BEGIN SOLUTION
    nearest = d4p.kmeans(k, 0, fptype, assignFlag=True).compute(rows, palette)
    labels = nearest.assignments.ravel()  # (rows_local,)
    inertia = comm.allreduce(float(nearest.objectiveFunction[0, 0]))  # Distributed: one number from each rank
    # STARTER: labels = np.array([((palette - row) ** 2).sum(axis=1).argmin() for row in rows], np.int32)
    # STARTER: inertia = float(fitted.objectiveFunction[0, 0])
    # END SOLUTION
    clock.append(time.perf_counter())

    # TODO 4: bring the labels of all ranks to rank 0, in order; the pieces differ in size.  (3 lines)
    # BEGIN SOLUTION
    sizes = comm.allgather(len(labels))  # Distributed: rank 0 must know how long each piece is
    everyone = np.empty(sum(sizes), np.int32) if rank == 0 else None  # (n,) on rank 0
    comm.Gatherv(labels, (everyone, sizes), root=0)  # Distributed: unequal pieces, one behind the other
    # STARTER: everyone = labels
    # END SOLUTION

    share = {"rank": rank, "first": mine.start, "stop": mine.stop, "start": start.sum(), "palette": palette.sum()}
    share |= {"memory_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, "seconds": np.diff(clock)}
    shares = comm.gather(share, root=0)  # Distributed: rank 0 gets a list, the others None
    if rank == 0:  # Distributed: one report, one picture, one record
        init_s, fit_s, predict_s = np.max([share["seconds"] for share in shares], axis=0)  # the slowest rank counts
        psnr_db, folder = -10 * np.log10(max(inertia / (n * columns), 1e-12)), records.folder()
        if picture is not None:
            data.save_quantised(folder, picture.shape, palette, everyone)
        print(f"{n:,} rows, {k} colours on {ranks} rank(s): fit {fit_s:.3f} s, PSNR {psnr_db:.2f} dB", flush=True)
        records.write(lab="04_kmeans", variant=args.dtype, ranks=ranks, step_s=[fit_s], seed=args.seed,
                      rate=n * fitted.nIterations[0, 0] / fit_s, rate_unit="rows/s",
                      metrics={"init_s": init_s, "fit_s": fit_s, "predict_s": predict_s, "inertia": inertia,
                               "psnr_db": psnr_db, "rows": n, "columns": columns, "colours": k, "start": start,
                               "palette": palette, "count": np.bincount(everyone, minlength=k), "shares": shares})  # fmt: skip
    return palette


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--colours", type=int, default=16, help="colours in the palette, the K of K-means (count)")
    parser.add_argument("--iterations", type=int, default=25, help="iterations of Lloyd's algorithm (count)")
    parser.add_argument("--scale", type=float, default=1.0, help="enlarges both sides of the picture (factor)")
    parser.add_argument("--photo", help="a picture of your own (path)")
    parser.add_argument("--rows", type=int, default=0, help="random points in place of a picture (count)")
    parser.add_argument("--columns", type=int, default=3, help="numbers in each random point (count)")
    parser.add_argument("--dtype", choices=["float32", "float64"], default="float32", help="precision")
    parser.add_argument("--seed", type=int, default=0, help="of the start and of the random points")
    try:
        main(parser.parse_args())
    finally:
        d4p.daalfini()
