r"""How long does it take to average so many bytes over the ranks?

    scaleout run solutions/09_networks/exchange.py -n 2 -t 1

Nothing is trained here: arrays of 4 KiB to 64 MiB are averaged, by Horovod, or
with --framework torch as DDP does it. You will see milliseconds of each size,
after 10 seconds. There is nothing to fill in here.
"""

import argparse
import os
from collections.abc import Callable
from time import perf_counter

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import numpy as np
from common import is_there

# Distributed: this import also starts MPI
from mpi4py import MPI

from scaleout import data, records
from scaleout.kit.flags import Parser, one_or_more

BYTES = [2**12, 2**20, 2**22, 2**24, 2**26]


def settings() -> argparse.Namespace:
    """What was typed behind the name of this file."""
    parser = Parser(__doc__)
    parser.add_argument("--framework", choices=["tensorflow", "torch"],
                        default="tensorflow", help="by what (tensorflow)")
    parser.add_argument("--repeats", type=one_or_more,
                        default=2 if data.quick() else 9,
                        help="measurements of each size (9)")
    return parser.parse_args()


def averager(framework: str) -> tuple[Callable, Callable]:
    """What averages an array of numbers, and what ends it."""
    is_there(framework)
    if framework == "torch":
        import ddp
        import torch
        import torch.distributed as dist

        # Distributed: the ranks find each other
        dist.init_process_group("gloo")

        def end() -> None:
            MPI.Finalize()
            ddp.leave()

        # Distributed: the sum over all ranks
        return lambda x: dist.all_reduce(torch.from_numpy(x)), end

    import horovod.tensorflow as hvd
    import tensorflow as tf

    # Distributed: the ranks find each other
    hvd.init()
    # Distributed: the average over all ranks
    return lambda x: hvd.allreduce(tf.constant(x), name=f"{len(x)}"), int


def main(args: argparse.Namespace) -> None:
    # Distributed: everybody who takes part
    comm = MPI.COMM_WORLD
    average, end = averager(args.framework)
    seconds = {}
    # The first of each size is not counted: it finds memory and connections.
    for turn in range(-1, args.repeats):
        for size in BYTES:
            x = np.ones(size // 4, np.float32)
            # Distributed: all begin together
            comm.Barrier()
            start = perf_counter()
            average(x)
            # Distributed: the slowest rank counts
            took = comm.allreduce(perf_counter() - start, MPI.MAX)
            if turn >= 0:
                seconds.setdefault(size, []).append(took)
    # Distributed: one report, not one from each rank
    if comm.rank == 0:
        for size, each in seconds.items():
            print(f"{size / 1024:g} KiB: {1e3 * np.median(each):.2f} ms",
                  flush=True)
        records.write(lab="09_networks", variant="exchange", ranks=comm.size,
                      metrics={"bytes": list(seconds),
                               "seconds": list(seconds.values())})
    # Distributed: nobody leaves while another still works
    comm.Barrier()
    end()


if __name__ == "__main__":
    main(settings())
