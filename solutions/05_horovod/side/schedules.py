"""A large batch with three learning rates, and a small one; several seeds.

    mpirun -n 2 python -m mpi4py solutions/05_horovod/side/schedules.py

One rank with a batch of 512 takes the very steps that 8 ranks with 64 images
each would take together. So nobody has to wait here: each rank trains some of
the networks alone. Images and network are half as wide as in runme.py, so that
all of them take a little over a minute, and twice that with --more, which adds
five rates that others have used. You will see the accuracy of each on images
that it was not trained on.
"""

import argparse
import os
from time import perf_counter

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "1")  # oneDNN, as in 01
import horovod.tensorflow as hvd
import keras
import numpy as np
import tensorflow as tf
from mpi4py import MPI

from scaleout import data, records
from scaleout.kit.flags import Parser, above_zero, one_or_more

SMALL = 64  # images a step that --lr is meant for
WARM_UP = 0.2  # of all steps
SCHEDULES = {  # the rate as a multiple of --lr, for a part of the training
    "batch 64": lambda done, scale: 1.0,
    "512, rate of 64": lambda done, scale: 1.0,
    "512, 8 times at once": lambda done, scale: scale,
    "512, gradual warm-up": lambda done, scale: (
        1.0 + (scale - 1.0) * min(1.0, done / WARM_UP)
    ),
}
CONSTANT = "512, constant warm-up"
MORE = {
    CONSTANT: lambda done, scale: 1.0 if done < WARM_UP else scale,
    f"{CONSTANT}, momentum corrected": lambda done, scale: (
        1.0 if done < WARM_UP else scale
    ),
    "512, warm-up and decay": lambda done, scale: decayed(done, scale, 1),
    "512, warm-up and decay, power 2": lambda done, scale: (
        decayed(done, scale, 2)
    ),
    "512, cyclic": lambda done, scale: (
        1.0 + (scale - 1.0) * abs((4 * done + 1) % 2 - 1)
    ),
}


def decayed(done: float, scale: float, power: int) -> float:
    """A gradual warm-up, then down to 0: in a straight line, or steeper."""
    if done < WARM_UP:
        return 1.0 + (scale - 1.0) * done / WARM_UP
    left = (1.0 - done) / (1.0 - WARM_UP)  # 1 after the warm-up, then to 0
    return scale * left**power


def named(name: str, batch: int) -> str:
    """The name of a schedule, with the large batch that it was used for."""
    times = f"{batch / SMALL:g} times"
    return name.replace("512", str(batch), 1).replace("8 times", times)


def settings() -> argparse.Namespace:
    """What was typed behind the name of this file."""
    parser = Parser(__doc__)
    images = 300 if data.quick() else 6000
    parser.add_argument("--images", type=one_or_more, default=images,
                        help=f"to train on, two thirds at most ({images})")
    seen = 300 if data.quick() else 96000
    parser.add_argument("--seen", type=one_or_more, default=seen,
                        help=f"images that a training sees in all ({seen})")
    seeds = 1 if data.quick() else 5
    parser.add_argument("--seeds", type=one_or_more, default=seeds,
                        help=f"trainings with each schedule ({seeds})")
    parser.add_argument("--batch", type=one_or_more, default=512,
                        help="images a step of the large batch (512)")
    parser.add_argument("--lr", type=above_zero, default=0.01,
                        help=f"learning rate at {SMALL} images a step (0.01)")
    parser.add_argument("--more", action="store_true",
                        help="five more rates, such as a cyclic one")
    return parser.parse_args()


def network() -> keras.Model:
    """The network of runme.py, half as wide, for images of half the size."""
    layers = keras.layers
    like = {"activation": "relu", "kernel_initializer": "he_normal"}
    return keras.Sequential([
        keras.Input((14, 14, 1)),
        layers.Conv2D(16, 5, padding="same", **like),  # (n, 14, 14, 16)
        layers.MaxPooling2D(),  # (n, 7, 7, 16)
        layers.Conv2D(32, 5, padding="same", **like),  # (n, 7, 7, 32)
        layers.MaxPooling2D(),  # (n, 3, 3, 32)
        layers.Flatten(),  # (n, 288)
        layers.Dense(64, **like),
        layers.Dense(10),
    ])


def images(seed: int, most: int):
    """To train on, and the rest to test: another cut for each seed."""
    x, y, x_test, y_test = data.digits()
    x = np.concatenate([x, x_test])[:12000]  # (n, 28, 28, 1)
    y = np.concatenate([y, y_test])[:12000]
    x = x.reshape(-1, 14, 2, 14, 2, 1).mean(axis=(2, 4))  # (n, 14, 14, 1)
    order = np.random.default_rng(seed).permutation(len(x))
    cut = min(most, 2 * len(x) // 3)
    train, test = np.split(order, [cut])
    return x[train], y[train], x[test], y[test]


class Trainer:
    """One network and one traced step, begun anew for each training."""

    def __init__(self, lr: float) -> None:
        self.lr = lr
        self.model = network()
        self.optimizer = keras.optimizers.SGD(lr, momentum=0.9)
        self.optimizer.build(self.model.trainable_variables)
        self.momenta = self.optimizer.variables[2:]
        signature = [
            tf.TensorSpec([None, 14, 14, 1]),
            tf.TensorSpec([None], tf.int64),
        ]

        @tf.function(input_signature=signature, autograph=False)
        def train_step(x, y):
            with tf.GradientTape() as tape:
                losses = keras.losses.sparse_categorical_crossentropy(
                    y, self.model(x), from_logits=True
                )  # (rows,)
                loss = tf.reduce_mean(losses)
            weights = self.model.trainable_variables
            gradients = tape.gradient(loss, [v.value for v in weights])
            self.optimizer.apply(gradients, weights)
            return loss

        @tf.function(input_signature=signature, autograph=False)
        def right(x, y):
            found = tf.argmax(self.model(x), axis=1)
            return tf.reduce_sum(tf.cast(found == y, tf.int64))

        self.train_step = train_step
        self.right = right

    def accuracy(self, x, y) -> float:
        """The share of images that are called by their name."""
        right = sum(
            int(self.right(x[at:at + 500], y[at:at + 500]))
            for at in range(0, len(x), 500)
        )
        return right / len(x)

    def train(self, name: str, seed: int, args) -> dict:
        """One training, from the weights and in the order of its seed."""
        x, y, x_test, y_test = images(seed, args.images)
        keras.utils.set_random_seed(seed)
        self.model.set_weights(network().get_weights())
        for momentum in self.momenta:
            momentum.assign(tf.zeros_like(momentum))
        batch = SMALL if name.startswith("batch 64") else args.batch
        steps = -(-len(x) // batch)
        epochs = max(1, round(args.seen / len(x)))
        last = self.lr
        for epoch in range(epochs):
            shuffle = np.random.default_rng([seed, epoch])
            order = shuffle.permutation(len(x))
            for step in range(steps):
                done = (epoch + step / steps) / epochs
                scale = args.batch / SMALL
                rate = self.lr * (SCHEDULES | MORE)[name](done, scale)
                self.optimizer.learning_rate.assign(rate)
                if "corrected" in name and rate != last:
                    # The momentum still holds steps at the old rate.
                    for momentum in self.momenta:
                        momentum.assign(momentum * rate / last)
                last = rate
                rows = order[step * batch:(step + 1) * batch]
                self.train_step(x[rows], y[rows])
        return {
            "seed": seed, "variant": named(name, args.batch),
            "images": len(x),
            "accuracy": self.accuracy(x_test, y_test), "tested": len(x_test),
        }


def main(args: argparse.Namespace) -> None:
    # Distributed: which copy of the program this is, of how many
    rank = MPI.COMM_WORLD.rank
    ranks = MPI.COMM_WORLD.size
    # Distributed: dealt like cards; a training needs no other rank
    chosen = SCHEDULES | MORE if args.more else SCHEDULES
    todo = [(seed, name) for seed in range(args.seeds) for name in chosen]
    trainer = Trainer(args.lr)
    rows = []
    started = perf_counter()
    for seed, name in todo[rank::ranks]:
        rows.append(trainer.train(name, seed, args))
        print(f"{perf_counter() - started:4.0f} s  seed {seed}, "
              f"{rows[-1]['variant']}: "
              f"{rows[-1]['accuracy']:.2%}", flush=True)

    # Distributed: started here, as it would ask for work all the while
    hvd.init()
    rows = [row for mine in records.gather({"rows": rows})
            for row in mine["rows"]]
    rows.sort(key=lambda row: row["seed"])
    # Distributed: one record, not one from each rank
    if rank == 0:
        done = np.linspace(0, 1, 101)
        scale = args.batch / SMALL
        rates = {
            named(name, args.batch): [args.lr * schedule(at, scale)
                                      for at in done]
            for name, schedule in chosen.items()
        }
        records.write(
            lab="05_horovod",
            variant="schedules",
            ranks=ranks,
            metrics={"runs": rows, "rates": rates},
        )


if __name__ == "__main__":
    main(settings())
