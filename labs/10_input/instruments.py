"""What the checks look at: who reads, who changes, what is made ahead.

    mpirun -n 2 python -m mpi4py labs/10_input/instruments.py

It takes 5 seconds. The pipeline of runme.py has 41 numbers in place of
pictures, and whoever reads or changes one is counted. Several pipelines, such
as --pipelines parallel batch+cache, are watched one after another. There is
nothing to fill in here.
"""

import os
import re
import threading
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
import numpy as np
import tensorflow as tf

# Distributed: this import also starts MPI
from mpi4py import MPI
from runme import STEPS, input_pipeline, my_images, steps_of

from scaleout import records
from scaleout.kit.flags import Parser

IMAGES = 41
WORKERS = 4
BATCH = 8
EPOCHS = 2
READ_S = 0.01  # so long somebody reads, for others to be seen beside it
AHEAD_S = 3.0  # after which nobody is working ahead
QUIET_S = 0.5  # after which nobody reads any more
CHANGED = {3: "image", 4: "batch"}  # by the rank of what is changed


class Counters:
    """Stands in for `read` and `augment`, and counts their calls."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.reading = 0
        self.most_at_once = 0
        self.read = []
        self.changed = set()

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
        self.changed.add(CHANGED.get(image.shape.rank, "batch of batches"))
        return image + 1000 * (epoch + 1)

    def made_ahead(self, many: int) -> bool:
        """Whether so many images are read while nobody asks for them."""
        until = time.monotonic() + AHEAD_S
        while len(self.read) < many:
            if time.monotonic() > until:
                return False
            time.sleep(0.02)
        # There may be more to come: some would not stop at two batches.
        before = 0
        while len(self.read) > before:
            before = len(self.read)
            time.sleep(QUIET_S)
        return True


def observe(use: list, mine: np.ndarray) -> dict:
    """What one pipeline does, from its first number to its last."""
    counters = Counters()
    found = {"mine": mine.tolist(), "error": None, "ahead": None, "out": []}
    try:
        for images, numbers, epoch in input_pipeline(
                mine, counters.read_image, counters.change, use, BATCH,
                WORKERS, epochs=EPOCHS):
            if found["ahead"] is None:
                # Of the two batches after the first, the last image. Without
                # a prefetch nobody would make it, however long we wait.
                found["ahead"] = "prefetch" in use and counters.made_ahead(
                    min(3 * BATCH, len(mine)))
                found["read_ahead"] = len(counters.read)
            found["out"].append([int(epoch), numbers.numpy().ravel().tolist(),
                                 images.numpy().ravel().tolist()])
    except (TypeError, ValueError, tf.errors.OpError) as error:
        # The check says what the pipeline should be, and why it ended.
        last = str(error).strip().splitlines()[-1]
        # Without the names that TensorFlow's own rewriting makes.
        last = re.sub(r"\{\{.*\}\} |\S*<locals>\.(tf__)?|^\s*TypeError: ", "",
                      last)
        found["error"] = f"{type(error).__name__}: {last.strip()}"
    return found | {"read": counters.read, "changed": sorted(counters.changed),
                    "most_at_once": counters.most_at_once}


def main() -> None:
    parser = Parser(__doc__)
    parser.add_argument("--pipelines", nargs="+", type=steps_of,
                        default=[STEPS], metavar="STEPS",
                        help="naive, or steps with a + between them (all)")
    # Distributed: all ranks of the job
    comm = MPI.COMM_WORLD
    mine = np.asarray(my_images(np.arange(IMAGES), comm.rank, comm.size))
    for use in parser.parse_args().pipelines:
        found = records.gather(observe(use, mine))
        # Distributed: one report, not one from each rank
        if comm.rank == 0:
            records.write(lab="10_input", variant="+".join(use) or "naive",
                          ranks=comm.size, metrics={"found": found})
            for rank, each in enumerate(found):
                print(f"{'+'.join(use) or 'naive'}, rank {rank}: "
                      f"{len(each['mine'])} images, {len(each['read'])} reads "
                      f"in {EPOCHS} epochs, {each['most_at_once']} at a time",
                      flush=True)


if __name__ == "__main__":
    main()
