r"""Two of the splits as PyTorch brings them: columns and rows, and a pipeline.

    scaleout run solutions/11_parallelism/beyond/torch_split.py -n 2 -t 1 \
        --python .side/torch/bin/python

After `make torch`, on any number of ranks; it takes about 10 seconds. You will
see how far gradients and loss are from those of one rank. There is nothing to
fill in: tensor.py and pipeline.py do the same. A Linear of PyTorch keeps its
weights transposed, (out, in), so its first axis holds our columns.
"""

import argparse
import os
import sys
from pathlib import Path

import numpy as np

sys.path.append(str(Path(__file__).parents[1]))
from network import examples, layer, serial

from scaleout import data, records
from scaleout.kit.flags import Parser, one_or_more, refuse

try:
    import torch
except ModuleNotFoundError:
    refuse("PyTorch is not in this Python: type  make torch, then run "
           "this with  --python .side/torch/bin/python")

import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.pipelining import PipelineStage, Schedule1F1B
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    RowwiseParallel,
    parallelize_module,
)


def settings() -> argparse.Namespace:
    """What was typed behind the name of this file."""
    parser = Parser(__doc__)
    parser.add_argument("--layers", type=one_or_more, default=8,
                        help="layers of the network (8)")
    parser.add_argument("--width", type=one_or_more, default=64,
                        help="numbers that a layer takes and gives (64)")
    parser.add_argument("--batch", type=one_or_more, default=32,
                        help="rows of the whole batch (32)")
    parser.add_argument("--micro-batches", type=one_or_more, default=4,
                        help="into which the pipeline cuts them (4)")
    args = parser.parse_args()
    ranks = int(os.environ.get("WORLD_SIZE", "0"))
    if ranks == 0:
        refuse("Nobody has said which rank this is: start it by scaleout run, "
               "or by torchrun")
    if args.layers % 2 or args.layers < ranks:
        refuse(f"{args.layers} layers do not go in pairs, or are fewer than "
               f"{ranks} ranks")
    if args.width % ranks:
        refuse(f"{args.width} columns do not divide by {ranks} ranks, and "
               "PyTorch's split wants that")
    if args.batch % args.micro_batches:
        refuse(f"A batch of {args.batch} does not divide into "
               f"{args.micro_batches} micro-batches of one size")
    return args


def dense_layers(layers: range, width: int) -> nn.Sequential:
    """Some layers of network.py: each a Linear, then ReLU."""
    parts = []
    for k in layers:
        dense = nn.Linear(width, width, bias=False, dtype=torch.float64)
        with torch.no_grad():
            dense.weight.copy_(torch.from_numpy(layer(k, width, "float64").T))
        parts += [dense, nn.ReLU()]
    return nn.Sequential(*parts)


def loss(h: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """As in network.py; the mean over micro-batches is that of the batch."""
    return ((h - y) ** 2).sum() / 2 / len(y)


def tensor_parallel(args: argparse.Namespace, x: torch.Tensor,
                    y: torch.Tensor) -> tuple:
    """Columns, then rows, in turns: PyTorch has a name for each."""
    model = dense_layers(range(args.layers), args.width)
    plan = {}
    for k in range(args.layers):
        split = RowwiseParallel() if k % 2 else ColwiseParallel()
        plan[str(2 * k)] = split
    # Distributed: each rank keeps its part; the sums come with the two names
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    model = parallelize_module(model, mesh, plan)
    found = loss(model(x), y)
    found.backward()
    # Distributed: the whole gradients, from their parts
    whole = [w.grad.full_tensor() for w in model.parameters()]
    return found.item(), list(range(args.layers)), whole


def pipeline(args: argparse.Namespace, x: torch.Tensor,
             y: torch.Tensor) -> tuple:
    """Some layers on each rank, micro-batches, one forward one backward."""
    rank = dist.get_rank()
    stages = dist.get_world_size()
    layers = range(args.layers)[data.shard(args.layers, rank, stages)]
    model = dense_layers(layers, args.width)
    # Distributed: sends activations to the right, gradients to the left
    stage = PipelineStage(model, rank, stages, torch.device("cpu"))
    schedule = Schedule1F1B(stage, args.micro_batches, loss_fn=loss)
    losses = []
    first = [x] if rank == 0 else []
    if rank == stages - 1:
        schedule.step(*first, target=y, losses=losses)
    else:
        schedule.step(*first)
    found = float(np.mean([each.item() for each in losses])) if losses else 0
    return found, list(layers), [w.grad for w in model.parameters()]


def main(args: argparse.Namespace) -> None:
    # Distributed: RANK, WORLD_SIZE, MASTER_ADDR and so on say who is who
    dist.init_process_group("gloo")
    x, y = examples(args.batch, args.width, "float64")  # (batch, width)
    whole = [layer(k, args.width, "float64") for k in range(args.layers)]
    wanted_loss, wanted = serial(whole, x, y)
    ways = {"tensor": tensor_parallel, "pipeline": pipeline}
    for name, way in ways.items():
        mine, layers, gradients = way(
            args, torch.from_numpy(x), torch.from_numpy(y))
        off = max(float(np.abs(g.numpy().T - wanted[k]).max())
                  for k, g in zip(layers, gradients, strict=True))
        found = [None] * dist.get_world_size()
        # Distributed: what each rank found
        dist.all_gather_object(found, (off, mine))
        # Distributed: one report, not one from each rank
        if dist.get_rank() == 0:
            off = max(each[0] for each in found)
            total = max(each[1] for each in found)
            records.write(lab="11_parallelism", variant=f"torch {name}",
                          ranks=len(found),
                          metrics={"off": off, "loss": total,
                                   "serial_loss": wanted_loss})
            print(f"{name:9} gradients differ from serial by {off:.1e}, "
                  f"the loss by {abs(total - wanted_loss):.1e}", flush=True)
    # Distributed: nobody leaves while another still waits for a message
    dist.barrier()
    dist.destroy_process_group()
    # As in 09's ddp.py: a thread of Gloo's could abort Python at its end.
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    main(settings())
