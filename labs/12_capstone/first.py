"""The training of runme.py as a first author has written it: right, and slow.

    mpirun -n 1 python -m mpi4py labs/12_capstone/first.py

It learns from the same slices with the same network and loss, and ends at the
same validation Dice. All else is as the libraries have it by default. It takes
a minute. Copy it, and make the copy faster.
"""

import argparse
import os
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
import horovod.tensorflow as hvd
import keras
import numpy as np
import tensorflow as tf
from bookkeeping import (
    LOSSES,
    arguments,
    by_patient,
    refuse_few,
    slices_for,
    speeds,
)
from runme import PARTS, dice_of, parts_of, training_step
from unet import network

from scaleout import records


def picture_of(image):
    """A slice, (64, 64, 2), as the network takes it: line by line."""
    picture = np.zeros(image.shape, np.float32)
    for line in range(len(image)):
        ct = (image[line, :, 0] + 160) / 400
        pet = image[line, :, 1] / 10
        picture[line, :, 0] = np.clip(ct, 0, 1)
        picture[line, :, 1] = np.clip(pet, 0, 1)
    return picture


def batch_of(slices, rows, channels=2):
    """Pictures and labels of some slices, one after another."""
    pictures = []
    labels = []
    for row in rows:
        pictures.append(picture_of(slices.images[row])[..., :channels])
        labels.append(slices.labels[row].astype(np.float32))
    return np.stack(pictures), np.stack(labels)


def counts_of(model, slices, rows, channels=2):
    """Hits, false alarms and misses in each slice, (3, n), one by one."""
    counts = np.zeros((3, len(rows)), int)
    for place, row in enumerate(rows):
        picture = picture_of(slices.images[row])[..., :channels]
        found = model.predict(picture[None], verbose=0)[0] > 0
        true = slices.labels[row] == 1
        counts[0, place] = (found & true).sum()
        counts[1, place] = (found & ~true).sum()
        counts[2, place] = (~found & true).sum()
    return counts


def main(args: argparse.Namespace) -> None:
    # Distributed: as in 05
    hvd.init()
    rank = hvd.rank()
    ranks = hvd.size()
    batch = args.batch_per_rank

    slices = slices_for(args)
    patient = np.unique(slices.patient, return_inverse=True)[1]
    part = np.array(PARTS)[parts_of(patient)]
    train = np.flatnonzero(part == "train")
    judge = np.flatnonzero(part == "validation")
    test = np.flatnonzero(part == "test")
    refuse_few(len(judge), "validation", 1)
    refuse_few(len(test), "test", 1)

    options = {"auto_mixed_precision_onednn_bfloat16": args.bf16}
    tf.config.optimizer.set_experimental_options(options)
    keras.utils.set_random_seed(args.seed)
    channels = 1 + args.channels.count("+")
    model = network(channels, False, args.attention, args.dropout)
    optimizer = keras.optimizers.Adam(args.lr)
    optimizer.build(model.trainable_variables)
    state = [v.value for v in model.variables + optimizer.variables]
    hvd.broadcast_variables(state, root_rank=0)
    train_step = training_step(model, optimizer, LOSSES[args.loss])

    folder = args.checkpoint or records.folder()
    books = records.Books("12_capstone", rank, ranks, weights=state)
    at_s = []
    for epoch in range(args.epochs):
        shuffle = np.random.default_rng([args.seed, epoch])
        order = np.resize(shuffle.permutation(train),
                          -(-len(train) // ranks) * ranks)
        for at in range(0, len(order), batch * ranks):
            mine = order[at:at + batch * ranks][rank::ranks]
            with books.time("input"):
                pictures, labels = batch_of(slices, mine, channels)
            with books.step(rows=mine), books.time("train"):
                loss = float(train_step(pictures, labels))

        counts = np.zeros((3, len(judge)), int)
        with books.time("evaluation"):
            if rank == 0:
                counts = counts_of(model, slices, judge, channels)
        with books.time("wait"):
            # Distributed: everybody waits until rank 0 has evaluated
            counts = hvd.broadcast_object(counts, root_rank=0)
        dice = dice_of(*by_patient(counts, patient[judge])).mean()
        with books.time("checkpoint"):
            books.keep_checkpoint(f"{folder}/rank-{rank}", epoch + 1)
        at_s.append(books.log(dice=dice))
        if rank == 0:
            print(f"epoch {epoch + 1}: validation Dice {dice:.3f} after "
                  f"{at_s[-1]:.1f} s", flush=True)
        if dice >= args.goal:
            break

    of_test = counts_of(model, slices, test, channels)
    test_dice = dice_of(*by_patient(of_test, patient[test])).mean()
    books.write(
        variant=Path(__file__).stem, batch_per_rank=batch, seed=args.seed,
        rate_unit="slices/s", test_dice=test_dice, loss=loss,
        **speeds(args, at_s, len(train), dice),
    )
    if rank == 0:
        print(f"{ranks} rank(s): validation Dice {dice:.3f} after "
              f"{at_s[-1]:.1f} s, test Dice {test_dice:.3f}", flush=True)


if __name__ == "__main__":
    # Distributed: a rank that waits in vain says so, and then the job ends
    os.environ.setdefault("HOROVOD_STALL_CHECK_TIME_SECONDS", "30")
    os.environ.setdefault("HOROVOD_STALL_SHUTDOWN_TIME_SECONDS", "60")
    main(arguments(__doc__, lr=0.001))
