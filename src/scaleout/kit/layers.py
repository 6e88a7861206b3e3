"""Batch normalisation as one operation of TensorFlow.

Keras 3 normalises a batch by eight operations forward and more backward, each of which reads the
whole batch again. TensorFlow has one for all of it, which oneDNN runs, with the ReLU behind it.

    from scaleout import layers

    model = layers.fuse(keras.applications.ResNet50(weights=None))
    layers.fused_batch_norm()(axis=-1)        # or the layer, with Keras's own arguments

A saved network is read again after the first call of either.
"""

import functools
from typing import Any


def fuse(model: Any) -> Any:
    """Copy a network with its weights, the copy's batch normalisation fused.

    Parameters
    ----------
    model : keras.Model
        It stays as it is.

    Returns
    -------
    keras.Model
        Of the same architecture, with the same weights.
    """
    import keras

    def replaced(layer: Any) -> Any:
        kind = type(layer)
        if kind is keras.layers.BatchNormalization:
            kind = fused_batch_norm()
        return kind.from_config(layer.get_config())

    copy = keras.models.clone_model(model, clone_function=replaced)
    copy.set_weights(model.get_weights())
    return copy


@functools.cache
def fused_batch_norm() -> Any:
    """Return the class of the layer, known to Keras by its name from then on.

    It is made here, and not when this module is loaded, as Keras loads TensorFlow.

    Returns
    -------
    type
        A subclass of keras.layers.BatchNormalization, the same at each call.
    """
    import keras
    import tensorflow as tf

    @keras.saving.register_keras_serializable(package="scaleout")
    class FusedBatchNormalization(keras.layers.BatchNormalization):  # type: ignore[misc]
        """Keras's BatchNormalization: same arguments, weights and results, in one operation.

        Images with the channels last are fused; for all else (other shapes or axes, a mask,
        renorm=, synchronized=) it is Keras's own layer. Statistics are kept in fp32.
        """

        def call(self, inputs: Any, training: Any = None, mask: Any = None) -> Any:
            whole = mask is None and not (self.renorm or self.synchronized)
            if not whole or len(inputs.shape) != 4 or self.axis not in (-1, 3):
                return super().call(inputs, training=training, mask=mask)
            training = bool(training and self.trainable)
            ones = tf.ones_like(self.moving_mean)
            y, mean, variance, *_ = tf.raw_ops.FusedBatchNormV3(
                x=inputs,
                scale=self.gamma if self.scale else ones,
                offset=self.beta if self.center else 0 * ones,
                mean=[] if training else self.moving_mean,
                variance=[] if training else self.moving_variance,
                epsilon=self.epsilon,
                is_training=training,
            )
            if training:
                n = tf.cast(tf.size(inputs) // tf.shape(inputs)[-1], tf.float32)
                # it returns the variance over n - 1, and Keras keeps that over n
                variance *= tf.maximum(n - 1, 1) / n
                keep = self.momentum
                self.moving_mean.assign(keep * self.moving_mean + (1 - keep) * mean)
                self.moving_variance.assign(keep * self.moving_variance + (1 - keep) * variance)
            return y

    return FusedBatchNormalization
