r"""Handwritten digits, learned by several ranks at once: 05 in PyTorch.

    scaleout run solutions/09_networks/ddp.py -n 2 -t 1 \
        --python .side/torch/bin/python

After `make torch`. The network, the data and the learning rates are those of
05. DistributedDataParallel (DDP) does here what Horovod does there. You will
see the accuracy after each epoch, on images that nobody trained on, and at
the end images/s. It takes 15 seconds.
"""

import argparse
import os
import sys
from pathlib import Path

import numpy as np

from scaleout import data, records
from scaleout.kit.flags import (
    Parser,
    above_zero,
    one_or_more,
    refuse,
    zero_or_more,
)

try:
    import torch
except ModuleNotFoundError:
    refuse("PyTorch is not in this Python: type  make torch, then run "
           "this with  --python .side/torch/bin/python")

import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

BASE_BATCH = 32  # images a step that --lr is meant for


def parser(docstring: str) -> Parser:
    """What can be typed behind the name of this file."""
    parser = Parser(docstring)
    epochs = 2 if data.quick() else 12
    parser.add_argument("--epochs", type=one_or_more, default=epochs,
                        help=f"how often each image is seen ({epochs})")
    parser.add_argument("--batch-per-rank", type=one_or_more, default=32,
                        help="images a step on each rank (32)")
    parser.add_argument("--lr", type=above_zero, default=0.01,
                        help=f"learning rate at {BASE_BATCH} images a step "
                        "(0.01)")
    parser.add_argument("--schedule", default="gradual",
                        choices=["gradual", "constant", "none"],
                        help="how the learning rate is scaled (gradual)")
    parser.add_argument("--checkpoint",
                        help="folder to go on from and to keep a checkpoint")
    parser.add_argument("--seed", type=zero_or_more, default=0,
                        help="seed of the weights and of the order (0)")
    return parser


class Network(nn.Module):
    """Images, (n, 1, 28, 28), to ten logits, (n, 10)."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList([
            nn.Conv2d(1, 32, 5, padding=2),  # (n, 32, 28, 28)
            nn.Conv2d(32, 64, 5, padding=2),  # (n, 64, 14, 14)
            nn.Linear(3136, 128),
            nn.Linear(128, 10),
        ])
        for layer in self.layers:
            nn.init.kaiming_normal_(layer.weight, nonlinearity="relu")
            nn.init.zeros_(layer.bias)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """The logits of each image."""
        one, two, three, four = self.layers
        x = nn.functional.max_pool2d(one(x).relu(), 2)  # (n, 32, 14, 14)
        x = nn.functional.max_pool2d(two(x).relu(), 2)  # (n, 64, 7, 7)
        # TensorFlow keeps the channels last: the same order here.
        x = x.permute(0, 2, 3, 1).flatten(1)  # (n, 3136)
        return four(three(x).relu())


def learning_rate(epochs: float, scale: float, args: argparse.Namespace):
    """The learning rate after so many epochs, as in 05."""
    if args.schedule == "none":
        return args.lr
    if args.schedule == "constant":
        return args.lr * scale
    at = [0, args.epochs / 4, args.epochs]
    return args.lr * float(np.interp(epochs, at, [1, scale, 0]))


def test(model: nn.Module, x: torch.Tensor, y: torch.Tensor) -> tuple:
    """Accuracy and loss on images that nobody trains on."""
    with torch.no_grad():
        logits = model(x)  # (n, 10)
        loss = nn.functional.cross_entropy(logits, y)
    right = (logits.argmax(1) == y).float().mean()
    return float(right), float(loss)


def images() -> tuple:
    """What to train on, with the number of each image, and the test images."""
    x, y, x_test, y_test = map(torch.from_numpy, data.digits())
    x = x.reshape(-1, 1, 28, 28)  # (n, 28, 28, 1) before
    x_test = x_test.reshape(-1, 1, 28, 28)
    return TensorDataset(x, y, torch.arange(len(x))), x_test, y_test


def train(model: nn.Module, loader: DataLoader, optimizer, rates: list,
          books: records.Books) -> None:
    """One epoch: a step for each batch of this rank."""
    for (x, y, rows), lr in zip(loader, rates, strict=True):
        optimizer.param_groups[0]["lr"] = lr
        with books.step(rows=rows, learning_rates=lr, firsts=int(rows[0])):
            logits = model(x)  # (batch, 10), the last one fewer
            loss = nn.functional.cross_entropy(logits, y)
            optimizer.zero_grad()
            # Distributed: DDP sends gradients while others are computed
            loss.backward()
            optimizer.step()


def take_checkpoint(file: Path, model: nn.Module, optimizer) -> int:
    """Goes on from a checkpoint, if there is one; the epochs it has done."""
    if not file.exists():
        return 0
    kept = torch.load(file)
    model.load_state_dict(kept["model"])
    optimizer.load_state_dict(kept["optimizer"])
    return kept["epochs"]


def keep_checkpoint(file: Path, epochs: int, weights: dict, optimizer) -> None:
    """Under another name first: so the file is always whole."""
    partial = file.with_name(f"partial-{os.getpid()}.pt")
    torch.save({"epochs": epochs, "model": weights,
                "optimizer": optimizer.state_dict()}, partial)
    partial.rename(file)


def main(args: argparse.Namespace) -> None:
    # TODO 1: start the process group with the backend "gloo", and ask dist
    # which rank this is, of how many.  (3 lines)
    # BEGIN SOLUTION
    # Distributed: the ranks find each other, by RANK, WORLD_SIZE and so on
    dist.init_process_group("gloo")
    # Distributed: which copy of the program this is
    rank = dist.get_rank()
    # Distributed: how many copies there are
    ranks = dist.get_world_size()
    # STARTER: rank = 0
    # STARTER: ranks = 1
    # END SOLUTION

    # Distributed: other weights on each rank, until TODO 3 makes them equal
    torch.manual_seed(args.seed + rank)
    model = Network()
    weights = model.state_dict()  # the network's own, not copies
    optimizer = torch.optim.SGD(model.parameters(), args.lr, momentum=0.9)
    epochs_done = 0
    if args.checkpoint:
        file = Path(args.checkpoint, "checkpoint.pt")
        # Distributed: all read it, as DDP does not hand the momentum on
        epochs_done = take_checkpoint(file, model, optimizer)
    if epochs_done >= args.epochs:
        refuse(f"{epochs_done} epochs are done: ask for more with --epochs.")

    digits, x_test, y_test = images()
    batch = args.batch_per_rank
    # TODO 2: this sampler gives all images to one rank, as if it were alone.
    # Tell it how many ranks there are, and which of them this is.  (1 line)
    # BEGIN SOLUTION
    # Distributed: the same order on all ranks, dealt like cards
    sampler = DistributedSampler(digits, ranks, rank, seed=args.seed)
    # STARTER: sampler = DistributedSampler(digits, 1, 0, seed=args.seed)
    # END SOLUTION
    loader = DataLoader(digits, batch, sampler=sampler)

    drawn = records.digest(list(weights.values()))
    # TODO 3: wrap the model in DistributedDataParallel. That gives all ranks
    # the weights of rank 0, and averages each gradient.  (1 line)
    # BEGIN SOLUTION
    # Distributed: begins equal, and backward() leaves averaged gradients
    model = DistributedDataParallel(model)
    # STARTER: pass
    # END SOLUTION

    # TODO 4: the learning rate grows with the images of one step, those of
    # all ranks together, over BASE_BATCH.  (1 line)
    # BEGIN SOLUTION
    # Distributed: there are fewer steps, and each averages more images
    scale = batch * ranks / BASE_BATCH
    # STARTER: scale = batch / BASE_BATCH
    # END SOLUTION

    books = records.Books("09_networks", rank, ranks, rows=len(digits),
                          weights=weights.values())
    wrote = []
    for epoch in range(epochs_done, args.epochs):
        # TODO 5: tell the sampler which epoch begins, so that it draws
        # another order.  (1 line)
        # BEGIN SOLUTION
        # Distributed: another order, and the same one on all ranks
        sampler.set_epoch(epoch)
        # STARTER: pass
        # END SOLUTION
        rates = [learning_rate(epoch + step / len(loader), scale, args)
                 for step in range(len(loader))]
        train(model, loader, optimizer, rates, books)
        # Distributed: the weights are equal, so each rank finds the same
        accuracy, lost = test(model, x_test, y_test)
        books.log(accuracy=accuracy, losses=lost)
        # Distributed: one line, not one from each rank
        if rank == 0:
            print(f"epoch {epoch + 1}: accuracy {accuracy:.2%}, "
                  f"loss {lost:.4f}", flush=True)
        # TODO 6: let one rank alone keep the checkpoint.  (1 line)
        # BEGIN SOLUTION
        # Distributed: all hold the same; two writers could damage the file
        keeps = rank == 0
        # STARTER: keeps = True
        # END SOLUTION
        if args.checkpoint and keeps:
            keep_checkpoint(file, epoch + 1, weights, optimizer)
            wrote.append(epoch + 1)

    books.note(drawn=drawn, wrote=wrote)
    # Distributed: one record of all ranks; the slowest of them counts
    record = books.write(variant=f"ddp {args.schedule}", batch_per_rank=batch,
                         seed=args.seed, rate_unit="images/s",
                         images=len(digits), torch=torch.__version__)
    if rank == 0:
        print(f"{ranks} rank(s): {record['rate']:.0f} images/s, "
              f"accuracy {accuracy:.2%}", flush=True)


def leave() -> None:
    """The ranks part, once DDP is gone with main.

    Were it the last to hold the process group, it would free it at its own
    end, and may then wait for ever.
    """
    if not dist.is_initialized():
        return
    # Distributed: nobody leaves while another still waits for a message
    dist.barrier()
    # Distributed: the opposite of init_process_group
    dist.destroy_process_group()
    # A thread of Gloo's that lets go of its last message while Python ends
    # would abort the process. So Python does not end: the process does.
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    main(parser(__doc__).parse_args())
    leave()
