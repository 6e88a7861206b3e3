r"""ddp.py in the steps of 05: from weights of 05, in its order of the images.

    scaleout run labs/09_networks/twin.py -n 2 -t 1 \
        --python .side/torch/bin/python -- --begin A.npz --end B.npz

A and B are checkpoints of 05, before and after its training. You will see what
ddp.py prints, and the loss of the network in B: is it the same one? The record
has the largest difference of a weight. It takes 15 seconds. There is nothing
to fill in here.
"""

import argparse
from collections.abc import Iterator

import ddp
import numpy as np
import torch
from torch.utils.data import DistributedSampler

from scaleout import data, records


class OrderOf05(DistributedSampler):
    """PyTorch's sampler, but the order is drawn as in 05."""

    def __iter__(self) -> Iterator[int]:
        shuffle = np.random.default_rng([self.seed, self.epoch])
        order = shuffle.permutation(len(self.dataset))  # (n,)
        return iter(order[self.rank::self.num_replicas].tolist())


def network(file: str) -> ddp.Network:
    """The network with the weights of a checkpoint of 05."""
    model = ddp.Network()
    with np.load(file) as kept, torch.no_grad():
        # The first array counts epochs.
        for at, weight in enumerate(model.parameters(), 1):
            values = torch.from_numpy(kept[f"arr_{at}"])
            if values.ndim == 4:  # (5, 5, in, out)
                values = values.permute(3, 2, 0, 1)  # (out, in, 5, 5)
            if values.ndim == 2:  # (in, out)
                values = values.T  # (out, in)
            weight.copy_(values)
    return model


def apart(one: ddp.Network, other: ddp.Network) -> float:
    """The largest difference of a weight, as a share of the largest weight."""
    pairs = [(a.detach(), b.detach()) for a, b
             in zip(one.parameters(), other.parameters(), strict=True)]
    most = max(float((a - b).abs().max()) for a, b in pairs)
    return most / max(float(b.abs().max()) for _, b in pairs)


def main(args: argparse.Namespace) -> None:
    after = network(args.end)
    before = network(args.begin)
    # What ddp.py makes for itself otherwise.
    ddp.Network = lambda: before
    ddp.DistributedSampler = OrderOf05
    ddp.main(args)

    *_, x_test, y_test = map(torch.from_numpy, data.digits())
    _, loss = ddp.test(after, x_test.reshape(-1, 1, 28, 28), y_test)
    # Distributed: one report, not one from each rank
    if ddp.dist.get_rank() == 0:
        print(f"loss of 05: {loss:.4f}", flush=True)
        records.write(lab="09_networks", variant="05",
                      metrics={"loss": loss, "apart": apart(before, after)})


if __name__ == "__main__":
    parser = ddp.parser(__doc__)
    parser.add_argument("--begin", required=True,
                        help="a checkpoint of 05 to begin with")
    parser.add_argument("--end", required=True,
                        help="one that 05 has trained from it")
    main(parser.parse_args())
    ddp.leave()
