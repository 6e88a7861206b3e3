"""Two ranks that go wrong, on purpose: they began apart, or one of them takes a step less.

    mpirun -n 2 python -m mpi4py labs/05_horovod/wrong.py --how no-broadcast

You will see the weight of each rank after 30 steps. With --how uneven the job waits; Horovod ends it after 20 seconds.
"""

import argparse
import os

stalled = {"HOROVOD_STALL_CHECK_TIME_SECONDS": "10", "HOROVOD_STALL_SHUTDOWN_TIME_SECONDS": "20"}
os.environ |= stalled | {"TF_CPP_MIN_LOG_LEVEL": "2"} | os.environ  # Distributed: who waits too long says so, then ends
import horovod.tensorflow as hvd
import tensorflow as tf

from scaleout import records


def main(args: argparse.Namespace) -> list[float]:
    hvd.init()  # Distributed: the ranks find each other
    rank, ranks = hvd.rank(), hvd.size()  # Distributed: which copy of the program this is, of how many
    weight = tf.Variable(float(rank + 1))  # Distributed: each rank begins somewhere else
    if args.how != "no-broadcast":
        hvd.broadcast_variables([weight], root_rank=0)  # Distributed: all begin where rank 0 does
    path = [float(weight)]
    steps = args.steps - (args.how == "uneven") * (rank == ranks - 1)
    for _ in range(steps):
        gradient = weight - 3.0 - rank  # of (weight - 3 - rank)**2 / 2: each rank's data want another weight
        gradient = hvd.allreduce(gradient, name="gradient")  # Distributed: the average, the same on all ranks
        weight.assign_sub(0.1 * gradient)
        path.append(float(weight))
    if steps < args.steps:
        print(f"rank {rank} has done its {steps} steps and goes on to the end", flush=True)
    paths = hvd.allgather_object(path, name="paths")  # Distributed: rank 0 hears from everybody
    if rank == 0:  # Distributed: one report, not one from each rank
        print(", ".join(f"rank {r}: {mine[-1]:.3f}" for r, mine in enumerate(paths)), flush=True)
        records.write(lab="05_horovod", variant=args.how, ranks=ranks, metrics={"weight": paths})
    return path


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--how", choices=["right", "no-broadcast", "uneven"], default="right", help="what goes wrong")
    parser.add_argument("--steps", type=int, default=30, help="steps on each rank (30)")
    main(parser.parse_args())
