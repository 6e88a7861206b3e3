"""Trains on pictures that come from files: do they arrive in time?

    mpirun -n 2 python -m mpi4py solutions/10_input/runme.py

Each rank decodes, augments and trains on its own images; start it on any
number of ranks. You will see images/s, and which share of a step each rank
waited for its images. It takes about 15 seconds. With --step-ms 20 a step is
20 ms of waiting, as for a device that computes while these cores are free.
"""

import argparse
import itertools
import os
import time
from collections.abc import Callable, Iterator

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
import numpy as np
import tensorflow as tf
from bookkeeping import Notes, arguments, broken_file, examples, place

# Distributed: this import also starts MPI
from mpi4py import MPI
from networks import Training

WHOLE = 128  # pixels of a side, in the files
SIDE = 64  # and of what the network sees


def read_image(path: tf.Tensor) -> tf.Tensor:
    """A JPEG file, decoded."""
    image = tf.io.decode_jpeg(tf.io.read_file(path), channels=3)
    return tf.ensure_shape(image, [WHOLE, WHOLE, 3])  # uint8


def draw(numbers: tf.Tensor, epoch: tf.Tensor, which: int) -> tf.Tensor:
    """Something like a random number in [0, 1) for each image.

    It follows from the image's number and the epoch, so that it is the same
    whoever computes it, for one image or for a batch of them.
    """
    x = tf.cast(numbers, tf.float64) * 12.9898
    x += tf.cast(epoch, tf.float64) * 78.233 + which * 37.719
    return tf.cast(tf.math.floormod(tf.sin(x) * 43758.5453, 1.0), tf.float32)


def augment(images: tf.Tensor, numbers: tf.Tensor,
            epoch: tf.Tensor) -> tf.Tensor:
    """Cuts out, mirrors and brightens, another way in each epoch.

    images: (n, 128, 128, 3) uint8, or one image without the n; to
    (n, 64, 64, 3) float32.
    """
    if images.shape.rank == 3:
        one = augment(images[None], numbers[None], epoch)
        return one[0]
    # Every one and a half pixels, beginning anywhere in the first quarter.
    steps = 0.75 * tf.range(0.5, SIDE) / SIDE  # (64,)
    rows = 0.25 * draw(numbers, epoch, 0)[:, None] + steps  # (n, 64)
    columns = 0.25 * draw(numbers, epoch, 1)[:, None] + steps  # (n, 64)
    mirrored = draw(numbers, epoch, 2)[:, None] < 0.5  # (n, 1)
    columns = tf.where(mirrored, 1 - columns, columns)
    rows = tf.cast(WHOLE * rows, tf.int32)
    columns = tf.cast(WHOLE * columns, tf.int32)
    # Where each pixel stands among those of all images.
    first = WHOLE * WHOLE * tf.range(tf.size(numbers))  # (n,)
    at = first[:, None, None] + WHOLE * rows[:, :, None] + columns[:, None, :]
    cut = tf.gather(tf.reshape(images, [-1, 3]), at)  # (n, 64, 64, 3)
    bright = (0.8 + 0.4 * draw(numbers, epoch, 3)) / 255  # (n,)
    return tf.cast(cut, tf.float32) * bright[:, None, None, None]


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
                   args: argparse.Namespace, first: int = 0,
                   done: int = 0, epochs: int = 1) -> tf.data.Dataset:
    """Batches of (images, numbers, epoch) from epoch `first` on.

    mine: the numbers of this rank's images. `read` makes an image of a number,
    `change` augments it. Of the first epoch, `done` images are left out.
    """
    numbers = tf.data.Dataset.from_tensor_slices(mine)
    workers = args.workers or tf.data.AUTOTUNE
    at_once = workers if "parallel" in args.use else None

    def decoded(some: tf.data.Dataset) -> tf.data.Dataset:
        """Numbers to (image, number)."""
        # TODO 2: read `at_once` images at a time: map() takes that as
        # num_parallel_calls.  (1 to 2 lines)
        # BEGIN SOLUTION
        images = some.map(lambda i: (read(i), i), num_parallel_calls=at_once)
        # STARTER: images = some.map(lambda i: (read(i), i))
        # END SOLUTION
        # A broken file is left out: main() counts how many are missing.
        return images.ignore_errors() if args.skip_broken else images

    def shuffled(some: tf.data.Dataset, epoch: tf.Tensor) -> tf.data.Dataset:
        """In an order that follows from the seed and the epoch alone."""
        order = some.shuffle(len(mine), seed=1000 * args.seed + epoch,
                             reshuffle_each_iteration=False)
        return order.skip(tf.where(epoch == first, np.int64(done), 0))

    kept = None
    if "cache" in args.use:
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

        batch = args.batch_per_rank
        if "batch" not in args.use:
            return images.map(changed).batch(batch).map(named)
        # TODO 4: the same two in the other order, so that `changed` is called
        # once for a batch, and not once for an image.  (1 line)
        # BEGIN SOLUTION
        batches = images.batch(batch).map(changed)
        # STARTER: batches = images.map(changed).batch(batch)
        # END SOLUTION
        return batches.map(named)

    every = tf.data.Dataset.range(first, first + epochs).flat_map(one_epoch)
    if "one-batch" in args.use:
        every = every.take(1).cache().repeat()
    if "prefetch" in args.use:
        # TODO 5: make two batches ahead, while the step computes.  (1 line)
        # BEGIN SOLUTION
        every = every.prefetch(2)
        # STARTER: every = every
        # END SOLUTION
    return every


def options_of(args: argparse.Namespace) -> tf.data.Options:
    """Threads for the input alone, and no help that nobody asked for."""
    options = tf.data.Options()
    options.threading.private_threadpool_size = args.workers
    # TensorFlow would add parallel maps and a prefetch by itself: each of our
    # steps is to be seen alone.
    options.experimental_optimization.inject_prefetch = "help" in args.use
    options.experimental_optimization.apply_default_optimizations = (
        "help" in args.use
    )
    return options


def begun(arriving: tf.data.Dataset, use: list) -> Iterator:
    """The batches, from the first on; now the threads that make them exist."""
    if "background" not in use:
        return iter(arriving)
    # Linux lets a thread that wakes up interrupt another, but not if it is of
    # the kind "batch". Threads are of the kind of the one that makes them.
    usual = os.sched_getscheduler(0)
    os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))
    batches = iter(arriving)
    first = list(itertools.islice(batches, 1))
    os.sched_setscheduler(0, usual, os.sched_param(0))
    return itertools.chain(first, batches)


def main(args: argparse.Namespace) -> None:
    # Distributed: all ranks of the job
    comm = MPI.COMM_WORLD
    paths, labels = examples(args, comm.size)
    mine = my_images(np.arange(len(paths)), comm.rank, comm.size)
    # Distributed: all make as many steps as the rank with most images
    most = comm.allreduce(len(mine), op=MPI.MAX)
    steps_an_epoch = -(-most // args.batch_per_rank)
    args.steps = args.steps or args.epochs * steps_an_epoch

    training = Training(SIDE, args.step_ms)
    epoch, at = place(args, comm.size, training.variables)
    epochs = -(-(at + args.steps) // steps_an_epoch)
    files = tf.constant(paths)
    arriving = begun(input_pipeline(
        mine, lambda number: read_image(files[number]), augment, args,
        first=epoch, done=at * args.batch_per_rank, epochs=epochs,
    ).with_options(options_of(args)), args.use)

    notes = Notes(args, len(paths), steps_an_epoch, at)
    ready = None
    for _ in range(args.steps):
        start = time.perf_counter()
        if ready is None:
            ready = next(arriving, None)
        got = time.perf_counter()
        again = "one-batch" in args.use
        if ready is not None and (again or int(ready[2]) == epoch):
            images, some, _ = ready
            training.step(images, labels[some])
            notes.saw(epoch, some)
            ready = None
        # else: a rank with fewer images goes along without any
        done = time.perf_counter()
        # Distributed: here the gradients would be averaged (05), and that
        # waits for the rank whose images came last
        comm.Barrier()
        notes.step(start, got, done, time.perf_counter())
        at += 1
        if at == steps_an_epoch:
            epoch += 1
            at = 0
    notes.report(training, epoch, at)


if __name__ == "__main__":
    asked = arguments(__doc__.splitlines()[0])
    problem = None
    try:
        main(asked)
    except tf.errors.OpError as error:
        problem = broken_file(asked, error, read_image)
    if problem:
        # Distributed: whoever finds it ends the job for all
        raise SystemExit(problem)
