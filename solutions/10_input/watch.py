"""What the pipeline of runme.py does, seen from both of its ends.

    mpirun -n 2 python -m mpi4py solutions/10_input/watch.py

It takes 5 seconds. In place of pictures there are numbers, and whoever reads
or changes one is noted: how often each was read, how many at a time, what was
changed at once, what came out in which epoch, and whether a batch is made
before it is asked for. The checks look at this. Several pipelines, such as
--pipelines parallel batch+cache, are watched one after another.
"""

import argparse
import os
import threading
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
import numpy as np
import tensorflow as tf
from bookkeeping import STEPS, steps_of

# Distributed: this import also starts MPI
from mpi4py import MPI
from runme import input_pipeline, my_images, options_of

from scaleout import records
from scaleout.flags import Parser, one_or_more

READ_S = 0.01  # so long somebody reads, for others to be seen beside it
AHEAD_S = 3.0  # after which nobody is working ahead
QUIET_S = 0.5  # after which nobody reads any more


class Watch:
    """Stands in for `read` and `augment`, and notes who calls them."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.reading = 0
        self.most_at_once = 0
        self.read = []
        self.at_once = []

    def note(self, number: np.ndarray) -> np.ndarray:
        """Somebody reads this image now."""
        with self.lock:
            self.reading += 1
            self.most_at_once = max(self.most_at_once, self.reading)
            self.read.append(int(number))
        # Not all take as long, so that an order that is not kept shows.
        time.sleep(READ_S * (1 + int(number) % 3))
        with self.lock:
            self.reading -= 1
        return np.int64(number)

    def read_image(self, number: tf.Tensor) -> tf.Tensor:
        """An image of one pixel."""
        pixel = tf.numpy_function(self.note, [number], tf.int64)
        return tf.reshape(pixel, [1, 1, 1])

    def change(self, image: tf.Tensor, numbers: tf.Tensor,
               epoch: tf.Tensor) -> tf.Tensor:
        """Writes the epoch in front of the number."""
        self.at_once.append("image" if image.shape.rank == 3 else "batch")
        return image + 1000 * (epoch + 1)


def settings() -> argparse.Namespace:
    """What was typed behind the name of this file."""
    parser = Parser(__doc__)
    parser.add_argument("--pipelines", nargs="+", type=steps_of,
                        default=[STEPS], metavar="STEPS",
                        help="naive, or steps with a + between them (all)")
    parser.add_argument("--images", type=one_or_more, default=41,
                        help="how many there are (41)")
    parser.add_argument("--workers", type=one_or_more, default=4,
                        help="reads at a time (4)")
    parser.add_argument("--epochs", type=one_or_more, default=2,
                        help="how often (2)")
    args = parser.parse_args()
    args.batch_per_rank = 8
    args.skip_broken = False
    args.seed = 0
    return args


def made_ahead(watch: Watch, many: int) -> bool:
    """Whether so many images are read while nobody asks for them."""
    until = time.monotonic() + AHEAD_S
    while len(watch.read) < many:
        if time.monotonic() > until:
            return False
        time.sleep(0.02)
    # There may be more to come: some would not stop at two batches.
    while True:
        before = len(watch.read)
        time.sleep(QUIET_S)
        if len(watch.read) == before:
            return True


def observe(args: argparse.Namespace) -> None:
    """One pipeline, from its first number to its last."""
    # Distributed: all ranks of the job
    comm = MPI.COMM_WORLD
    mine = my_images(np.arange(args.images), comm.rank, comm.size)
    mine = np.asarray(mine)
    watch = Watch()
    pipeline = input_pipeline(mine, watch.read_image, watch.change, args,
                              epochs=args.epochs)
    out = []
    ahead = None
    read_ahead = 0
    batch = args.batch_per_rank
    for images, numbers, epoch in pipeline.with_options(options_of(args)):
        if ahead is None:
            # Of the two batches after the first, the last image. Without a
            # prefetch nobody would make it, however long we wait.
            ahead = "prefetch" in args.use and made_ahead(
                watch, min(3 * batch, len(mine)))
            read_ahead = len(watch.read)
        out.append([int(epoch), numbers.numpy().tolist(),
                    images.numpy().ravel().tolist()])
    found = records.gather({
        "mine": mine.tolist(),
        "read": watch.read,
        "most_at_once": watch.most_at_once,
        "changed": sorted(set(watch.at_once)),
        "ahead": ahead,
        "read_ahead": read_ahead,
        "out": out,
    })
    # Distributed: one report, not one from each rank
    if comm.rank == 0:
        records.write(lab="10_input", variant="watched", ranks=comm.size,
                      metrics={"found": found, "images": args.images})
        for rank, each in enumerate(found):
            print(f"{'+'.join(args.use) or 'naive'}, rank {rank}: "
                  f"{len(each['mine'])} images, "
                  f"{len(each['read'])} reads in {args.epochs} epochs, "
                  f"{each['most_at_once']} at a time; changed by "
                  f"{' and '.join(each['changed'])}; "
                  f"{'made' if each['ahead'] else 'not made'} ahead",
                  flush=True)


def main(args: argparse.Namespace) -> None:
    for use in args.pipelines:
        args.use = use
        observe(args)


if __name__ == "__main__":
    main(settings())
