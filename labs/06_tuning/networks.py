"""What 06_tuning trains, and on which images.

runme.py imports this after it has decided on the settings; there is nothing to
fill in here.
"""

import math

import keras
import numpy as np
import tensorflow as tf

NOISE = 64  # random numbers that an image is made from
FEATURES = 64  # channels of the smallest picture inside both networks


def sides_of(side: int) -> list[int]:
    """How wide the picture is, from layer to layer: 28, 14, 7."""
    sides = [side]
    while sides[-1] > 8 and sides[-1] % 2 == 0:
        sides.append(sides[-1] // 2)
    return sides


def networks(side: int) -> tuple[keras.Model, keras.Model, keras.Model]:
    """The trunk, images to features; the head, features to the logits of the
    ten classes; and the generator, noise to images.

    Images are (n, side, side, 1), features (n, 128), noise (n, NOISE). Each
    convolution of the trunk halves the picture until it is 4 wide; the
    generator doubles it again, from the last but one.

    Without noise, and without dropping whole channels, the trunk would soon
    tell made images from real ones by their finest details, and the generator
    could learn nothing from it.
    """
    layers = keras.layers
    sides = sides_of(side)
    levels = reversed(range(len(sides) - 1))
    widths = [max(16, FEATURES >> level) for level in levels]  # 32, 64
    half = {"strides": 2, "padding": "same"}

    trunk = [keras.Input((side, side, 1)), layers.GaussianNoise(0.2)]
    kernel = 5
    for width in [*widths, FEATURES]:
        trunk.append(layers.Conv2D(width, kernel, activation="relu", **half))
        trunk.append(layers.SpatialDropout2D(0.3))
        kernel = 3

    small = (sides[-1], sides[-1], FEATURES)
    generator = [
        keras.Input((NOISE,)),
        layers.Dense(math.prod(small), activation="relu"),
        layers.Reshape(small),
    ]
    for width in widths[-2::-1]:
        generator.append(
            layers.Conv2DTranspose(width, 5, activation="relu", **half)
        )
    generator.append(
        layers.Conv2DTranspose(1, 5, activation="sigmoid", **half)
    )

    trunk.append(layers.Flatten())
    trunk.append(layers.Dense(128, activation="relu"))
    head = [keras.Input((128,)), layers.Dropout(0.5), layers.Dense(10)]
    return tuple(map(keras.Sequential, (trunk, head, generator)))


def with_label(y: np.ndarray, labels: int, seed: int) -> np.ndarray:
    """The rows whose label is known, (labels,), as many of each digit.

    One of each class, then a second of each, until there are enough.
    """
    order = np.random.default_rng(seed).permutation(len(y))
    turn = np.full(len(y), len(y))
    for digit in range(10):
        rows = order[y[order] == digit]
        turn[rows] = np.arange(len(rows))
    return np.argsort(turn, kind="stable")[:labels]


def enlarged(images: np.ndarray, side: int) -> np.ndarray:
    """Images (n, 28, 28, 1) as (n, side, side, 1)."""
    if side == images.shape[1]:
        return images
    return tf.image.resize(images, (side, side)).numpy()
