"""How fast does each network train, by which framework, on how many ranks?

    mpirun -n 2 -bind-to core python -m mpi4py labs/09_networks/runme.py

Images are made up: any images take the same time. With more than one rank,
steps are taken in three ways, in turns: by the ranks as independent copies
that share nothing, by such copies beside Horovod's thread, and together, with
averaged gradients (Horovod, or DDP with --framework torch). You will see
images/s; cnn takes about 15 seconds, resnet50 up to a minute. There is nothing
to fill in here.

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
ROUNDS = 5  # in each of them every way has its turn


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
                        help="steps of each turn that are not timed (2)")
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

    # Distributed: more ranks, fewer images on each, and the step is the same
    batch = args.batch // ranks

    network = trainer(args, seed=rank)
    x, y = network.batch(*made_up(args, batch, rank))
    ways = {"copies": network.alone}
    if ranks > 1:
        ways |= {"beside": network.alone, "together": network.together}
    books = {way: records.Books("09_networks", rank, ranks, warmup=0)
             for way in ways}

    # Every step is there to be timed: nothing is learned from noise.
    turns = np.array_split(np.arange(args.steps), ROUNDS)
    for turn, steps in enumerate(turns):
        for way in list(ways)[::-1 if turn % 2 else 1]:
            if way == "copies":
                # Distributed: the ranks part, and share nothing
                network.end_together()
            else:
                # Distributed: the ranks find each other
                network.begin_together()
            for _ in range(args.warmup):
                ways[way](x, y)
            for _ in steps:
                # Distributed: each is timed while the others work too
                comm.Barrier()
                with books[way].step(work=batch):
                    loss = ways[way](x, y)

    # Distributed: of each step, the time on the slowest rank
    step_s = {way: of.slowest_s() for way, of in books.items()}
    rates = {way: batch * ranks / np.median(s) for way, s in step_s.items()}
    *_, last = rates  # together, where there are several ranks
    flops = network.flops_per_image
    # What is left of the rate of copies when the ranks train together.
    efficiency = rates[last] / rates["copies"]
    # Multiplications and additions in a second: networks of any depth can be
    # compared by it.
    flops_per_s = rates[last] * flops

    books[last].note(loss=loss)
    # Distributed: one record of all ranks
    books[last].write(
        variant=f"{args.network} {args.framework} {args.dtype}",
        batch_per_rank=batch, seed=0, rate_unit="images/s",
        network=args.network, framework=args.framework, dtype=args.dtype,
        side=args.side, efficiency=efficiency,
        copies_rate=rates["copies"], copies_s=step_s["copies"],
        beside_s=step_s.get("beside"), flops_per_image=flops,
        flops_per_s=flops_per_s, parameters=network.parameters)
    # Distributed: one report, not one from each rank
    if rank == 0:
        print(f"{args.network}, {args.framework}, {ranks} rank(s): "
              f"{rates[last]:.1f} images/s, {flops_per_s / 1e9:.1f} GFLOP/s, "
              f"efficiency {efficiency:.2f}", flush=True)
    if ranks > 1:
        network.leave()


if __name__ == "__main__":
    main(settings())
