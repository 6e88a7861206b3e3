r"""ddp.py with one slip in it, to see what that does to a training.

    scaleout run labs/09_networks/broken.py -n 2 -t 1 \
        --python .side/torch/bin/python -- --slip averaging --epochs 2

You will see what ddp.py prints, an accuracy that may look well all the same.
What went wrong stands in the record. It takes 5 seconds, and there is nothing
to fill in here.
"""

import argparse
from pathlib import Path

import ddp
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import Dataset, DistributedSampler


def undivided(images: Dataset, *which, **how) -> DistributedSampler:
    """A sampler that gives all images to each rank."""
    return DistributedSampler(images, 1, 0, **how)


class Deaf(DistributedSampler):
    """A sampler that is never told which epoch begins."""

    def set_epoch(self, epoch: int) -> None:
        """Stays in the first one."""


def begun_apart(model: nn.Module) -> DistributedDataParallel:
    """Gradients are averaged, but each rank begins with its own weights."""
    return DistributedDataParallel(model, init_sync=False)


class Apart(DistributedDataParallel):
    """All ranks begin with the weights of rank 0; nothing is averaged."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """What follows a forward pass in here, sends nothing."""
        with self.no_sync():
            return super().forward(x)


def thrown_away(model: nn.Module) -> nn.Module:
    """The model is wrapped, and the one inside is trained."""
    DistributedDataParallel(model)
    return model


take_checkpoint = ddp.take_checkpoint


def taken_by_rank_0(file: Path, model: nn.Module, optimizer) -> int:
    """The other ranks go on without the momentum of the checkpoint."""
    fresh = optimizer.state_dict()
    epochs = take_checkpoint(file, model, optimizer)
    if dist.get_rank() > 0:
        optimizer.load_state_dict(fresh)
    return epochs


# What is put in the place of what in ddp.py.
SLIPS = {
    "sharding": ("DistributedSampler", undivided),
    "set_epoch": ("DistributedSampler", Deaf),
    "start": ("DistributedDataParallel", begun_apart),
    "averaging": ("DistributedDataParallel", Apart),
    "wrapper": ("DistributedDataParallel", thrown_away),
    "checkpoint": ("take_checkpoint", taken_by_rank_0),
}


def main(args: argparse.Namespace) -> None:
    setattr(ddp, *SLIPS[args.slip])
    ddp.main(args)


if __name__ == "__main__":
    parser = ddp.parser(__doc__)
    parser.add_argument("--slip", choices=list(SLIPS), required=True,
                        help="what goes wrong")
    main(parser.parse_args())
    ddp.leave()
