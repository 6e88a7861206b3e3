"""What the scripts of 11_parallelism measure alike: right, how fast, how much.

They import this; there is nothing to fill in here.
"""

import argparse
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np

# Distributed: this import also starts MPI
from mpi4py import MPI
from network import layer

from scaleout import data, records
from scaleout.flags import Parser, one_or_more

COUNTED = ["Allreduce", "allreduce", "Reduce", "reduce", "Bcast", "bcast",
           "Allgather", "Allgatherv", "allgather", "Gather", "gather",
           "Reduce_scatter", "Send", "send", "Isend", "isend"]


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


class Counted(MPI.Intracomm):
    """A communicator that counts the bytes that its calls are given."""

    def __init__(self, comm: MPI.Intracomm) -> None:
        self.given = {}
        self.requests = []

    def Recv(self, buf: object, source: int = MPI.ANY_SOURCE,
             *args: object, **named: object) -> None:
        self.neighbour(source)
        super().Recv(buf, source, *args, **named)

    def neighbour(self, other: int) -> None:
        """Ends the job in one sentence if there is no such rank."""
        if other >= self.size:
            raise SystemExit(
                f"Rank {self.rank} was to exchange a message with rank "
                f"{other}, but here are ranks 0 to {self.size - 1}: the last "
                "stage has none after it.")


def counted(name: str) -> Callable:
    """One call of a Counted communicator."""

    def call(self, *args, **named):
        values = [value[0] if isinstance(value, list) else value
                  for value in args]
        size = max(getattr(value, "nbytes", 8) for value in values)
        if "end" in name:
            self.neighbour(named["dest"] if "dest" in named else args[1])
        if name == "Reduce_scatter":
            fits(self.rank, *args, **named)
        self.given[name] = self.given.get(name, 0) + size
        result = getattr(MPI.Intracomm, name)(self, *args, **named)
        if isinstance(result, MPI.Request):
            self.requests.append(result)
        return result

    return call


def fits(rank: int, sendbuf: object, recvbuf: np.ndarray,
         recvcounts: list, op: MPI.Op = MPI.SUM) -> None:
    """Ends the job in one sentence if a shard does not fit its array."""
    if len(recvbuf) != recvcounts[rank]:
        raise SystemExit(
            f"Reduce_scatter brings rank {rank} its shard of "
            f"{recvcounts[rank]} numbers, and the array for it has "
            f"{len(recvbuf)}: make one as long as g[mine].")


for name in COUNTED:
    setattr(Counted, name, counted(name))


class Timeline(list):
    """What a stage did: [what, micro-batch, start, end, how many it kept]."""

    @contextmanager
    def work(self, what: str, m: int, kept: dict) -> Iterator[None]:
        """Notes what is done inside of it."""
        start = MPI.Wtime()
        yield
        self.append([what, m, start, MPI.Wtime(), len(kept)])


def split(way: str, comm: MPI.Intracomm, args: argparse.Namespace, *,
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
               given=dict(getattr(comm, "given", {})), **about)
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
    books.note(logs=logs[1:], unreceived=unreceived(comm),
               unfinished=unfinished(comm))
    # Distributed: one record of all ranks; the slowest of them counts
    record = books.write(variant=way, loss=loss, serial_loss=alone[0],
                         off=worst, peak_bytes=peak, **vars(args))
    # Distributed: one line, not one from each rank
    if world.rank == 0:
        close = 1e-10 if args.dtype == "float64" else 1e-3
        says = "as serial" if worst <= close else "WRONG    "
        ms = 1e3 * np.median(record["step_s"])
        print(f"{way:9} {says} {ms:9.2f} ms a step {peak / 2**20:8.2f} MiB",
              flush=True)


def compare(arrays: list, pieces: list, wanted: list) -> tuple:
    """How far each piece is off, and how many times too large it is."""
    off = []
    factors = []
    for piece, (k, part) in zip(arrays, pieces, strict=True):
        right = wanted[k][part]
        off.append(float(np.abs(piece - right).max()))
        factors.append(float(np.vdot(piece, right) / np.vdot(right, right)))
    return off, factors


def unreceived(comm: MPI.Comm) -> int:
    """How many messages to this rank nobody received.

    They are received here: MPI cannot end well while one is on its way.
    """
    # Distributed: whoever is here has sent all that it sends
    comm.Barrier()
    about = MPI.Status()
    count = 0
    while comm.Iprobe(status=about):
        comm.Recv(bytearray(about.Get_count(MPI.BYTE)), about.Get_source())
        count += 1
    return count


def unfinished(comm: MPI.Comm) -> int:
    """How many requests nobody waited for."""
    left = [request for request in getattr(comm, "requests", [])
            if request != MPI.REQUEST_NULL]
    # Distributed: they end here, as MPI cannot end well before them
    MPI.Request.Waitall(left)
    return len(left)
