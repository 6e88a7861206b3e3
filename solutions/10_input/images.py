"""What is done to an image, or to a batch: decoded, cut, mirrored, brightened.

There is nothing to fill in here.
"""

import tensorflow as tf

WHOLE = 128  # pixels of a side, in the files
SIDE = 64  # and of what the network sees
SEED = 0  # of the order and of the augmentation


def read_image(path: tf.Tensor) -> tf.Tensor:
    """A JPEG file, decoded."""
    image = tf.io.decode_jpeg(tf.io.read_file(path), channels=3)
    return tf.ensure_shape(image, [WHOLE, WHOLE, 3])  # uint8


def augment(images: tf.Tensor, numbers: tf.Tensor,
            epoch: tf.Tensor) -> tf.Tensor:
    """Cuts out, mirrors and brightens, another way in each epoch.

    images: (n, 128, 128, 3) uint8, or one image without the n; to
    (n, 64, 64, 3) float32. What is random follows from the first image's
    number and the epoch, so it is the same when the job runs again.
    """
    if images.shape.rank == 3:
        one = augment(images[None], numbers[None], epoch)
        return one[0]
    top, left, mirror, light = tf.unstack(tf.random.stateless_uniform(
        [4, tf.size(numbers)], seed=[numbers[0], 1000 * SEED + epoch]))
    # Every one and a half pixels, beginning anywhere in the first quarter.
    steps = 0.75 * tf.range(0.5, SIDE) / SIDE  # (64,)
    rows = 0.25 * top[:, None] + steps  # (n, 64)
    columns = 0.25 * left[:, None] + steps  # (n, 64)
    columns = tf.where(mirror[:, None] < 0.5, 1 - columns, columns)
    rows = tf.cast(WHOLE * rows, tf.int32)
    columns = tf.cast(WHOLE * columns, tf.int32)
    # Where each pixel stands among those of all images.
    first = WHOLE * WHOLE * tf.range(tf.size(numbers))  # (n,)
    at = first[:, None, None] + WHOLE * rows[:, :, None] + columns[:, None, :]
    cut = tf.gather(tf.reshape(images, [-1, 3]), at)  # (n, 64, 64, 3)
    bright = (0.8 + 0.4 * light) / 255  # (n,)
    return tf.cast(cut, tf.float32) * bright[:, None, None, None]
