r"""What DistributedDataParallel does inside: when are gradients averaged?

    scaleout run solutions/09_networks/buckets.py -n 2 -t 1 \
        --python .side/torch/bin/python

After `make torch`. A step averages its gradients in three ways: one message
for each parameter, one for all of them, or as DDP does it, in buckets that
leave while backward() still computes. The ways take turns, and so does a step
that averages nothing. You will see steps/s of each, after 20 seconds. There
is nothing to fill in here.
"""

import argparse
from collections.abc import Callable
from time import perf_counter

import ddp
import numpy as np
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from scaleout import data, records
from scaleout.kit.flags import Parser, one_or_more

WIDTH = 512
BATCH = 64  # images of a step on each rank


def settings() -> argparse.Namespace:
    """What was typed behind the name of this file."""
    parser = Parser(__doc__)
    rounds = 2 if data.quick() else 40
    parser.add_argument("--layers", type=one_or_more, default=24,
                        help="each has a matrix and a bias to average (24)")
    parser.add_argument("--bucket-mib", type=one_or_more, default=4,
                        help="of gradients that leave together in DDP (4)")
    parser.add_argument("--rounds", type=one_or_more, default=rounds,
                        help=f"steps of each way ({rounds})")
    return parser.parse_args()


def network(layers: int) -> nn.Sequential:
    """So many dense layers: a 512 x 512 matrix and a bias each."""
    each = [nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.ReLU())
            for _ in range(layers)]
    return nn.Sequential(*each)


def by_itself(model: nn.Module) -> None:
    """Average the gradient of each parameter, one after another."""
    for weights in model.parameters():
        # Distributed: the sum over all ranks
        dist.all_reduce(weights.grad)
        weights.grad /= dist.get_world_size()


def all_at_once(model: nn.Module) -> None:
    """Average all gradients in one message."""
    gradients = [weights.grad for weights in model.parameters()]
    flat = torch.cat([gradient.flatten() for gradient in gradients])
    # Distributed: the sum over all ranks
    dist.all_reduce(flat)
    flat /= dist.get_world_size()
    sizes = [gradient.numel() for gradient in gradients]
    for gradient, part in zip(gradients, flat.split(sizes), strict=True):
        gradient.copy_(part.view_as(gradient))


def nothing(model: nn.Module) -> None:
    """DDP has averaged them by now, or nobody does."""


def step(model: nn.Module, x: torch.Tensor, average: Callable) -> float:
    """Seconds of a step on the slowest rank."""
    for weights in model.parameters():
        weights.grad = None
    # Distributed: all begin together
    dist.barrier()
    start = perf_counter()
    model(x).square().mean().backward()
    average(model)
    took = torch.tensor(perf_counter() - start)
    # Distributed: the slowest rank counts
    dist.all_reduce(took, dist.ReduceOp.MAX)
    return float(took)


def main(args: argparse.Namespace) -> None:
    # Distributed: as in ddp.py
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    ranks = dist.get_world_size()
    torch.manual_seed(0)
    own = network(args.layers)
    # Distributed: averages gradients in buckets, in backward()
    wrapped = DistributedDataParallel(own, bucket_cap_mb=args.bucket_mib)
    torch.manual_seed(1 + rank)
    x = torch.randn(BATCH, WIDTH)
    # The first of them twice: what these differ by is the noise.
    ways = {("one by one", 0): (own, by_itself),
            ("one by one", 1): (own, by_itself),
            ("all at once", 0): (own, all_at_once),
            ("DDP", 0): (wrapped, nothing),
            ("no averages", 0): (own, nothing)}
    rows = []
    found = {}
    # The first round is not counted: it fills caches and makes buckets.
    for turn in range(-1, args.rounds):
        for way, (model, average) in list(ways.items())[::1 - 2 * (turn % 2)]:
            took = step(model, x, average)
            found[way[0]] = own[0][0].weight.grad.clone()
            if turn >= 0:
                rows.append({"round": turn, "place": len(rows),
                             "variant": way[0], "again": way[1],
                             "value": 1 / took, "unit": "steps/s"})
    off = max(float((found[way] - found["DDP"]).abs().max())
              for way in ("one by one", "all at once"))
    largest = float(found["DDP"].abs().max())
    # Distributed: one report, not one from each rank
    if rank == 0:
        for way in found:
            rate = np.median([row["value"] for row in rows
                              if row["variant"] == way])
            print(f"{way}: {rate:.1f} steps/s", flush=True)
        records.write(
            lab="09_networks", variant="buckets", ranks=ranks,
            batch_per_rank=BATCH,
            metrics={"runs": rows, "off": off / largest,
                     "parameters": sum(w.numel() for w in own.parameters())})


if __name__ == "__main__":
    main(settings())
    ddp.leave()
