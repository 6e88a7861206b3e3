"""The networks of this lab in TensorFlow: those of keras.applications.

There is nothing to fill in here. Keras's batch normalisation is many
operations; here it is one, as in 01. Keras is imported inside the functions,
so that this file can be read where there is none.
"""

import numpy as np


def make_model(network: str, side: int):
    """A fresh network for images (n, side, side, 3); the cnn's are 28 x 28."""
    from keras import Sequential, applications, layers

    large = {
        "resnet50": applications.ResNet50,
        "resnet101": applications.ResNet101,
        "resnet152": applications.ResNet152,
        "inception_v3": applications.InceptionV3,
        "vgg16": applications.VGG16,
    }
    if network in large:
        # The last layer gives logits: no softmax.
        model = large[network](weights=None, input_shape=(side, side, 3),
                               classifier_activation=None)
        if network == "vgg16":  # it has none
            return model
        return with_one_batch_norm(model)
    return Sequential([
        layers.Input((28, 28, 1)),
        layers.Conv2D(32, 5, padding="same", activation="relu"),
        layers.MaxPooling2D(),  # (n, 14, 14, 32)
        layers.Conv2D(64, 5, padding="same", activation="relu"),
        layers.MaxPooling2D(),  # (n, 7, 7, 64)
        layers.Flatten(),  # (n, 3136)
        layers.Dense(128, activation="relu"),
        layers.Dense(10),  # (n, 10)
    ])


def with_one_batch_norm(model):
    """The same network, whose batch normalisation is one operation."""
    import keras
    import tensorflow as tf

    class BatchNorm(keras.layers.BatchNormalization):
        """For training alone, which is all that happens here."""

        def call(self, x, training=True, mask=None):
            """Normalises a batch."""
            gamma = self.gamma
            if gamma is None:  # a layer without it multiplies by one
                gamma = tf.ones(x.shape[-1:])
            y, mean, variance = tf.compat.v1.nn.fused_batch_norm(
                x, gamma, self.beta, epsilon=self.epsilon)
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

    return keras.models.clone_model(model, clone_function=replaced)


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


class Trainer:
    """A network, and its training step in two forms."""

    def __init__(self, network: str, side: int, dtype: str, seed: int) -> None:
        import keras
        import tensorflow as tf

        if dtype == "bfloat16":
            rewrite = {"auto_mixed_precision_onednn_bfloat16": True}
            tf.config.optimizer.set_experimental_options(rewrite)
        keras.utils.set_random_seed(seed)
        self.model = make_model(network, side)
        self.parameters = sum(
            int(np.prod(v.shape)) for v in self.model.trainable_variables)
        self.flops_per_image = flops_per_image(self.model)
        self.optimizer = keras.optimizers.SGD(0.01)
        self.optimizer.build(self.model.trainable_variables)
        self.one_alone = self.step_of(together=False)
        self.one_together = self.step_of(together=True)
        self.is_together = False

    def begin_together(self, ranks=None) -> None:
        """All ranks begin with the weights of rank 0; ranks: a communicator,
        where not all of them take part."""
        import horovod.tensorflow as hvd

        if self.is_together:
            return
        self.is_together = True
        # Distributed: the ranks find each other; Horovod starts a thread
        hvd.init(comm=ranks)
        state = [v.value for v in self.model.variables]
        # Distributed: equal steps keep weights equal if they begin equal
        hvd.broadcast_variables(state, root_rank=0)

    def end_together(self) -> None:
        """The ranks part, and Horovod's thread ends."""
        import horovod.tensorflow as hvd

        if self.is_together:
            self.is_together = False
            # Distributed: the opposite of hvd.init()
            hvd.shutdown()

    def leave(self) -> None:
        """Horovod ends by itself, with MPI."""

    def step_of(self, together: bool):
        """A training step as a graph; together: gradients are averaged."""
        import keras
        import tensorflow as tf

        # AutoGraph would rewrite Horovod's own Python too, in 6 s.
        # One more graph serves for all further numbers of images.
        @tf.function(autograph=False, reduce_retracing=True)
        def train_step(x, y):
            with tf.GradientTape() as tape:
                losses = keras.losses.sparse_categorical_crossentropy(
                    y, self.model(x, training=True), from_logits=True)
                loss = tf.reduce_mean(losses)
            if together:
                import horovod.tensorflow as hvd

                # Distributed: gradient() gives the average over all ranks
                tape = hvd.DistributedGradientTape(tape)
            weights = self.model.trainable_variables
            gradients = tape.gradient(loss, [v.value for v in weights])
            self.optimizer.apply(gradients, weights)
            return loss

        return train_step

    def batch(self, images, labels):
        """NumPy's arrays, (n, side, side, channels), as TensorFlow's."""
        import tensorflow as tf

        return tf.constant(images), tf.constant(labels)

    def alone(self, x, y) -> float:
        """One step on this rank's own gradients; the loss."""
        return float(self.one_alone(x, y))

    def together(self, x, y) -> float:
        """One step on the average of all ranks' gradients; the loss."""
        return float(self.one_together(x, y))
