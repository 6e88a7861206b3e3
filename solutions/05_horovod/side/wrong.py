"""Ranks that go wrong on purpose: they begin apart, or one stops too early.

    mpirun -n 2 python -m mpi4py solutions/05_horovod/side/wrong.py

Each rank trains one weight. You will see the weight of each rank after 30
steps. With --how uneven the last rank takes a step less, the others wait for
it, and Horovod ends the job after 20 seconds; the other ways take 5.
"""

import argparse
import os

# Distributed: a rank that waits in vain says so, and then the job ends
os.environ.setdefault("HOROVOD_STALL_CHECK_TIME_SECONDS", "10")
os.environ.setdefault("HOROVOD_STALL_SHUTDOWN_TIME_SECONDS", "20")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
import horovod.tensorflow as hvd
import tensorflow as tf

from scaleout import records
from scaleout.kit.flags import Parser, one_or_more


def settings() -> argparse.Namespace:
    """What was typed behind the name of this file."""
    parser = Parser(__doc__)
    parser.add_argument("--how", nargs="+", default=["right"],
                        choices=["right", "no-broadcast", "uneven"],
                        help="what goes wrong, one after another (right: "
                        "nothing)")
    parser.add_argument("--steps", type=one_or_more, default=30,
                        help="steps on each rank (30)")
    return parser.parse_args()


def train(how: str, most: int) -> list[list[float]]:
    """The weight of each rank, before the first step and after each."""
    # Distributed: which copy of the program this is, of how many
    rank = hvd.rank()
    ranks = hvd.size()

    # Distributed: each rank begins somewhere else
    weight = tf.Variable(float(rank + 1))
    if how != "no-broadcast":
        # Distributed: all begin where rank 0 does
        hvd.broadcast_variables([weight], root_rank=0)

    steps = most
    if how == "uneven" and rank == ranks - 1:
        # Distributed: this is the mistake, a step that one rank leaves out
        steps = most - 1

    path = [float(weight)]
    for _ in range(steps):
        # Of (weight - 3 - rank)**2 / 2: each rank's data want another weight.
        gradient = weight - 3.0 - rank
        # Distributed: the average, the same on all ranks
        gradient = hvd.allreduce(gradient, name="gradient")
        weight.assign_sub(0.1 * gradient)
        path.append(float(weight))
    if steps < most:
        print(f"rank {rank} has done its {steps} steps and goes on to the end",
              flush=True)

    # Distributed: rank 0 hears from everybody
    return hvd.allgather_object(path, name="paths")


def main(args: argparse.Namespace) -> None:
    # Distributed: the ranks find each other
    hvd.init()
    for how in args.how:
        paths = train(how, args.steps)
        # Distributed: one report, not one from each rank
        if hvd.rank() == 0:
            ends = [f"rank {r}: {p[-1]:.3f}" for r, p in enumerate(paths)]
            print(f"{how}: {', '.join(ends)}", flush=True)
            records.write(
                lab="05_horovod",
                variant=how,
                ranks=hvd.size(),
                metrics={"weight": paths},
            )


if __name__ == "__main__":
    main(settings())
