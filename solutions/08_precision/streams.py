"""One process with all cores, or one for each core: which answers sooner?

    mpirun -n 2 python -m mpi4py solutions/08_precision/streams.py --model m

Start it with a rank for each core, here two, none of them bound, and with the
path of a TFLite model (convert.py keeps some); it takes two minutes. You will
see, for each batch, how many images a second each way can answer. Then
requests come when they like, more and more of them, and you will see how long
they take, the wait in the queue included. The two ways take turns, and in
each turn the same requests come.
"""

import argparse
import os
import time
from functools import partial
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import numpy as np

# Distributed: this import also starts MPI
from mpi4py import MPI
from rounds import SECONDS, in_rounds
from trained import Model, read

from scaleout import data, records
from scaleout.kit.flags import Parser, one_or_more
from scaleout.kit.waiting import sleep_until_all_are_here

REQUEST = 16  # images of a request that comes when it likes
STREAM_S = 3 * SECONDS  # for which requests come, until it is the other's turn


def settings() -> argparse.Namespace:
    """What was typed behind the name of this file."""
    parser = Parser(__doc__)
    parser.add_argument("--model", type=Path, required=True,
                        help="a TFLite model")
    parser.add_argument("--batches", type=one_or_more, nargs="+",
                        default=[1, 64] if data.quick() else [1, 4, 16, 64],
                        help="images of a request (1 4 16 64)")
    parser.add_argument("--rounds", type=one_or_more,
                        default=1 if data.quick() else 5,
                        help="measurements of each (5)")
    parser.add_argument("--turns", type=one_or_more,
                        default=1 if data.quick() else 20,
                        help="of each way at each load (20)")
    parser.add_argument("--loads", type=one_or_more, nargs="+",
                        default=[50] if data.quick() else [30, 55, 80],
                        help="requests that come, in percent of what the "
                        "better way can answer (30 55 80)")
    return parser.parse_args()


def serve(comm: MPI.Comm, model: Model, x: np.ndarray) -> float:
    """Answers one request after the other for some time: images/s of all
    ranks together. A rank without a model waits."""
    waited = []
    # Distributed: all begin together
    sleep_until_all_are_here(comm)
    if model is not None:
        end = time.perf_counter() + 2 * SECONDS
        while time.perf_counter() < end or len(waited) < 3:
            start = time.perf_counter()
            model(x)
            waited.append(time.perf_counter() - start)
    rate = len(x) * len(waited) / sum(waited) if waited else 0.0
    sleep_until_all_are_here(comm)
    # Distributed: the streams are independent, so their rates add up
    return comm.allreduce(rate)


def answer(comm: MPI.Comm, model: Model, x: np.ndarray,
           arrivals: np.ndarray) -> tuple:
    """Answers requests that come at these seconds, (n,), in their order.

    Returns, of all ranks, the seconds from each arrival to its answer, and
    the longest queue.
    """
    took = []
    longest = 0
    # Distributed: all begin together
    sleep_until_all_are_here(comm)
    begin = time.perf_counter()
    for arrival in arrivals:
        early = begin + arrival - time.perf_counter()
        if early > 0:
            time.sleep(early)
        # Those that are here and wait, without the one that is next.
        here = np.searchsorted(arrivals, time.perf_counter() - begin)
        longest = max(longest, int(here) - len(took) - 1)
        model(x)
        took.append(time.perf_counter() - begin - arrival)
    sleep_until_all_are_here(comm)
    # Distributed: the requests of all streams count alike
    return sum(comm.allgather(took), []), comm.allreduce(longest, MPI.MAX)


def come(per_s: float, seed: int) -> np.ndarray:
    """When requests come, in seconds, (n,): each whenever it likes."""
    rng = np.random.default_rng(seed)
    # Never so few that one of them is 1 % of all.
    count = max(20 if data.quick() else 100, int(per_s * STREAM_S))
    return np.cumsum(rng.exponential(1 / per_s, count))


def main(args: argparse.Namespace) -> None:
    # Distributed: all ranks of the job
    comm = MPI.COMM_WORLD
    content = read(args.model)
    for batch in sorted({*args.batches, REQUEST}):
        alone = Model(content, batch, comm.size) if comm.rank == 0 else None
        ways = {"one process": alone, "one per core": Model(content, batch, 1)}
        x = np.zeros([batch, *ways["one per core"].into["shape"][1:]],
                     ways["one per core"].into["dtype"])
        serve(comm, ways["one per core"], x)  # not counted
        rows = in_rounds(ways, args.rounds, "images/s",
                         partial(serve, comm, x=x))
        # Distributed: the rates are the same on all ranks
        best = max(typical(rows, way) for way in ways)
        if comm.rank == 0:
            report(comm.size, batch, rows)
        if batch == REQUEST:
            for load in args.loads:
                per_s = load / 100 * best / batch
                under_load(comm, ways, x, load, per_s, args.turns)


def under_load(comm: MPI.Comm, ways: dict, x: np.ndarray, load: int,
               per_s: float, rounds: int) -> None:
    """How long requests take that come at this rate, by each way."""
    tried = []

    def measure(way):
        # The same arrivals for all of a round: one process takes them all,
        # the ranks take them in turns.
        arrivals = come(per_s, seed=len(tried) // (len(ways) + 1))
        if way == "one process":
            mine = arrivals if comm.rank == 0 else arrivals[:0]
        else:
            # Distributed: dealt like cards, each rank with its own queue
            mine = arrivals[comm.rank::comm.size]
        took, longest = answer(comm, ways[way], x, mine)
        half, most = 1e3 * np.percentile(took, [50, 95])
        tried.append({"way": way, "longest": longest, "ms_50": float(half),
                      "ms_95": float(most)})
        return tried[-1]["ms_95"]

    rows = in_rounds({way: way for way in ways}, rounds, "ms", measure)
    # Distributed: one report, not one from each rank
    if comm.rank == 0:
        half = [{**row, "value": one["ms_50"]}
                for row, one in zip(rows, tried, strict=True)]
        records.write(lab="08_precision", variant=f"arrivals, {load} %",
                      ranks=comm.size, batch_per_rank=len(x),
                      metrics={"part": "arrivals", "batch": len(x),
                               "load": load, "per_s": per_s, "half": half,
                               "runs": rows, "tried": tried})
        for way in ways:
            longest = max(t["longest"] for t in tried if t["way"] == way)
            print(f"{per_s:8,.0f} requests/s, {way:12} 95 % within "
                  f"{typical(rows, way):7.2f} ms, longest queue {longest}",
                  flush=True)


def typical(rows: list, way: str) -> float:
    """The median over the rounds."""
    return float(np.median([row["value"] for row in rows
                            if row["variant"] == way]))


def report(ranks: int, batch: int, rows: list) -> None:
    """A line for each way, and one record."""
    records.write(lab="08_precision", variant=f"streams, batch {batch}",
                  ranks=ranks, batch_per_rank=batch,
                  metrics={"part": "streams", "batch": batch, "runs": rows})
    for way in dict.fromkeys(row["variant"] for row in rows):
        print(f"batch {batch:3} {way:12} {typical(rows, way):8,.0f} images/s",
              flush=True)


if __name__ == "__main__":
    main(settings())
