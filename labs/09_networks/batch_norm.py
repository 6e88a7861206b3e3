r"""What the seven changes do not average: batch normalisation's own numbers.

    scaleout run labs/09_networks/batch_norm.py -n 2 -t 1 \
        --python .side/torch/bin/python

After `make torch`. Two trainings: in the first, each rank has digits of its
own, with two ranks one has 0 to 4, the other 5 to 9; in the second, the images
are shuffled. You will see how many test images the network of each rank gets
right, and how many once the moving averages are averaged, too. It takes 5
seconds. There is nothing to fill in here.
"""

import ddp
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from scaleout import data, records
from scaleout.kit.flags import Parser

STEPS = 60
BATCH = 64  # images of a step on each rank


def network() -> nn.Sequential:
    """Two dense layers with batch normalisation between them."""
    return nn.Sequential(
        nn.Flatten(), nn.Linear(784, 64), nn.BatchNorm1d(64), nn.ReLU(),
        nn.Linear(64, 10))


def train(own: nn.Module, x: torch.Tensor, y: torch.Tensor,
          mine: torch.Tensor) -> None:
    """Some steps, on batches of this rank's images."""
    # Distributed: batch norm's moving averages stay each rank's own
    model = DistributedDataParallel(own, broadcast_buffers=False)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for _ in range(STEPS):
        rows = mine[torch.randint(len(mine), (BATCH,))]
        loss = nn.functional.cross_entropy(model(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def look(own: nn.Module, *tests: torch.Tensor) -> dict:
    """What this rank holds, and what it gets right: as it is, and once the
    moving averages are averaged, too."""
    moving = mean, var = own[2].running_mean, own[2].running_var
    found = {"weights": records.digest([w.detach() for w in own.parameters()]),
             "moving": records.digest([values.clone() for values in moving])}
    own.eval()
    found["alone"], _ = ddp.test(own, *tests)
    # The mean of the squares, as the ranks' means are apart, too.
    var += mean**2
    for values in moving:
        # Distributed: the sum over all ranks
        dist.all_reduce(values)
        values /= dist.get_world_size()
    var -= mean**2
    found["averaged"], _ = ddp.test(own, *tests)
    return found


def main() -> None:
    # Distributed: as in ddp.py
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    ranks = dist.get_world_size()
    x, y, *tests = map(torch.from_numpy, data.digits())
    # Neighbouring digits on each rank, to show it at its worst; then not.
    orders = {"own digits": y.argsort(),
              "shuffled": torch.randperm(
                  len(y), generator=torch.Generator().manual_seed(0))}
    found = []
    for images, order in orders.items():
        torch.manual_seed(0)
        own = network()
        # Distributed: each rank has its part
        train(own, x, y, order.tensor_split(ranks)[rank])
        mine = {"images": images, "rank": rank, **look(own, *tests)}
        # Distributed: what each rank holds
        found += records.gather(mine)
    # Distributed: one report, not one from each rank
    if rank == 0:
        for mine in found:
            print(f"{mine['images']}, rank {mine['rank']}: weights "
                  f"{mine['weights'][:6]}, moving averages "
                  f"{mine['moving'][:6]}, {mine['alone']:.1%} right, with "
                  f"averaged ones {mine['averaged']:.1%}", flush=True)
        records.write(lab="09_networks", variant="batch norm", ranks=ranks,
                      batch_per_rank=BATCH, metrics={"found": found})


if __name__ == "__main__":
    Parser(__doc__).parse_args()
    main()
    ddp.leave()
