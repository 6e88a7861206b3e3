"""Many small files against one TFRecord: the same records, in a new random order each epoch, read by each rank.

    mpirun -n 2 python -m mpi4py solutions/07_scaling/files.py

You will see files opened and MB/s, first from the disk (cold), then from memory (warm). It takes 10 seconds.
"""

import argparse
import os
import shutil
import tempfile
from pathlib import Path
from time import perf_counter as now

import numpy as np
from mpi4py import MPI  # Distributed: this import also starts MPI

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
import tensorflow as tf

from scaleout import data, records


def write(folder: Path, count: int, size: int) -> None:
    """The same records twice: each in a file of its own, and all in one TFRecord."""
    noise = np.random.default_rng(0)
    with tf.io.TFRecordWriter(str(folder / "all.tfrecord")) as together:
        for number in range(count):
            record = noise.bytes(size)
            (folder / f"{number:05d}.bin").write_bytes(record)
            together.write(record)


def forget(folder: Path) -> None:
    """Asks the system to drop these files from its page cache; the next read comes from the disk."""
    for path in folder.iterdir():
        file = os.open(path, os.O_RDONLY)
        os.fsync(file)
        os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(file)


def reader(way: str, folder: Path, rank: int, ranks: int, count: int, seed: int) -> tuple[tf.data.Dataset, int]:
    """This rank's records in random order, and how many files it opens for them."""
    if way == "one TFRecord":  # the rank passes over what is not its own; the order is random within the buffer
        mine = tf.data.TFRecordDataset(str(folder / "all.tfrecord"), buffer_size=2**20).shard(ranks, rank)
        return mine.shuffle(256, seed=seed), 1
    paths = sorted(map(str, folder.glob("*.bin")))[data.shard(count, rank, ranks)]
    order = np.random.default_rng(seed).permutation(len(paths))
    return tf.data.Dataset.from_tensor_slices(np.array(paths)[order]).map(tf.io.read_file), len(paths)


def main(args: argparse.Namespace) -> dict[tuple[str, str], float]:
    comm, found = MPI.COMM_WORLD, {}
    name = tempfile.mkdtemp(prefix="files-", dir=args.folder) if comm.rank == 0 else None
    folder = Path(comm.bcast(name, root=0))  # Distributed: all read what rank 0 wrote
    try:
        if comm.rank == 0:
            write(folder, args.count, args.size)
        for way in ("small files", "one TFRecord"):
            for cache in ("cold", "warm"):
                comm.Barrier()  # Distributed: nobody reads before all is written
                if cache == "cold" and comm.rank == 0:
                    forget(folder)
                comm.Barrier()  # Distributed: and nobody before it is forgotten
                start = now()
                records_of_mine, opened = reader(way, folder, comm.rank, comm.size, args.count, seed=comm.rank)
                read = sum(len(record) for record in records_of_mine.as_numpy_iterator())
                seconds = comm.allreduce(now() - start, op=MPI.MAX)  # Distributed: the slowest rank counts
                total, files = comm.allreduce(read), comm.allreduce(opened)  # Distributed: of all ranks together
                assert total == args.count * args.size
                found[way, cache] = rate = total / 1e6 / seconds
                if comm.rank == 0:  # Distributed: one report
                    print(f"{way:13} {cache}: {files:6,} opens, {rate:7.1f} MB/s", flush=True)
                    how = {"step_s": [seconds], "rate": rate, "rate_unit": "MB/s", "ranks": comm.size}
                    records.write(lab="07_scaling", variant=way, metrics={"cache": cache, "opens": files}, **how)
    finally:
        comm.Barrier()  # Distributed: nobody reads any more
        if comm.rank == 0:
            shutil.rmtree(folder, ignore_errors=True)
    return found


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=500 if data.quick() else 4000, help="records (count)")
    parser.add_argument("--size", type=int, default=10_000, help="of a record (bytes)")
    parser.add_argument("--folder", help="a folder to write to, such as your cluster's scratch (the system's own)")
    main(parser.parse_args())
