"""What 02_threads trains, and what it sees meanwhile: how many threads each library has, and how busy they are.

runme.py imports this after it has decided on threads and cores; there is nothing to fill in here.
"""

import argparse
import os
import time
from collections import Counter

import numpy as np
import psutil
from mpi4py import MPI

from scaleout import data


def load(network: str, rank: int, ranks: int):
    """A fresh network, images (n, height, width, channels) and labels (n,)."""
    from keras import Input, Sequential, applications, layers

    if network == "resnet50":
        images = np.random.default_rng(rank).random((16, 224, 224, 3), np.float32)  # any images take the same time
        return applications.ResNet50(weights=None), images, np.arange(16)
    x, y, _, _ = data.digits()
    mine = data.shard(len(x), rank, ranks)  # Distributed: each copy has digits of its own
    convolution = {"kernel_size": 5, "padding": "same", "activation": "relu"}
    small = [layers.Conv2D(32, **convolution), layers.MaxPooling2D()]  # (n, 14, 14, 32)
    small += [layers.Conv2D(64, **convolution), layers.MaxPooling2D(), layers.Flatten()]  # (n, 3136)
    small += [layers.Dense(128, activation="relu"), layers.Dense(10, activation="softmax")]  # (n, 10)
    return Sequential([Input((28, 28, 1)), *small]), x[mine], y[mine]


def train(args: argparse.Namespace, comm: MPI.Comm) -> dict:
    """Trains this rank's copy. Returns seconds a step, and by library: threads, and CPUs that they kept busy."""
    process, born = psutil.Process(), {os.getpid(): "Python"}

    def cpu_seconds(library: str) -> dict[int, float]:
        """CPU seconds of each thread so far; a thread that was not there before belongs to this library."""
        threads = {thread.id: thread.user_time + thread.system_time for thread in process.threads()}
        born.update({thread: library for thread in threads if thread not in born})
        return threads

    import keras
    import tensorflow as tf

    keras.utils.set_random_seed(comm.rank)
    cpu_seconds("other")  # whatever NumPy, MPI and the imports have started
    tf.constant(0)  # the first op: from here on TensorFlow's threads are there, and no setting changes them
    cpu_seconds("Eigen")
    model, images, labels = load(args.network, comm.rank, comm.size)
    loss_of, optimizer = keras.losses.SparseCategoricalCrossentropy(), keras.optimizers.SGD(0.01)
    optimizer.build(model.trainable_variables)
    cpu_seconds("other")  # data may bring libraries of its own

    @tf.function
    def train_step(x, y):
        with tf.GradientTape() as tape:
            loss = loss_of(y, model(x, training=True))
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
        return loss

    step_s, cpu_s = [], []
    for step in range(args.warmup + args.steps):
        if step == args.warmup:
            comm.Barrier()  # Distributed: a copy is timed while the others work too
            before, switches = cpu_seconds("OpenMP"), process.num_ctx_switches().involuntary
        rows = np.arange(step * args.batch_per_rank, (step + 1) * args.batch_per_rank) % len(images)
        x, y = tf.constant(images[rows]), tf.constant(labels[rows])  # (batch, height, width, channels), (batch,)
        start, cpu_start = time.perf_counter(), time.process_time()
        loss = float(train_step(x, y))  # a number is there only when the step is done
        step_s.append(time.perf_counter() - start)
        cpu_s.append(time.process_time() - cpu_start)  # of all threads together
    assert np.isfinite(loss)
    timed_s, used = sum(step_s[args.warmup :]), Counter()
    for thread, seconds in cpu_seconds("OpenMP").items():
        used[born[thread]] += (seconds - before.get(thread, 0)) / timed_s
    return {"step_s": step_s[args.warmup :], "cpu_s": cpu_s[args.warmup :], "threads": Counter(born.values()),
            "cpus": used, "switches_per_s": (process.num_ctx_switches().involuntary - switches) / timed_s}  # fmt: skip
