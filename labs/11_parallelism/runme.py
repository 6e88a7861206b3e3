"""Data parallelism: each rank has the whole network, and some rows.

    mpirun -n 4 python -m mpi4py labs/11_parallelism/runme.py

Here on four ranks; it takes about 2 seconds. You will see whether the ranks
together find what one rank alone does, and how much memory a rank needs.
tensor.py, pipeline.py and sharded.py split the network itself, and network.py
is that network on one rank.
"""

import argparse

import measure
import numpy as np

# Distributed: this import also starts MPI
from mpi4py import MPI
from network import examples, forward, loss, serial, slope

from scaleout import data


def data_parallel(comm: MPI.Intracomm, weights: list,
                  x: np.ndarray, y: np.ndarray) -> tuple:
    """What the rows of this rank add to the loss, and all gradients."""
    rows = data.shard(len(x), comm.rank, comm.size)
    h = forward(weights, x[rows])  # (rows, width) each
    gradients = [None] * len(weights)
    g = slope(h[-1], y[rows], len(x))  # (rows, width)
    # One layer at a time: each is added up as soon as it is there.
    for k in reversed(range(len(weights))):
        g = g * (h[k + 1] > 0)  # (rows, width)
        gradients[k] = h[k].T @ g  # (width, width): of these rows
        # Distributed: the sum takes the place of the parts: (width, width)
        comm.Allreduce(MPI.IN_PLACE, gradients[k])
        if k > 0:  # nobody needs the gradient of the examples
            g = g @ weights[k].T  # (rows, width)
    return loss(h[-1], y[rows], len(x)), gradients


def main(args: argparse.Namespace) -> None:
    # Distributed: all ranks of the job; comm.rank is this one, of comm.size
    comm = measure.Watched(MPI.COMM_WORLD)
    x, y = examples(args.batch, args.width, args.dtype)  # (batch, width)
    measure.split(
        "data", comm, args,
        # Every layer whole
        pieces=[(k, slice(None)) for k in range(args.layers)],
        step=lambda weights: data_parallel(comm, weights, x, y),
        alone=serial(measure.network(args), x, y),
    )


if __name__ == "__main__":
    main(measure.read(measure.sizes(__doc__)))
