"""The step that the images are for: a small network, or a device's time.

There is nothing to fill in here.
"""

import time

import keras
import tensorflow as tf


def small_cnn(side: int) -> keras.Model:
    """Two convolutions, two dense layers, eight classes."""

    def start(seed: int) -> keras.initializers.Initializer:
        # Not by a seed for all: input_pipeline() sets seeds of its own.
        return keras.initializers.GlorotUniform(seed)

    return keras.Sequential([
        keras.Input((side, side, 3)),
        keras.layers.Conv2D(16, 5, strides=2, activation="relu",
                            kernel_initializer=start(0)),
        keras.layers.Conv2D(32, 3, strides=2, activation="relu",
                            kernel_initializer=start(1)),
        keras.layers.MaxPooling2D(),
        keras.layers.Flatten(),
        keras.layers.Dense(64, activation="relu", kernel_initializer=start(2)),
        keras.layers.Dense(8, kernel_initializer=start(3)),
    ])


class Training:
    """Steps of the small network; or of `step_ms`, in which nothing happens.

    The second is what these cores see of a device that computes beside them.
    """

    def __init__(self, side: int, step_ms: float | None) -> None:
        self.step_ms = step_ms
        self.right = []
        self.variables = []
        if step_ms is not None:
            return
        self.model = small_cnn(side)
        self.optimizer = keras.optimizers.Adam(0.001)
        self.optimizer.build(self.model.trainable_variables)
        self.variables = [v.value for v in self.model.weights]
        self.variables += [v.value for v in self.optimizer.variables]
        images = tf.TensorSpec([None, side, side, 3], tf.float32)
        labels = tf.TensorSpec([None], tf.int64)
        self.compiled = tf.function(self._step, autograph=False,
                                    input_signature=[images, labels])

    def _step(self, images: tf.Tensor, labels: tf.Tensor) -> tf.Tensor:
        with tf.GradientTape() as tape:
            classes = self.model(images, training=True)  # (n, 8)
            loss = tf.reduce_mean(keras.losses.sparse_categorical_crossentropy(
                labels, classes, from_logits=True))
        weights = self.model.trainable_variables
        gradients = tape.gradient(loss, [v.value for v in weights])
        self.optimizer.apply(gradients, weights)
        right = tf.argmax(classes, axis=1) == labels
        return tf.reduce_mean(tf.cast(right, tf.float32))

    def step(self, images: tf.Tensor, labels: tf.Tensor) -> None:
        """One step on a batch."""
        if self.step_ms is not None:
            time.sleep(self.step_ms / 1e3)
            return
        right = self.compiled(images, tf.constant(labels, tf.int64))
        self.right.append(float(right))
