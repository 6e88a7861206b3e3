"""What 06_tuning trains, and on which images.

runme.py imports this after it has decided on the settings; there is nothing to fill in here.
"""

import math

import keras
import numpy as np
import tensorflow as tf

NOISE = 64  # random numbers that an image is made from
FEATURES = 64  # channels of the smallest picture inside both networks


def networks(side: int) -> tuple[keras.Model, keras.Model]:
    """trunk: images (n, side, side, 1) to features (n, 128); generator: noise (n, NOISE) to images.

    The trunk halves the picture until it is 4 wide (28, 14, 7, 4 or 64, 32, 16, 8, 4); the generator doubles it, from
    the last but one. Without noise, and without dropping whole channels, the trunk would soon tell made images from
    real ones by their finest details, and the generator could learn nothing from it.
    """
    layers, sides = keras.layers, [side]
    while sides[-1] > 8 and sides[-1] % 2 == 0:
        sides.append(sides[-1] // 2)
    widths = [max(16, FEATURES >> level) for level in reversed(range(len(sides) - 1))]  # 32, 64
    half, relu = {"strides": 2, "padding": "same"}, {"activation": "relu"}
    trunk = [keras.Input((side, side, 1)), layers.GaussianNoise(0.2)]
    for level, width in enumerate([*widths, FEATURES]):
        trunk += [layers.Conv2D(width, 3 if level else 5, **half, **relu), layers.SpatialDropout2D(0.3)]
    small = (sides[-1], sides[-1], FEATURES)
    generator = [keras.Input((NOISE,)), layers.Dense(math.prod(small), **relu), layers.Reshape(small)]
    generator += [layers.Conv2DTranspose(width, 5, **half, **relu) for width in widths[-2::-1]]
    generator += [layers.Conv2DTranspose(1, 5, **half, activation="sigmoid")]
    return keras.Sequential([*trunk, layers.Flatten(), layers.Dense(128, **relu)]), keras.Sequential(generator)


def with_label(y: np.ndarray, labels: int, seed: int) -> np.ndarray:
    """The rows (labels,) whose label is known: one of each class, then a second of each, until there are enough."""
    order, turn = np.random.default_rng(seed).permutation(len(y)), np.full(len(y), len(y))
    for digit in range(10):
        rows = order[y[order] == digit]
        turn[rows] = np.arange(len(rows))
    return np.argsort(turn, kind="stable")[:labels]


def enlarged(images: np.ndarray, side: int) -> np.ndarray:
    """Images (n, 28, 28, 1) as (n, side, side, 1)."""
    return images if side == images.shape[1] else tf.image.resize(images, (side, side)).numpy()


def mosaic(images: np.ndarray) -> np.ndarray:
    """32 images as one picture, 4 rows of 8, each 28 pixels wide: (112, 224) uint8."""
    small = np.reshape(tf.image.resize(images, (28, 28)), (4, 8, 28, 28))
    return np.rint(255 * small.transpose(0, 2, 1, 3).reshape(112, 224)).astype(np.uint8)
