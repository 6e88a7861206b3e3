"""Tensor parallelism: each rank has a part of every layer.

    mpirun -n 4 python -m mpi4py solutions/11_parallelism/tensor.py

Here on four ranks; it takes about 2 seconds. You will see whether the
gradients are those of one rank alone, and how much memory a rank needs.
"""

import argparse

import measure
import numpy as np

# Distributed: this import also starts MPI
from mpi4py import MPI
from network import examples, loss, relu, serial, slope

from scaleout import data
from scaleout.kit.flags import refuse


def add_up(comm: MPI.Intracomm, part: np.ndarray) -> np.ndarray:
    """The sum over the ranks, on all of them, in place of their parts."""
    # Distributed: all ranks of comm give `part`, and the sum takes its place
    comm.Allreduce(MPI.IN_PLACE, part)
    return part


def tensor_parallel(comm: MPI.Intracomm, weights: list,
                    x: np.ndarray, y: np.ndarray) -> tuple:
    """Each rank has some columns of a layer, and those rows of the next.

    ReLU looks at one number at a time, so between the two nothing travels.
    """
    # Of each pair (width, width / ranks), then (width / ranks, width)
    pairs = list(zip(weights[0::2], weights[1::2], strict=True))
    kept = []
    h = x  # (batch, width)
    for columns, rows in pairs:
        inner = relu(h @ columns)  # (batch, width / ranks)
        part = inner @ rows  # (batch, width): one part of a sum
        out = relu(add_up(comm, part))  # (batch, width)
        kept.append((h, inner, out))
        h = out

    g = slope(h, y, len(x))  # (batch, width)
    gradients = []
    for columns, rows in reversed(pairs):
        before, inner, out = kept.pop()
        # Every rank has the whole batch and the whole g. So the gradients of
        # its own columns and rows are whole, too, and need no sum.
        g = g * (out > 0)  # (batch, width)
        g_rows = inner.T @ g  # (width / ranks, width)
        g_inner = (g @ rows.T) * (inner > 0)  # (batch, width / ranks)
        g_columns = before.T @ g_inner  # (width, width / ranks)
        gradients = [g_columns, g_rows] + gradients
        if not kept:
            break  # before the first pair are the examples: no sum for them
        # TODO 1: forward needs one sum over the ranks for each pair, and
        # backward does, too. The gradient with respect to `before` is
        # g_inner @ columns.T, but each rank has some columns only. Set g to
        # the whole gradient, which the pair before this one goes on with.
        # (1 line)
        # BEGIN SOLUTION
        g = add_up(comm, g_inner @ columns.T)  # (batch, width)
        # STARTER: g = g_inner @ columns.T
        # END SOLUTION
    # All ranks have the same loss: one of them gives it.
    return loss(h, y, len(x)) if comm.rank == 0 else 0.0, gradients


def my_pieces(comm: MPI.Intracomm, layers: int, width: int) -> list:
    """Of layers 0, 2, 4 ... some columns, of 1, 3, 5 ... some rows."""
    # Distributed: the same numbers of each, from first to last rank
    mine = data.shard(width, comm.rank, comm.size)
    columns = (slice(None), mine)
    return [(k, mine if k % 2 else columns) for k in range(layers)]


def main(args: argparse.Namespace) -> None:
    # Distributed: all ranks of the job; comm.rank is this one, of comm.size
    comm = measure.Watched(MPI.COMM_WORLD)
    if args.layers % 2:
        refuse(f"Layers go in pairs, and {args.layers} is odd.")
    if comm.size > args.width:
        refuse(f"{args.width} columns are fewer than {comm.size} ranks.")
    x, y = examples(args.batch, args.width, args.dtype)  # (batch, width)
    measure.split(
        "tensor", comm, args,
        pieces=my_pieces(comm, args.layers, args.width),
        step=lambda weights: tensor_parallel(comm, weights, x, y),
        alone=serial(measure.network(args), x, y),
    )


if __name__ == "__main__":
    main(measure.read(measure.sizes(__doc__)))
