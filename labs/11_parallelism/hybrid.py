"""Hybrid parallelism: pipelines side by side, each with some of the rows.

    mpirun -n 4 python -m mpi4py labs/11_parallelism/hybrid.py

Here on four ranks, which are two pipelines of two stages; it takes about 2
seconds. You will see whether the gradients are those of one rank alone, how
long a step takes, and how much memory a rank needs.
"""

import argparse

import measure
import numpy as np

# Distributed: this import also starts MPI
from mpi4py import MPI
from network import examples, serial
from pipeline import pipeline
from schedules import pipeline_sizes

from scaleout import data
from scaleout.flags import one_or_more, refuse


def communicators(comm: MPI.Intracomm, stages: int) -> tuple:
    """Two smaller circles of ranks: my pipeline, and who has my layers, too.

    Ranks 0 and 1 are the stages of replica 0, ranks 2 and 3 of replica 1 ...
    """
    replica = comm.rank // stages
    stage = comm.rank % stages
    # TODO 3: comm.Split(colour, key) is a communicator of all ranks with the
    # same colour, in the order of their keys. `pipe` joins the stages of one
    # replica, and `same` the ranks that have the same stage.  (2 lines)
    pipe = comm
    same = MPI.COMM_SELF
    return pipe, same


def hybrid(pipe: MPI.Intracomm, same: MPI.Intracomm, weights: list,
           x: np.ndarray, y: np.ndarray, args: argparse.Namespace) -> tuple:
    """Pipelines side by side, each with some rows."""
    total, gradients, log = pipeline(pipe, weights, x, y, args)
    for g in gradients:
        # Distributed: the sum over the replicas: (width, width)
        same.Allreduce(MPI.IN_PLACE, g)
    return total, gradients, log


def settings() -> argparse.Namespace:
    """What was typed behind the name of this file."""
    parser = pipeline_sizes(__doc__)
    parser.add_argument("--stages", type=one_or_more, default=2,
                        help="of each pipeline (2)")
    return measure.read(parser)


def main(args: argparse.Namespace) -> None:
    # Distributed: all ranks of the job; comm.rank is this one, of comm.size
    comm = MPI.COMM_WORLD
    if comm.size % args.stages:
        refuse(f"{comm.size} ranks do not divide into pipelines of "
               f"{args.stages} stages.")
    if args.stages > args.layers:
        refuse(f"{args.stages} stages are more than {args.layers} layers.")
    replicas = comm.size // args.stages
    if args.batch % (replicas * args.micro_batches):
        refuse(f"A batch of {args.batch} does not divide into "
               f"{replicas * args.micro_batches} micro-batches of one size.")

    pipe, same = communicators(comm, args.stages)
    # Distributed: the rows of my replica, and the layers of my stage
    rows = data.shard(args.batch, comm.rank // args.stages, replicas)
    layers = data.shard(args.layers, comm.rank % args.stages, args.stages)
    x, y = examples(args.batch, args.width, args.dtype)  # (batch, width)
    measure.split(
        "hybrid", pipe, args,
        pieces=[(k, slice(None)) for k in range(args.layers)[layers]],
        step=lambda w: hybrid(pipe, same, w, x[rows], y[rows], args),
        alone=serial(measure.network(args), x, y),
        # Distributed: whom this rank meets in its two circles
        circles=[each.allgather(comm.rank) for each in (pipe, same)],
    )


if __name__ == "__main__":
    main(settings())
