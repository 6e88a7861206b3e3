"""The networks of this lab, and the images that they learn from.

There is nothing to fill in here. Keras is imported inside the functions, as
runme.py must choose a library before that.
"""

import numpy as np

from scaleout import data

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
    """A fresh network."""
    from keras import Sequential, applications, layers

    if network == "resnet50":
        model = applications.ResNet50(weights=None,
                                      input_shape=(SIDE, SIDE, 3))
        return first_stage(model) if data.quick() else model
    if network == "normed":
        # Small, and with batch normalisation.
        return Sequential([
            layers.Input((28, 28, 1)),
            layers.Conv2D(32, 5, padding="same"),
            layers.BatchNormalization(epsilon=0.01),
            layers.ReLU(),
            layers.MaxPooling2D(4),  # (n, 7, 7, 32)
            layers.Flatten(),  # (n, 1568)
            layers.Dense(10, activation="softmax"),  # (n, 10)
        ])
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


def first_stage(model):
    """ResNet-50 with one of its four stages, for a rehearsal."""
    from keras import Model, layers

    x = model.get_layer("conv2_block3_out").output  # (n, h, w, 256)
    x = layers.GlobalAveragePooling2D()(x)  # (n, 256)
    return Model(model.input, layers.Dense(1000, activation="softmax")(x))


def with_batch_norm(model, normalise):
    """The same network, whose batch normalisation is done by a function.

    normalise(x, gamma, beta, epsilon) returns x normalised, and the mean and
    the variance of each channel.
    """
    import keras
    import tensorflow as tf

    # Tried once, so that a slip shows before the network is built.
    tried = normalise(tf.ones((2, 1, 1, 1)), tf.ones(1), tf.ones(1), 0.01)
    if not isinstance(tried, tuple) or len(tried) != 3:
        raise TypeError("normalise has to return three things: what is "
                        "normalised, the means, the variances; not "
                        f"{type(tried).__name__}")

    class BatchNorm(keras.layers.BatchNormalization):
        """For training alone, which is all that happens here."""

        def call(self, x, training=True, mask=None):
            """Normalises a batch."""
            y, mean, variance = normalise(
                x, self.gamma, self.beta, self.epsilon)
            # Running averages, for inference later.
            new = 1 - self.momentum
            for kept, found in ((self.moving_mean, mean),
                                (self.moving_variance, variance)):
                kept.assign(kept + new * (found - kept))
            return y

    def replaced(layer):
        kind = type(layer)
        if kind is keras.layers.BatchNormalization:
            kind = BatchNorm
        return kind.from_config(layer.get_config())

    copy = keras.models.clone_model(model, clone_function=replaced)
    # The copy begins where the model does.
    copy.set_weights(model.get_weights())
    return copy


def flops_per_image(model) -> float:
    """Multiplications and additions of one training step, for one image."""
    forward = []
    for layer in model.layers:
        if hasattr(layer, "kernel"):
            # Each weight is used once for each pixel of the layer's output,
            # by a multiplication and an addition.
            weights = np.prod(layer.kernel.shape)
            pixels = np.prod(layer.output.shape[1:-1])
            forward.append(2.0 * weights * pixels)
    # Backward takes two products as large: the gradient of the weights, and
    # that of the inputs. The first layer's input, the image, needs none.
    return sum(forward) + sum(forward) + sum(forward[1:])
