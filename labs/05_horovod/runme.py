"""Handwritten digits, learned by several ranks at once.

    mpirun -n 2 -bind-to core python -m mpi4py labs/05_horovod/runme.py

mpirun starts this file twice; each copy that runs is a rank. Every rank holds
the whole network and all images. In each step it computes the gradients of a
few images of its own, Horovod averages the gradients of all ranks, and all
make the same update.

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


def main(args: argparse.Namespace) -> None:
    # TODO 1: start Horovod; ask it which rank this is, of how many.  (3 lines)
    rank = 0
    ranks = 1

    x, y, x_test, y_test = data.digits()  # (n, 28, 28, 1), (n,), and to test
    n = len(x)
    batch = args.batch_per_rank

    # Distributed: other weights on each rank; TODO 3 makes them equal
    keras.utils.set_random_seed(rank)
    model = network()
    loss_of = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    optimizer = keras.optimizers.SGD(args.lr, momentum=0.9)
    optimizer.build(model.trainable_variables)  # the momentum: 0 on each rank
    # TensorFlow's own variables, inside Keras's: Horovod needs these.
    weights = [v.value for v in model.trainable_variables]

    # AutoGraph would rewrite Horovod's code too, which takes 6 s.
    @tf.function(autograph=False)
    def train_step(images, labels):
        """Learn from this rank's images; return the gradient's length."""
        with tf.GradientTape() as tape:
            loss = loss_of(labels, model(images))
        # TODO 2: wrap the tape, so that it averages the gradients over all
        # ranks.  (1 line)
        pass
        gradients = tape.gradient(loss, weights)
        optimizer.apply(gradients, model.trainable_variables)
        return tf.linalg.global_norm(gradients)

    # TODO 3: give every rank the weights of rank 0, all of them.  (1 line)
    pass

    # TODO 4: the steps of an epoch, in each of which every rank sees `batch`
    # images. What is left over is dropped.  (1 line)
    steps = n // batch

    if steps == 0:
        flags.refuse(f"A step needs {batch * ranks} images; there are {n}.")

    # TODO 5: how many times --lr, the rate for the images of one rank, is
    # right for those of all ranks?  (1 line)
    scale = 1

    # Book-keeping: what follows with `books.` only times, records and saves;
    # leave it out, and the training is the same.
    books = records.Books("05_horovod", rank, ranks, rows=n, weights=weights)
    for epoch in range(args.epochs):
        # The same order on every rank, and another one in each epoch.
        order = np.random.default_rng([0, epoch]).permutation(n)  # (n,)
        # TODO 6: the images of this rank, such that no two ranks have the
        # same one.  (1 line)
        mine = order
        for step in range(steps):
            lr = learning_rate(epoch + step / steps, scale, args)
            optimizer.learning_rate.assign(lr)
            rows = mine[step * batch:(step + 1) * batch]  # (batch,)
            with books.step(rows=rows, learning_rates=lr):
                norm = float(train_step(x[rows], y[rows]))

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
                         rate_unit="images/s")
    if rank == 0:
        print(f"ranks: {ranks}, images/s: {record['rate']:.0f}", flush=True)


def learning_rate(epochs: float, scale: float, args: argparse.Namespace):
    """The rate after so many epochs. It grows from --lr to scale * --lr in the
    first quarter of them, and then falls to 0; "constant": always the large.
    """
    if args.schedule == "constant":
        return args.lr * scale
    at = [0, args.epochs / 4, args.epochs]
    return args.lr * np.interp(epochs, at, [1, scale, 0])


def accuracy_on(model, x_test, y_test, rank, ranks) -> float:
    """The share of the test images that the network labels correctly; each
    rank tests its part of them."""
    logits = model.predict(x_test[rank::ranks], batch_size=500, verbose=0)
    right = np.sum(logits.argmax(axis=1) == y_test[rank::ranks])
    if ranks > 1:  # the untouched lab has not started Horovod
        # Distributed: what all ranks have right, added up
        right = hvd.allreduce(tf.constant(right), op=hvd.Sum, name="right")
    return int(right) / len(x_test)


def parser(docstring: str) -> flags.Parser:
    """The flags, also those of resume.py."""
    parser = flags.Parser(docstring)
    epochs = 2 if data.quick() else 12
    parser.add_argument("--epochs", type=flags.one_or_more, default=epochs,
                        help=f"how often the images are seen ({epochs})")
    parser.add_argument("--batch-per-rank", type=flags.one_or_more, default=32,
                        help="images a step on each rank (32)")
    parser.add_argument("--lr", type=flags.above_zero, default=0.01,
                        help="learning rate of one rank alone (0.01)")
    parser.add_argument("--schedule", default="gradual",
                        choices=["gradual", "constant"],
                        help="how the learning rate is scaled (gradual)")
    return parser


if __name__ == "__main__":
    # A rank that waits in vain says so, and then the job ends.
    os.environ.setdefault("HOROVOD_STALL_CHECK_TIME_SECONDS", "10")
    os.environ.setdefault("HOROVOD_STALL_SHUTDOWN_TIME_SECONDS", "20")
    main(parser(__doc__).parse_args())
