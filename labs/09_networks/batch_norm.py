r"""What the seven changes do not average: batch normalisation's own numbers.

    scaleout run labs/09_networks/batch_norm.py -n 2 -t 1 \
        --python .side/torch/bin/python

After `make torch`. Each rank has digits of its own: with two ranks, one has 0
to 4, the other 5 to 9. You will see how many test images the network of each
rank gets right, and how many once the moving averages are averaged, too. It
takes 5 seconds. There is nothing to fill in here.
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


def main() -> None:
    # Distributed: as in ddp.py
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    ranks = dist.get_world_size()
    torch.manual_seed(0)
    x, y, x_test, y_test = map(torch.from_numpy, data.digits())
    # Distributed: neighbouring digits on each rank, to show it at its worst
    order = y.argsort().tensor_split(ranks)[rank]
    own = network()
    # Distributed: batch norm's moving averages stay each rank's own
    model = DistributedDataParallel(own, broadcast_buffers=False)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for _ in range(STEPS):
        rows = order[torch.randint(len(order), (BATCH,))]
        loss = nn.functional.cross_entropy(model(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    moving = own[2].running_mean, own[2].running_var
    weights = records.digest([w.detach() for w in own.parameters()])
    apart = records.digest([values.clone() for values in moving])
    own.eval()
    alone, _ = ddp.test(own, x_test, y_test)
    for values in moving:
        # Distributed: the sum over all ranks
        dist.all_reduce(values)
        values /= ranks
    averaged, _ = ddp.test(own, x_test, y_test)
    # Distributed: what each rank holds
    found = records.gather({"weights": weights, "moving": apart,
                            "alone": alone, "averaged": averaged})
    # Distributed: one report, not one from each rank
    if rank == 0:
        for at, mine in enumerate(found):
            print(f"rank {at}: weights {mine['weights'][:6]}, moving averages "
                  f"{mine['moving'][:6]}, {mine['alone']:.1%} right",
                  flush=True)
        print(f"with averaged moving averages: {averaged:.1%} right",
              flush=True)
        records.write(lab="09_networks", variant="batch norm", ranks=ranks,
                      batch_per_rank=BATCH, metrics={"found": found})


if __name__ == "__main__":
    Parser(__doc__).parse_args()
    main()
    ddp.leave()
