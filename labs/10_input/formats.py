"""The same images in four formats: how fast are they read, and at what price?

    mpirun -n 1 python -m mpi4py labs/10_input/formats.py

One file per image, TFRecord shards, LMDB and HDF5; from the disk (cold) and
from memory (warm), in the order in which they lie there and shuffled, each in
turn. Each of several ranks reads its own images. You will see images/s read by
all ranks, and how many files were opened, as the system counted them. Nothing
is decoded here. It takes 30 seconds.
"""

import argparse
import ctypes
import os
import struct
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
from scaleout.flags import Parser, one_or_more, refuse

FORMS = ["files", "tfrecord", "lmdb", "hdf5"]
# Of inotify: something was opened, was closed again, was a folder.
OPEN = 0x20
CLOSE = 0x10
FOLDER = 0x40000000


class Opens:
    """Counts how often files of a folder are opened, by asking Linux."""

    def __init__(self, folder: Path) -> None:
        self.libc = ctypes.CDLL(None, use_errno=True)
        self.file = self.libc.inotify_init1(os.O_NONBLOCK)
        watched = os.fsencode(folder)
        self.libc.inotify_add_watch(self.file, watched, OPEN | CLOSE)
        self.count = 0

    def look(self) -> None:
        """Takes what has happened since: Linux keeps some thousands."""
        while True:
            try:
                events = os.read(self.file, 1 << 16)
            except BlockingIOError:
                return
            at = 0
            while at < len(events):
                _, what, _, length = struct.unpack_from("iIII", events, at)
                self.count += bool(what & OPEN and not what & FOLDER)
                at += 16 + length

    def close(self) -> int:
        """How many it were."""
        self.look()
        os.close(self.file)
        return self.count


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
    whole = int(shards[0].rpartition("-of-")[2].partition(".")[0])
    if len(shards) != whole:
        refuse(f"{path} has {len(shards)} shards of {whole}: remove it, and "
               "start this again, which writes them anew.")
    if whole < COMM.size:
        refuse(f"{COMM.size} ranks are more than the {whole} shards of {path}:"
               f" take {whole} ranks at most.")
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
    parser.add_argument("--forms", nargs="+", choices=FORMS, default=FORMS,
                        help="which (all four)")
    parser.add_argument("--repeats", type=one_or_more,
                        default=1 if data.quick() else 5,
                        help="of each, in turns (5)")
    return parser.parse_args()


def measure(form: str, path: Path, cold: bool, shuffle: bool,
            turn: int) -> tuple:
    """Seconds, images, bytes and opens of one pass of all ranks."""
    if cold and COMM.rank == 0:
        forget(path)
    # Distributed: nobody opens anything before it is forgotten
    COMM.Barrier()
    # Distributed: one rank counts, and sees what the others open, too
    opens = Opens(path if path.is_dir() else path.parent)
    # Distributed: nor before it is counted
    COMM.Barrier()
    draw = np.random.default_rng(turn)
    start = time.perf_counter()
    count = 0
    size = 0
    for image in READ[form](path, shuffle, draw):
        count += 1
        size += len(image)
        if count % 500 == 0:
            opens.look()
    # Distributed: the slowest rank counts
    seconds = COMM.allreduce(time.perf_counter() - start, op=MPI.MAX)
    # Distributed: of all ranks together
    count = COMM.allreduce(count)
    # Distributed: of all ranks together
    size = COMM.allreduce(size)
    return seconds, count, size, opens.close()


def damage(path: Path, error: Exception) -> str:
    """One sentence about a file that cannot be read to its end."""
    inside = path.iterdir() if path.is_dir() else [path]
    named = [each.name for each in inside if str(each) in str(error)]
    if not named and path.name == "tfrecord":
        named = [each.name for each in inside_broken(path)]
    return (f"{path} {' '.join(named)} is damaged: remove {path}, and start "
            "this again, which writes it anew.")


def fail(problem: str) -> None:
    """Ends the job of all ranks: the others would wait for this one."""
    # Distributed: whoever finds it ends the job for all
    raise SystemExit(problem)


def inside_broken(path: Path) -> list:
    """The shards that cannot be read, each tried alone."""
    found = []
    for shard in sorted(path.iterdir()):
        try:
            sum(1 for _ in tf.data.TFRecordDataset(str(shard)))
        except tf.errors.OpError:
            found.append(shard)
    return found


def main(args: argparse.Namespace) -> None:
    try:
        paths = {form: crops(form) for form in args.forms}
    except ScaleoutError as error:
        refuse(str(error))
    ways = [(form, cold, shuffle) for form in args.forms
            for cold in (True, False) for shuffle in (False, True)]
    found = {way: [] for way in ways}
    for turn in range(args.repeats):
        for way in ways:
            form, cold, shuffle = way
            path = paths[form]
            try:
                found[way].append(measure(form, path, cold, shuffle, turn))
            except (tf.errors.OpError, lmdb.Error, OSError) as error:
                fail(damage(path, error))
    # Distributed: one report, not one from each rank
    if COMM.rank != 0:
        return
    for way, passes in found.items():
        form, cold, shuffle = way
        seconds = [each[0] for each in passes]
        _, count, size, opens = passes[-1]
        rate = count / float(np.median(seconds))
        cache = "cold" if cold else "warm"
        order = "shuffled" if shuffle else "in order"
        records.write(
            lab="10_input",
            variant=form,
            ranks=COMM.size,
            step_s=seconds,
            rate=rate,
            rate_unit="images/s",
            metrics={"cache": cache, "order": order, "opens": opens,
                     "images": count, "bytes": size},
        )
        print(f"{form:9} {cache} {order:9} {opens:6,} opens "
              f"{rate:9,.0f} images/s", flush=True)


if __name__ == "__main__":
    main(settings())
