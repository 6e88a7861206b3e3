"""What 02_threads trains, and what it sees meanwhile.

runme.py imports this after it has decided on threads and cores; there is
nothing to fill in here. It sees how many threads each library has, and how
many CPUs they keep busy.
"""

import argparse
import math
import os
import time
from collections import Counter

import numpy as np
import psutil
from mpi4py import MPI

from scaleout import data, records

SIDE = 64 if data.quick() else 224  # pixels of ResNet-50's images


def load_data(network: str, rank: int, ranks: int):
    """Images (n, height, width, channels) and their labels (n,)."""
    if network == "resnet50":
        # Any images take the same time.
        rng = np.random.default_rng(rank)
        images = rng.random((16, SIDE, SIDE, 3), np.float32)
        return images, np.arange(16)
    x, y, _, _ = data.digits()  # (n, 28, 28, 1), (n,)
    # Distributed: each copy has digits of its own
    mine = data.shard(len(x), rank, ranks)
    return x[mine], y[mine]


def make_model(network: str):
    """A fresh network, as in 01."""
    from keras import Sequential, applications, layers

    if network == "resnet50":
        return applications.ResNet50(weights=None,
                                     input_shape=(SIDE, SIDE, 3))
    return Sequential([
        layers.Input((28, 28, 1)),
        layers.Conv2D(32, 5, padding="same", activation="relu"),
        layers.MaxPooling2D(),  # (n, 14, 14, 32)
        layers.Conv2D(64, 5, padding="same", activation="relu"),
        layers.MaxPooling2D(),  # (n, 7, 7, 64)
        layers.Flatten(),  # (n, 3136)
        layers.Dense(128, activation="relu"),
        layers.Dense(10, activation="softmax"),  # (n, 10)
    ])


class Census:
    """Whose threads there are in this process, and what they have used.

    A thread is known by the moment at which it is first seen: what is new
    after a library was first used belongs to that library.
    """

    def __init__(self) -> None:
        self.process = psutil.Process()
        # {thread: library}; the first thread is Python itself.
        self.born = {os.getpid(): "Python"}

    def look(self, library: str) -> dict[int, float]:
        """CPU seconds of each thread so far; new ones are this library's."""
        seconds = {}
        for thread in self.process.threads():
            self.born.setdefault(thread.id, library)
            seconds[thread.id] = thread.user_time + thread.system_time
        return seconds


def train(args: argparse.Namespace, comm: MPI.Comm,
          books: records.Books) -> tuple[float, float]:
    """Trains this rank's copy; returns its images per second, and how many
    CPUs it kept busy.

    The books get, by library, how many threads there are, and how many
    CPUs they kept busy.
    """
    census = Census()
    import keras
    import tensorflow as tf

    keras.utils.set_random_seed(comm.rank)
    # Whatever NumPy, MPI and the imports have started.
    census.look("other")
    # The first operation: from here on TensorFlow's threads are there, and no
    # setting changes them any more.
    tf.constant(0)
    census.look("Eigen")
    images, labels = load_data(args.network, comm.rank, comm.size)
    model = make_model(args.network)
    cross_entropy = keras.losses.SparseCategoricalCrossentropy()
    optimizer = keras.optimizers.SGD(0.01)
    optimizer.build(model.trainable_variables)
    # The data may bring libraries of its own.
    census.look("other")

    @tf.function
    def train_step(x, y):
        with tf.GradientTape() as tape:
            loss = cross_entropy(y, model(x, training=True))
        weights = model.trainable_variables
        gradients = tape.gradient(loss, weights)
        optimizer.apply_gradients(zip(gradients, weights, strict=True))
        return loss

    cpu_s = []
    for step in range(args.warmup + args.steps):
        if step == args.warmup:
            # Distributed: a copy is timed while the others work too
            comm.Barrier()
            before = census.look("OpenMP")
        # The next batch; behind the last image comes the first again.
        first = step * args.batch_per_rank
        rows = np.arange(first, first + args.batch_per_rank) % len(images)
        x = tf.constant(images[rows])  # (batch, height, width, channels)
        y = tf.constant(labels[rows])  # (batch,)

        cpu_start = time.process_time()
        with books.step():
            # A number is there only when the step is done.
            float(train_step(x, y))
        # The CPU seconds of all threads together.
        cpu_s.append(time.process_time() - cpu_start)

    timed_s = sum(books.step_s[args.warmup :])
    after = census.look("OpenMP")
    cpus = Counter()
    for thread, seconds in after.items():
        used = seconds - before.get(thread, 0)
        cpus[census.born[thread]] += used / timed_s
    # A gradient has a number for each weight, of four bytes.
    sizes = [math.prod(weight.shape) for weight in model.trainable_variables]
    images_per_s = args.batch_per_rank * args.steps / timed_s
    books.note(
        images_per_s=images_per_s,
        gradient_bytes=4 * sum(sizes),
        cpu_s=cpu_s[args.warmup :],
        threads=Counter(census.born.values()),
        cpus=cpus,
    )
    return images_per_s, sum(cpus.values())
