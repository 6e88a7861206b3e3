"""What the scripts of 11_parallelism share: sizes, comparing, one report.

They import this; there is nothing to fill in here.
"""

import argparse
import tracemalloc
from collections.abc import Callable

import numpy as np

# Distributed: this import also starts MPI
from mpi4py import MPI
from network import adam, layer, serial
from schedules import SCHEDULES

from scaleout import data, records
from scaleout.flags import Parser, one_or_more, refuse

WAYS = ["data", "tensor", "pipeline", "hybrid", "adam", "sharded"]
WITH_ADAM = ["adam", "sharded"]  # which give weights, not gradients
STEPS_OF_ADAM = 3  # after which its weights are compared


def settings(about: str) -> argparse.Namespace:
    """What was typed behind the name of runme.py."""
    parser = Parser(about)
    parser.add_argument("--way", choices=["all", *WAYS], default="all",
                        help="one way, or all (all)")
    parser.add_argument("--layers", type=one_or_more, default=8,
                        help="layers of the network (8)")
    parser.add_argument("--width", type=one_or_more, default=128,
                        help="numbers that a layer takes and gives (128)")
    parser.add_argument("--batch", type=one_or_more, default=128,
                        help="rows of the whole batch (128)")
    parser.add_argument("--micro-batches", type=one_or_more, default=4,
                        help="into which a pipeline cuts its rows (4)")
    parser.add_argument("--schedule", choices=list(SCHEDULES),
                        default="gpipe", help="of the pipeline (gpipe)")
    parser.add_argument("--steps", type=one_or_more,
                        default=3 if data.quick() else 10,
                        help="timed steps (10)")
    parser.add_argument("--dtype", choices=["float32", "float64"],
                        default="float64", help="of all numbers (float64)")
    args = parser.parse_args()
    if data.quick():
        args.width = min(args.width, 256)
        args.batch = min(args.batch, 256)
    return args


def stages_of(way: str, ranks: int) -> int:
    """Into how many parts a way cuts the row of layers."""
    if way == "pipeline":
        return ranks
    return 2 if way == "hybrid" and ranks % 2 == 0 else 1


def check_sizes(way: str, ranks: int, args: argparse.Namespace) -> None:
    """What cannot be split so is said in one sentence."""
    stages = stages_of(way, ranks)
    if stages > args.layers:
        refuse(f"{way}: {stages} stages are more than {args.layers} layers.")
    parts = ranks // stages * args.micro_batches
    if way in ("pipeline", "hybrid") and args.batch % parts:
        refuse(f"{way}: a batch of {args.batch} does not divide into {parts} "
               "micro-batches of one size.")
    if way == "tensor" and args.layers % 2:
        refuse(f"tensor: layers go in pairs, and {args.layers} is odd.")
    if way == "tensor" and ranks > args.width:
        refuse(f"tensor: {args.width} columns are fewer than {ranks} ranks.")


def pieces(way: str, rank: int, ranks: int,
           args: argparse.Namespace) -> list[tuple]:
    """What this rank keeps: (layer, which rows or columns) for each piece."""
    everything = slice(None)
    if way == "tensor":
        mine = data.shard(args.width, rank, ranks)
        columns = (everything, mine)
        return [(k, mine if k % 2 else columns) for k in range(args.layers)]
    stages = stages_of(way, ranks)
    layers = range(args.layers)[data.shard(args.layers, rank % stages, stages)]
    return [(k, everything) for k in layers]


def whole_network(way: str, x: np.ndarray, y: np.ndarray,
                  args: argparse.Namespace) -> tuple:
    """What one rank alone finds: the loss, and gradients or new weights."""
    weights = [layer(k, args.width, args.dtype) for k in range(args.layers)]
    loss, gradients = serial(weights, x, y)
    if way not in WITH_ADAM:
        return loss, gradients
    states = [{} for _ in weights]
    for _ in range(STEPS_OF_ADAM):
        loss, gradients = serial(weights, x, y)
        for w, g, state in zip(weights, gradients, states, strict=True):
            adam(w, g, state)
    return loss, weights


def compare(found: list, where: list, wanted: list) -> dict:
    """How far each piece is off, and how many times too large it is."""
    off = {}
    factor = {}
    for piece, (k, part) in zip(found, where, strict=True):
        right = wanted[k][part]
        off[k] = float(np.abs(piece - right).max())
        factor[k] = float(np.vdot(piece, right) / np.vdot(right, right))
    return {"layers": list(off), "off": list(off.values()),
            "factor": list(factor.values())}


def peak_bytes(work: Callable) -> tuple:
    """What work() returns, and the most memory that it held at once."""
    tracemalloc.start()
    result = work()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return result, peak


def timed(step: Callable, steps: int) -> tuple:
    """The seconds of each step on the rank that took longest, and what this
    rank did in each: rows of (what, micro-batch, start, end, kept)."""
    # Distributed: all ranks of the job
    comm = MPI.COMM_WORLD
    step_s = []
    logs = []
    for _ in range(1 + steps):
        # Distributed: all begin together
        comm.Barrier()
        begin = MPI.Wtime()
        log = step()[2]
        mine_s = MPI.Wtime() - begin
        logs.append([[what, m, start - begin, end - begin, kept]
                     for what, m, start, end, kept in log])
        # Distributed: the slowest rank counts
        step_s.append(comm.allreduce(mine_s, op=MPI.MAX))
    return step_s[1:], logs[1:]  # without the first, a warm-up


def left_over(comm: MPI.Comm) -> int:
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


def report(way: str, args: argparse.Namespace, step_s: list[float],
           loss: float, serial_loss: float, found: list[dict]) -> None:
    """One line and one record for a way."""
    off = max(max(each["off"]) for each in found)
    close = 1e-10 if args.dtype == "float64" else 1e-3
    peak = max(each["peak_bytes"] for each in found)
    records.write(
        lab="11_parallelism",
        variant=way,
        ranks=len(found),
        warmup_steps=1,
        step_s=step_s,
        metrics={
            "layers": args.layers,
            "width": args.width,
            "batch": args.batch,
            "micro_batches": args.micro_batches,
            "schedule": args.schedule,
            "dtype": args.dtype,
            "loss": loss,
            "serial_loss": serial_loss,
            "off": off,
            "peak_bytes": peak,
            "found": found,
        },
    )
    says = "as serial" if off <= close else "WRONG    "
    ms = 1e3 * np.median(step_s)
    print(f"{way:9} {says} {ms:9.2f} ms a step {peak / 2**20:8.2f} MiB",
          flush=True)
