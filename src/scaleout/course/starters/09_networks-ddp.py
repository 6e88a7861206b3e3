r"""Handwritten digits, learned by several ranks at once: 05 in PyTorch.

    scaleout run labs/09_networks/ddp.py -n 2 -t 1 \
        --python .side/torch/bin/python

After `make torch`. The network, the data, the order of the images and the
learning rates are those of 05. DistributedDataParallel (DDP) does here what
Horovod does there. You will see the accuracy after each epoch, on images that
nobody trained on, and at the end images/s. It takes 15 seconds.
"""

import argparse
import os
from pathlib import Path
from time import perf_counter, sleep

import numpy as np

from scaleout import data, records
from scaleout.flags import (
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

BASE_BATCH = 32  # images a step that --lr is meant for


def settings() -> argparse.Namespace:
    """What was typed behind the name of this file."""
    parser = Parser(__doc__)
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
    parser.add_argument("--weights",
                        help="a checkpoint of 05 whose weights to begin with")
    parser.add_argument("--checkpoint",
                        help="folder to go on from and to keep a checkpoint")
    parser.add_argument("--seed", type=zero_or_more, default=0,
                        help="seed of the weights and of the order (0)")
    return parser.parse_args()


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


def take_weights(model: Network, file: str) -> None:
    """Copies the weights of a checkpoint of 05 into the network."""
    with np.load(file) as kept, torch.no_grad():
        # The first array counts epochs.
        for at, weight in enumerate(model.parameters(), 1):
            values = torch.from_numpy(kept[f"arr_{at}"])
            if values.ndim == 4:  # (5, 5, in, out)
                values = values.permute(3, 2, 0, 1)  # (out, in, 5, 5)
            if values.ndim == 2:  # (in, out)
                values = values.T  # (out, in)
            weight.copy_(values)


class Deal:
    """The images of one rank, as a sampler of PyTorch's gives them.

    PyTorch's own, DistributedSampler, takes some images twice where they do
    not divide by the ranks. This one deals each of them once.
    """

    def __init__(self, n: int, rank: int, ranks: int, seed: int) -> None:
        self.n = n
        self.rank = rank
        self.ranks = ranks
        self.seed = seed
        self.epoch = 0

    def set_epoch(self, epoch: int) -> None:
        """The next order is that of this epoch."""
        self.epoch = epoch

    def indices(self) -> np.ndarray:
        """Which images this rank has in the epoch, in their order."""
        # Distributed: the same order on every rank
        shuffle = np.random.default_rng([self.seed, self.epoch])
        order = shuffle.permutation(self.n)  # (n,)
        # TODO 6: the images of this rank, such that the ranks together have
        # each image once: self.rank is this one, of self.ranks.  (1 line)
        return order


def learning_rate(epochs: float, scale: float, args: argparse.Namespace):
    """The learning rate after so many epochs, as in 05."""
    if args.schedule == "none":
        return args.lr
    if args.schedule == "constant":
        return args.lr * scale
    at = [0, args.epochs / 4, args.epochs]
    return args.lr * float(np.interp(epochs, at, [1, scale, 0]))


def digest(model: nn.Module) -> str:
    """A short text for all weights, equal for equal ones: bit for bit."""
    return records.digest([w.detach() for w in model.parameters()])


def main(args: argparse.Namespace) -> float:
    # TODO 5: start the process group with the backend "gloo", and ask dist
    # which rank this is, of how many.  (3 lines)
    rank = 0
    ranks = 1

    # (n, 28, 28, 1), (n,), and those to test with
    x, y, x_test, y_test = map(torch.from_numpy, data.digits())
    x = x.reshape(-1, 1, 28, 28)
    x_test = x_test.reshape(-1, 1, 28, 28)
    n = len(x)
    batch = args.batch_per_rank
    steps = -(-n // (batch * ranks))

    # Distributed: each rank draws weights of its own, as if nobody had a seed
    draw = int(os.environ.get("RANK", "0"))
    torch.manual_seed(args.seed + draw)
    model = Network()
    if args.weights:
        take_weights(model, args.weights)
    file = Path(args.checkpoint or ".", "checkpoint.pt")
    kept = None
    # Distributed: all read it, as the momentum is not handed on below
    if args.checkpoint and file.exists():
        kept = torch.load(file)
        model.load_state_dict(kept["model"])
    drawn = digest(model)

    # TODO 8: wrap the model in DistributedDataParallel. That gives all ranks
    # the weights of rank 0, and averages each gradient.  (1 line)
    pass
    start = digest(model)
    optimizer = torch.optim.SGD(model.parameters(), args.lr, momentum=0.9)
    epochs_done = 0
    if kept:
        optimizer.load_state_dict(kept["optimizer"])
        epochs_done = kept["epochs"]
    if epochs_done >= args.epochs:
        refuse(f"{epochs_done} epochs are done: ask for more with --epochs.")

    # TODO 9: the learning rate grows with the images of one step, those of
    # all ranks together, over BASE_BATCH.  (1 line)
    scale = batch / BASE_BATCH

    def test() -> tuple:
        """Accuracy and loss on the images that nobody trains on."""
        with torch.no_grad():
            logits = model(x_test)  # (m, 10)
            loss = nn.functional.cross_entropy(logits, y_test)
        right = (logits.argmax(1) == y_test).float().mean()
        return float(right), float(loss)

    sampler = Deal(n, rank, ranks, args.seed)
    step_s = []
    rates = []
    accuracy = []
    losses = [test()[1]]
    firsts = []
    wrote = []
    for epoch in range(epochs_done, args.epochs):
        # TODO 7: tell the sampler which epoch begins, so that it draws
        # another order.  (1 line)
        pass
        mine = sampler.indices()
        firsts.append(int(mine[0]))
        for step in range(steps):
            rates.append(learning_rate(epoch + step / steps, scale, args))
            for group in optimizer.param_groups:
                group["lr"] = rates[-1]
            started = perf_counter()
            rows = mine[step * batch:(step + 1) * batch]  # (batch,) or fewer
            # Distributed: mean rows per rank, so that all images count equally
            count = min(batch, n / ranks - step * batch)
            logits = model(x[rows])  # (rows, 10)
            loss = nn.functional.cross_entropy(
                logits, y[rows], reduction="sum") / count
            optimizer.zero_grad()
            # Distributed: DDP sends gradients while others are computed
            loss.backward()
            optimizer.step()
            step_s.append(perf_counter() - started)
        # Distributed: the weights are equal, so each rank finds the same
        right, lost = test()
        accuracy.append(right)
        losses.append(lost)
        # Distributed: one line, not one from each rank
        if rank == 0:
            print(f"epoch {epoch + 1}: accuracy {right:.2%}, loss {lost:.4f}",
                  flush=True)
        # TODO 10: let one rank alone keep the checkpoint.  (1 line)
        keeps = True
        if args.checkpoint and keeps:
            inside = getattr(model, "module", model)  # without DDP around it
            # Under another name first: so checkpoint.pt is always whole.
            partial = file.with_name(f"partial-{os.getpid()}.pt")
            torch.save({"epochs": epoch + 1, "model": inside.state_dict(),
                        "optimizer": optimizer.state_dict()}, partial)
            partial.rename(file)
            wrote.append(file.name)

    shares = records.gather({
        "drawn": drawn, "start": start, "end": digest(model),
        "steps": len(step_s), "firsts": firsts, "wrote": wrote,
    })
    work = records.gather({"rows": mine, "step_s": step_s})
    # Distributed: one report and one record, not one from each rank
    if rank == 0:
        # Distributed: the job is as fast as its slowest rank
        slowest_s = np.max([done["step_s"] for done in work], axis=0)
        slowest_s = slowest_s.reshape(-1, steps)  # (epochs, steps)
        # Without the last and shorter step of each epoch.
        whole = max(1, n // (batch * ranks))
        timed_s = slowest_s[:, :whole].ravel()
        warm_up = min(5, len(timed_s) - 1)
        rate = batch * ranks / np.median(timed_s[warm_up:])
        print(f"{ranks} rank(s): {rate:.0f} images/s, "
              f"accuracy {accuracy[-1]:.2%}", flush=True)
        rows = np.concatenate([done["rows"] for done in work])
        seen = np.bincount(rows, minlength=n)  # (n,)
        records.write(
            lab="09_networks",
            variant=f"ddp {args.schedule}",
            ranks=ranks,
            batch_per_rank=batch,
            seed=args.seed,
            warmup_steps=warm_up,
            step_s=timed_s[warm_up:],
            rate=rate,
            rate_unit="images/s",
            metrics={
                "accuracy": accuracy, "losses": losses, "images": n,
                "learning_rates": rates, "seen": [seen.min(), seen.max()],
                "shares": shares, "torch": torch.__version__,
            },
        )
    if dist.is_initialized():
        # Distributed: nobody leaves while another still waits for a message
        dist.barrier()
        # DDP goes first: were it the last to hold the process group, it would
        # free it at its own end, and may then wait for ever.
        del model
        dist.destroy_process_group()
        # Gloo's threads let go of the last message. A thread that does so
        # while Python ends would abort the process.
        sleep(0.1)
    return accuracy[-1]


if __name__ == "__main__":
    main(settings())
