"""All ranks read from one file system: how long does an epoch take to read?

    mpirun -n 4 python -m mpi4py labs/10_input/shared.py

Its server needs so long to open a file, and reads the bytes from one data
server or from several at once; you say how fast. The images lie there as a
file each, or in 8 shards, or each node copies the shards once to a disk of its
own. Ranks stand in for nodes here. You will see seconds, opens and bytes,
beside what opens x delay + bytes / (data servers x bandwidth) predicts. It
takes 40 seconds.
"""

import argparse
import hashlib
import shutil
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from crops import crops

# Distributed: this import also starts MPI
from mpi4py import MPI
from server import SharedFiles

from scaleout import ScaleoutError, data, records
from scaleout.flags import Parser, above_zero, one_or_more, refuse
from scaleout.waiting import sleep_until_all_are_here

IMAGES = 600
HERE = Path(__file__).resolve().parent


def settings() -> argparse.Namespace:
    """What was typed behind the name of this file."""
    quick = data.quick()
    parser = Parser(__doc__)
    parser.add_argument("--delay-ms", type=above_zero,
                        default=1.0 if quick else 2.0,
                        help="milliseconds to open a file (2)")
    parser.add_argument("--mb-per-s", type=above_zero, default=5.0,
                        help="of each data server (5)")
    parser.add_argument("--data-servers", nargs="+", type=one_or_more,
                        default=[1, 10],
                        help="over which each file is striped (1 and 10)")
    parser.add_argument("--ranks-per-node", type=one_or_more, default=2,
                        help="ranks that share a node's disk (2)")
    parser.add_argument("--rounds", type=one_or_more,
                        default=1 if quick else 3,
                        help="of everything, in turns (3)")
    return parser.parse_args()


def images_in(shard: bytes) -> list:
    """The records of a TFRecord: a length, its check, the record, its own."""
    found = []
    at = 0
    while at < len(shard):
        (length,) = struct.unpack_from("<Q", shard, at)
        found.append(shard[at + 12:at + 12 + length])
        at += 12 + length + 4
    return found


def stage(shared: SharedFiles, shards: list, folder: Path,
          known: list) -> None:
    """Copies the shards to this node's disk, and checks each of them."""
    for path, wanted in zip(shards, known, strict=True):
        found = shared.read(path)
        part = folder / "part"
        part.write_bytes(found)
        # What was written is read again: a full or broken disk shows here.
        if hashlib.sha256(part.read_bytes()).hexdigest() != wanted:
            raise ScaleoutError(
                f"{Path(path).name} did not arrive as it was sent: remove "
                f"{folder}, look whether its disk is full, and start again.")
        part.rename(folder / Path(path).name)


class Reader:
    """One rank's part of an epoch, in each way."""

    def __init__(self, shared: SharedFiles, ranks_per_node: int) -> None:
        self.shared = shared
        # Distributed: all ranks of the job
        self.comm = MPI.COMM_WORLD
        rank = self.comm.rank
        # Distributed: the ranks of one node; on a cluster
        # comm.Split_type(MPI.COMM_TYPE_SHARED) finds them
        self.node = self.comm.Split(rank // ranks_per_node, rank)
        self.files = sorted(map(str, crops("files", IMAGES).iterdir()))
        packed = crops("tfrecord", IMAGES)
        self.shards = sorted(map(str, packed.iterdir()))
        self.known = [hashlib.sha256(Path(each).read_bytes()).hexdigest()
                      for each in self.shards]
        self.disk = None

    def one_file_per_image(self, readers: int) -> int:
        """Images that this rank has read."""
        # Distributed: the images of this rank
        mine = self.files[self.comm.rank::readers]
        if self.comm.rank >= readers:
            return 0
        return len([self.shared.read(path) for path in mine])

    def from_shards(self, readers: int) -> int:
        """As many, with an open for each shard."""
        # Distributed: the shards of this rank
        mine = self.shards[self.comm.rank::readers]
        return sum(len(images_in(self.shared.read(path))) for path in mine)

    def staged_first(self, readers: int) -> int:
        """A copy on each node, and an epoch from it."""
        # Distributed: one rank of a node copies, the others wait for it
        if self.node.rank == 0:
            self.disk = Path(tempfile.mkdtemp(prefix="node-"))
            stage(self.shared, self.shards, self.disk, self.known)
        # Distributed: where the others of this node find it
        self.disk = self.node.bcast(self.disk, root=0)
        return self.staged(readers)

    def staged(self, readers: int) -> int:
        """Every later epoch: the server has nothing to do."""
        # Distributed: the shards of this rank
        mine = self.shards[self.comm.rank::readers]
        return sum(len(images_in((self.disk / Path(path).name).read_bytes()))
                   for path in mine)

    def remove(self) -> None:
        """What was copied."""
        # Distributed: nobody reads any more
        self.node.Barrier()
        if self.node.rank == 0 and self.disk is not None:
            shutil.rmtree(self.disk, ignore_errors=True)
        self.disk = None


def measure(reader: Reader, way: str, readers: int) -> tuple:
    """Seconds of the slowest rank; opens and bytes that the server served."""
    comm = reader.comm
    before = reader.shared.served()
    # Distributed: all start together
    comm.Barrier()
    start = time.perf_counter()
    images = getattr(reader, way)(readers)
    mine_s = time.perf_counter() - start
    # Distributed: a rank that waits sleeps, and leaves the cores to others
    sleep_until_all_are_here(comm)
    # Distributed: the slowest rank counts
    seconds = comm.allreduce(mine_s, op=MPI.MAX)
    # Distributed: each image was read by exactly one rank
    assert comm.allreduce(images) == len(reader.files)
    after = reader.shared.served()
    return seconds, after[0] - before[0], after[1] - before[1]


def main(args: argparse.Namespace, shared: SharedFiles) -> None:
    # Distributed: all ranks of the job
    comm = MPI.COMM_WORLD
    reader = Reader(shared, args.ranks_per_node)
    ways = [("one_file_per_image", count) for count in (1, 2, 4)
            if count < comm.size]
    ways += [(way, comm.size) for way in ("one_file_per_image", "from_shards",
                                          "staged_first", "staged")]
    found = {}
    for _ in range(args.rounds):
        for servers in args.data_servers:
            # Distributed: nobody reads while one rank changes the speed
            comm.Barrier()
            if comm.rank == 0:
                shared.as_fast_as(args.delay_ms / 1e3,
                                  servers * args.mb_per_s * 1e6)
            for way, readers in ways:
                found.setdefault((way, readers, servers), []).append(
                    measure(reader, way, readers))
            reader.remove()
    # Distributed: one report, not one from each rank
    if comm.rank == 0:
        for point, turns in found.items():
            report(point, turns, len(reader.files), args)


def report(point: tuple, turns: list, images: int,
           args: argparse.Namespace) -> None:
    """A line and a record."""
    way, readers, servers = point
    way = way.replace("_", " ")
    seconds = [each[0] for each in turns]
    _, opens, size = turns[0]
    middle = float(np.median(seconds))
    bytes_per_s = servers * args.mb_per_s * 1e6
    model_s = opens * args.delay_ms / 1e3 + size / bytes_per_s
    records.write(
        lab="10_input", variant=way, ranks=readers, step_s=seconds,
        rate=images / middle, rate_unit="images/s",
        metrics={"opens": opens, "bytes": size, "delay_ms": args.delay_ms,
                 "mb_per_s": args.mb_per_s, "data_servers": servers,
                 "model_s": model_s},
    )
    print(f"{way:18} {readers} readers {servers:3} data servers: "
          f"{opens:4} opens, {size / 1e6:5.1f} MB, {middle:6.3f} s, "
          f"predicted {model_s:6.3f} s", flush=True)


def start_server(readers: int, folder: str) -> subprocess.Popen:
    """The process that all ranks ask."""
    place = f"{folder}/server"
    code = f"import server; server.serve({place!r}, {readers})"
    process = subprocess.Popen([sys.executable, "-c", code], cwd=HERE,
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    process.stdout.readline()
    return process


if __name__ == "__main__":
    asked = settings()
    # Distributed: all ranks of the job
    world = MPI.COMM_WORLD
    if world.size > 8:
        refuse("There are 8 shards: take 8 ranks at most.")
    if world.Split_type(MPI.COMM_TYPE_SHARED).size < world.size:
        refuse("The server has no address for another machine: take ranks of "
               "one machine.")
    try:
        # Distributed: one rank writes them, the others wait until it has
        crops("tfrecord", IMAGES)
    except ScaleoutError as error:
        refuse(str(error))
    with tempfile.TemporaryDirectory(prefix="shared-") as own:
        serving = start_server(world.size, own) if world.rank == 0 else None
        # Distributed: all ask the same server
        where = world.bcast(f"{own}/server", root=0)
        main(asked, SharedFiles(where))
        # Distributed: the server's folder goes when nobody needs it any more
        world.Barrier()
        if serving:
            serving.stdin.close()
            serving.wait()
