"""Trains on pictures that come from files: do they arrive in time?

    mpirun -n 2 python -m mpi4py solutions/10_input/runme.py

Each rank decodes, augments and trains on its own images; start it on any
number of ranks. You will see images/s, and which share of a step each rank
waited for its images. It takes about 15 seconds. With --step-ms 20 a step is
20 ms of waiting, as for a device that computes while these cores are free.
SCALEOUT_CROPS names a folder of images of your own.
"""

import argparse
import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
from collections.abc import Callable

import numpy as np
import tensorflow as tf
from files import examples, explained
from images import SEED, SIDE, augment, read_image

# Distributed: this import also starts MPI
from mpi4py import MPI
from networks import Training

from scaleout import records
from scaleout.kit.flags import Parser, refuse, zero_or_more

BATCH = 64  # images in a step of a rank
STEPS = ["parallel", "batch", "cache", "prefetch"]


def steps_of(text: str) -> list:
    """The steps of a pipeline, such as parallel+batch."""
    use = [] if text == "naive" else text.split("+")
    for step in use:
        if step not in [*STEPS, "one-batch"]:
            raise argparse.ArgumentTypeError(
                f"it takes naive, or some of {', '.join(STEPS)}, one-batch "
                f"with a + between them, not {text}")
    return use


def settings() -> argparse.Namespace:
    """What was typed behind the name of this file."""
    parser = Parser(__doc__)
    parser.add_argument("--use", type=steps_of, default=STEPS,
                        metavar="STEPS",
                        help="naive, or steps with a + between them (all "
                        "four); one-batch: the first batch again and again")
    parser.add_argument("--step-ms", type=zero_or_more,
                        help="a device's step of so many ms, during which "
                        "these cores are free (the small network)")
    parser.add_argument("--steps", type=zero_or_more, default=0,
                        help="steps (0: two epochs)")
    parser.add_argument("--checkpoint",
                        help="a folder: go on from where the last job with it "
                        "stopped (from the start)")
    return parser.parse_args()


def my_images(numbers: np.ndarray, rank: int, ranks: int) -> np.ndarray:
    """Which of all images this rank reads, in every epoch."""
    # TODO 1: deal the numbers out like cards, so that each image is on exactly
    # one rank, and no rank has two more than another.  (1 line)
    # BEGIN SOLUTION
    # Distributed: the images of this rank
    return numbers[rank::ranks]
    # STARTER: return numbers
    # END SOLUTION


def input_pipeline(mine: np.ndarray, read: Callable, change: Callable,
                   use: list, batch: int, workers: int = 2, first: int = 0,
                   done: int = 0, epochs: int = 1) -> tf.data.Dataset:
    """Batches of (images, numbers, epoch) from epoch `first` on.

    mine: the numbers of this rank's images. `read` makes an image of a number,
    `change` augments it. Of the first epoch, `done` images are left out.
    """
    numbers = tf.data.Dataset.from_tensor_slices(mine)
    at_once = workers or tf.data.AUTOTUNE
    if "parallel" not in use:
        at_once = None

    def decoded(some: tf.data.Dataset) -> tf.data.Dataset:
        """Numbers to (image, number)."""
        # TODO 2: read `at_once` images at a time: map() takes that as
        # num_parallel_calls.  (1 to 2 lines)
        # BEGIN SOLUTION
        images = some.map(lambda i: (read(i), i), num_parallel_calls=at_once)
        # STARTER: images = some.map(lambda i: (read(i), i))
        # END SOLUTION
        return images

    def shuffled(some: tf.data.Dataset, epoch: tf.Tensor) -> tf.data.Dataset:
        """In an order that follows from the seed and the epoch alone."""
        order = some.shuffle(len(mine), seed=1000 * SEED + epoch,
                             reshuffle_each_iteration=False)
        return order.skip(tf.where(epoch == first, np.int64(done), 0))

    kept = None
    if "cache" in use:
        # TODO 3: keep what `decoded` makes of all numbers in memory, by
        # cache(), so that each file is decoded once.  (1 line)
        # BEGIN SOLUTION
        kept = decoded(numbers).cache()
        # STARTER: kept = None
        # END SOLUTION

    def one_epoch(epoch: tf.Tensor) -> tf.data.Dataset:
        # Numbers are small: without a cache, shuffle them and then read.
        images = (decoded(shuffled(numbers, epoch)) if kept is None
                  else shuffled(kept, epoch))

        def changed(image: tf.Tensor, number: tf.Tensor) -> tuple:
            return change(image, number, epoch), number

        def named(images: tf.Tensor, some: tf.Tensor) -> tuple:
            return images, some, epoch

        if "batch" not in use:
            return images.map(changed).batch(batch).map(named)
        # TODO 4: the same two in the other order, so that `changed` is called
        # once for a batch, and not once for an image.  (1 line)
        # BEGIN SOLUTION
        batches = images.batch(batch).map(changed)
        # STARTER: batches = images.map(changed).batch(batch)
        # END SOLUTION
        return batches.map(named)

    every = tf.data.Dataset.range(first, first + epochs).flat_map(one_epoch)
    if "one-batch" in use:
        every = every.take(1).cache().repeat()
    if "prefetch" in use:
        # TODO 5: make two batches ahead, while the step computes.  (1 line)
        # BEGIN SOLUTION
        every = every.prefetch(2)
        # STARTER: every = every
        # END SOLUTION
    options = tf.data.Options()
    options.threading.private_threadpool_size = workers  # for input alone
    # TensorFlow would add parallel maps and a prefetch by itself: each of our
    # steps is to be seen alone.
    options.experimental_optimization.inject_prefetch = False
    options.experimental_optimization.apply_default_optimizations = False
    return every.with_options(options)


def main(args: argparse.Namespace) -> None:
    # Distributed: all ranks of the job
    comm = MPI.COMM_WORLD
    rank = comm.rank
    ranks = comm.size
    paths, labels = examples(ranks)
    mine = my_images(np.arange(len(paths)), rank, ranks)
    # Distributed: all make as many steps as the rank with most images
    most = comm.allreduce(len(mine), op=MPI.MAX)
    steps_an_epoch = -(-most // BATCH)
    steps = args.steps or 2 * steps_an_epoch

    training = Training(SIDE, args.step_ms)
    # A checkpoint holds the steps done, the number of ranks, and the weights.
    place = tf.Variable([0, ranks], dtype=tf.int64)
    state = [place, *training.variables]
    if args.checkpoint:
        records.take_checkpoint(args.checkpoint, state)
    done, ranks_before = place.numpy().tolist()
    if ranks != ranks_before:
        refuse(f"The checkpoint is of {ranks_before} ranks: in the middle of "
               "an epoch it goes on with as many.")
    epoch, at = divmod(done, steps_an_epoch)
    files = tf.constant(paths)
    arriving = iter(input_pipeline(
        mine, lambda number: read_image(files[number]), augment, args.use,
        BATCH, first=epoch, done=at * BATCH,
        epochs=-(-(at + steps) // steps_an_epoch)))

    # The first epoch is a warm-up: it fills the cache.
    warmup = min(steps_an_epoch - at, steps - 1)
    books = records.Books("10_input", rank, ranks, warmup=warmup,
                          rows=len(paths), weights=state)
    order = []
    ready = None
    for step in range(steps):
        epoch = (done + step) // steps_an_epoch
        when = "warmup_" if step < warmup else ""
        numbers = []  # of this step's images
        with books.step(rows=numbers):
            with books.time(f"{when}wait"):
                if ready is None:
                    ready = next(arriving, None)
            with books.time(f"{when}compute"):
                again = "one-batch" in args.use
                if ready is not None and (again or int(ready[2]) == epoch):
                    images, some, _ = ready
                    training.step(images, labels[some])
                    numbers.extend(some.numpy())
                    ready = None
                # else: a rank with fewer images goes along without any
            with books.time(f"{when}others"):
                # Distributed: here the gradients would be averaged (05), and
                # that waits for the rank whose images came last
                comm.Barrier()
        order.append(records.digest([numbers]))

    place.assign([done + steps, ranks])
    # Distributed: one rank writes
    if args.checkpoint and rank == 0:
        books.keep_checkpoint(args.checkpoint, done + steps)
    books.note(order=order)
    # Distributed: one record of all ranks; the slowest of them counts
    record = books.write(variant="+".join(args.use) or "naive",
                         batch_per_rank=BATCH, seed=SEED, rate_unit="images/s",
                         step_ms=args.step_ms, images=len(paths))
    # Distributed: one report, not one from each rank
    if rank == 0:
        waits = []
        for share in record["metrics"]["shares"]:
            parts_s = [share[f"{part}_s"]
                       for part in ("wait", "compute", "others")]
            waits.append(f"{parts_s[0] / sum(parts_s):.0%}")
        print(f"{record['rate']:,.0f} images/s; each rank's wait for images: "
              f"{', '.join(waits)} of a step", flush=True)
        if training.right:
            print("accuracy in the last batches: "
                  f"{np.mean(training.right[-20:]):.0%}", flush=True)


if __name__ == "__main__":
    asked = settings()
    problem = None
    try:
        main(asked)
    except tf.errors.OpError as error:
        problem = explained(error)
    if problem:
        # Distributed: whoever finds it ends the job for all
        raise SystemExit(problem)
