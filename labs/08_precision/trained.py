"""The small network of 01, trained, and what TFLite makes of it.

The other scripts import this; there is nothing to fill in here. TensorFlow is
imported inside the functions, as some of them must set something before that.
"""

import contextlib
import io
import os
import warnings

import numpy as np

from scaleout import data
from scaleout.kit.flags import refuse

THREADS = int(os.environ.get("TF_NUM_INTRAOP_THREADS") or 1)
CALIBRATE = 16  # images in a batch that TFLite calibrates with
HEAD = 4  # bytes before the mark of a TFLite file
MARK = b"TFL3"


def make_model():
    """A fresh network: two convolutions, two dense layers."""
    from keras import Sequential, layers

    return Sequential([
        layers.Input((28, 28, 1)),
        layers.Conv2D(32, 5, padding="same", activation="relu"),
        layers.MaxPooling2D(),  # (n, 14, 14, 32)
        layers.Conv2D(64, 5, padding="same", activation="relu"),
        layers.MaxPooling2D(),  # (n, 7, 7, 64)
        layers.Flatten(),  # (n, 3136)
        layers.Dense(128, activation="relu"),
        layers.Dense(10, activation="softmax", dtype="float32"),  # (n, 10)
    ])


def tiny_model():
    """A layer of ten numbers each: far too small to pay for anything."""
    from keras import Sequential, layers

    return Sequential([layers.Input((10,)), layers.Dense(10),
                       layers.Dense(10)])


def train(model, steps: int, seed: int = 0) -> None:
    """Some steps of Adam on digits, 64 at a time."""
    import keras

    keras.utils.set_random_seed(seed)
    x, y, _, _ = data.digits()  # (n, 28, 28, 1), (n,)
    rows = np.random.default_rng(seed).integers(0, len(x), 64 * steps)
    model.compile("adam", "sparse_categorical_crossentropy")
    model.fit(x[rows], y[rows], batch_size=64, verbose=0)


def convert(model, batches=None, per_channel: bool = True) -> bytes:
    """The network as a TFLite model: in fp32, or calibrated and in int8.

    batches: a list of images, (n, ...) each, whose ranges count.
    """
    import tensorflow as tf

    converter = tf.lite.TFLiteConverter.from_keras_model(model)
    if batches is not None:
        if not batches:
            refuse("An empty calibration set shows no range: give one batch "
                   "or more.")
        converter.optimizations = [tf.lite.Optimize.DEFAULT]
        converter.representative_dataset = lambda: (
            [image[None]] for batch in batches for image in batch)
        # All layers in whole numbers, or an error. The model still takes and
        # gives fp32: its first operation and its last one convert.
        kinds = [tf.lite.OpsSet.TFLITE_BUILTINS_INT8]
        converter.target_spec.supported_ops = kinds
        converter._experimental_disable_per_channel = not per_channel
    # TFLite tells a long story about each conversion.
    with contextlib.redirect_stdout(io.StringIO()):
        return converter.convert()


class Model:
    """A TFLite model that takes batches of one size."""

    def __init__(self, content: bytes, batch: int, threads: int) -> None:
        import tensorflow as tf

        # It says that it will move to a package of its own.
        warnings.filterwarnings("ignore", module="tensorflow.lite")
        self.lite = tf.lite.Interpreter(model_content=content,
                                        num_threads=threads)
        self.into = self.lite.get_input_details()[0]
        self.out = self.lite.get_output_details()[0]
        shape = [batch, *self.into["shape"][1:]]
        self.lite.resize_tensor_input(self.into["index"], shape)
        self.lite.allocate_tensors()

    def __call__(self, x: np.ndarray) -> np.ndarray:
        """What the model gives for x: (n, classes)."""
        self.lite.set_tensor(self.into["index"], x)
        self.lite.invoke()
        return self.lite.get_tensor(self.out["index"])


def read(path) -> bytes:
    """A TFLite file; what is none, or cut short, is said in a sentence."""
    try:
        content = path.read_bytes()
    except OSError:
        refuse(f"--model: there is no file {path.name}.")
    if content[HEAD:HEAD + len(MARK)] != MARK:
        refuse(f"--model: {path.name} is no TFLite model.")
    try:
        Model(content, 1, 1)
    except (ValueError, RuntimeError):
        refuse(f"--model: {path.name} is damaged, perhaps cut short.")
    return content


def accuracy(content: bytes, x: np.ndarray, y: np.ndarray) -> float:
    """The share of images that a TFLite model gets right."""
    model = Model(content, len(x), 1)
    given = model(x)  # (n, 10)
    return float((np.argmax(given, axis=1) == y).mean())
