"""Digits with few labels: a GAN learns from the many images without one, on several ranks, and each second is noted.

    mpirun -n 2 -bind-to core python -m mpi4py labs/06_tuning/runme.py --evaluation shared

You will see the accuracy on images that nobody trained on, then images/s. It takes a minute; with --supervised, the
same classifier learns from the labelled images alone, to compare.
"""

import argparse
import os
import resource
import sys
from time import perf_counter as now

# TODO 4: the settings that made this job fast here, by your own sweep, such as {"HOROVOD_CYCLE_TIME": "3"}.  (1 line)
found = {}
stalled = {"HOROVOD_STALL_CHECK_TIME_SECONDS": "30", "HOROVOD_STALL_SHUTDOWN_TIME_SECONDS": "90"}
os.environ |= found | stalled | {"TF_CPP_MIN_LOG_LEVEL": "2"} | os.environ  # what the launcher has set wins
import horovod.tensorflow as hvd
import keras
import numpy as np
import psutil
import tensorflow as tf
from mpi4py import MPI  # noqa: F401  # Distributed: with it, a rank can end the job of all

from scaleout import data, records

BASE_BATCH = 64  # images a step that LR is meant for
LR = 0.001
NOISE = 64  # numbers that an image is made from
TEST_BATCH = 100
SETTINGS = ("HOROVOD_", "KMP_", "OMP_", "TF_NUM_")


def networks(side: int) -> tuple[keras.Model, keras.Model, keras.Model]:
    """trunk: image -> features; head: features -> a logit for each class; generator: noise -> image."""
    layers, relu, sides = keras.layers, {"padding": "same", "activation": "relu"}, [side]
    while sides[-1] % 2 == 0 and sides[-1] > 8:
        sides.append(sides[-1] // 2)  # 28, 14, 7
    widths = [max(16, 64 >> i) for i in reversed(range(len(sides) - 1))]  # 32, 64
    down = [[layers.Conv2D(w, 5, strides=2, **relu), layers.Dropout(0.3)] for w in widths]
    trunk = [keras.Input((side, side, 1)), layers.GaussianNoise(0.2), *sum(down, []), layers.Flatten()]
    up = [layers.Conv2DTranspose(w, 5, strides=2, **relu) for w in widths[-2::-1]]
    start = [keras.Input((NOISE,)), layers.Dense(sides[-1] ** 2 * 64, activation="relu")]
    picture = layers.Conv2DTranspose(1, 5, strides=2, padding="same", activation="sigmoid")  # (n, side, side, 1)
    generator = [*start, layers.Reshape((sides[-1], sides[-1], 64)), *up, picture]
    trunk = keras.Sequential([*trunk, layers.Dense(128, activation="relu")])  # (n, 128)
    head = keras.Sequential([keras.Input((128,)), layers.Dropout(0.5), layers.Dense(10)])  # (n, 10)
    return trunk, head, keras.Sequential(generator)


def real_or_made(classes: tf.Tensor) -> tf.Tensor:
    """The unsupervised head: one logit, positive for real, from the class logits (n, 10)."""
    # TODO 1: let it share all weights with the supervised head: the log of the summed exp of the classes.  (1 line)
    return tf.zeros_like(classes[:, 0])


def choose(y: np.ndarray, labels: int, seed: int) -> np.ndarray:
    """The rows whose label is known: one of each class, then a second of each, until there are enough."""
    order, turn = np.random.default_rng(seed).permutation(len(y)), np.full(len(y), len(y))
    for digit in range(10):
        rows = order[y[order] == digit]
        turn[rows] = np.arange(len(rows))
    return np.argsort(turn, kind="stable")[:labels]


def unusable(args: argparse.Namespace, images: int, ranks: int) -> str | None:
    """What is wrong with the arguments, in a sentence."""
    wrong = {
        f"There are {images} images for {ranks} ranks: start {images} at most.": images < ranks,
        f"--side {args.side} is not a multiple of 4 from 28 on: take 28, 64 or 128.": args.side % 4 or args.side < 28,
        f"--labels {args.labels} is not 10 to {images}, one or more a class: take 100.": not 10 <= args.labels <= images,
        "--steps and --batch-per-rank begin at 1, --evaluate-every at 0.": min(args.steps, args.batch_per_rank) < 1,
    }
    return next((sentence for sentence, applies in wrong.items() if applies), None)


def enlarged(images: np.ndarray, side: int) -> np.ndarray:
    """(n, 28, 28, 1) -> (n, side, side, 1)"""
    return images if side == 28 else tf.image.resize(images, (side, side)).numpy()


def mosaic(images: np.ndarray) -> np.ndarray:
    """32 images as one picture of 4 rows of 8, 28 pixels each: (112, 224) uint8."""
    small = tf.image.resize(images, (28, 28)).numpy().reshape(4, 8, 28, 28)
    return (255 * small.transpose(0, 2, 1, 3).reshape(112, 224)).astype(np.uint8)


def main(args: argparse.Namespace) -> float:
    hvd.init()  # Distributed: the ranks find each other
    rank, ranks, batch = hvd.rank(), hvd.size(), args.batch_per_rank
    x, y, x_test, y_test = data.digits()  # (n, 28, 28, 1), (n,), and as much to test
    if problem := unusable(args, len(x), ranks):
        sys.exit(rank == 0 and print(problem, file=sys.stderr, flush=True) or 2)  # Distributed: said once, all end
    if args.bf16:
        tf.config.optimizer.set_experimental_options({"auto_mixed_precision_onednn_bfloat16": True})
    keras.utils.set_random_seed(args.seed)
    trunk, head, generator = networks(args.side)
    tf.random.set_seed(args.seed * 1000 + rank)  # Distributed: each rank has noise of its own, from here on
    classifier = keras.Sequential([trunk, head])
    judged, making = ([v.value for v in m.trainable_variables] for m in (classifier, generator))
    optimizers = [keras.optimizers.Adam(LR * ranks * batch / BASE_BATCH, beta_1=0.5) for _ in range(2)]
    for optimizer, model in zip(optimizers, (classifier, generator), strict=True):
        optimizer.build(model.trainable_variables)

    @tf.function
    def train_step(x, y, unlabelled):
        with tf.GradientTape(persistent=True) as tape:
            made = generator(tf.random.normal([len(unlabelled), NOISE]))  # (batch, side, side, 1)
            features = trunk(tf.concat([x, unlabelled], 0), training=True)  # (2 batch, 128)
            features_made = trunk(made, training=True)
            classes = head(features, training=True)  # (2 batch, 10)
            loss = tf.reduce_mean(keras.losses.sparse_categorical_crossentropy(y, classes[: len(x)], from_logits=True))
            real, fake = real_or_made(classes[len(x) :]), real_or_made(head(features_made, training=True))  # (batch,)
            # TODO 2: the loss of the images without a label
            without = tf.constant(0.0)
            total = loss if args.supervised else loss + without
            apart = tf.reduce_mean(features[len(x) :], 0) - tf.reduce_mean(features_made, 0)  # (128,)
            matching = tf.reduce_mean(tf.square(apart))
        tape = hvd.DistributedGradientTape(tape)
        optimizers[0].apply(tape.gradient(total, judged), classifier.trainable_variables)
        if not args.supervised:
            optimizers[1].apply(tape.gradient(matching, making), generator.trainable_variables)
        return loss, without, matching, tf.reduce_mean(real), tf.reduce_mean(fake)

    images_done = tf.Variable(0, dtype=tf.int64)
    state = [images_done, *(v.value for v in classifier.weights + generator.weights)]
    state += [v.value for optimizer in optimizers for v in optimizer.variables]
    if args.checkpoint and rank == 0:  # Distributed: one rank reads, and hands on what it has read
        records.take_checkpoint(args.checkpoint, state)
    hvd.broadcast_variables(state, root_rank=0)  # Distributed: equal steps keep equal only what began equal
    known, start, process = choose(y, args.labels, args.seed), records.digest(state), psutil.Process()
    fixed = np.random.default_rng(0).standard_normal((32, NOISE)).astype(np.float32)  # the samples are of these
    compiled = tf.function(lambda x: tf.argmax(classifier(x), axis=1))
    classify = {"predict": lambda x: classifier.predict(x, verbose=0).argmax(axis=1),
                "predict_on_batch": lambda x: classifier.predict_on_batch(x).argmax(axis=1)}.get(args.evaluation, compiled)  # fmt: skip
    batches = range(0, len(x_test), TEST_BATCH)
    # TODO 3: evaluation
    mine = batches if rank == 0 else []

    def evaluate() -> int:
        """How many of the test images of this rank are recognised."""
        correct = 0
        for at in mine:
            images = enlarged(x_test[at : at + TEST_BATCH], args.side)
            correct += int((np.asarray(classify(images)) == y_test[at : at + TEST_BATCH]).sum())
        return correct

    goal, every = args.steps * batch, args.evaluate_every
    accuracy, at_s, at_step, evaluation_s, samples, rss_mib, step_s = [], [], [], [], [], [], []
    wait_s = input_s = 0.0
    assert int(images_done) < goal, f"{int(images_done) // batch} steps are done: ask for more with --steps."
    begin = now()
    while int(images_done) < goal:
        started = now()
        draw = np.random.default_rng([args.seed, int(images_done)])  # the same on every rank, and after a restart
        rows = draw.integers(len(x), size=batch * ranks)[rank::ranks]  # Distributed: dealt like cards
        few = draw.choice(known, size=batch * ranks)[rank::ranks]  # Distributed: as above
        given = enlarged(x[few], args.side), y[few], enlarged(x[rows], args.side)  # (batch, side, side, 1), (batch,)
        ready = now()
        told = [float(value) for value in train_step(*map(tf.constant, given))]
        assert np.isfinite(told).all()
        images_done.assign_add(batch * ranks)  # Distributed: so fewer steps on more ranks
        step_s.append(now() - ready)
        input_s += ready - started
        ended = int(images_done) >= goal
        if ended or (every and len(step_s) % every == 0):
            started = now()
            correct = evaluate()
            evaluated = now()
            correct = hvd.allreduce(tf.constant(correct), op=hvd.Sum, name="correct")  # Distributed: the counts of all
            wait_s += now() - evaluated
            evaluation_s.append(evaluated - started)
            accuracy.append(int(correct) / len(x_test))
            at_s.append(now() - begin)
            at_step.append(len(step_s))
            rss_mib.append((at_s[-1], process.memory_info().rss / 2**20))
            if rank == 0:
                samples += [] if args.supervised else [mosaic(generator(fixed).numpy())]
                print(f"step {at_step[-1]}: accuracy {accuracy[-1]:.2%} after {at_s[-1]:.1f} s", flush=True)
                if args.checkpoint:
                    records.keep_checkpoint(args.checkpoint, state, int(images_done) // batch)
    wall_s = now() - begin
    share = {"start": start, "end": records.digest(state), "wait_s": wait_s, "evaluation_s": sum(evaluation_s)}
    share |= {"input_s": input_s, "train_s": sum(step_s), "rss_mib": rss_mib, "tested": len(mine)}
    share |= {"peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}
    shares = hvd.allgather_object(share | {"step_s": step_s})
    if rank == 0:
        slowest_s = np.max([share.pop("step_s") for share in shares], axis=0)
        warm_up = min(5, len(slowest_s) - 1)
        metrics = {"images_per_s": batch * ranks * len(step_s) / wall_s, "accuracy": accuracy, "at_s": at_s}
        metrics |= {"at_step": at_step, "evaluation_s": evaluation_s, "shares": shares}
        some = [0, len(samples) // 2, -1] if samples else []
        metrics |= {"samples": [samples[i] for i in some], "samples_at_s": [at_s[i] for i in some]}
        metrics |= {"to_target_s": next((s for s, a in zip(at_s, accuracy, strict=True) if a >= args.target), None)}
        metrics |= {"settings": {k: v for k, v in os.environ.items() if k.startswith(SETTINGS)}}
        variant = "supervised" if args.supervised else args.evaluation
        rate = batch * ranks / np.median(slowest_s[warm_up:])
        records.write(lab="06_tuning", variant=variant, ranks=ranks, batch_per_rank=batch, seed=args.seed,
                      warmup_steps=warm_up, step_s=slowest_s[warm_up:], rate=rate, rate_unit="images/s",
                      metrics=metrics)  # fmt: skip
        print(f"{ranks} rank(s): {rate:.0f} images/s, accuracy {accuracy[-1]:.2%}", flush=True)
    return accuracy[-1]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--labels", type=int, default=100, help="training images whose label is known (100)")
    parser.add_argument("--side", type=int, default=28, help="pixels, a multiple of 4 (28)")
    parser.add_argument("--steps", type=int, default=40 if data.quick() else 1000, help="of one rank; more divide them")
    parser.add_argument("--batch-per-rank", type=int, default=64, help="images without label a step on each rank (64)")
    parser.add_argument("--evaluate-every", type=int, default=0, help="steps (0: at the end)")
    ways = ["predict", "predict_on_batch", "compiled", "shared"]
    parser.add_argument("--evaluation", choices=ways, default="shared", help="how, and by whom")
    parser.add_argument("--supervised", action="store_true", help="learn from the labelled images alone")
    parser.add_argument("--bf16", action="store_true", help="let oneDNN compute in bfloat16")
    parser.add_argument("--target", type=float, default=0.9, help="accuracy whose time is noted (0.9)")
    parser.add_argument("--checkpoint", help="folder to go on from and to keep checkpoints in")
    parser.add_argument("--seed", type=int, default=0, help="of the weights and of the order of the images")
    try:
        main(parser.parse_args())
    except (MemoryError, tf.errors.ResourceExhaustedError):
        sys.exit("out of memory")
