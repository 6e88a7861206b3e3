"""K-means in three modes, from one start: batch (all rows at once), distributed, online (blocks of rows from disk).

    mpirun -n 2 python -m mpi4py labs/04_kmeans/modes.py --mode online

You will see the seconds, the inertia, and the peak memory of each rank. It takes about 5 seconds. The online mode reads
its file anew in every iteration and never holds more than one block, so that the rows may outgrow the memory.
"""

import argparse
import os
import resource
import tempfile
import time
from collections.abc import Iterable
from typing import BinaryIO

import daal4py as d4p
import numpy as np
from mpi4py import MPI  # Distributed: this import also starts MPI

from scaleout import data, records

FPTYPE = {"float32": "float", "float64": "double"}


def peak_mib() -> float:
    """The most memory that this process has held so far, in MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def label(rows: np.ndarray, palette: np.ndarray) -> tuple[np.ndarray, float]:
    """The nearest colour of each row, (rows,), and the inertia of these rows: K-means with 0 iterations."""
    palette = palette.astype(rows.dtype)
    nearest = d4p.kmeans(len(palette), 0, FPTYPE[rows.dtype.name], assignFlag=True).compute(rows, palette)
    return nearest.assignments.ravel(), float(nearest.objectiveFunction[0, 0])


def step(blocks: Iterable[np.ndarray], palette: np.ndarray, comm: MPI.Comm) -> tuple[np.ndarray, float]:
    """One pass over all rows, a block at a time: the next palette, (k, columns), and the inertia of this one."""
    k, columns = palette.shape
    sums, inertia = np.zeros((columns + 1, k)), 0.0  # the sum of each column, and last the count, for each colour
    for rows in blocks:
        labels, part = label(rows, palette)
        inertia += part
        for column, weights in enumerate((*rows.T, None)):
            sums[column] += np.bincount(labels, weights, minlength=k)
    comm.Allreduce(MPI.IN_PLACE, sums)  # Distributed: the sums of all ranks; the rows stay where they are
    return (sums[:-1] / np.maximum(sums[-1], 1)).T, comm.allreduce(inertia)  # Distributed: one number from each rank


def blocks_of(mine: slice, size: int) -> Iterable[slice]:
    """The slice in pieces of at most so many rows."""
    return (slice(first, min(first + size, mine.stop)) for first in range(mine.start, mine.stop, size))


def from_disk(file: BinaryIO, block: int, columns: int, dtype: str) -> Iterable[np.ndarray]:
    """The rows of the file, a block at a time: (block, columns), the last one shorter."""
    file.seek(0)
    while (numbers := np.fromfile(file, dtype, block * columns)).size:
        yield numbers.reshape(-1, columns)


def main(args: argparse.Namespace) -> np.ndarray:
    comm = MPI.COMM_WORLD  # Distributed: everybody who takes part
    rank, ranks = comm.Get_rank(), comm.Get_size()
    if args.mode == "batch" and ranks > 1:
        MPI.Finalize()  # Distributed: all leave in order, with one sentence
        raise SystemExit("The batch mode knows one process: start it with -n 1." if rank == 0 else 1)
    program_mib = peak_mib()
    d4p.daalinit(int(os.environ.get("OMP_NUM_THREADS", -1)))
    mine = data.shard(args.rows, rank, ranks)  # Distributed: each rank has its own rows
    palette = data.points(slice(0, args.colours), args.columns, args.seed, args.dtype)  # (k, columns), the same on all
    if args.mode == "online":
        with tempfile.TemporaryFile() as file:  # Distributed: each rank keeps its rows in a file of its own
            for piece in blocks_of(mine, args.block):
                data.points(piece, args.columns, args.seed, args.dtype).tofile(file)
            begin = time.perf_counter()
            for _ in range(args.iterations):
                palette, _ = step(from_disk(file, args.block, args.columns, args.dtype), palette, comm)
            fit_s = time.perf_counter() - begin
            _, inertia = step(from_disk(file, args.block, args.columns, args.dtype), palette, comm)
    else:
        rows = data.points(mine, args.columns, args.seed, args.dtype)  # (rows_local, columns)
        begin = time.perf_counter()
        lloyd = d4p.kmeans(args.colours, args.iterations, FPTYPE[args.dtype], distributed=args.mode == "distributed")
        palette = lloyd.compute(rows, palette).centroids
        fit_s = time.perf_counter() - begin
        inertia = comm.allreduce(label(rows, palette)[1])  # Distributed: one number from each rank
    assert palette.shape == (args.colours, args.columns)
    memory = comm.gather((peak_mib(), program_mib), root=0)  # Distributed: rank 0 gets a list, the others None
    slowest_s = comm.reduce(fit_s, op=MPI.MAX, root=0)  # Distributed: the job is as fast as its slowest rank
    if rank == 0:
        memory_mib, program_mib = zip(*memory, strict=True)
        print(f"{args.mode} on {ranks} rank(s): {slowest_s:.2f} s, inertia {inertia:.8g}, "
              f"memory {max(memory_mib):.0f} MiB a rank", flush=True)  # fmt: skip
        metrics = {"rows": args.rows, "inertia": inertia, "palette": palette}
        metrics |= {"memory_mib": memory_mib, "program_mib": program_mib}
        records.write(lab="04_kmeans", variant=args.mode, ranks=ranks, step_s=[slowest_s], metrics=metrics)
    return palette


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mode", choices=["batch", "distributed", "online"], default="online", help="how rows arrive")
    parser.add_argument("--rows", type=int, default=2_000_000, help="random points (count)")
    parser.add_argument("--columns", type=int, default=10, help="numbers in each point (count)")
    parser.add_argument("--colours", type=int, default=8, help="clusters (count)")
    parser.add_argument("--iterations", type=int, default=5, help="iterations of Lloyd's algorithm (count)")
    parser.add_argument("--block", type=int, default=50_000, help="rows in memory at a time, online (count)")
    parser.add_argument("--dtype", choices=["float32", "float64"], default="float32", help="precision")
    parser.add_argument("--seed", type=int, default=0, help="of the points")
    try:
        main(parser.parse_args())
    finally:
        d4p.daalfini()
