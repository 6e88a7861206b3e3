"""The same images in four formats: how fast are they read, and at what price?

    mpirun -n 1 python -m mpi4py labs/10_input/formats.py

One file per image, TFRecord shards, LMDB and HDF5; from the disk (cold) and
from memory (warm), in the order in which they lie there and shuffled, each in
turn. Each of several ranks reads its own images. You will see images/s read by
all ranks. Nothing is decoded here. It takes 30 seconds.
"""

import argparse
import os
import time
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
import h5py
import lmdb
import numpy as np
import tensorflow as tf
from crops import crops

# Distributed: this import also starts MPI
from mpi4py import MPI

from scaleout import ScaleoutError, data, records
from scaleout.kit.flags import Parser, one_or_more, refuse


def forget(path: Path) -> None:
    """Asks the system to drop these files from its page cache."""
    files = path.iterdir() if path.is_dir() else [path]
    for each in files:
        file = os.open(each, os.O_RDONLY)
        os.fsync(file)
        os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(file)


# Distributed: all ranks of the job; each reader below takes its own images
COMM = MPI.COMM_WORLD


def read_files(path: Path, shuffle: bool, draw: np.random.Generator):
    """One open for each image."""
    # Distributed: the images of this rank
    paths = sorted(path.iterdir())[COMM.rank::COMM.size]
    order = draw.permutation(len(paths)) if shuffle else range(len(paths))
    for number in order:
        yield paths[number].read_bytes()


def read_tfrecord(path: Path, shuffle: bool, draw: np.random.Generator):
    """One open for each shard; shuffled, the shards and within a buffer."""
    shards = sorted(map(str, path.iterdir()))
    # Distributed: the shards of this rank
    shards = shards[COMM.rank::COMM.size]
    if shuffle:
        shards = draw.permutation(shards)
    rows = tf.data.TFRecordDataset(shards, buffer_size=2**20)
    if shuffle:
        rows = rows.shuffle(500, seed=int(draw.integers(1000)))
    kind = {"image": tf.io.FixedLenFeature([], tf.string)}
    rows = rows.batch(64).map(lambda row: tf.io.parse_example(row, kind))
    for batch in rows:
        yield from batch["image"].numpy()


def read_lmdb(path: Path, shuffle: bool, draw: np.random.Generator):
    """One open in all; a key leads to its image, whatever the order."""
    store = lmdb.open(str(path), readonly=True, lock=False)
    with store, store.begin() as get:
        count = store.stat()["entries"]
        # Distributed: the images of this rank
        mine = range(COMM.rank, count, COMM.size)
        order = draw.permutation(mine) if shuffle else mine
        for number in order:
            yield get.get(b"%05d" % number)[1:]


def read_hdf5(path: Path, shuffle: bool, draw: np.random.Generator):
    """One open in all."""
    with h5py.File(path) as file:
        images = file["images"]
        # Distributed: the images of this rank
        mine = range(COMM.rank, len(images), COMM.size)
        order = draw.permutation(mine) if shuffle else mine
        for number in order:
            yield images[number].tobytes()


READ = {"files": read_files, "tfrecord": read_tfrecord, "lmdb": read_lmdb,
        "hdf5": read_hdf5}


def settings() -> argparse.Namespace:
    """What was typed behind the name of this file."""
    parser = Parser(__doc__)
    parser.add_argument("--repeats", type=one_or_more,
                        default=1 if data.quick() else 5,
                        help="of each, in turns (5)")
    return parser.parse_args()


def measure(form: str, path: Path, cold: bool, shuffle: bool,
            turn: int) -> tuple:
    """Seconds of one pass of all ranks, of its first image, and images."""
    if cold and COMM.rank == 0:
        forget(path)
    # Distributed: nobody opens anything before it is forgotten
    COMM.Barrier()
    draw = np.random.default_rng(turn)
    start = time.perf_counter()
    images = READ[form](path, shuffle, draw)
    count = 0 if next(images, None) is None else 1
    first_s = time.perf_counter() - start
    count += sum(1 for _ in images)
    # Distributed: the slowest rank counts
    seconds = COMM.allreduce(time.perf_counter() - start, op=MPI.MAX)
    first_s = COMM.allreduce(first_s, op=MPI.MAX)
    # Distributed: of all ranks together
    return seconds, first_s, COMM.allreduce(count)


def main(args: argparse.Namespace) -> None:
    try:
        paths = {form: crops(form) for form in READ}
    except ScaleoutError as error:
        refuse(str(error))
    ways = [(form, cold, shuffle) for form in READ
            for cold in (True, False) for shuffle in (False, True)]
    found = {way: [] for way in ways}
    for turn in range(args.repeats):
        for way in ways:
            form, cold, shuffle = way
            found[way].append(
                measure(form, paths[form], cold, shuffle, turn))
    # Distributed: one report, not one from each rank
    if COMM.rank != 0:
        return
    for (form, cold, shuffle), passes in found.items():
        seconds = [each[0] for each in passes]
        count = passes[-1][2]
        rate = count / float(np.median(seconds))
        cache = "cold" if cold else "warm"
        order = "shuffled" if shuffle else "in order"
        path = paths[form]
        files = len(list(path.iterdir())) if path.is_dir() else 1
        records.write(
            lab="10_input", variant=form, ranks=COMM.size, step_s=seconds,
            rate=rate, rate_unit="images/s",
            metrics={"cache": cache, "order": order, "files": files,
                     "images": count, "first_s": [each[1] for each in passes]})
        print(f"{form:9} {cache} {order:9} {rate:9,.0f} images/s", flush=True)


if __name__ == "__main__":
    main(settings())
