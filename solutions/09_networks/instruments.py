r"""What the checks look at: steps without a network, and who had which images.

    mpirun -n 2 python -m mpi4py solutions/09_networks/instruments.py

It takes 2 seconds. In runme.py there is, in place of a network, one that
sleeps, alone for longer than together: so the efficiency is more than 2. Its
loss is the number of images that it was given.

    scaleout run solutions/09_networks/instruments.py -n 2 -t 1 \
        --python .side/torch/bin/python -- --ddp --epochs 2

After `make torch`, in 10 seconds. That is ddp.py, and the record also holds
the images and the learning rate of each step on each rank. You will see what
the script prints. There is nothing to fill in here.
"""

import itertools
import os
import sys
import time

import numpy as np

from scaleout import records

# One step takes longer, so that a mean is no median.
STEPS_S = {"alone": [0.02, 0.08, 0.02, 0.02],
           "together": [0.008, 0.008, 0.008, 0.024]}
FLOPS = 31_415_926.0  # of one image
PARAMETERS = 27_182


class Sleeper:
    """Stands in for the network and its two steps."""

    flops_per_image = FLOPS
    parameters = PARAMETERS

    def __init__(self) -> None:
        self.next = {way: itertools.cycle(times)
                     for way, times in STEPS_S.items()}

    def begin_together(self) -> None:
        """There is nothing to make equal."""

    def leave(self) -> None:
        """There is nothing to end."""

    def batch(self, *images_and_labels: np.ndarray) -> tuple:
        """As they are."""
        return images_and_labels

    def alone(self, x: np.ndarray, y: np.ndarray, way: str = "alone"):
        """A step of a copy; the number of its images."""
        time.sleep(next(self.next[way]))
        return float(len(x))

    def together(self, x: np.ndarray, y: np.ndarray) -> float:
        """A step of all ranks; the number of this rank's images."""
        return self.alone(x, y, "together")


class Books(records.Books):
    """Books in which every rank notes what only rank 0 would tell."""

    sampler = None  # the one that ddp.py makes

    def write(self, **about) -> dict:
        """Writes the record, with what each rank did in each step."""
        made = self.sampler
        self.note(rows=[[int(number) for number in rows]
                        for rows in self._rows],
                  rates=list(self._logged["learning_rates"]),
                  seed=int(made.seed) if made else None,
                  told=made.told if made else [])
        return super().write(**about)


def without_a_network() -> None:
    """runme.py, whose steps only sleep."""
    import runme

    runme.trainer = lambda args, seed: Sleeper()
    runme.main(runme.settings())


def with_books_of_each_rank() -> None:
    """ddp.py, whose ranks note what they do."""
    import ddp

    class Sampler(ddp.DistributedSampler):
        """PyTorch's, which also keeps the epochs that it was told."""

        def __init__(self, *which, **how) -> None:
            super().__init__(*which, **how)
            self.told, Books.sampler = [], self

        def set_epoch(self, epoch: int) -> None:
            """The number of the epoch that begins."""
            self.told.append(int(epoch))
            super().set_epoch(epoch)

    own = ddp.take_checkpoint

    def take_checkpoint(*where) -> int:
        """The lab's; no rank goes on, and writes one, while others read."""
        if not ddp.dist.is_initialized():
            return 0  # each is alone, and may find what another wrote
        done = own(*where)
        ddp.dist.barrier()
        return done

    # Distributed: a local rank counts within its machine
    os.environ.update(LOCAL_RANK="0", LOCAL_WORLD_SIZE="1")
    ddp.take_checkpoint = take_checkpoint
    ddp.DistributedSampler = Sampler
    ddp.records.Books = Books
    ddp.main(ddp.parser(ddp.__doc__).parse_args())
    ddp.leave()


if __name__ == "__main__":
    if "--ddp" in sys.argv:
        sys.argv.remove("--ddp")
        with_books_of_each_rank()
    else:
        without_a_network()
