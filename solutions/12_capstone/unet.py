"""The network of 12_capstone, a small U-Net, and the slices as it takes them.

runme.py and first.py import this; there is nothing to fill in here.
"""

import keras

from scaleout.layers import fused_batch_norm

FILTERS = (8, 16, 32)  # at 64 x 64, 32 x 32 and 16 x 16 pixels
MOMENTUM = 0.9  # of batch norm's averages: there are few steps in an epoch


def network(channels=2, fused=True, attention=False,
            dropout=(0.0, 0.0, 0.0)) -> keras.Model:
    """Slices, (n, 64, 64, channels), to logits, (n, 64, 64, 1): above 0 where
    the network sees a tumour.

    On its way down it looks at more and more of the slice with fewer and fewer
    pixels; on its way up, each level also gets what was seen on the way down
    at the same size, so that outlines stay sharp. dropout: a share for each
    level, from the top.
    """
    layers = keras.layers
    norm = fused_batch_norm() if fused else layers.BatchNormalization

    def block(x, filters):
        """Two convolutions, each normalised."""
        for _ in range(2):
            # The normalisation takes a bias away again.
            x = layers.Conv2D(filters, 3, padding="same", use_bias=False)(x)
            x = layers.ReLU()(norm(momentum=MOMENTUM)(x))
        return x

    def gate(skip, x, filters):
        """Where on the way down to look, as the way up suggests."""
        both = layers.Conv2D(filters, 1)(skip) + layers.Conv2D(filters, 1)(x)
        share = layers.Conv2D(1, 1, activation="sigmoid")(layers.ReLU()(both))
        return layers.Multiply()([skip, share])

    slices = keras.Input((None, None, channels))
    x = slices
    skips = []
    for filters, rate in zip(FILTERS, dropout, strict=True):
        if skips:
            x = layers.MaxPooling2D()(x)
        x = layers.SpatialDropout2D(rate)(block(x, filters))
        skips.append(x)
    for filters, skip in zip(FILTERS[-2::-1], skips[-2::-1], strict=True):
        x = layers.Conv2DTranspose(filters, 2, strides=2)(x)
        if attention:
            skip = gate(skip, x, filters)
        x = block(layers.Concatenate()([skip, x]), filters)
    # At first it says "tumour" of one pixel in fifty.
    rare = keras.initializers.Constant(-4)
    return keras.Model(
        slices, layers.Conv2D(1, 1, bias_initializer=rare)(x)
    )
