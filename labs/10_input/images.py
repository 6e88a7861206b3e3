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
        return augment(images[None], numbers[None], epoch)[0]
    top, left, mirror, light = tf.unstack(tf.random.stateless_uniform(
        [4, tf.size(numbers)], seed=[numbers[0], 1000 * SEED + epoch]))
    # Three quarters of each side, so one pixel for every 1.5 of them: pixel
    # (x, y) of the cut is pixel (a x + b, 1.5 y + d) of the image.
    straight = mirror < 0.5
    a = tf.where(straight, 1.5, -1.5)
    b = 32 * left + tf.where(straight, 0.0, 1.5 * (SIDE - 1))
    none = tf.zeros_like(a)
    cut = tf.raw_ops.ImageProjectiveTransformV3(
        images=tf.cast(images, tf.float32), interpolation="BILINEAR",
        fill_value=0, output_shape=[SIDE, SIDE], transforms=tf.stack(
            [a, none, b, none, 1.5 + none, 32 * top, none, none], axis=1))
    bright = (0.8 + 0.4 * light) / 255  # (n,)
    return cut * bright[:, None, None, None]
