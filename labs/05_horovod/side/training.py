"""The lab's training as tune.py measures it: a few steps, in three ways."""

from time import perf_counter

import horovod.tensorflow as hvd
import keras
import numpy as np
import tensorflow as tf
from runme import network

from scaleout import data

WARM_UP = 4  # steps


class Training:
    """The lab's network, and its training step in three ways."""

    def __init__(self, batch: int, ranks: int) -> None:
        keras.utils.set_random_seed(0)
        self.batch = batch
        self.x, self.y, _, _ = data.digits()
        self.model = network()
        self.optimizer = keras.optimizers.SGD(0.01, momentum=0.9)
        self.optimizer.build(self.model.trainable_variables)
        self.steps = {
            "apart": self.traced(None),
            "together": self.traced(hvd.Compression.none),
            "fp16": self.traced(hvd.Compression.fp16),
        }

    def traced(self, compression):
        """A step; without compression it talks to nobody."""

        @tf.function(autograph=False)
        def train_step(images, labels):
            with tf.GradientTape() as tape:
                logits = self.model(images)  # (batch, 10)
                losses = keras.losses.sparse_categorical_crossentropy(
                    labels, logits, from_logits=True
                )  # (batch,)
                loss = tf.reduce_mean(losses)
            if compression is not None:
                # Distributed: the average over all ranks that train
                tape = hvd.DistributedGradientTape(
                    tape, compression=compression
                )
            weights = self.model.trainable_variables
            gradients = tape.gradient(loss, [v.value for v in weights])
            self.optimizer.apply(gradients, weights)
            return tf.linalg.global_norm(gradients)

        return train_step

    def run(self, how: dict, steps: int) -> float:
        """Seconds of a step, the median of so many."""
        together = "fp16" if how["fp16"] else "together"
        train_step = self.steps["apart" if how["apart"] else together]
        step_s = []
        for step in range(WARM_UP + steps):
            first = step * self.batch % (len(self.x) - self.batch)
            rows = np.arange(first, first + self.batch)
            started = perf_counter()
            float(train_step(self.x[rows], self.y[rows]))
            step_s.append(perf_counter() - started)
        return float(np.median(step_s[WARM_UP:]))
