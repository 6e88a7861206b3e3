"""The network whose weights lie on parameter servers, for server.py.

There is nothing to fill in here. One hidden layer, handwritten digits; all
weights are one row of n numbers, of which each server holds a share.
"""

import argparse

import numpy as np
import tensorflow as tf

from scaleout import data


class Network:
    """The weights on the servers, and what workers do with them."""

    def __init__(self, strategy: object, args: argparse.Namespace,
                 x: np.ndarray, y: np.ndarray) -> None:
        self.args = args
        self.x = x.reshape(len(x), 784)
        self.y = y.astype(np.int64)
        self.sizes = [784 * args.hidden, args.hidden, args.hidden * 10, 10]
        self.n = sum(self.sizes)
        rng = np.random.default_rng(0)
        w = np.zeros(self.n, np.float32)
        w[: self.sizes[0]] = 0.05 * rng.standard_normal(self.sizes[0])
        at = self.n - 10 - self.sizes[2]
        w[at : self.n - 10] = 0.1 * rng.standard_normal(self.sizes[2])
        self.start = w
        self.shards = [data.shard(self.n, s, args.servers)
                       for s in range(args.servers)]
        # Distributed: TensorFlow puts one variable on each server, in turns
        with strategy.scope():
            self.parts = [tf.Variable(w[own]) for own in self.shards]
            self.sums = [tf.Variable(0 * w[own]) for own in self.shards]
            self.pushed = tf.Variable(0, dtype=tf.int64)
            self.between = tf.Variable(0, dtype=tf.int64)

    def gradient(self, w: object, rows: object) -> object:
        """The gradient of the loss on these images by all weights: (n,)."""
        x = tf.gather(tf.constant(self.x), rows)  # (batch, 784)
        y = tf.gather(tf.constant(self.y), rows)  # (batch,)
        with tf.GradientTape() as tape:
            tape.watch(w)
            w1, b1, w2, b2 = tf.split(w, self.sizes)
            h = tf.nn.relu(x @ tf.reshape(w1, (784, -1)) + b1)
            scores = h @ tf.reshape(w2, (-1, 10)) + b2  # (batch, 10)
            loss = tf.reduce_mean(
                tf.nn.sparse_softmax_cross_entropy_with_logits(y, scores))
        return tape.gradient(loss, w)

    def pause(self) -> object:
        """Sleeps as long as the note in this worker's own folder says."""
        note = tf.io.read_file("pause_us")
        one = tf.data.Dataset.range(1)
        slept = tf.raw_ops.SleepDataset(
            input_dataset=tf.data.experimental.to_variant(one),
            sleep_microseconds=tf.strings.to_number(note, tf.int64),
            output_types=[tf.int64], output_shapes=[()])
        after = tf.data.experimental.from_variant(
            slept, tf.TensorSpec((), tf.int64))
        return after.reduce(np.int64(0), lambda total, each: total + each)

    @tf.function(autograph=False)
    def work(self, rule: str, rows: object) -> None:
        """What a worker does: pull the weights, push a gradient.

        It counts gradients, and how many of others came in between. A server
        keeps both numbers: a result that lies on a worker dies with it.
        """
        before = tf.identity(self.pushed)
        # Distributed: n numbers from the servers
        w = tf.concat([part.read_value() for part in self.parts], 0)  # (n,)
        with tf.control_dependencies([w, before]):
            slept = self.pause()
        with tf.control_dependencies([slept]):
            g = self.gradient(tf.identity(w), rows)  # (n,)
        pushes = []
        for k, own in enumerate(self.shards):
            # Distributed: n numbers to the servers
            if rule == "sync":
                push = self.sums[k].assign_add(g[own], read_value=False)
            else:
                step = self.args.rate * g[own]
                push = self.parts[k].assign_sub(step, read_value=False)
            pushes.append(push)
        with tf.control_dependencies(pushes):
            others = self.pushed.assign_add(1) - before - 1
            self.between.assign_add(others)

    @tf.function(autograph=False)
    def apply(self) -> None:
        """Our own rule for an update that waits: all gradients at once."""
        for part, total in zip(self.parts, self.sums, strict=True):
            # Distributed: each server by itself; nothing travels
            with tf.device(part.device):
                part.assign_sub(self.args.rate * total)
                total.assign(tf.zeros_like(total))

    def restart(self) -> None:
        """The weights as they were at first."""
        for part, total, own in zip(self.parts, self.sums, self.shards,
                                    strict=True):
            part.assign(self.start[own])
            total.assign(0 * self.start[own])
        self.pushed.assign(0)
        self.between.assign(0)

    def pull(self) -> np.ndarray:
        """All weights, for rank 0 to look at: (n,)."""
        return np.concatenate([part.numpy() for part in self.parts])

    def loss_of(self, w: np.ndarray, x: np.ndarray, y: np.ndarray) -> float:
        """The mean cross-entropy of weights w on these images."""
        w1, b1, w2, b2 = np.split(w, np.cumsum(self.sizes)[:-1])
        h = np.maximum(x.reshape(len(x), 784) @ w1.reshape(784, -1) + b1, 0)
        scores = h @ w2.reshape(-1, 10) + b2  # (images, 10)
        scores -= scores.max(axis=1, keepdims=True)
        logs = np.log(np.exp(scores).sum(axis=1))  # (images,)
        return float((logs - scores[np.arange(len(y)), y]).mean())

    def serial(self, rows: np.ndarray) -> np.ndarray:
        """The weights that rank 0 alone gets, with the same images."""
        w = tf.constant(self.start)
        gradient = tf.function(self.gradient, autograph=False)
        for each in rows.reshape(-1, self.args.workers, rows.shape[-1]):
            total = sum(gradient(w, some) for some in each)  # (n,)
            w = w - self.args.rate * total
        return w.numpy()
