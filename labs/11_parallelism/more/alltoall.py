"""From rows to columns and back: the transposition of expert layers.

    mpirun -n 3 python -m mpi4py labs/11_parallelism/more/alltoall.py

Any number of ranks, here three; it takes about 2 seconds. Each rank has some
rows of a table. To bring each column to mean 0 and spread 1 over *all* rows, a
rank needs whole columns. An all-to-all gives them, and another one brings the
rows back. You will see the difference from what one rank alone finds, and what
each rank sends.
"""

import argparse

import numpy as np

# Distributed: this import also starts MPI
from mpi4py import MPI

from scaleout import data, records
from scaleout.kit.flags import Parser, one_or_more


def settings() -> argparse.Namespace:
    """What was typed behind the name of this file."""
    parser = Parser(__doc__)
    parser.add_argument("--rows", type=one_or_more, default=1000,
                        help="rows of the table (1000)")
    parser.add_argument("--columns", type=one_or_more, default=100,
                        help="columns of the table (100)")
    return parser.parse_args()


def normalise(x: np.ndarray) -> np.ndarray:
    """Each column with mean 0 and spread 1."""
    return (x - x.mean(axis=0)) / (x.std(axis=0) + 1e-9)


def to_columns(comm: MPI.Intracomm, mine: np.ndarray,
               columns: int) -> np.ndarray:
    """(rows / ranks, columns) on each rank becomes (rows, columns / ranks)."""
    shards = [data.shard(columns, r, comm.size) for r in range(comm.size)]
    # Distributed: a piece for each rank, and one from each, of any size
    pieces = comm.alltoall([mine[:, shard] for shard in shards])
    return np.concatenate(pieces)  # in the order of the ranks, as the rows are


def to_rows(comm: MPI.Intracomm, mine: np.ndarray, rows: int) -> np.ndarray:
    """(rows, columns / ranks) on each rank becomes (rows / ranks, columns)."""
    shards = [data.shard(rows, r, comm.size) for r in range(comm.size)]
    # Distributed: the way back
    pieces = comm.alltoall([mine[shard] for shard in shards])
    return np.concatenate(pieces, axis=1)


def main(args: argparse.Namespace) -> None:
    # Distributed: each rank has some rows
    comm = MPI.COMM_WORLD
    rng = np.random.default_rng(0)
    table = rng.standard_normal((args.rows, args.columns))
    rows = data.shard(args.rows, comm.rank, comm.size)
    columns = to_columns(comm, table[rows], args.columns)
    result = to_rows(comm, normalise(columns), args.rows)

    wanted = normalise(table)[rows]
    off = np.abs(result - wanted).max(initial=0.0)
    # What comes of it when each rank takes its own rows for all.
    alone = np.abs(normalise(table[rows]) - wanted).max(initial=0.0)
    own = data.shard(args.columns, comm.rank, comm.size)
    stays = table[rows, own].nbytes
    about = {
        "off": float(off),
        "alone_off": float(alone),
        "sent": 2 * table[rows].nbytes - stays - table[rows, own].nbytes,
        "columns": list(columns.shape),
    }
    # Distributed: what each rank found
    found = records.gather(about)
    # Distributed: one report, not one from each rank
    if comm.rank == 0:
        off = max(each["off"] for each in found)
        alone = max(each["alone_off"] for each in found)
        sent = [each["sent"] for each in found]
        records.write(lab="11_parallelism", variant="alltoall",
                      ranks=comm.size,
                      metrics={"off": off, "alone_off": alone,
                               "sent_bytes": sent, "found": found,
                               "bytes": table.nbytes})
        print(f"off by {off:.1e}; without it {alone:.1e}. The busiest rank "
              f"sends {max(sent):,} of {table.nbytes:,} bytes", flush=True)


if __name__ == "__main__":
    main(settings())
