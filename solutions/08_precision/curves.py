"""A network that learns in 32 and in 16 bits: the same curve?

    mpirun -n 1 python -m mpi4py solutions/08_precision/curves.py

One rank. It trains the small network of 01 in fp32, in bf16 as TensorFlow's
graph optimiser rewrites it, and in bf16 as Keras does it, each with some
seeds; that takes about a minute, and several without AVX-512. You will see
loss and accuracy of each.
"""

import argparse
import os
import time

# Distributed: nothing of this travels, but TensorFlow reads it when it starts
os.environ["TF_ENABLE_ONEDNN_OPTS"] = "1"
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import numpy as np

# Distributed: this import also starts MPI
from mpi4py import MPI
from trained import make_model

from scaleout import data, records
from scaleout.kit.flags import Parser, one_or_more, refuse

POLICIES = {"fp32": "float32", "bf16, graph rewrite": "float32",
            "bf16, Keras": "mixed_bfloat16"}


def settings() -> argparse.Namespace:
    """What was typed behind the name of this file."""
    parser = Parser(__doc__)
    parser.add_argument("--seeds", type=one_or_more,
                        default=1 if data.quick() else 3,
                        help="trainings of each kind (3)")
    parser.add_argument("--steps", type=one_or_more,
                        default=10 if data.quick() else 120,
                        help="steps of a training (120)")
    parser.add_argument("--batch", type=one_or_more, default=64,
                        help="images in a step (64)")
    args = parser.parse_args()
    if MPI.COMM_WORLD.Get_size() > 1:
        refuse("This script is for one rank: mpirun -n 1")
    return args


def learn(kind: str, seed: int, args: argparse.Namespace) -> dict:
    """Trains the network once: losses, seconds of each step, accuracy."""
    import keras
    import tensorflow as tf

    keras.utils.set_random_seed(seed)
    keras.mixed_precision.set_global_policy(POLICIES[kind])
    # This holds for what is traced from here on.
    rewrite = {"auto_mixed_precision_onednn_bfloat16": "rewrite" in kind}
    tf.config.optimizer.set_experimental_options(rewrite)
    x, y, x_test, y_test = data.digits()  # (n, 28, 28, 1), (n,)
    network = make_model()
    cross_entropy = keras.losses.SparseCategoricalCrossentropy()
    optimizer = keras.optimizers.SGD(0.1)
    optimizer.build(network.trainable_variables)

    @tf.function
    def train_step(images, labels):
        with tf.GradientTape() as tape:
            loss = cross_entropy(labels, network(images, training=True))
        weights = [v.value for v in network.trainable_variables]
        gradients = tape.gradient(loss, weights)
        optimizer.apply(gradients, network.trainable_variables)
        zeros = [tf.math.count_nonzero(g == 0) for g in gradients]
        return loss, tf.add_n(zeros)

    rng = np.random.default_rng(seed)
    losses = []
    step_s = []
    for _ in range(args.steps):
        rows = rng.integers(0, len(x), args.batch)
        images = tf.constant(x[rows])  # (batch, 28, 28, 1)
        labels = tf.constant(y[rows])  # (batch,)
        start = time.perf_counter()
        loss, zeros = train_step(images, labels)
        losses.append(float(loss))
        step_s.append(time.perf_counter() - start)
    forward = tf.function(lambda images: network(images, training=False))
    right = np.argmax(forward(tf.constant(x_test)).numpy(), axis=1) == y_test
    return {"losses": losses, "step_s": step_s[3:],
            "accuracy": float(right.mean()),
            "zeros": int(zeros) / network.count_params()}


def main(args: argparse.Namespace) -> None:
    found = {kind: [] for kind in POLICIES}
    for seed in range(args.seeds):
        for kind in POLICIES:
            found[kind].append(learn(kind, seed, args))
    for kind, seeds in found.items():
        accuracy = [each["accuracy"] for each in seeds]
        step_s = [s for each in seeds for s in each["step_s"]]
        records.write(
            lab="08_precision", variant=kind, ranks=1, step_s=step_s,
            batch_per_rank=args.batch, warmup_steps=3,
            metrics={"part": "curves", "how": kind, "accuracy": accuracy,
                     "losses": [each["losses"] for each in seeds],
                     "zeros": [each["zeros"] for each in seeds]})
        print(f"{kind:20} {np.mean(accuracy):6.1%} right, "
              f"{1e3 * np.median(step_s):6.1f} ms a step", flush=True)


if __name__ == "__main__":
    main(settings())
