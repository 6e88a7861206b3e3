"""Pipeline parallelism: each rank has some layers, and is called a stage.

    mpirun -n 4 python -m mpi4py labs/11_parallelism/pipeline.py

Here on four ranks; it takes about 2 seconds. You will see what tensor.py
prints. schedules.py says in which order a stage works, and what it keeps.
"""

import argparse

import measure
import numpy as np

# Distributed: this import also starts MPI
from mpi4py import MPI
from network import examples, loss, serial, slope
from schedules import SCHEDULES, Layers, pipeline_sizes

from scaleout import data
from scaleout.flags import refuse


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
        if pipe.rank == self.last:
            self.back(m, g)

    def through(self, m: int, h: np.ndarray) -> np.ndarray:
        # Distributed: messages move inside MPI's calls, not while we compute
        self.to_right.Wait()
        return super().through(m, h)

    def back(self, m: int, g: np.ndarray) -> np.ndarray:
        self.to_left.Wait()
        return super().back(m, g)


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


def main(args: argparse.Namespace) -> None:
    # Distributed: all ranks of the job, counting what they give
    comm = measure.Counted(MPI.COMM_WORLD)
    if comm.size > args.layers:
        refuse(f"{comm.size} stages are more than {args.layers} layers.")
    if args.batch % args.micro_batches:
        refuse(f"A batch of {args.batch} does not divide into "
               f"{args.micro_batches} micro-batches of one size.")
    x, y = examples(args.batch, args.width, args.dtype)  # (batch, width)
    # Distributed: the layers of this stage
    layers = data.shard(args.layers, comm.rank, comm.size)
    measure.split(
        "pipeline", comm, args,
        pieces=[(k, slice(None)) for k in range(args.layers)[layers]],
        step=lambda weights: pipeline(comm, weights, x, y, args),
        alone=serial(measure.network(args), x, y),
    )


if __name__ == "__main__":
    main(measure.read(pipeline_sizes(__doc__)))
