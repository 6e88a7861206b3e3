r"""What the checks look at: which rank had which images, and when.

    scaleout run solutions/09_networks/instruments.py -n 2 -t 1 \
        --python .side/torch/bin/python -- --epochs 2

After `make torch`, in 10 seconds. That is ddp.py, and the record also holds
the images and the learning rate of each step on each rank. You will see what
the script prints. There is nothing to fill in here.
"""

import os

from scaleout import records


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
    with_books_of_each_rank()
