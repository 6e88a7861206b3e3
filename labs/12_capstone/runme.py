"""A network that finds tumours in CT and PET slices, trained by several ranks.

    mpirun -n 2 -bind-to core python -m mpi4py labs/12_capstone/runme.py

The patients are made up, so that each tumour's outline is known. You will see
the validation Dice after each epoch: how well the network's outlines agree
with the true ones, in patients that it has not learned from. The job ends as
soon as that has reached --goal, which takes half a minute.
"""

import argparse
import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")  # before the next lines
import horovod.tensorflow as hvd
import keras
import numpy as np
import tensorflow as tf

# Beside this file: what it can be asked for, the slices, and the network.
from bookkeeping import (
    LOSSES,
    arguments,
    by_patient,
    examples,
    found_pixels,
    refuse_few,
    slices_for,
    speeds,
    variant_of,
)
from phantoms import ready
from unet import network

from scaleout import records

SMOOTH = 1.0  # pixels, so that a batch without a tumour divides nothing by 0
PARTS = ["train", "train", "validation", "test"]  # of every four patients
AT_ONCE = 32  # slices that are evaluated together


def parts_of(patient: np.ndarray) -> np.ndarray:
    """The part of each slice: its place in PARTS, (n,).

    patient: whose slice it is, 0 for the first patient, (n,).
    """
    # TODO 1: deal the patients out to the parts, such that all slices of a
    # patient are in the same part.  (1 line)
    return np.arange(len(patient)) % len(PARTS)


def dice_of(hits, alarms, misses) -> np.ndarray:
    """The Dice of each patient, (patients,), from counts of pixels.

    hits: tumour in truth and for the network, (patients,). alarms: for the
    network alone. misses: in truth alone.
    """
    # TODO 2: twice the hits over twice the hits, the alarms and the misses.
    # Where there is nothing to find, and nothing was found, it is 1.
    # (2 or 3 lines)
    return np.zeros(len(hits))


def tversky(truth, guess, alpha, beta) -> tf.Tensor:
    """The loss of Tversky: 0 where all is right, near 1 where all is wrong.

    truth: 1 or 0 for each pixel of a batch, (n, 64, 64, 1). guess: how sure
    the network is of a tumour, from 0 to 1, in the same shape. alpha: how much
    a false alarm counts. beta: how much a missed pixel counts.
    """
    # TODO 3: hits, alarms and misses as sums over all pixels of the batch;
    # then 1 minus the hits over hits, alpha alarms and beta misses, with
    # SMOOTH added above and below.  (4 lines)
    return tf.constant(0.0)


def training_step(model, optimizer, weights):
    """The function that trains by a step, as a graph. weights: of a false
    alarm and of a missed pixel, or None for cross-entropy alone."""
    variables = [v.value for v in model.trainable_variables]

    # AutoGraph would rewrite Horovod's code too, which takes seconds.
    @tf.function(autograph=False, reduce_retracing=True)
    def train_step(images, truth):
        """images: (rows, 64, 64, channels), truth: (rows, 64, 64, 1)."""
        with tf.GradientTape() as tape:
            logits = model(images, training=True)  # (rows, 64, 64, 1)
            loss = tf.reduce_mean(
                tf.nn.sigmoid_cross_entropy_with_logits(truth, logits)
            )
            if weights:
                # Cross-entropy has a slope also where nothing is found yet.
                loss += tversky(truth, tf.sigmoid(logits), *weights)
        # Distributed: gradient() gives the average over all ranks
        tape = hvd.DistributedGradientTape(tape)
        gradients = tape.gradient(loss, variables)
        optimizer.apply(gradients, model.trainable_variables)
        return loss

    return train_step


def evaluation_of(model):
    """The function from slices to logits, as a graph for any number."""
    shape = tf.TensorSpec([None, *model.input_shape[1:]])
    return tf.function(model, input_signature=[shape], autograph=False)


def counts_of(evaluate, x, truth) -> np.ndarray:
    """Hits, false alarms and misses in each slice, (3, n)."""
    counts = np.zeros((3, len(x)), np.int64)
    # Distributed: each rank evaluates its part of the slices
    mine = slice(hvd.rank(), None, hvd.size())
    found = [evaluate(x[mine][first:first + AT_ONCE]).numpy() > 0
             for first in range(0, len(x[mine]), AT_ONCE)]
    found = np.concatenate(found)  # (n / ranks, 64, 64, 1)
    true = truth[mine] == 1
    each = [found & true, found & ~true, ~found & true]
    counts[:, mine] = [pixels.sum(axis=(1, 2, 3)) for pixels in each]
    # Distributed: the counts of all ranks
    return hvd.allreduce(counts, op=hvd.Sum, name="counts").numpy()


def average_norms(model):
    """Makes batch norm's moving averages the same on every rank."""
    moving = [value for value in model.non_trainable_variables
              if "moving" in value.name]
    # Distributed: each rank has seen other slices
    means = hvd.grouped_allreduce([value.value for value in moving])
    for value, mean in zip(moving, means, strict=True):
        value.assign(mean)


def main(args: argparse.Namespace) -> float:
    # Distributed: the ranks find each other
    hvd.init()
    # Distributed: which copy of the program this is
    rank = hvd.rank()
    # Distributed: how many copies there are
    ranks = hvd.size()
    batch = args.batch_per_rank

    slices = slices_for(args)
    _, patient = np.unique(slices.patient, return_inverse=True)  # 0, 1, ...
    part = np.array(PARTS)[parts_of(patient)]  # (n,)
    train = np.flatnonzero(part == "train")
    judge = np.flatnonzero(part == "validation")
    refuse_few(len(judge), "validation", ranks)

    options = {"auto_mixed_precision_onednn_bfloat16": args.bf16}
    tf.config.optimizer.set_experimental_options(options)
    keras.utils.set_random_seed(args.seed)
    channels = 1 + args.channels.count("+")  # CT is the first
    model = network(channels, True, args.attention, args.dropout)
    optimizer = keras.optimizers.Adam(args.lr)
    optimizer.build(model.trainable_variables)
    state = [v.value for v in model.variables + optimizer.variables]
    # Distributed: equal steps keep weights equal if they begin equal
    hvd.broadcast_variables(state, root_rank=0)
    train_step = training_step(model, optimizer, LOSSES[args.loss])
    evaluate = evaluation_of(model)

    if rank == 0:
        folder = args.checkpoint or records.folder()
    # All time counts from here on, also that of making the slices ready.
    books = records.Books("12_capstone", rank, ranks, weights=state)
    x = ready(slices.images)[..., :channels]  # (n, 64, 64, channels), once
    y = slices.labels.astype(np.float32)  # (n, 64, 64, 1)
    # Distributed: as many slices for each rank; the first ones may come twice
    even = -(-len(train) // ranks) * ranks
    at_s = []
    for epoch in range(args.epochs):
        # Distributed: the same order on every rank
        shuffle = np.random.default_rng([args.seed, epoch])
        order = np.resize(shuffle.permutation(train), even)
        for at in range(0, even, batch * ranks):
            done = (epoch + at / even) / args.epochs  # 0 to 1
            optimizer.learning_rate.assign(args.lr * (1 - 0.9 * done))
            # Distributed: each step is one large batch, dealt like cards
            mine = order[at:at + batch * ranks][rank::ranks]  # (batch,)
            with books.step(rows=mine), books.time("train"):
                loss = float(train_step(x[mine], y[mine]))

        with books.time("evaluation"):
            average_norms(model)
            counts = counts_of(evaluate, x[judge], y[judge])
        dice = dice_of(*by_patient(counts, patient[judge])).mean()
        # Distributed: one file, not one from each rank
        if rank == 0:
            with books.time("checkpoint"):
                books.keep_checkpoint(folder, epoch + 1)
        at_s.append(books.log(dice=dice))
        # Distributed: one line, too
        if rank == 0:
            print(f"epoch {epoch + 1}: validation Dice {dice:.3f} after "
                  f"{at_s[-1]:.1f} s", flush=True)
        if dice >= args.goal:
            break

    test = np.flatnonzero(part == "test")
    test_dice = 0.0
    if len(test):  # an unfinished TODO 1 may leave nobody to test with
        of_test = counts_of(evaluate, x[test], y[test])
        test_dice = dice_of(*by_patient(of_test, patient[test])).mean()
    # Distributed: one record of all ranks; the slowest of them counts
    books.write(
        variant=variant_of(args), batch_per_rank=batch, seed=args.seed,
        rate_unit="slices/s", test_dice=test_dice, loss=loss,
        parts={name: np.unique(patient[part == name]) for name in PARTS},
        validation=judge, counts=counts, examples=examples(tversky, dice_of),
        found=found_pixels(evaluate, x[judge], counts, patient[judge]),
        **speeds(args, at_s, len(train), dice),
    )
    if rank == 0:
        print(f"{ranks} rank(s): validation Dice {dice:.3f} after "
              f"{at_s[-1]:.1f} s, test Dice {test_dice:.3f}", flush=True)
    return dice


if __name__ == "__main__":
    # Distributed: a rank that waits in vain says so, and then the job ends
    os.environ.setdefault("HOROVOD_STALL_CHECK_TIME_SECONDS", "30")
    os.environ.setdefault("HOROVOD_STALL_SHUTDOWN_TIME_SECONDS", "60")
    main(arguments(__doc__))
