"""What the scripts of 11_parallelism measure alike: right, how fast, how much.

They import this; there is nothing to fill in here.
"""

import argparse
import inspect
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np

# Distributed: this import also starts MPI
from mpi4py import MPI
from network import layer

from scaleout import data, records
from scaleout.kit.flags import Parser, one_or_more

TO_ALL = ["Allreduce", "allreduce", "Reduce", "reduce", "Bcast", "bcast",
          "Allgather", "Allgatherv", "allgather", "Reduce_scatter"]
TO_ONE = ["Send", "send", "Isend", "isend", "Recv"]


def sizes(docstring: str) -> Parser:
    """The flags that all ways of splitting have."""
    parser = Parser(docstring)
    parser.add_argument("--layers", type=one_or_more, default=8,
                        help="layers of the network (8)")
    parser.add_argument("--width", type=one_or_more, default=128,
                        help="numbers that a layer takes and gives (128)")
    parser.add_argument("--batch", type=one_or_more, default=128,
                        help="rows of the whole batch (128)")
    parser.add_argument("--steps", type=one_or_more,
                        default=3 if data.quick() else 10,
                        help="timed steps (10)")
    parser.add_argument("--dtype", choices=["float32", "float64"],
                        default="float64", help="of all numbers (float64)")
    return parser


def read(parser: Parser) -> argparse.Namespace:
    """What was typed behind the name of a script."""
    args = parser.parse_args()
    if data.quick():
        args.width = min(args.width, 256)
        args.batch = min(args.batch, 256)
    return args


def network(args: argparse.Namespace) -> list:
    """All weights: (width, width) each."""
    return [layer(k, args.width, args.dtype) for k in range(args.layers)]


class Watched(MPI.Intracomm):
    """A communicator that notes the bytes that its calls are given, and the
    requests that they return."""

    def __init__(self, comm: MPI.Intracomm) -> None:
        self.given = {}
        self.requests = []

    def left(self) -> tuple[int, int]:
        """How many messages to this rank nobody received, and how many
        requests nobody waited for. MPI cannot end well before they end."""
        # Distributed: whoever is here has sent all that it sends
        self.Barrier()
        about = MPI.Status()
        unreceived = 0
        while self.Iprobe(status=about):
            super().Recv(bytearray(about.Get_count(MPI.BYTE)),
                         about.Get_source())
            unreceived += 1
        dropped = [each for each in self.requests
                   if each != MPI.REQUEST_NULL]
        MPI.Request.Waitall(dropped)
        return unreceived, len(dropped)


def watched(name: str) -> Callable:
    """One call of a Watched communicator."""
    call = getattr(MPI.Intracomm, name)
    names = inspect.signature(call)

    def noted(self, *args, **named):
        given = names.bind(self, *args, **named).arguments
        buffers = [each[0] if isinstance(each, list | tuple) else each
                   for each in given.values()]
        size = max(getattr(each, "nbytes", 8) for each in buffers)
        other = given.get("dest", given.get("source", 0))
        if other >= self.size:
            raise SystemExit(
                f"Rank {self.rank} was to exchange a message with rank "
                f"{other}, but here are ranks 0 to {self.size - 1}: the "
                "last stage has none after it.")
        if given.get("recvcounts") is not None:
            shard, room = given["recvcounts"][self.rank], given["recvbuf"]
            if len(room) != shard:
                raise SystemExit(
                    f"Reduce_scatter brings rank {self.rank} its shard of "
                    f"{shard} numbers, and the array for it has "
                    f"{len(room)}: make one as long as g[mine].")
        self.given[name] = self.given.get(name, 0) + size
        result = call(self, *args, **named)
        if isinstance(result, MPI.Request):
            self.requests.append(result)
        return result

    return noted


for name in TO_ALL + TO_ONE:
    setattr(Watched, name, watched(name))


class Timeline(list):
    """What a stage did: [what, micro-batch, start, end, how many it kept]."""

    @contextmanager
    def work(self, what: str, m: int, kept: dict) -> Iterator[None]:
        """Notes what is done inside of it."""
        start = MPI.Wtime()
        yield
        self.append([what, m, start, MPI.Wtime(), len(kept)])


def split(way: str, comm: Watched, args: argparse.Namespace, *,
          pieces: list, step: Callable, alone: tuple, states: list = (),
          first_steps: int = 1, **about: object) -> None:
    """Measures one way of splitting: a line and a record.

    pieces: (layer, its rows or columns) of this rank.
    step: takes the weights of these pieces; gives this rank's part of the
    loss, an array for each piece, and for a pipeline a Timeline.
    alone: what one rank alone finds: the loss, and an array for each layer.
    states: what an optimizer keeps, once it has made its first step.
    about: what else this rank has to tell.
    """
    # Distributed: all ranks of the job; comm may have some of them
    world = MPI.COMM_WORLD
    books = records.Books("11_parallelism", world.rank, world.size, warmup=1)
    tracemalloc.start()
    weights = [layer(k, args.width, args.dtype)[part].copy()
               for k, part in pieces]
    for _ in range(first_steps):
        loss, arrays = step(weights)[:2]
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    kept = [np.size(part) for state in states for part in state.values()]
    off, factors = compare(arrays, pieces, alone[1])
    books.note(layers=[k for k, _ in pieces], off=off, factor=factors,
               state_bytes=sum(kept) * np.dtype(args.dtype).itemsize,
               given=dict(comm.given), **about)
    # Distributed: the loss is the sum of what each rank has of it
    loss = world.allreduce(loss)
    # Distributed: the rank that is furthest off, and the largest one
    worst = world.allreduce(max(off), op=MPI.MAX)
    peak = world.allreduce(peak, op=MPI.MAX)

    logs = []  # of a stage: what it did in each step, and when
    for _ in range(1 + args.steps):
        # Distributed: all begin together
        world.Barrier()
        begin = MPI.Wtime()
        with books.step():
            log = step(weights)[2:]
        rows = log[0] if log else ()
        logs.append([[what, m, start - begin, end - begin, count]
                     for what, m, start, end, count in rows])
    unreceived, unfinished = comm.left()
    books.note(logs=logs[1:], unreceived=unreceived, unfinished=unfinished)
    # Distributed: one record of all ranks; the slowest of them counts
    books.write(variant=way, loss=loss, serial_loss=alone[0], off=worst,
                peak_bytes=peak, **vars(args))
    # Distributed: one line, not one from each rank
    if world.rank == 0:
        close = 1e-10 if args.dtype == "float64" else 1e-3
        says = "as serial" if worst <= close else "WRONG    "
        print(f"{way:9} {says} {peak / 2**20:8.2f} MiB", flush=True)


def compare(arrays: list, pieces: list, wanted: list) -> tuple:
    """How far each piece is off, and how many times too large it is."""
    off = []
    factors = []
    for piece, (k, part) in zip(arrays, pieces, strict=True):
        right = wanted[k][part]
        off.append(float(np.abs(piece - right).max()))
        factors.append(float(np.vdot(piece, right) / np.vdot(right, right)))
    return off, factors
