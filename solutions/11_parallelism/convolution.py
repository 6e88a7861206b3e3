"""A convolution split by channels: tensor parallelism for pictures.

    mpirun -n 3 python -m mpi4py solutions/11_parallelism/convolution.py

Any number of ranks, here three; it takes about 2 seconds. Each rank has some
filters of a first convolution, and so some of its channels; and of the second
convolution those weights that belong to these channels. You will see how far
the gradients are from those of one rank alone.
"""

import argparse

import numpy as np

# Distributed: this import also starts MPI
from mpi4py import MPI
from network import loss, relu, slope
from numpy.lib.stride_tricks import sliding_window_view

from scaleout import data, records
from scaleout.flags import Parser, one_or_more, refuse


def settings() -> argparse.Namespace:
    """What was typed behind the name of this file."""
    parser = Parser(__doc__)
    parser.add_argument("--batch", type=one_or_more, default=4,
                        help="pictures (4)")
    parser.add_argument("--pixels", type=one_or_more, default=10,
                        help="of a side of a picture, 5 or more (10)")
    parser.add_argument("--channels", type=one_or_more, default=7,
                        help="between the two convolutions (7)")
    args = parser.parse_args()
    ranks = MPI.COMM_WORLD.Get_size()
    if args.channels < ranks:
        refuse(f"{args.channels} channels are fewer than {ranks} ranks.")
    if args.pixels < 5:
        refuse(f"Two convolutions of 3 x 3 need 5 pixels, not {args.pixels}.")
    return args


def windows(x: np.ndarray) -> np.ndarray:
    """(n, h, w, in) as (n, h - 2, w - 2, in, 3, 3)."""
    return sliding_window_view(x, (3, 3), axis=(1, 2))


def convolve(x: np.ndarray, w: np.ndarray) -> np.ndarray:
    """x (n, h, w, in), w (3, 3, in, out): (n, h - 2, w - 2, out)."""
    return np.einsum("nhwcij,ijco->nhwo", windows(x), w, optimize=True)


def gradient_of_weights(x: np.ndarray, g: np.ndarray) -> np.ndarray:
    return np.einsum("nhwcij,nhwo->ijco", windows(x), g, optimize=True)


def gradient_of_input(w: np.ndarray, g: np.ndarray) -> np.ndarray:
    """Each output looked at 3 x 3 inputs: its gradient goes back to them."""
    wide = np.pad(g, ((0, 0), (2, 2), (2, 2), (0, 0)))
    turned = w[::-1, ::-1].transpose(0, 1, 3, 2)  # (3, 3, out, in)
    return convolve(wide, turned)


def add_up(comm: MPI.Intracomm, part: np.ndarray) -> np.ndarray:
    """The sum over the ranks, on all of them."""
    whole = np.empty(part.shape)
    # Distributed: everybody gets the sum
    comm.Allreduce(np.ascontiguousarray(part), whole)
    return whole


def step(comm: MPI.Intracomm, first: np.ndarray, second: np.ndarray,
         x: np.ndarray, y: np.ndarray) -> tuple:
    """The loss, and the gradients of my filters and of the pictures.

    first: (3, 3, 3, channels / ranks).  second: (3, 3, channels / ranks, 2).
    """
    inner = relu(convolve(x, first))  # my channels: nothing to send
    part = convolve(inner, second)  # all outputs, but a part of the sum
    out = add_up(comm, part)
    g = slope(out, y, len(x))
    g_second = gradient_of_weights(inner, g)
    g_inner = gradient_of_input(second, g) * (inner > 0)
    g_first = gradient_of_weights(x, g_inner)
    # The pictures meet all filters: their gradient is a sum over the ranks.
    g_x = add_up(comm, gradient_of_input(first, g_inner))
    return loss(out, y, len(x)), g_first, g_second, g_x


def main(args: argparse.Namespace) -> None:
    # Distributed: each rank has some of the channels
    comm = MPI.COMM_WORLD
    rng = np.random.default_rng(0)
    side = args.pixels
    x = rng.standard_normal((args.batch, side, side, 3))
    y = rng.standard_normal((args.batch, side - 4, side - 4, 2))
    first = rng.standard_normal((3, 3, 3, args.channels)) / 5
    second = rng.standard_normal((3, 3, args.channels, 2)) / 8
    mine = data.shard(args.channels, comm.rank, comm.size)

    found = step(comm, first[..., mine], second[:, :, mine], x, y)
    alone = step(MPI.COMM_SELF, first, second, x, y)
    wanted = [alone[0], alone[1][..., mine], alone[2][:, :, mine], alone[3]]
    both = zip(found, wanted, strict=True)
    off = [float(np.abs(mine - right).max()) for mine, right in both]
    # Distributed: what each rank found
    every = records.gather({"off": off, "channels": found[1].shape[-1]})
    # Distributed: one report, not one from each rank
    if comm.rank == 0:
        worst = max(max(each["off"]) for each in every)
        channels = [each["channels"] for each in every]
        records.write(lab="11_parallelism", variant="convolution",
                      ranks=comm.size,
                      metrics={"off": worst, "channels": channels})
        print(f"channels {channels}: gradients off by {worst:.1e}",
              flush=True)


if __name__ == "__main__":
    main(settings())
