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
    many = tf.size(numbers)
    top, left, mirror, light = tf.unstack(tf.random.stateless_uniform(
        [4, many], seed=[numbers[0], 1000 * SEED + epoch]))
    # Three quarters of each side. Where a box ends to the left of its
    # beginning, the image is mirrored.
    top = 0.25 * top
    left = 0.25 * left
    ends = tf.where(mirror[:, None] < 0.5, [[0.75, 0.0]], [[0.0, 0.75]])
    boxes = tf.stack([top, left + ends[:, 0], top + 0.75, left + ends[:, 1]],
                     axis=1)  # (n, 4)
    cut = tf.image.crop_and_resize(images, boxes, tf.range(many),
                                   [SIDE, SIDE])  # (n, 64, 64, 3)
    bright = (0.8 + 0.4 * light) / 255  # (n,)
    return cut * bright[:, None, None, None]
