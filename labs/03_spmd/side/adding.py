"""How long does it take to add one array to another? By NumPy, or by MPI.

    mpirun -n 2 python -m mpi4py labs/03_spmd/side/adding.py --how mpi

Every allreduce adds up on the way. Ours uses NumPy's +=, and MPI's own uses a
loop in the library, which MPI.SUM.Reduce_local calls on its own. No message
is sent. You will see one line, the median of many. It takes about 1 second.
"""

import argparse

import numpy as np

# Distributed: this import also starts MPI
from mpi4py import MPI

from scaleout import records
from scaleout.kit.flags import Parser, one_or_more

WARMUP = 5


def settings() -> argparse.Namespace:
    """What was typed behind the name of this file."""
    parser = Parser(__doc__)
    parser.add_argument("--how", choices=["numpy", "mpi"], default="numpy",
                        help="who adds (numpy)")
    parser.add_argument("--size", type=one_or_more, default=2**21,
                        help="length of the arrays, in floats of 4 bytes "
                        "(2097152)")
    parser.add_argument("--repeats", type=one_or_more, default=20,
                        help="timed additions (20)")
    return parser.parse_args()


def main(args: argparse.Namespace) -> None:
    comm = MPI.COMM_WORLD
    books = records.Books("03_spmd", comm.rank, comm.size, warmup=WARMUP)
    mine = np.ones(args.size, np.float32)  # (size,)
    other = np.ones(args.size, np.float32)  # (size,)
    steps = WARMUP + args.repeats
    for _ in range(steps):
        # Distributed: all cores add at once, as in an allreduce
        comm.Barrier()
        with books.step():
            if args.how == "numpy":
                mine += other
            else:
                MPI.SUM.Reduce_local(other, mine)

    books.note(right=bool(np.all(mine == 1 + steps)))
    # Distributed: one record of all ranks; the slowest of them counts
    record = books.write(variant=args.how, bytes=mine.nbytes)
    # Distributed: one line, not one from each rank
    if comm.rank == 0:
        us = 1e6 * np.median(record["step_s"])
        print(f"{mine.nbytes:,} B added by {args.how}: {us:.1f} us",
              flush=True)


if __name__ == "__main__":
    main(settings())
