"""Digits of which few have a label: a GAN learns from all of them, on several ranks, and says where its time went.

    mpirun -n 2 -bind-to core python -m mpi4py labs/06_tuning/runme.py --evaluate-every 100

You will see the accuracy grow, on images that nobody trained on. It takes a minute and a half; with --supervised, the
same classifier learns from the labelled images alone. --help lists what else it can be asked for.
"""

import argparse
import os
from functools import partial

# TODO 4: the settings that your sweep found, such as {"HOROVOD_CYCLE_TIME": "2.5"}, before TensorFlow loads.  (1 line)
found = {}
stalled = {"HOROVOD_STALL_CHECK_TIME_SECONDS": "30", "HOROVOD_STALL_SHUTDOWN_TIME_SECONDS": "60"}
os.environ |= found | stalled | {"TF_CPP_MIN_LOG_LEVEL": "2"} | os.environ  # what the launcher asks for wins
import horovod.tensorflow as hvd
import keras
import numpy as np
import tensorflow as tf
from bookkeeping import Notes, arguments, refuse_unusable, say_out_of_memory  # beside this file
from mpi4py import MPI
from networks import NOISE, enlarged, mosaic, networks, with_label  # beside this file

from scaleout import data, records

BASE_BATCH, LEARNING_RATE = 64, 0.001  # images without label a step, and the rate that suits them
TEST_BATCH = 100


def real_or_made(classes: tf.Tensor) -> tf.Tensor:
    """The unsupervised head, on top of the supervised one: class logits (n, 10) to a logit (n,), above 0 for real."""
    # TODO 1: the logarithm of the summed exponentials of the classes, so that both heads share every weight.  (1 line)
    return tf.zeros_like(classes[:, 0])


def main(args: argparse.Namespace) -> float:
    hvd.init()  # Distributed: the ranks find each other
    rank, ranks, batch = hvd.rank(), hvd.size(), args.batch_per_rank  # Distributed: which rank this is, of how many
    x, y, x_test, y_test = data.digits()  # (n, 28, 28, 1), (n,), and as much to test
    refuse_unusable(args, len(x), rank, ranks)  # Distributed: all ranks end, and one of them says why
    tf.config.optimizer.set_experimental_options({"auto_mixed_precision_onednn_bfloat16": args.bf16})
    keras.utils.set_random_seed(args.seed + 1000 * rank)  # Distributed: each rank draws noise of its own
    trunk, generator = networks(args.side)
    head = keras.Sequential([keras.layers.Dropout(0.5), keras.layers.Dense(10)])
    classifier = keras.Sequential([trunk, head])  # images to class logits, (n, 10)
    rate = LEARNING_RATE * batch * ranks / BASE_BATCH  # Distributed: fewer steps go as far, on a better average each
    learns, makes = (keras.optimizers.Adam(rate, beta_1=0.5) for _ in range(2))
    learns.build(classifier.trainable_variables)
    makes.build(generator.trainable_variables)

    @tf.function(autograph=False)  # Distributed: AutoGraph would rewrite Horovod's Python too, in 5 s
    def train_step(x, y, more):
        """x: (batch / 2, side, side, 1), images with a label, y: (batch / 2,); more: images without, twice as many."""
        with tf.GradientTape(persistent=True) as tape:
            made = generator(tf.random.normal([more.shape[0], NOISE]))  # as many again
            features = [trunk(images, training=True) for images in (x, more, made)]  # (n, 128) each
            classes, *others = [head(seen, training=True) for seen in features]  # (n, 10) each
            labelled = tf.reduce_mean(keras.losses.sparse_categorical_crossentropy(y, classes, from_logits=True))
            real, fake = map(real_or_made, others)  # (batch,)
            # TODO 2: add up the means of softplus(-real) and of softplus(fake): both are small when no image of `more`
            # is taken for made, and none of `made` for real.  (1 line)
            unlabelled = tf.constant(0.0)
            loss = labelled if args.supervised else labelled + unlabelled
            # The generator is to make images whose features are, on average, those of real ones.
            matching = tf.reduce_mean((tf.reduce_mean(features[1], 0) - tf.reduce_mean(features[2], 0)) ** 2)
        tape = hvd.DistributedGradientTape(tape)  # Distributed: gradient() averages over all ranks
        gradients = tape.gradient(loss, [v.value for v in classifier.trainable_variables])
        learns.apply(gradients, classifier.trainable_variables)
        if not args.supervised:
            gradients = tape.gradient(matching, [v.value for v in generator.trainable_variables])
            makes.apply(gradients, generator.trainable_variables)
        return tf.stack([labelled, unlabelled, matching, tf.reduce_mean(real), tf.reduce_mean(fake)])

    images_done = tf.Variable(0, dtype=tf.int64)  # not steps: after a restart there may be more ranks, or fewer
    parts = (*classifier.weights, *generator.weights, *learns.variables, *makes.variables)
    state = [images_done, *(v.value for v in parts)]
    if args.checkpoint and rank == 0:  # Distributed: one rank reads, and hands on what it has read
        records.take_checkpoint(args.checkpoint, state)
    hvd.broadcast_variables(state, root_rank=0)  # Distributed: equal steps keep equal only what began equal
    done, goal = int(images_done), args.steps * batch  # Distributed: in images, so more ranks take fewer steps
    assert done < goal, f"{done // batch} steps are done: ask for more with --steps."
    ways = {"predict": partial(classifier.predict, verbose=0), "predict_on_batch": classifier.predict_on_batch}
    classify = ways.get(args.evaluation, tf.function(partial(classifier, training=False)))
    batches = [slice(at, at + TEST_BATCH) for at in range(0, len(x_test), TEST_BATCH)]
    # TODO 3: with --evaluation shared, each batch is tested by one of the ranks: which are mine?  (1 line)
    mine = batches * (rank == 0)
    known, start = with_label(y, args.labels, args.seed), records.digest(state)  # (labels,), the same on every rank
    fixed = np.random.default_rng(0).standard_normal((32, NOISE), np.float32)  # what the samples are made from
    notes = Notes()
    while done < goal:
        with notes.time("input"):
            draw = np.random.default_rng([args.seed, done])  # Distributed: the same on every rank
            few = draw.choice(known, -(-batch // 2) * ranks)[rank::ranks]  # Distributed: dealt like cards
            more = draw.integers(len(x), size=batch * ranks)[rank::ranks]  # Distributed: a step is one large batch
            given = enlarged(x[few], args.side), y[few], enlarged(x[more], args.side)
        with notes.time("train"):
            losses = train_step(*map(tf.constant, given)).numpy()  # (5,)
        done = int(images_done.assign_add(batch * ranks))  # Distributed: what all ranks have seen
        steps = done // (batch * ranks)
        if done >= goal or (args.evaluate_every and steps % args.evaluate_every == 0):
            with notes.time("evaluation"):
                guessed = [np.argmax(classify(enlarged(x_test[part], args.side)), axis=1) for part in mine]
                right = sum(int((guess == y_test[part]).sum()) for guess, part in zip(guessed, mine, strict=True))
            with notes.time("wait"):
                right = int(hvd.allreduce(tf.constant(right), op=hvd.Sum))  # Distributed: the counts of all
            line = notes.evaluated(right / len(x_test))
            if rank == 0:  # Distributed: one line and one file, not one from each rank
                print(line, flush=True)
                notes.samples += [] if args.supervised else [mosaic(generator(fixed))]
                if args.checkpoint:
                    records.keep_checkpoint(args.checkpoint, state, done)
        notes.watch(args.memory_mib)
    assert losses.shape == (5,) and np.isfinite(losses).all()
    share = {"start": start, "end": records.digest(state), "tested": sum(len(y_test[part]) for part in mine)}
    shares = hvd.allgather_object(notes.share() | share)  # Distributed: from each rank
    if rank == 0:  # Distributed: one report, one record
        classes = classifier(enlarged(x_test[:4], args.side))  # (4, 10)
        heads = {"classes": classes.numpy(), "real": real_or_made(classes).numpy()}
        more = {"labelled": known, "gradient_bytes": 4 * (classifier.count_params() + generator.count_params())}
        print(notes.write(args, shares, losses, heads=heads, **more), flush=True)
    return notes.accuracy[-1]


if __name__ == "__main__":
    try:
        main(arguments(__doc__.splitlines()[0]))
    except (MemoryError, tf.errors.ResourceExhaustedError):
        say_out_of_memory(MPI.COMM_WORLD.rank)  # Distributed: whose memory it was
        MPI.COMM_WORLD.Abort(1)  # Distributed: the others would wait for this rank for ever
