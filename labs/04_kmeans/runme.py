"""A photograph in a few colours: K-means finds the palette, and each rank works on its own pixels.

    mpirun -n 2 python -m mpi4py labs/04_kmeans/runme.py --colours 16

You will see how long it took and how well the palette fits; quantised.png is beside the record. It takes 3 seconds.
"""

import argparse
import os
import resource
from time import perf_counter as now

import daal4py as d4p
import numpy as np
from mpi4py import MPI  # Distributed: this import also starts MPI

from scaleout import data, records


def end_together(rank: int, problem: str) -> None:
    """Ends all ranks when one has a problem; else the others would wait for it in their next collective call."""
    if any(problems := MPI.COMM_WORLD.allgather(problem)):  # Distributed: everybody hears of every problem
        MPI.Finalize()  # Distributed: all leave in order, so that nothing is aborted
        raise SystemExit(max(problems) if rank == 0 else 1)  # Distributed: one sentence, not one from each rank


def main(args: argparse.Namespace) -> np.ndarray:
    comm = MPI.COMM_WORLD  # Distributed: everybody who takes part
    rank, ranks = comm.Get_rank(), comm.Get_size()  # Distributed: which copy of the program this is, of how many
    problem, k = "", args.colours
    try:
        picture = None if args.rows else data.photo(args.scale, args.photo)  # (h, w, 3)
        if min(k, args.iterations, args.columns, args.rows + 1) < 1:
            raise ValueError("--colours, --iterations and --columns begin at 1, --rows at 0: type a larger number.")
    except Exception as error:  # whatever is wrong with the file of one rank, all have to hear of it
        problem = str(error)
    end_together(rank, problem)
    n, columns = (args.rows, args.columns) if picture is None else (picture.shape[0] * picture.shape[1], 3)

    # TODO 1: the rows of this rank, such that the ranks together have each of the n rows once.  (1 line)
    mine = slice(0, n)
    if picture is None:
        rows = data.points(mine, columns, args.seed, args.dtype)  # (rows_local, columns)
    else:
        rows = picture.reshape(n, 3)[mine].astype(args.dtype)  # (rows_local, 3)
        codes = np.unique(np.rint(rows * 255) @ (65536, 256, 1))[:k]  # one number for each colour
        k = min(k, len(set().union(*comm.allgather(codes))))  # Distributed: no more colours than the picture has
    if len(rows) < k:
        problem = f"{k} colours need {k} rows a rank, rank {rank} has {len(rows)}: take fewer ranks or fewer --colours."
    elif not np.isfinite(rows.sum(dtype=np.float64)):
        problem = f"Rank {rank} has rows that are no numbers (NaN or infinite), which spoil every colour: mend them."
    end_together(rank, problem)

    d4p.daalinit(int(os.environ.get("OMP_NUM_THREADS", -1)))  # daal4py itself does not look at this variable
    fptype, engine = {"float32": "float", "float64": "double"}[args.dtype], d4p.engines_mt2203(seed=args.seed)
    # TODO 2: let all ranks look for one palette, from one start.  (one more argument in each line)
    first = d4p.kmeans_init(k, fptype, "plusPlusDense", engine=engine)
    lloyd = d4p.kmeans(k, args.iterations, fptype)
    begin = now()
    start, started = first.compute(rows).centroids, now()  # (k, columns)
    fitted, ended = lloyd.compute(rows, start), now()
    palette = fitted.centroids  # (k, columns)
    assert palette.shape == start.shape == (k, columns)

    # TODO 3: label my rows by the same routine with 0 iterations; add up the inertia of all ranks.  (3 lines)
    labels = np.argmin([((rows - c) ** 2).sum(axis=1) for c in palette], axis=0).astype(np.int32)
    inertia = float(fitted.objectiveFunction[0, 0])
    seconds = [started - begin, ended - started, now() - ended]

    # TODO 4: bring the labels of all ranks to rank 0, in order; the pieces differ in size.  (3 lines)
    everyone = labels

    share = {"rank": rank, "first": mine.start, "stop": mine.stop, "start": start, "palette": palette}
    share |= {"memory_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, "seconds": seconds}
    shares = comm.gather(share, root=0)  # Distributed: rank 0 gets a list, the others None
    if rank == 0:  # Distributed: one report, one picture, one record
        init_s, fit_s, predict_s = np.max([share.pop("seconds") for share in shares], axis=0)  # the slowest rank counts
        psnr_db = -10 * np.log10(max(inertia / (n * columns), 1e-12))
        if picture is not None:
            data.save_quantised(records.folder(), picture.shape, palette, everyone)
        print(f"{n:,} rows, {k} colours on {ranks} rank(s): fit {fit_s:.3f} s, PSNR {psnr_db:.2f} dB", flush=True)
        metrics = {"init_s": init_s, "fit_s": fit_s, "predict_s": predict_s, "inertia": inertia, "psnr_db": psnr_db}
        metrics |= {"rows": n, "columns": columns, "colours": k, "count": np.bincount(everyone, minlength=k)}
        metrics |= {"memory_mib": [share.pop("memory_mib") for share in shares], "shares": shares}
        records.write(lab="04_kmeans", variant=args.dtype, ranks=ranks, step_s=[fit_s], seed=args.seed, metrics=metrics,
                      rate=n * args.iterations / fit_s, rate_unit="rows/s")  # fmt: skip
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
