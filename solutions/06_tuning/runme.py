"""Digits of which few have a label: a GAN learns from all of them.

    mpirun -n 2 python -m mpi4py solutions/06_tuning/runme.py

It runs on any number of ranks, and says where its time went. You will see the
accuracy on images that nobody trained on. It takes a minute and a half; with
--supervised the same classifier learns from the labelled images alone, and
with --evaluate-every 100 you see how the accuracy grows.
"""

import argparse
import os
from functools import partial

# TODO 3: the settings that you kept, such as {"HOROVOD_CYCLE_TIME": "2.5"},
# before TensorFlow loads. Leave this one until the notebook has found them,
# in its step "Waiting".  (1 to 5 lines)
# BEGIN SOLUTION
found = {"HOROVOD_CYCLE_TIME": "4"}
# STARTER: found = {}
# END SOLUTION
for name, value in found.items():
    # What the launcher asks for wins.
    os.environ.setdefault(name, str(value))
# Distributed: a rank that waits in vain says so, and then the job ends
os.environ.setdefault("HOROVOD_STALL_CHECK_TIME_SECONDS", "30")
os.environ.setdefault("HOROVOD_STALL_SHUTDOWN_TIME_SECONDS", "60")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
import horovod.tensorflow as hvd
import keras
import numpy as np
import tensorflow as tf

# Beside this file: what it can be asked for and notes, and what it trains.
from bookkeeping import (
    arguments,
    peak_mib,
    refuse_unusable,
    say_out_of_memory,
    settings,
    steps_per_s,
    used_mib,
)
from mpi4py import MPI
from networks import (
    NOISE,
    enlarged,
    networks,
    with_label,
)

from scaleout import data, records
from scaleout.kit.flags import refuse

# Images without a label in a step, and the learning rate that suits them.
BASE_BATCH = 64
LEARNING_RATE = 0.001
TEST_BATCH = 100


def real_or_made(classes: tf.Tensor) -> tf.Tensor:
    """The unsupervised head, on top of the supervised one.

    Class logits, (n, 10), to one logit, (n,), above 0 for real images.
    """
    return tf.reduce_logsumexp(classes, axis=1)


def training_step(trunk, head, generator, learns, makes, supervised=False):
    """The function that trains both networks by a step, as a graph."""

    # Distributed: AutoGraph would rewrite Horovod's own Python too, in 5 s
    @tf.function(autograph=False)
    def train_step(x, y, more):
        """One step of both networks.

        x: (batch / 2, side, side, 1), images with a label, y: (batch / 2,).
        more: (batch, side, side, 1), images without.
        """
        with tf.GradientTape(persistent=True) as tape:
            noise = tf.random.normal([more.shape[0], NOISE])
            made = generator(noise)  # (batch, side, side, 1)
            features_x = trunk(x, training=True)  # (batch / 2, 128)
            features_more = trunk(more, training=True)  # (batch, 128)
            features_made = trunk(made, training=True)  # (batch, 128)

            classes = head(features_x, training=True)  # (batch / 2, 10)
            labelled = tf.reduce_mean(
                keras.losses.sparse_categorical_crossentropy(
                    y, classes, from_logits=True
                )
            )
            real = real_or_made(head(features_more, training=True))  # (batch,)
            fake = real_or_made(head(features_made, training=True))  # (batch,)
            # Small when no image of `more` is taken for made, and none of
            # `made` for real.
            unlabelled = tf.reduce_mean(tf.nn.softplus(-real))
            unlabelled += tf.reduce_mean(tf.nn.softplus(fake))
            loss = labelled
            if not supervised:
                loss += unlabelled

            # The generator is to make images whose features are, on average,
            # those of real ones.
            apart = tf.reduce_mean(features_more, axis=0)  # (128,)
            apart -= tf.reduce_mean(features_made, axis=0)
            matching = tf.reduce_mean(apart**2)

        # Distributed: gradient() gives the average over all ranks
        tape = hvd.DistributedGradientTape(tape)
        weights = trunk.trainable_variables + head.trainable_variables
        gradients = tape.gradient(loss, [v.value for v in weights])
        learns.apply(gradients, weights)
        if not supervised:
            weights = generator.trainable_variables
            gradients = tape.gradient(matching, [v.value for v in weights])
            makes.apply(gradients, weights)
        return labelled, unlabelled, matching, real, fake

    return train_step


def way_to_classify(classifier, evaluation, looked):
    """The function from images, (n, side, side, 1), to logits, (n, 10)."""
    if evaluation == "predict":
        return partial(classifier.predict, verbose=0)
    if evaluation == "predict_on_batch":
        return classifier.predict_on_batch

    def classify(images):
        looked.append(1)  # Python is at work here
        return classifier(images, training=False)

    if evaluation == "eager":
        return classify

    # TODO 1: Python goes through all layers at each call of `classify`. Give
    # back a graph of it instead, which the first call builds.  (1 line)
    # BEGIN SOLUTION
    return tf.function(classify, autograph=False)
    # STARTER: return classify
    # END SOLUTION


def my_batches(batches, evaluation, rank, ranks):
    """Which of the test batches this rank evaluates."""
    # TODO 2: with "shared", each batch is tested by one of the ranks; else
    # rank 0 tests them all.  (1 to 3 lines)
    # BEGIN SOLUTION
    if evaluation == "shared":
        # Distributed: nobody waits for rank 0
        return batches[rank::ranks]
    return batches if rank == 0 else []
    # STARTER: return batches if rank == 0 else []
    # END SOLUTION


def main(args: argparse.Namespace) -> float:
    # Distributed: the ranks find each other
    hvd.init()
    # Distributed: which copy of the program this is
    rank = hvd.rank()
    # Distributed: how many copies there are
    ranks = hvd.size()
    batch = args.batch_per_rank

    x, y, x_test, y_test = data.digits()  # (n, 28, 28, 1), (n,), and to test
    refuse_unusable(args, len(x), ranks)
    known = with_label(y, args.labels, args.seed)  # (labels,)

    options = {"auto_mixed_precision_onednn_bfloat16": args.bf16}
    tf.config.optimizer.set_experimental_options(options)
    # Distributed: each rank draws noise of its own
    keras.utils.set_random_seed(args.seed + 1000 * rank)
    trunk, head, generator = networks(args.side)
    classifier = keras.Sequential([trunk, head])  # images to logits, (n, 10)

    # Distributed: fewer steps go as far, each on a better average
    rate = LEARNING_RATE * batch * ranks / BASE_BATCH
    learns = keras.optimizers.Adam(rate, beta_1=0.5)
    learns.build(classifier.trainable_variables)
    makes = keras.optimizers.Adam(rate, beta_1=0.5)
    makes.build(generator.trainable_variables)

    train_step = training_step(
        trunk, head, generator, learns, makes, args.supervised
    )

    # What a checkpoint holds. It counts images, not steps: after a restart
    # there may be more ranks, or fewer.
    images_done = tf.Variable(0, dtype=tf.int64)
    state = [images_done]
    for part in (classifier.weights, generator.weights,
                 learns.variables, makes.variables):
        state += [v.value for v in part]
    # Distributed: one rank reads, and hands on what it has read
    if args.checkpoint and rank == 0:
        records.take_checkpoint(args.checkpoint, state)
    # Distributed: equal steps keep weights equal if they begin equal
    hvd.broadcast_variables(state, root_rank=0)
    done = int(images_done)
    # Distributed: in images, so that more ranks take fewer steps
    goal = args.steps * batch
    if done >= goal:
        refuse(f"{done // batch} steps are done: ask for more with --steps.")

    looked = []  # an entry each time that Python goes through the layers
    classify = way_to_classify(classifier, args.evaluation, looked)
    firsts = range(0, len(x_test), TEST_BATCH)
    batches = [slice(first, first + TEST_BATCH) for first in firsts]
    mine = my_batches(batches, args.evaluation, rank, ranks)

    books = records.Books("06_tuning", rank, ranks, weights=state)
    taken = 0  # steps of this job
    evaluations = []  # (seconds, steps)
    memory = []  # (seconds, MiB)
    while done < goal:
        with books.time("input"):
            # Distributed: the same on every rank, and then dealt like cards
            draw = np.random.default_rng([args.seed, done])
            few = draw.choice(known, -(-batch // 2) * ranks)[rank::ranks]
            more = draw.integers(len(x), size=batch * ranks)[rank::ranks]
            given = [enlarged(x[few], args.side), y[few],
                     enlarged(x[more], args.side)]
        with books.step(work=batch), books.time("train"):
            losses = [part.numpy()
                      for part in train_step(*map(tf.constant, given))]
        taken += 1
        # Distributed: what all ranks have seen
        done = int(images_done.assign_add(batch * ranks))

        steps = done // (batch * ranks)
        due = args.evaluate_every and steps % args.evaluate_every == 0
        if due or done >= goal:
            with books.time("evaluation"):
                right = 0
                for part in mine:
                    images = enlarged(x_test[part], args.side)
                    guessed = np.argmax(classify(images), axis=1)
                    right += int((guessed == y_test[part]).sum())
            with books.time("wait"):
                # Distributed: the counts of all ranks
                right = int(hvd.allreduce(tf.constant(right), op=hvd.Sum))
            accuracy = right / len(x_test)
            at_s = books.log(accuracy=accuracy, at_step=taken)
            evaluations.append((at_s, taken))
            memory.append((at_s, used_mib()))
            # Distributed: one line and one file, not one from each rank
            if rank == 0:
                print(f"step {taken}: accuracy {accuracy:.2%} "
                      f"after {at_s:.1f} s", flush=True)
                if args.checkpoint:
                    books.keep_checkpoint(args.checkpoint, done)
        if 0 < args.memory_mib < peak_mib():
            raise MemoryError

    books.note(rss_mib=memory, looked=len(looked),
               tested=sum(len(y_test[part]) for part in mine))
    classes = classifier(enlarged(x_test[:4], args.side))  # (4, 10)
    weights = classifier.count_params() + generator.count_params()
    names = ("labelled", "unlabelled", "matching", "real", "fake")
    # Distributed: one record of all ranks; the slowest of them counts
    record = books.write(
        variant="supervised" if args.supervised else args.evaluation,
        batch_per_rank=batch, seed=args.seed, rate_unit="images/s",
        images_per_s=batch * ranks * steps_per_s(evaluations),
        settings=settings(), side=args.side, labelled=known,
        losses=dict(zip(names, losses, strict=True)),
        heads={"classes": classes.numpy(),
               "real": real_or_made(classes).numpy()},
        gradient_bytes=4 * weights,
    )
    if rank == 0:
        print(f"{ranks} rank(s): {record['rate']:.0f} images/s, "
              f"accuracy {accuracy:.2%}", flush=True)
    return accuracy


if __name__ == "__main__":
    try:
        main(arguments(__doc__))
    except (MemoryError, tf.errors.ResourceExhaustedError):
        # Distributed: whose memory it was
        say_out_of_memory(MPI.COMM_WORLD.rank)
        # Distributed: the others would wait for this rank for ever
        MPI.COMM_WORLD.Abort(1)
