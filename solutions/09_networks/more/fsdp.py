r"""What does a rank keep: everything, or its own part? DDP beside FSDP.

    scaleout run solutions/09_networks/more/fsdp.py -n 2 -t 1 \
        --python .side/torch/bin/python

After `make torch`. Under DistributedDataParallel (DDP) each rank keeps all
weights, gradients and numbers of the optimizer. Under fully sharded data
parallelism (FSDP) it keeps its own part, and borrows the weights of a layer
while it works on that layer. You will see the MiB of both, after 10 seconds.
"""

import argparse
import os
import sys

from scaleout import records
from scaleout.kit.flags import Parser, one_or_more, refuse

try:
    import torch
except ModuleNotFoundError:
    refuse("PyTorch is not in this Python: type  make torch, then run "
           "this with  --python .side/torch/bin/python")

import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel

MIB = 2**20
BATCH = 8  # rows of a step on each rank


def settings() -> argparse.Namespace:
    """What was typed behind the name of this file."""
    parser = Parser(__doc__)
    parser.add_argument("--layers", type=one_or_more, default=6,
                        help="dense layers (6)")
    parser.add_argument("--width", type=one_or_more, default=1024,
                        help="numbers that go into a layer, and out (1024)")
    parser.add_argument("--steps", type=one_or_more, default=3,
                        help="training steps (3)")
    return parser.parse_args()


def network(args: argparse.Namespace) -> nn.Sequential:
    """Equal dense layers, with the same weights in each call."""
    torch.manual_seed(0)
    layers = [nn.Sequential(nn.Linear(args.width, args.width), nn.Tanh())
              for _ in range(args.layers)]
    return nn.Sequential(*layers)


def kept_mib(tensors) -> float:
    """MiB of what this rank itself keeps of some tensors."""
    count = 0
    for tensor in tensors:
        # FSDP's tensors know the whole, and hold a part.
        own = tensor.to_local() if hasattr(tensor, "to_local") else tensor
        count += own.numel() * own.element_size()
    return count / MIB


def trained(model: nn.Module, args: argparse.Namespace, rank: int) -> dict:
    """Some steps by Adam: the losses, and what this rank keeps."""
    optimizer = torch.optim.Adam(model.parameters())
    losses = []
    for step in range(args.steps):
        torch.manual_seed(100 * step + rank)
        x = torch.randn(BATCH, args.width)  # (batch, width)
        loss = (model(x) - x).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    weights = list(model.parameters())
    numbers = [value for state in optimizer.state.values()
               for name, value in state.items() if name != "step"]
    return {
        "losses": losses,
        "weights": kept_mib(weights),
        "gradients": kept_mib([weight.grad for weight in weights]),
        "optimizer": kept_mib(numbers),
    }


def main(args: argparse.Namespace) -> None:
    # Distributed: the ranks find each other
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    ranks = dist.get_world_size()

    # Distributed: every rank keeps everything. DDP is gone after this line, as
    # it should be before the process group is.
    whole = trained(DistributedDataParallel(network(args)), args, rank)

    model = network(args)
    mesh = init_device_mesh("cpu", (ranks,))
    for layer in model:
        # Distributed: from here on, each rank keeps its part of the layer
        fully_shard(layer, mesh=mesh)
    # Distributed: and of what no layer has
    fully_shard(model, mesh=mesh)
    parts = trained(model, args, rank)

    # Distributed: what each rank keeps
    work = records.gather({"DDP": whole, "FSDP": parts})
    if rank == 0:
        for name in ("DDP", "FSDP"):
            mine = work[0][name]
            print(f"{name}: weights {mine['weights']:.1f} MiB, gradients "
                  f"{mine['gradients']:.1f}, optimizer "
                  f"{mine['optimizer']:.1f}, last loss "
                  f"{mine['losses'][-1]:.6f}", flush=True)
        records.write(lab="09_networks", variant="fsdp", ranks=ranks,
                      batch_per_rank=BATCH, metrics={"kept": work})
    # Distributed: nobody leaves while another still waits for a message
    dist.barrier()
    dist.destroy_process_group()
    # As in ddp.py: a thread of Gloo's could abort Python at its end.
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    main(settings())
