"""Data parallelism in which each rank keeps a shard of Adam's memory.

    mpirun -n 4 python -m mpi4py solutions/11_parallelism/sharded.py

Here on four ranks; it takes about 2 seconds. You will see three lines like
that of tensor.py, with weights after 3 steps in place of gradients: Adam whole
on each rank; in shards; and in shards with each gradient dropped once used.
"""

import argparse
from collections.abc import Callable
from functools import partial

import measure
import numpy as np

# Distributed: this import also starts MPI
from mpi4py import MPI
from network import adam, backward, examples, forward, loss, serial, slope
from runme import data_parallel

from scaleout import data

STEPS = 3  # after which the weights are compared


def whole_adam(comm: MPI.Intracomm, weights: list, x: np.ndarray,
               y: np.ndarray, states: list) -> tuple:
    """Data parallelism as it is: all of Adam's memory on every rank."""
    loss_here, gradients = data_parallel(comm, weights, x, y)
    for w, g, state in zip(weights, gradients, states, strict=True):
        adam(w, g, state)
    return loss_here, weights


def sharded_adam(comm: MPI.Intracomm, w: np.ndarray, g: np.ndarray,
                 state: dict) -> None:
    """A step of Adam: w changes on all ranks by the sum of everybody's g.

    Adam's two arrays are as long as the gradient that it is given: so let each
    rank keep them for its own shard of the weights alone.
    """
    shards = [data.shard(len(w), r, comm.size) for r in range(comm.size)]
    counts = [shard.stop - shard.start for shard in shards]
    mine = shards[comm.rank]
    # TODO 4: comm.Reduce_scatter(g, part, counts) puts this rank's shard of
    # the sum into `part`, a new array of that length. Give adam the shard of w
    # and `part`; then comm.Allgatherv(MPI.IN_PLACE, [w, counts]) brings the
    # shards of w together.  (4 lines)
    # BEGIN SOLUTION
    part = np.empty_like(g[mine])  # (n / ranks,)
    # Distributed: to each its shard of the sum
    comm.Reduce_scatter(g, part, counts)
    adam(w[mine], part, state)
    # Distributed: everybody's new weights, from those who have them
    comm.Allgatherv(MPI.IN_PLACE, [w, counts])
    # STARTER: comm.Allreduce(MPI.IN_PLACE, g)
    # STARTER: adam(w, g, state)
    # END SOLUTION


def sharded(comm: MPI.Intracomm, weights: list, x: np.ndarray, y: np.ndarray,
            states: list, drop: bool) -> tuple:
    """The same, but each rank keeps its shard of Adam's memory.

    A layer changes as soon as its gradient is there. With `drop` the gradient
    is then forgotten; else it stays to the end of the step, as above.
    """
    rows = data.shard(len(x), comm.rank, comm.size)
    h = forward(weights, x[rows])  # (rows, width) each
    g = slope(h[-1], y[rows], len(x))
    kept = []
    for k in reversed(range(len(weights))):
        w = weights[k]
        gradient = np.zeros_like(w)  # (width, width)
        g = backward([w], h[k : k + 2], g, [gradient], k == 0)
        sharded_adam(comm, w.ravel(), gradient.ravel(), states[k])
        if not drop:
            kept.append(gradient)
    return loss(h[-1], y[rows], len(x)), weights


def alone(args: argparse.Namespace, x: np.ndarray, y: np.ndarray) -> tuple:
    """The loss and the weights of one rank after these steps."""
    weights = measure.network(args)
    states = [{} for _ in weights]
    for _ in range(STEPS):
        loss_before, gradients = serial(weights, x, y)
        for w, g, state in zip(weights, gradients, states, strict=True):
            adam(w, g, state)
    return loss_before, weights


def measured(way: str, train: Callable, args: argparse.Namespace) -> None:
    """A line for one of the three."""
    # Distributed: all ranks of the job; comm.rank is this one, of comm.size
    comm = measure.Watched(MPI.COMM_WORLD)
    x, y = examples(args.batch, args.width, args.dtype)  # (batch, width)
    states = [{} for _ in range(args.layers)]
    measure.split(
        way, comm, args,
        # Every layer whole
        pieces=[(k, slice(None)) for k in range(args.layers)],
        step=lambda weights: train(comm, weights, x, y, states),
        alone=alone(args, x, y),
        states=states,
        first_steps=STEPS,
    )


def main(args: argparse.Namespace) -> None:
    measured("adam", whole_adam, args)
    measured("sharded", partial(sharded, drop=False), args)
    measured("dropped", partial(sharded, drop=True), args)


if __name__ == "__main__":
    main(measure.read(measure.sizes(__doc__)))
