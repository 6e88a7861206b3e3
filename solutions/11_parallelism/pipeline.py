"""Pipeline parallelism: each rank has some layers, and is called a stage.

    mpirun -n 4 python -m mpi4py solutions/11_parallelism/pipeline.py

Here on four ranks; it takes about 2 seconds. You will see what tensor.py
prints. With --replicas 2 they are two pipelines of two stages, and each has
half of the rows: this is hybrid parallelism. schedules.py says in which order
a stage works, and what it keeps.
"""

import argparse

import measure
import numpy as np

# Distributed: this import also starts MPI
from mpi4py import MPI
from network import examples, loss, serial, slope
from schedules import SCHEDULES, Layers

from scaleout import data
from scaleout.kit.flags import one_or_more, refuse


class Stage(Layers):
    """Some layers, and their messages to the stages beside them."""

    def __init__(self, pipe: MPI.Intracomm, weights: list) -> None:
        super().__init__(weights)
        self.pipe = pipe
        self.last = pipe.size - 1
        # Distributed: the last message to each side, while it is on its way
        self.to_right = MPI.REQUEST_NULL
        self.to_left = MPI.REQUEST_NULL

    def forward(self, m: int, h: np.ndarray) -> None:
        """Micro-batch m comes from the left and goes to the right.

        h: on the first stage the micro-batch itself; elsewhere as large.
        """
        pipe = self.pipe
        if pipe.rank > 0:
            h = np.empty_like(h)  # (micro-batch, width)
            # Distributed: what the stage before this one made of it
            pipe.Recv(h, pipe.rank - 1)
        h = self.through(m, h)
        if pipe.rank < self.last:
            # Distributed: on it goes; Isend does not wait until it is there
            self.to_right = pipe.Isend(h, pipe.rank + 1)

    def backward(self, m: int, g: np.ndarray) -> None:
        """Its gradient comes from the right and goes to the left.

        g: on the last stage the gradient of the loss; elsewhere as large.
        """
        pipe = self.pipe
        # TODO 2: the mirror image of forward. Receive g from the stage after
        # this one, unless this is the last. self.back(m, g) gives what the
        # stage before this one waits for: Isend it, unless this is the first,
        # and keep the request in self.to_left.  (5 lines)
        # BEGIN SOLUTION
        if pipe.rank < self.last:
            # Distributed: the gradient by what this stage gave
            pipe.Recv(g, pipe.rank + 1)
        g = self.back(m, g)
        if pipe.rank > 0:
            # Distributed: the gradient by what this stage was given
            self.to_left = pipe.Isend(g, pipe.rank - 1)
        # STARTER: if pipe.rank == self.last:
        # STARTER:     self.back(m, g)
        # END SOLUTION

    def through(self, m: int, h: np.ndarray) -> np.ndarray:
        # Distributed: messages move inside MPI's calls, not while we compute
        self.to_right.Wait()
        return super().through(m, h)

    def back(self, m: int, g: np.ndarray) -> np.ndarray:
        self.to_left.Wait()
        return super().back(m, g)


def settings() -> argparse.Namespace:
    """What was typed behind the name of this file."""
    parser = measure.sizes(__doc__)
    parser.add_argument("--micro-batches", type=one_or_more, default=4,
                        help="into which a pipeline cuts its rows (4)")
    parser.add_argument("--schedule", choices=list(SCHEDULES),
                        default="gpipe", help="of the stages (gpipe)")
    parser.add_argument("--replicas", type=one_or_more, default=1,
                        help="pipelines side by side (1)")
    return measure.read(parser)


def pipeline(pipe: MPI.Intracomm, weights: list, x: np.ndarray, y: np.ndarray,
             args: argparse.Namespace) -> tuple:
    """Parts of these rows go through the stages, one after another."""
    stage = Stage(pipe, weights)
    x_parts = np.split(x, args.micro_batches)  # (micro-batch, width) each
    y_parts = np.split(y, args.micro_batches)
    total = 0.0
    schedule = SCHEDULES[args.schedule]
    for what, m in schedule(pipe.rank, pipe.size, args.micro_batches):
        if what == "forward":
            stage.forward(m, x_parts[m])
            continue
        g = np.zeros_like(y_parts[m])  # (micro-batch, width)
        if pipe.rank == stage.last:
            # args.batch, not the rows here: so all parts add up to the batch.
            h = stage.kept[m][-1]
            g = slope(h, y_parts[m], args.batch)
            total += loss(h, y_parts[m], args.batch)
        stage.backward(m, g)
    # Distributed: before anything is changed, what was sent has arrived
    MPI.Request.Waitall([stage.to_right, stage.to_left])
    return total, stage.gradients, stage.log


def communicators(comm: MPI.Intracomm, stages: int) -> tuple:
    """The ranks of my pipeline, and the ranks that have my layers, too.

    Ranks 0 and 1 are the stages of replica 0, ranks 2 and 3 of replica 1 ...
    """
    replica = comm.rank // stages
    stage = comm.rank % stages
    # TODO 3: comm.Split(colour, key) is a communicator of all ranks with the
    # same colour, in the order of their keys. `pipe` joins the stages of one
    # replica, and `same` the ranks that have the same stage.  (2 lines)
    # BEGIN SOLUTION
    # Distributed: gradients and activations travel here, from stage to stage
    pipe = comm.Split(replica, stage)
    # Distributed: gradients of the same layers are added up here
    same = comm.Split(stage, replica)
    # STARTER: pipe = comm
    # STARTER: same = MPI.COMM_SELF
    # END SOLUTION
    return pipe, same


def hybrid(pipe: MPI.Intracomm, same: MPI.Intracomm, weights: list,
           x: np.ndarray, y: np.ndarray, args: argparse.Namespace) -> tuple:
    """Pipelines side by side, each with some rows."""
    total, gradients, log = pipeline(pipe, weights, x, y, args)
    for g in gradients:
        # Distributed: the sum over the replicas: (width, width)
        same.Allreduce(MPI.IN_PLACE, g)
    return total, gradients, log


def main(args: argparse.Namespace) -> None:
    # Distributed: all ranks of the job; comm.rank is this one, of comm.size
    comm = MPI.COMM_WORLD
    stages = comm.size // args.replicas
    if comm.size % args.replicas:
        refuse(f"{comm.size} ranks do not divide into {args.replicas} "
               "pipelines.")
    if stages > args.layers:
        refuse(f"{stages} stages are more than {args.layers} layers.")
    parts = args.replicas * args.micro_batches
    if args.batch % parts:
        refuse(f"A batch of {args.batch} does not divide into {parts} "
               "micro-batches of one size.")

    pipe, same = communicators(comm, stages)
    # Distributed: whom this rank meets in its two groups
    groups = [each.allgather(comm.rank) for each in (pipe, same)]
    pipe = measure.Watched(pipe)
    # Distributed: the rows of my replica, and the layers of my stage
    rows = data.shard(args.batch, comm.rank // stages, args.replicas)
    layers = data.shard(args.layers, comm.rank % stages, stages)
    x, y = examples(args.batch, args.width, args.dtype)  # (batch, width)
    measure.split(
        "hybrid" if args.replicas > 1 else "pipeline", pipe, args,
        pieces=[(k, slice(None)) for k in range(args.layers)[layers]],
        step=lambda w: hybrid(pipe, same, w, x[rows], y[rows], args),
        alone=serial(measure.network(args), x, y),
        groups=groups,
    )


if __name__ == "__main__":
    main(settings())


