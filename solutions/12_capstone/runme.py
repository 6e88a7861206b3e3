"""A training as its first author has left it: right, and slow.

    mpirun -n 1 python -m mpi4py solutions/12_capstone/runme.py

A network learns to outline tumours in CT and PET slices. The patients are made
up, so that each outline is known. You will see the Dice of the validation
after every second epoch: how well the network's outlines agree with the true
ones, in patients from whom it has not learned. At the end you will see
images/s, and where the time went. It takes a minute or two.

Six functions are suspects: scaled, batches, network, evaluate, keep and main.
Change one at a time.
"""

import argparse
import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")  # before the next lines
import horovod.tensorflow as hvd
import keras
import numpy as np
import tensorflow as tf
import unet  # beside this file, as bookkeeping.py
from bookkeeping import (
    Stopwatch,
    arguments,
    by_patient,
    dice_of,
    examples,
    slices_for,
    tested,
)
from scipy import ndimage

from scaleout import records

BATCH = 16  # slices a step, of all ranks together
LEARNING_RATE = 0.002
SHIFT = 4  # pixels at most, each way
KEEP_EVERY = 10  # steps
SMOOTH = 1.0  # so that a batch without a tumour divides nothing by 0
LOSSES = {  # alpha and beta of Tversky's loss
    "cross-entropy": None,
    "dice": (0.5, 0.5),
    "jaccard": (1.0, 1.0),
    "tversky": (0.1, 0.9),
}


def overlap_loss(masks, sure, alpha, beta) -> tf.Tensor:
    """A loss of 0 where the outlines are the same, near 1 where they are not.

    masks: 1 or 0 for each pixel of a batch, (n, 64, 64, 1). sure: how sure the
    network is of a tumour, from 0 to 1, in the same shape. alpha: how much a
    false alarm counts. beta: how much a missed pixel counts.
    """
    right = tf.reduce_sum(masks * sure)
    # TODO 1: Tversky's loss, from what is right, alarms, misses, alpha and
    # beta, with SMOOTH above and below. Now it is Dice's.  (4 lines)
    # BEGIN SOLUTION
    alarms = tf.reduce_sum((1 - masks) * sure)
    misses = tf.reduce_sum(masks * (1 - sure))
    weighed = right + alpha * alarms + beta * misses
    return 1 - (right + SMOOTH) / (weighed + SMOOTH)
    # STARTER: both = tf.reduce_sum(masks) + tf.reduce_sum(sure)
    # STARTER: return 1 - 2 * (right + SMOOTH) / (both + 2 * SMOOTH)
    # END SOLUTION


def scaled(slices, row) -> np.ndarray:
    """A slice as the network takes it, (64, 64, channels): from 0, the darkest
    of the patient's pixels, to 1, the brightest, without the last half per
    cent on either side."""
    volume = slices.images[slices.patient == slices.patient[row]]
    low, high = np.percentile(volume, [0.5, 99.5], axis=(0, 1, 2))
    picture = (slices.images[row] - low) / (high - low)
    return np.clip(picture, 0, 1).astype(np.float32)


def batches(slices, rows, draw):
    """The images and masks of each step of an epoch, in a random order; each
    slice is turned left to right half of the time, and shifted a little."""
    order = draw.permutation(rows)
    flips = draw.random(len(rows)) < 0.5
    shifts = draw.integers(-SHIFT, SHIFT + 1, (len(rows), 2))
    for first in range(0, len(rows) - BATCH + 1, BATCH):
        images, masks = [], []
        # Distributed: each step is one batch, dealt to the ranks like cards
        for at in range(first, first + BATCH)[hvd.rank()::hvd.size()]:
            image = scaled(slices, order[at])
            mask = slices.masks[order[at]]
            if flips[at]:
                image, mask = image[:, ::-1], mask[:, ::-1]
            move = (*shifts[at], 0)
            images.append(ndimage.shift(image, move, mode="nearest"))
            masks.append(ndimage.shift(mask, move, mode="nearest", order=0))
        yield np.stack(images), np.stack(masks).astype(np.float32)


def network(channels) -> keras.Model:
    """The network that is trained; unet.py builds it."""
    return unet.build(channels)


def evaluate(model, slices, rows) -> np.ndarray:
    """The pixels that are right, drawn and true in each slice, (n, 3)."""
    counts = np.zeros((len(rows), 3), int)
    # Distributed: rank 0 looks, the others wait for it
    if hvd.rank() == 0:
        for place, row in enumerate(rows):
            picture = scaled(slices, row)[None]
            drawn = model.predict(picture, verbose=0)[0] > 0
            true = slices.masks[row] == 1
            counts[place] = (drawn & true).sum(), drawn.sum(), true.sum()
    # Distributed: all get what it has seen
    return hvd.broadcast(counts, root_rank=0, name="counts").numpy()


def keep(model, step, folder) -> None:
    """Keeps the network, so that a job that fails has lost little."""
    if step % KEEP_EVERY == 0:
        # Distributed: a file of each rank
        model.save(folder / f"network-{hvd.rank()}.keras")


def main(args: argparse.Namespace) -> None:
    # Distributed: as in 05
    hvd.init()
    rank, ranks = hvd.rank(), hvd.size()
    slices = slices_for(args)
    train, judge = slices.of("train"), slices.of("validation")
    steps = args.epochs * (len(train) // BATCH)

    keras.utils.set_random_seed(args.seed)
    model = network(slices.images.shape[-1])
    optimizer = keras.optimizers.Adam(LEARNING_RATE)
    optimizer.build(model.trainable_variables)
    state = [v.value for v in model.variables + optimizer.variables]
    weights = [v.value for v in model.trainable_variables]
    # Distributed: equal steps keep weights equal if they begin equal
    hvd.broadcast_variables(state, root_rank=0)

    # AutoGraph would rewrite Horovod's code too, which takes seconds.
    @tf.function(autograph=False)
    def train_step(images, masks):
        """images: (rows, 64, 64, channels), masks: (rows, 64, 64, 1)."""
        with tf.GradientTape() as tape:
            logits = model(images, training=True)  # (rows, 64, 64, 1)
            loss = tf.reduce_mean(
                tf.nn.sigmoid_cross_entropy_with_logits(masks, logits)
            )
            if LOSSES[args.loss]:
                sure = tf.sigmoid(logits)
                loss += overlap_loss(masks, sure, *LOSSES[args.loss])
        # Distributed: gradient() gives the average over all ranks
        tape = hvd.DistributedGradientTape(tape)
        gradients = tape.gradient(loss, weights)
        optimizer.apply(gradients, model.trainable_variables)
        return loss

    folder = records.folder()
    books = records.Books("12_capstone", rank, ranks, weights=weights)
    watch = Stopwatch()  # from here on, all time counts
    validation = []
    for epoch in range(args.epochs):
        draw = np.random.default_rng([args.seed, epoch])
        for images, masks in batches(slices, train, draw):
            watch.lap("input")
            done = len(books.step_s) / steps  # 0 to 1
            optimizer.learning_rate.assign(
                LEARNING_RATE * min(1, 2 * (1 - done))
            )
            with books.step(work=BATCH / ranks):
                loss = float(train_step(images, masks))
            # The first one builds the graph, once in a training.
            watch.lap("step" if done else "first step")
            keep(model, len(books.step_s), folder)
            watch.lap("keeping")
        if epoch % 2 == 1 or epoch + 1 == args.epochs:
            counts = by_patient(evaluate(model, slices, judge),
                                slices.patient[judge])
            watch.lap("evaluation")
            validation.append(dice_of(counts).mean())
            # Distributed: one line, not one from each rank
            if rank == 0:
                print(f"epoch {epoch + 1}: validation Dice "
                      f"{validation[-1]:.3f}, loss {loss:.3f}", flush=True)

    train_s = sum(watch.spent.values())
    rate = (steps - 1) * BATCH / (train_s - watch.spent["first step"])
    books.note(spent=watch.spent)
    # Distributed: one record of all ranks
    books.write(
        variant=f"{args.channels}, {args.loss}", batch_per_rank=BATCH // ranks,
        seed=args.seed, rate=rate, rate_unit="images/s",
        train_s=train_s, validation=validation, loss=loss,
        examples=examples(overlap_loss),
        **(tested(model, slices, scaled) if rank == 0 else {}),
    )
    if rank == 0:
        went = ", ".join(f"{what} {100 * seconds / train_s:.0f} %"
                         for what, seconds in watch.spent.items())
        print(f"{ranks} rank(s): {rate:.0f} images/s, {train_s:.1f} s: {went}",
              flush=True)


if __name__ == "__main__":
    # Distributed: a rank that waits in vain says so, and then the job ends
    os.environ.setdefault("HOROVOD_STALL_CHECK_TIME_SECONDS", "30")
    os.environ.setdefault("HOROVOD_STALL_SHUTDOWN_TIME_SECONDS", "60")
    main(arguments(__doc__, LOSSES))
