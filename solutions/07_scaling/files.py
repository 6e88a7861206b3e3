"""Many small files against one TFRecord: the same records, read at random.

    mpirun -n 2 python -m mpi4py solutions/07_scaling/files.py

Each rank reads its own records in a random order. You will see files opened
and MB/s, first from the disk (cold), then from memory (warm). It takes 10
seconds.
"""

import argparse
import os
import shutil
import tempfile
from pathlib import Path
from time import perf_counter

import numpy as np
from flags import one_or_more, refuse

# Distributed: this import also starts MPI
from mpi4py import MPI

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
import tensorflow as tf

from scaleout import data, records


def settings() -> argparse.Namespace:
    """What was typed behind the name of this file."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.error = refuse
    count = 500 if data.quick() else 4000
    parser.add_argument("--count", type=one_or_more, default=count,
                        help=f"records ({count})")
    parser.add_argument("--size", type=one_or_more, default=10_000,
                        help="bytes of a record (10,000)")
    parser.add_argument("--folder",
                        help="a folder to write to, such as your cluster's "
                        "scratch (the system's own)")
    args = parser.parse_args()
    if args.folder and not os.access(args.folder, os.W_OK):
        refuse(f"--folder {args.folder} is no folder to write to.")
    return args


def write(folder: Path, count: int, size: int) -> None:
    """The same records twice: in a file each, and all in one TFRecord."""
    noise = np.random.default_rng(0)
    with tf.io.TFRecordWriter(str(folder / "all.tfrecord")) as together:
        for number in range(count):
            record = noise.bytes(size)
            (folder / f"{number:05d}.bin").write_bytes(record)
            together.write(record)


def forget(folder: Path) -> None:
    """Asks the system to drop these files from its page cache.

    The next read then comes from the disk.
    """
    for path in folder.iterdir():
        file = os.open(path, os.O_RDONLY)
        os.fsync(file)
        os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(file)


def one_tfrecord(folder: Path, rank: int, ranks: int) -> tf.data.Dataset:
    """This rank's records, in an order that is random within the buffer."""
    path = str(folder / "all.tfrecord")
    dataset = tf.data.TFRecordDataset(path, buffer_size=2**20)
    # Distributed: the rank passes over what is not its own
    dataset = dataset.shard(ranks, rank)
    return dataset.shuffle(256, seed=rank)


def small_files(folder: Path, rank: int, ranks: int) -> tf.data.Dataset:
    """This rank's records in random order."""
    paths = np.array(sorted(map(str, folder.glob("*.bin"))))
    # Distributed: each rank opens only files of its own
    mine = paths[data.shard(len(paths), rank, ranks)]
    mine = np.random.default_rng(rank).permutation(mine)
    dataset = tf.data.Dataset.from_tensor_slices(mine)
    return dataset.map(tf.io.read_file)


def read(way: str, folder: Path, rank: int, ranks: int) -> tuple[int, int]:
    """Reads this rank's records: how many bytes, and how many opens."""
    open_records = one_tfrecord if way == "one TFRecord" else small_files
    dataset = open_records(folder, rank, ranks)
    lengths = [len(record) for record in dataset.as_numpy_iterator()]
    opens = 1 if way == "one TFRecord" else len(lengths)
    return sum(lengths), opens


def compare(args: argparse.Namespace, folder: Path) -> None:
    """Both ways, from the disk and from memory."""
    # Distributed: everybody who takes part
    comm = MPI.COMM_WORLD
    rank = comm.Get_rank()
    ranks = comm.Get_size()
    if rank == 0:
        write(folder, args.count, args.size)
    for way in ("small files", "one TFRecord"):
        for cache in ("cold", "warm"):
            # Distributed: nobody reads before all is written
            comm.Barrier()
            if cache == "cold" and rank == 0:
                forget(folder)
            # Distributed: and nobody before it is forgotten
            comm.Barrier()
            start = perf_counter()
            mine, opens = read(way, folder, rank, ranks)
            # Distributed: the slowest rank counts
            seconds = comm.allreduce(perf_counter() - start, op=MPI.MAX)
            # Distributed: of all ranks together
            total = comm.allreduce(mine)
            # Distributed: of all ranks together
            files = comm.allreduce(opens)
            assert total == args.count * args.size
            rate = total / 1e6 / seconds
            # Distributed: one report, not one from each rank
            if rank == 0:
                print(f"{way:13} {cache}: {files:6,} opens, {rate:7.1f} MB/s",
                      flush=True)
                records.write(
                    lab="07_scaling",
                    variant=way,
                    ranks=ranks,
                    step_s=[seconds],
                    rate=rate,
                    rate_unit="MB/s",
                    metrics={"cache": cache, "opens": files},
                )


def main(args: argparse.Namespace) -> None:
    comm = MPI.COMM_WORLD
    name = None
    if comm.rank == 0:
        name = tempfile.mkdtemp(prefix="files-", dir=args.folder)
    # Distributed: all read what rank 0 writes
    folder = Path(comm.bcast(name, root=0))
    try:
        compare(args, folder)
    finally:
        # Distributed: nobody reads any more
        comm.Barrier()
        if comm.rank == 0:
            shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main(settings())
