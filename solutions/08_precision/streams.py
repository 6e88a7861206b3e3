"""One process with all cores, or one a core: who answers sooner, who more?

    mpirun -n 2 python -m mpi4py solutions/08_precision/streams.py --model m

Start it with a rank for each core, here two, none of them bound, and with the
path of a TFLite model (convert.py keeps some); it takes about 20 seconds. You
will see, for each batch, images/s, and within which time 50 and 99 of 100
requests were answered. The two ways take turns.
"""

import argparse
import os
import time
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import numpy as np

# Distributed: this import also starts MPI
from mpi4py import MPI
from rounds import SECONDS, in_rounds
from trained import Model, read

from scaleout import data, records
from scaleout.flags import Parser, one_or_more
from scaleout.waiting import sleep_until_all_are_here


def settings() -> argparse.Namespace:
    """What was typed behind the name of this file."""
    parser = Parser(__doc__)
    parser.add_argument("--model", type=Path, required=True,
                        help="a TFLite model")
    parser.add_argument("--batches", type=one_or_more, nargs="+",
                        default=[1, 64] if data.quick() else [1, 4, 16, 64],
                        help="images of a request (1 4 16 64)")
    parser.add_argument("--rounds", type=one_or_more,
                        default=1 if data.quick() else 7,
                        help="measurements of each (7)")
    return parser.parse_args()


def serve(comm: MPI.Comm, model: Model, x: np.ndarray) -> tuple:
    """Answers requests for some time: images/s of all ranks together, and
    the seconds of each request. A rank without a model waits."""
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
    return comm.allreduce(rate), sum(comm.allgather(waited), [])


def main(args: argparse.Namespace) -> None:
    # Distributed: all ranks of the job
    comm = MPI.COMM_WORLD
    content = read(args.model)
    for batch in args.batches:
        alone = Model(content, batch, comm.size) if comm.rank == 0 else None
        ways = {"one process": alone, "one a core": Model(content, batch, 1)}
        x = np.zeros([batch, *ways["one a core"].into["shape"][1:]],
                     ways["one a core"].into["dtype"])
        took = {way: [] for way in ways}

        def measure(way, took=took, ways=ways, x=x):
            rate, waited = serve(comm, ways[way], x)
            took[way] += waited
            return rate

        measure("one a core")  # not counted
        took["one a core"].clear()
        rows = in_rounds({way: way for way in ways}, args.rounds, "images/s",
                         measure)
        # Distributed: one report, not one from each rank
        if comm.rank == 0:
            report(comm.size, batch, rows, took)


def report(ranks: int, batch: int, rows: list, took: dict) -> None:
    """A line for each way, and one record."""
    found = {way: {"ms_50": 1e3 * float(np.percentile(times, 50)),
                   "ms_99": 1e3 * float(np.percentile(times, 99)),
                   "requests": len(times)} for way, times in took.items()}
    records.write(lab="08_precision", variant=f"streams, batch {batch}",
                  ranks=ranks, batch_per_rank=batch,
                  metrics={"part": "streams", "batch": batch, "runs": rows,
                           "took": found})
    for way, each in found.items():
        rate = np.median([row["value"] for row in rows
                          if row["variant"] == way])
        print(f"batch {batch:3} {way:12} {rate:8,.0f} images/s  50 % within "
              f"{each['ms_50']:7.2f} ms, 99 % within {each['ms_99']:7.2f} ms",
              flush=True)


if __name__ == "__main__":
    main(settings())
