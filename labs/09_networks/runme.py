"""How fast does each network train, by which framework, on how many ranks?

    mpirun -n 2 -bind-to core python -m mpi4py labs/09_networks/runme.py

Images are made up: any images take the same time. With more than one rank,
each step is done twice: by the ranks as independent copies that share nothing,
and together, with averaged gradients (Horovod, or DDP with --framework torch).
You will see images/s; cnn takes about 12 seconds, resnet50 up to 40.

--framework torch needs `make torch`, and its Python:
scaleout run ... --python .side/torch/bin/python
"""

import argparse
import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "1")
import numpy as np
from common import made_up, trainer

# Distributed: this import also starts MPI
from mpi4py import MPI

from scaleout import data, records
from scaleout.kit.flags import Parser, one_or_more, refuse, zero_or_more

NETWORKS = ["cnn", "resnet50", "resnet101", "resnet152", "inception_v3",
            "vgg16"]


def settings() -> argparse.Namespace:
    """What was typed behind the name of this file."""
    parser = Parser(__doc__)
    parser.add_argument("--network", choices=NETWORKS, default="cnn",
                        help="what to train (cnn)")
    parser.add_argument("--framework", choices=["tensorflow", "torch"],
                        default="tensorflow", help="by what (tensorflow)")
    parser.add_argument("--batch", type=one_or_more, default=32,
                        help="images of a step, on all ranks together (32)")
    parser.add_argument("--side", type=one_or_more, default=96,
                        help="pixels of a large network's image (96)")
    parser.add_argument("--dtype", choices=["float32", "bfloat16"],
                        default="float32",
                        help="numbers to multiply (float32)")
    parser.add_argument("--warmup", type=zero_or_more, default=2,
                        help="steps that are not timed (2)")
    parser.add_argument("--steps", type=one_or_more, default=6,
                        help="steps that are timed (6)")
    args = parser.parse_args()
    # The cnn's images always have 28 x 28 pixels.
    least = {"cnn": 1, "vgg16": 32}.get(args.network, 75)
    if args.side < least:
        refuse(f"--side: {args.network} takes {least} or more, not "
               f"{args.side}")
    if data.quick():
        args.steps = min(args.steps, 10)
        args.side = min(args.side, max(32, least))
    return args


def main(args: argparse.Namespace) -> None:
    # Distributed: everybody who takes part
    comm = MPI.COMM_WORLD
    # Distributed: which copy of the program this is
    rank = comm.Get_rank()
    # Distributed: how many copies there are
    ranks = comm.Get_size()
    if args.batch % ranks:
        refuse(f"--batch: {args.batch} images cannot be divided evenly among "
               f"{ranks} ranks")

    # TODO 1: the images of a step on each rank. All ranks together have
    # args.batch: that is the effective batch.  (1 line)
    batch = args.batch

    network = trainer(args, seed=rank)
    x, y = network.batch(*made_up(args, batch, rank))
    if ranks > 1:
        # Distributed: the ranks find each other, and begin with equal weights
        network.begin_together()

    # Both kinds of steps are there to be timed: nothing is learned from noise.
    copies = records.Books("09_networks", rank, ranks, warmup=args.warmup)
    books = copies
    if ranks > 1:
        books = records.Books("09_networks", rank, ranks, warmup=args.warmup)
    for _ in range(args.warmup + args.steps):
        # Distributed: a copy is timed while the others work too
        comm.Barrier()
        with copies.step(work=batch):
            loss = network.alone(x, y)
        if ranks > 1:
            # Distributed: the same step, and the gradients are averaged
            comm.Barrier()
            with books.step(work=batch):
                loss = network.together(x, y)

    # Distributed: of each step, the time on the slowest rank
    copies_s = copies.slowest_s()
    rate = batch * ranks / np.median(books.slowest_s())
    copies_rate = batch * ranks / np.median(copies_s)
    flops = network.flops_per_image

    # TODO 2: the efficiency: what is left of the rate of independent copies
    # when the ranks train one network together.  (1 line)
    efficiency = 1.0

    # TODO 3: multiplications and additions in a second. Networks of any depth
    # can be compared by it: `flops` is what one image takes.  (1 line)
    flops_per_s = rate

    books.note(loss=loss)
    # Distributed: one record of all ranks
    books.write(
        variant=f"{args.network} {args.framework} {args.dtype}",
        batch_per_rank=batch, seed=0, rate_unit="images/s",
        network=args.network, framework=args.framework, dtype=args.dtype,
        side=args.side, efficiency=efficiency, copies_rate=copies_rate,
        copies_s=copies_s, flops_per_image=flops, flops_per_s=flops_per_s,
        parameters=network.parameters)
    # Distributed: one report, not one from each rank
    if rank == 0:
        print(f"{args.network}, {args.framework}, {ranks} rank(s): "
              f"{rate:.1f} images/s, {flops_per_s / 1e9:.1f} GFLOP/s, "
              f"efficiency {efficiency:.2f}", flush=True)
    if ranks > 1:
        network.leave()


if __name__ == "__main__":
    main(settings())
