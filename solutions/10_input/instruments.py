"""What the checks look at: who reads, who changes, what is made ahead.

    mpirun -n 2 python -m mpi4py solutions/10_input/instruments.py

It takes 5 seconds. The pipeline of runme.py has 41 numbers in place of
pictures, and whoever reads or changes one is counted. Several pipelines, such
as --pipelines parallel batch+cache, are watched one after another; with --deal
none is, and you see only which images each rank is dealt. There is nothing to
fill in here.
"""

import os
import re
import threading
import time
import traceback
from collections.abc import Callable

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
ENDLESS = 3  # times as much as is there


def noted(name: str, default: object, calls: list) -> Callable:
    """A method of datasets that notes what it is called with."""
    call = getattr(tf.data.Dataset, name)

    @tf.autograph.experimental.do_not_convert
    def method(self, *args, **named):
        calls.append(str([*args, *named.values(), default][0]))
        return call(self, *args, **named)

    return method


CACHED, PREFETCHED = [], []  # the names of files, and the numbers of batches
tf.data.Dataset.cache = noted("cache", "", CACHED)
tf.data.Dataset.prefetch = noted("prefetch", "none", PREFETCHED)


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

    def made_ahead(self, many: int) -> None:
        """Waits for so many images to be read while nobody asks for them."""
        until = time.monotonic() + AHEAD_S
        while len(self.read) < many:
            if time.monotonic() > until:
                return
            time.sleep(0.02)
        # There may be more to come: some would not stop at two batches.
        before = 0
        while len(self.read) > before:
            before = len(self.read)
            time.sleep(QUIET_S)


def told(error: Exception) -> str:
    """What ended it, and in which line of runme.py."""
    last = str(error).strip().splitlines()[-1:]
    # Without the names that TensorFlow's own rewriting makes.
    last = re.sub(r"\{\{.*\}\} |\S*<locals>\.(tf__)?|^\s*\w+Error: ", "",
                  "".join(last))
    lines = [frame.lineno for frame in traceback.extract_tb(
        error.__traceback__) if os.path.basename(frame.filename) == "runme.py"]
    where = f" (line {lines[-1]} of runme.py)" if lines else ""
    return f"{type(error).__name__}: {last.strip()}{where}"


def dealt(rank: int, ranks: int) -> dict:
    """The images of a rank, as they would go into its pipeline."""
    found = {"numbers": [], "kind": "", "error": None}
    try:
        mine = my_images(np.arange(IMAGES), rank, ranks)
        if mine is None:
            raise TypeError("None. Are they given back by return?")
        found["kind"] = np.asarray(mine).dtype.kind
        numbers = tf.data.Dataset.from_tensor_slices(mine)
        found["numbers"] = [each.numpy().item() for each in numbers]
        len(mine)
    except Exception as error:
        found["error"] = told(error)
    return found


def resumed(use: list, mine: np.ndarray) -> list:
    """The numbers of epoch 1 after the first batch, in a job that goes on."""
    counters = Counters()
    batches = input_pipeline(mine, counters.read_image, counters.change, use,
                             BATCH, WORKERS, first=1, done=BATCH)
    return [number for _, numbers, _ in batches.take(IMAGES)
            for number in numbers.numpy().ravel().tolist()]


def observe(use: list, mine: np.ndarray) -> dict:
    """What one pipeline does, from its first number to its last."""
    counters = Counters()
    CACHED.clear()
    PREFETCHED.clear()
    found = {"mine": mine.tolist(), "error": None, "read_ahead": None,
             "endless": False, "resumed": None, "out": []}
    arrived = 0
    try:
        for images, numbers, epoch in input_pipeline(
                mine, counters.read_image, counters.change, use, BATCH,
                WORKERS, epochs=EPOCHS):
            if found["read_ahead"] is None:
                # Of the two batches after the first, the last image. Without
                # a prefetch nobody would make it, however long we wait.
                if "prefetch" in use:
                    counters.made_ahead(min(3 * BATCH, len(mine)))
                found["read_ahead"] = len(counters.read)
            found["out"].append([int(epoch), numbers.numpy().ravel().tolist(),
                                 images.numpy().ravel().tolist()])
            arrived += numbers.numpy().size
            if arrived > ENDLESS * EPOCHS * len(mine):
                found["endless"] = True
                break
        if "cache" in use and not found["endless"]:
            found["resumed"] = resumed(use, mine)
    except Exception as error:
        # The check says what the pipeline should be, and why it ended.
        found["error"] = told(error)
    return found | {"read": list(counters.read), "cached": list(CACHED),
                    "changed": sorted(counters.changed),
                    "prefetched": list(PREFETCHED),
                    "most_at_once": counters.most_at_once}


def main() -> None:
    parser = Parser(__doc__)
    parser.add_argument("--pipelines", nargs="+", type=steps_of,
                        default=[STEPS], metavar="STEPS",
                        help="naive, or steps with a + between them (all)")
    parser.add_argument("--deal", action="store_true",
                        help="deal the images, and watch no pipeline")
    args = parser.parse_args()
    # Distributed: all ranks of the job
    comm = MPI.COMM_WORLD
    deals = records.gather(dealt(comm.rank, comm.size))
    # Distributed: one report, not one from each rank
    if comm.rank == 0:
        records.write(lab="10_input", variant="deal", ranks=comm.size,
                      metrics={"found": deals})
        sizes = ", ".join(str(len(deal["numbers"])) for deal in deals)
        print(f"images on each rank: {sizes}", flush=True)
    # A deal of our own: each pipeline is seen alone.
    mine = np.arange(IMAGES)[comm.rank::comm.size]
    for use in [] if args.deal else args.pipelines:
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
