"""All ranks read from one file system: how long does an epoch take to read?

    mpirun -n 4 python -m mpi4py solutions/10_input/shared.py

Its metadata server needs so long to open a file. Its data servers, over which
each file is striped, read so many bytes in a second. The images lie there as a
file each, or in 8 shards, or each node copies the shards once to a disk of its
own. Each pair of ranks stands in for a node (--ranks-per-node). You will see
seconds, opens and bytes, and what the formula predicts. It takes a minute.
"""

import argparse
import fcntl
import hashlib
import os
import struct
import tempfile
import time
import zlib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
from crops import SHARDS, crops

# Distributed: this import also starts MPI
from mpi4py import MPI

from scaleout import ScaleoutError, data, records
from scaleout.kit.flags import Parser, above_zero, one_or_more, refuse
from scaleout.kit.waiting import sleep_until_all_are_here

IMAGES = 600
STRIPE = 12 * 1024  # bytes: no image is larger


class FileSystem:
    """A metadata server and some data servers: each is a lock file.

    Whoever holds its lock is served, and the others wait: `open_s` for an
    open, bytes / `bytes_per_s` for bytes. The stripes of a file are dealt to
    the data servers like cards, and read from all of them at the same time.
    """

    def __init__(self, folder: str, data_servers: int, open_s: float,
                 bytes_per_s: float) -> None:
        self.locks = [os.open(f"{folder}/server-{n}", os.O_CREAT | os.O_RDWR)
                      for n in range(1 + data_servers)]
        self.data_servers = data_servers
        self.open_s = open_s
        self.bytes_per_s = bytes_per_s
        self.threads = ThreadPoolExecutor(data_servers)
        self.opens = 0
        self.bytes = 0

    def serve(self, server: int, seconds: float) -> None:
        """Waits for this server, and then for what it does."""
        fcntl.flock(self.locks[server], fcntl.LOCK_EX)
        time.sleep(seconds)
        fcntl.flock(self.locks[server], fcntl.LOCK_UN)

    def read(self, path: Path) -> bytes:
        """A whole file: an open, and its bytes."""
        self.serve(0, self.open_s)
        found = path.read_bytes()
        sizes = np.zeros(self.data_servers)
        first = zlib.crc32(path.name.encode())
        for n, at in enumerate(range(0, len(found), STRIPE)):
            server = (first + n) % self.data_servers
            sizes[server] += len(found[at:at + STRIPE])
        list(self.threads.map(
            lambda n: self.serve(1 + n, sizes[n] / self.bytes_per_s),
            np.flatnonzero(sizes)))
        self.opens += 1
        self.bytes += len(found)
        return found

    def close(self) -> None:
        self.threads.shutdown()
        for lock in self.locks:
            os.close(lock)


def settings() -> argparse.Namespace:
    """What was typed behind the name of this file."""
    quick = data.quick()
    parser = Parser(__doc__)
    parser.add_argument("--delay-ms", type=above_zero, default=3.0,
                        help="milliseconds to open a file (3)")
    parser.add_argument("--mb-per-s", type=above_zero, default=2.0,
                        help="of each data server (2)")
    parser.add_argument("--data-servers", nargs="+", type=one_or_more,
                        default=[1, 10],
                        help="over which each file is striped (1 and 10)")
    parser.add_argument("--ranks-per-node", type=one_or_more, default=2,
                        help="ranks that share a node's disk (2)")
    parser.add_argument("--rounds", type=one_or_more,
                        default=1 if quick else 3,
                        help="of everything, in turns (3)")
    return parser.parse_args()


def images_in(shard: bytes) -> int:
    """The records of a TFRecord: a length, its check, the record, its own."""
    found = 0
    at = 0
    while at < len(shard):
        (length,) = struct.unpack_from("<Q", shard, at)
        found += 1
        at += 12 + length + 4
    return found


def stage(shared: FileSystem, shards: list, known: list,
          disk: Path) -> None:
    """Copies the shards to this node's disk, and checks each of them."""
    for path, wanted in zip(shards, known, strict=True):
        copy = disk / path.name
        copy.write_bytes(shared.read(path))
        # What was written is read again: a full or broken disk shows here.
        if hashlib.sha256(copy.read_bytes()).hexdigest() != wanted:
            raise ScaleoutError(
                f"{copy} did not arrive as it was sent: look whether its disk "
                "is full, and start again.")


class Reader:
    """One rank's part of an epoch, in each way; how many images it read."""

    def __init__(self, ranks_per_node: int, disks: str) -> None:
        # Distributed: all ranks of the job
        self.comm = MPI.COMM_WORLD
        rank = self.comm.rank
        # Distributed: the ranks of one node; on a cluster
        # comm.Split_type(MPI.COMM_TYPE_SHARED) finds them
        self.node = self.comm.Split(rank // ranks_per_node, rank)
        self.disk = Path(disks) / f"node-{rank // ranks_per_node}"
        self.files = sorted(crops("files", IMAGES).iterdir())
        self.shards = sorted(crops("tfrecord", IMAGES).iterdir())
        self.known = [hashlib.sha256(each.read_bytes()).hexdigest()
                      for each in self.shards]

    def one_file_per_image(self, shared: FileSystem, readers: int) -> int:
        # Distributed: the images of this rank
        mine = self.files[self.comm.rank::readers]
        if self.comm.rank >= readers:
            return 0
        return len([shared.read(path) for path in mine])

    def from_shards(self, shared: FileSystem, readers: int) -> int:
        # Distributed: the shards of this rank
        mine = self.shards[self.comm.rank::readers]
        return sum(images_in(shared.read(path)) for path in mine)

    def staged_first(self, shared: FileSystem, readers: int) -> int:
        # Distributed: one rank of a node copies, the others wait for it
        if self.node.rank == 0:
            self.disk.mkdir(exist_ok=True)
            stage(shared, self.shards, self.known, self.disk)
        self.node.Barrier()
        return self.staged(shared, readers)

    def staged(self, shared: FileSystem, readers: int) -> int:
        # Distributed: the shards of this rank
        mine = self.shards[self.comm.rank::readers]
        return sum(images_in((self.disk / path.name).read_bytes())
                   for path in mine)


def measure(reader: Reader, way: str, readers: int,
            shared: FileSystem) -> dict:
    """Seconds of the slowest rank; opens and bytes that were served."""
    comm = reader.comm
    before = shared.opens, shared.bytes
    # Distributed: all start together
    comm.Barrier()
    start = time.perf_counter()
    images = getattr(reader, way)(shared, readers)
    mine_s = time.perf_counter() - start
    # Distributed: a rank that waits sleeps, and leaves the cores to others
    sleep_until_all_are_here(comm)
    # Distributed: each image was read by exactly one rank
    assert comm.allreduce(images) == IMAGES
    # Distributed: the slowest rank, and what all were served
    return {"seconds": comm.allreduce(mine_s, op=MPI.MAX),
            "opens": comm.allreduce(shared.opens - before[0]),
            "bytes": comm.allreduce(shared.bytes - before[1])}


def main(args: argparse.Namespace, folder: str) -> None:
    # Distributed: all ranks of the job
    comm = MPI.COMM_WORLD
    reader = Reader(args.ranks_per_node, folder)
    ways = [("one_file_per_image", count) for count in (1, 2, 4)
            if count < comm.size]
    ways += [(way, comm.size) for way in ("one_file_per_image", "from_shards",
                                          "staged_first", "staged")]
    found = {}
    for _ in range(args.rounds):
        for servers in args.data_servers:
            shared = FileSystem(folder, servers, args.delay_ms / 1e3,
                                args.mb_per_s * 1e6)
            for way, readers in ways:
                found.setdefault((way, readers, servers), []).append(
                    measure(reader, way, readers, shared))
            shared.close()
    # Distributed: one report, not one from each rank
    if comm.rank == 0:
        for (way, readers, servers), turns in found.items():
            report(way.replace("_", " "), readers, servers, turns, args)


def report(way: str, readers: int, servers: int, turns: list,
           args: argparse.Namespace) -> None:
    """A line and a record."""
    seconds = [each["seconds"] for each in turns]
    opens, size = turns[0]["opens"], turns[0]["bytes"]
    opens_s = opens * args.delay_ms / 1e3
    bytes_s = size / (args.mb_per_s * 1e6)
    # One reader of images asks for an open, then one data server for all of
    # the file. Several keep all servers at work: the slower kind is the limit.
    model_s = (opens_s + bytes_s if readers == 1
               else max(opens_s, bytes_s / servers))
    middle = float(np.median(seconds))
    records.write(
        lab="10_input", variant=way, ranks=readers, step_s=seconds,
        rate=IMAGES / middle, rate_unit="images/s",
        metrics={"opens": opens, "bytes": size, "data_servers": servers,
                 "model_s": model_s})
    print(f"{way:18} {readers} readers {servers:3} data servers: "
          f"{opens:4} opens, {size / 1e6:5.1f} MB, {middle:6.3f} s, "
          f"predicted {model_s:6.3f} s", flush=True)


if __name__ == "__main__":
    asked = settings()
    # Distributed: all ranks of the job
    world = MPI.COMM_WORLD
    if world.size > SHARDS:
        refuse(f"There are {SHARDS} shards: take {SHARDS} ranks at most.")
    if world.Split_type(MPI.COMM_TYPE_SHARED).size < world.size:
        refuse("The lock files are of one machine: take ranks of one.")
    try:
        # Distributed: one rank writes them, the others wait until it has
        crops("tfrecord", IMAGES)
    except ScaleoutError as error:
        refuse(str(error))
    with tempfile.TemporaryDirectory(prefix="shared-") as own:
        # Distributed: all ask the same servers
        main(asked, world.bcast(own, root=0))
        # Distributed: the folder goes when nobody needs it any more
        world.Barrier()
