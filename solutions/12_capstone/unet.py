"""The network of 12_capstone, a small U-Net. There is nothing to fill in here.
"""

import keras
from keras import layers

FILTERS = (16, 32, 64)  # at 64 x 64, 32 x 32 and 16 x 16 pixels
MOMENTUM = 0.9  # of batch norm's averages: there are few steps


def build(channels: int) -> keras.Model:
    """Slices, (n, 64, 64, channels), to logits, (n, 64, 64, 1): above 0 where
    the network sees a tumour.

    On its way down it looks at more and more of the slice with fewer and fewer
    pixels. On its way up, each level also gets what was seen on the way down
    at the same size, so that outlines stay sharp.
    """
    slices = keras.Input((None, None, channels))
    x = slices
    skips = []
    for filters in FILTERS:
        if skips:
            x = layers.MaxPooling2D()(x)
        x = block(x, filters)
        skips.append(x)
    for filters, skip in zip(FILTERS[-2::-1], skips[-2::-1], strict=True):
        x = layers.Conv2DTranspose(filters, 2, strides=2)(x)
        x = block(layers.Concatenate()([skip, x]), filters)
    return keras.Model(slices, layers.Conv2D(1, 1)(x))


def block(x, filters):
    """Two convolutions, each normalised."""
    for _ in range(2):
        # The normalisation takes a bias away again.
        x = layers.Conv2D(filters, 3, padding="same", use_bias=False,
                          kernel_initializer="he_normal")(x)
        x = layers.BatchNormalization(momentum=MOMENTUM)(x)
        x = layers.ReLU()(x)
    return x
