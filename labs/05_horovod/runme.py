"""Handwritten digits, learned by several ranks at once.

    mpirun -n 2 -bind-to core python -m mpi4py labs/05_horovod/runme.py

mpirun starts this file twice; each copy that runs is a rank, and with -m
mpi4py one that fails ends the others too. Every rank holds the whole network
and all images. In each step it computes the gradients of a few images of its
own, Horovod averages the gradients of all ranks, and all make the same update.
No rank can run ahead, because the average needs them all.

You will see the accuracy after each epoch, on images that nobody trained on,
and at the end images/s. The trained network lies in this run's folder, under
results. It takes 15 seconds with the images that come with scikit-learn.
"""

import argparse
import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")  # before the next lines
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "1")  # oneDNN, as in 01
import horovod.tensorflow as hvd
import keras
import numpy as np
import tensorflow as tf

from scaleout import data, flags, records

BASE_BATCH = 32  # images a step, for which --lr is right


def network() -> keras.Model:
    """Images, (n, 28, 28, 1), to ten logits, (n, 10)."""
    layers = keras.layers
    like = {"activation": "relu", "kernel_initializer": "he_normal"}
    return keras.Sequential([
        keras.Input((28, 28, 1)),
        layers.Conv2D(32, 5, padding="same", **like),  # (n, 28, 28, 32)
        layers.MaxPooling2D(),  # (n, 14, 14, 32)
        layers.Conv2D(64, 5, padding="same", **like),  # (n, 14, 14, 64)
        layers.MaxPooling2D(),  # (n, 7, 7, 64)
        layers.Flatten(),  # (n, 3136)
        layers.Dense(128, **like),
        layers.Dense(10),
    ])


def main(args: argparse.Namespace) -> float:
    # TODO 1: start Horovod; ask it which rank this is, of how many.  (3 lines)
    rank = 0
    ranks = 1

    x, y, x_test, y_test = data.digits()  # (n, 28, 28, 1), (n,), and to test
    n = len(x)
    batch = args.batch_per_rank

    # Distributed: other weights on each rank; TODO 3 makes them equal
    keras.utils.set_random_seed(rank)
    model = network()
    optimizer = keras.optimizers.SGD(args.lr, momentum=0.9)
    optimizer.build(model.trainable_variables)  # the momentum: 0 on each rank
    # TensorFlow's own variables, inside Keras's: Horovod needs these.
    weights = [v.value for v in model.trainable_variables]

    def train_step(images, labels, mean_rows):
        """Learn from this rank's images; return the gradient's length."""
        with tf.GradientTape() as tape:
            # mean_rows: the images of a rank in this step, on average over
            # the ranks. So their average is the mean over all images.
            loss = sum_of_losses(labels, model(images)) / mean_rows
        # TODO 2: wrap the tape, so that it averages the gradients over all
        # ranks.  (1 line)
        pass
        gradients = tape.gradient(loss, weights)
        optimizer.apply(gradients, model.trainable_variables)
        return tf.linalg.global_norm(gradients)

    train_step = compiled(train_step)

    # TODO 3: give every rank the weights of rank 0, all of them.  (1 line)
    pass

    # TODO 4: the steps of an epoch, in which all ranks together see all n
    # images once, the last and shorter step too.  (1 line)
    steps = -(-n // batch)

    # TODO 5: the learning rate grows with the images of one step, those of
    # all ranks together, over BASE_BATCH.  (1 line)
    scale = batch / BASE_BATCH

    # Book-keeping: the books time the steps alone, and write the record.
    books = records.Books("05_horovod", rank, ranks, rows=n, weights=weights)
    for epoch in range(args.epochs):
        # The same order on every rank, and another one in each epoch.
        order = np.random.default_rng([0, epoch]).permutation(n)  # (n,)
        # TODO 6: the images of this rank, such that the ranks together have
        # each image once.  (1 line)
        mine = order
        for step in range(steps):
            lr = learning_rate(epoch + step / steps, scale, args)
            optimizer.learning_rate.assign(lr)
            rows = mine[step * batch:(step + 1) * batch]  # (batch,) or fewer
            # Distributed: all divide by one number: each image counts alike
            mean_rows = rows_on_average(step, batch, ranks, n)
            with books.step(rows=rows, learning_rates=lr):
                norm = float(train_step(x[rows], y[rows], mean_rows))

        accuracy = accuracy_on(model, x_test, y_test, rank, ranks)
        seconds = books.log(accuracy=accuracy)
        # Distributed: one report, not one from each rank
        if rank == 0:
            print(f"epoch {epoch + 1}: accuracy {accuracy:.2%} after "
                  f"{seconds:.1f} s", flush=True)

    # TODO 7: let one rank alone keep the trained network.  (1 line)
    keeps = True
    if keeps:
        books.keep_checkpoint(records.folder(), args.epochs)

    books.note(norm=norm)  # for the check
    # Distributed: all ranks call this; the slowest of them counts
    record = books.write(variant=args.schedule, batch_per_rank=batch,
                         rate_unit="images/s", images=n)
    if rank == 0:
        print(f"{ranks} rank(s): {record['rate']:.0f} images/s, "
              f"accuracy {accuracy:.2%}", flush=True)
    return accuracy


# Helpers. The lesson is above.


def compiled(train_step):
    """The step as one graph, for any number of images, also for none."""
    inputs = [
        tf.TensorSpec([None, 28, 28, 1]),
        tf.TensorSpec([None], tf.int64),
        tf.TensorSpec([]),
    ]
    # AutoGraph would rewrite Horovod's code too, which takes 6 s.
    graph = tf.function(train_step, inputs, autograph=False)

    def one_step(images, labels, mean_rows):
        if len(images) == 0:
            # oneDNN's convolutions need an image: divided by infinity, a blank
            # one adds nothing.
            images = np.zeros((1, 28, 28, 1), np.float32)
            labels = np.zeros(1, np.int64)
            mean_rows = np.inf
        return graph(images, labels, mean_rows)

    return one_step


def learning_rate(epochs: float, scale: float, args: argparse.Namespace):
    """The learning rate after so many epochs.

    gradual: it grows from --lr to scale * --lr in the first quarter, and then
    falls to 0. constant: always scale * --lr.
    """
    if args.schedule == "constant":
        return args.lr * scale
    at = [0, args.epochs / 4, args.epochs]
    return args.lr * np.interp(epochs, at, [1, scale, 0])


def rows_on_average(step: int, batch: int, ranks: int, n: int) -> float:
    """The images that a rank has in a step, on average over the ranks.

    They are `batch`, and fewer in the last step of an epoch. There one rank
    may have an image more than another, or one may have none. All divide by
    the same number, so every image counts equally.
    """
    left = max(1, n - step * batch * ranks)  # images of this epoch
    return min(float(batch), left / ranks)


def accuracy_on(model, x_test, y_test, rank, ranks) -> float:
    """The share of the test images that the network labels correctly; each
    rank tests its part of them."""
    logits = model.predict(x_test[rank::ranks], batch_size=500, verbose=0)
    right = np.sum(logits.argmax(axis=1) == y_test[rank::ranks])
    if ranks > 1:  # the untouched lab has not started Horovod
        # Distributed: what all ranks have right, added up
        right = hvd.allreduce(tf.constant(right), op=hvd.Sum, name="right")
    return int(right) / len(x_test)


def sum_of_losses(labels, logits):
    """The losses of some images, added up."""
    losses = keras.losses.sparse_categorical_crossentropy(
        labels, logits, from_logits=True
    )  # (rows,)
    return tf.reduce_sum(losses)


def parser(docstring: str) -> flags.Parser:
    """The flags, also those of resume.py."""
    parser = flags.Parser(docstring)
    epochs = 2 if data.quick() else 12
    parser.add_argument("--epochs", type=flags.one_or_more, default=epochs,
                        help=f"how often each image is seen ({epochs})")
    parser.add_argument("--batch-per-rank", type=flags.one_or_more, default=32,
                        help="images a step on each rank (32)")
    parser.add_argument("--lr", type=flags.above_zero, default=0.01,
                        help=f"learning rate at {BASE_BATCH} images a step "
                        "(0.01)")
    parser.add_argument("--schedule", default="gradual",
                        choices=["gradual", "constant"],
                        help="how the learning rate is scaled (gradual)")
    return parser


if __name__ == "__main__":
    # A rank that waits in vain says so, and then the job ends.
    os.environ.setdefault("HOROVOD_STALL_CHECK_TIME_SECONDS", "10")
    os.environ.setdefault("HOROVOD_STALL_SHUTDOWN_TIME_SECONDS", "20")
    main(parser(__doc__).parse_args())
