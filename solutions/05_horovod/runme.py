"""Handwritten digits, learned by several ranks at once.

    mpirun -n 2 -bind-to core python -m mpi4py solutions/05_horovod/runme.py

Every rank holds the whole network and all images. In each step it computes
the gradients of its own share of them, Horovod averages the gradients of all
ranks, and all make the same update. You will see the accuracy after each
epoch, on images that nobody trained on, and at the end images/s. It takes 15
seconds with the images that come with scikit-learn.
"""

import argparse
import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")  # before the next lines
import horovod.tensorflow as hvd
import keras
import numpy as np
import tensorflow as tf

from scaleout import data, flags, records

BASE_BATCH = 32  # images a step, for which --lr is right

# What a training step takes, of any number of rows: one graph for all steps,
# also for the short last one.
INPUTS = [
    tf.TensorSpec([None, 28, 28, 1]),
    tf.TensorSpec([None], tf.int64),
    tf.TensorSpec([]),
]


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
    # BEGIN SOLUTION
    # Distributed: the ranks find each other; nothing else works before this
    hvd.init()
    # Distributed: which copy of the program this is
    rank = hvd.rank()
    # Distributed: how many copies there are
    ranks = hvd.size()
    # STARTER: rank = 0
    # STARTER: ranks = 1
    # END SOLUTION

    x, y, x_test, y_test = data.digits()  # (n, 28, 28, 1), (n,), and to test
    n = len(x)
    batch = args.batch_per_rank

    # Distributed: other weights on each rank, on purpose; TODO 3 mends that
    keras.utils.set_random_seed(args.seed + rank)
    model = network()
    optimizer = keras.optimizers.SGD(args.lr, momentum=0.9)
    optimizer.build(model.trainable_variables)  # makes the momentum

    # TensorFlow's own variables, inside Keras's: Horovod needs these.
    variables = [v.value for v in model.trainable_variables]
    # Distributed: gradients are sent in fp32, or in fp16 with half the bytes
    compression = hvd.Compression.fp16 if args.fp16 else hvd.Compression.none

    # AutoGraph would rewrite Horovod's code too, which takes 6 s.
    @tf.function(input_signature=INPUTS, autograph=False)
    def train_step(images, labels, mean_rows):
        """Learn from this rank's rows; mean_rows: rows a rank, on average."""
        with tf.GradientTape() as tape:
            logits = model(images)  # (rows, 10)
            losses = keras.losses.sparse_categorical_crossentropy(
                labels, logits, from_logits=True
            )  # (rows,)
            # Averaged over the ranks: the mean over all rows of the step.
            loss = tf.math.divide_no_nan(tf.reduce_sum(losses), mean_rows)
        # TODO 2: wrap the tape, so that it averages the gradients over all
        # ranks, sent in this `compression`.  (1 line)
        # BEGIN SOLUTION
        # Distributed: gradient() gives the average over all ranks
        tape = hvd.DistributedGradientTape(tape, compression=compression)
        # STARTER: pass
        # END SOLUTION
        gradients = tape.gradient(loss, variables)
        optimizer.apply(gradients, model.trainable_variables)
        return tf.linalg.global_norm(gradients)

    # All that must be equal on every rank: epochs done, weights, momentum.
    epochs_done = tf.Variable(0, dtype=tf.int64)
    state = [epochs_done]
    state += [v.value for v in model.variables + optimizer.variables]
    # Distributed: rank 0 reads the file, and TODO 3 gives it to all
    if args.checkpoint and rank == 0:
        records.take_checkpoint(args.checkpoint, state)

    # TODO 3: give every rank the state of rank 0, all of it.  (1 line)
    # BEGIN SOLUTION
    # Distributed: equal steps keep weights equal if they begin equal
    hvd.broadcast_variables(state, root_rank=0)
    # STARTER: pass
    # END SOLUTION
    if int(epochs_done) >= args.epochs:
        flags.refuse(f"{int(epochs_done)} epochs are done: ask for more "
                     "with --epochs.")

    # TODO 4: the steps of an epoch, in which all ranks together see all n
    # images once, the last and shorter step too.  (1 line)
    # BEGIN SOLUTION
    # Distributed: more ranks need fewer steps, rounded up, the same on each
    steps = -(-n // (batch * ranks))
    # STARTER: steps = -(-n // batch)
    # END SOLUTION

    # TODO 5: the learning rate grows with the images of one step, those of
    # all ranks together, over BASE_BATCH.  (1 line)
    # BEGIN SOLUTION
    # Distributed: there are fewer steps, and each averages more images
    scale = batch * ranks / BASE_BATCH
    # STARTER: scale = batch / BASE_BATCH
    # END SOLUTION

    # Book-keeping: the job times the steps alone, and writes the record.
    job = records.Job("05_horovod", rank, ranks, rows=n, weights=state)
    for epoch in range(int(epochs_done), args.epochs):
        # Distributed: the same order on every rank
        shuffle = np.random.default_rng([args.seed, epoch])
        order = shuffle.permutation(n)  # (n,)
        # TODO 6: the images of this rank, such that the ranks together have
        # each image once.  (1 line)
        # BEGIN SOLUTION
        # Distributed: dealt like cards, so each step is one large batch
        mine = order[rank::ranks]  # (n / ranks,)
        # STARTER: mine = order
        # END SOLUTION
        for step in range(steps):
            lr = learning_rate(epoch + step / steps, scale, args)
            optimizer.learning_rate.assign(lr)
            rows = mine[step * batch:(step + 1) * batch]  # (batch,) or fewer
            # Distributed: rows a rank, on average: all images count equally
            at = step * batch * ranks
            mean_rows = len(order[at:at + batch * ranks]) / ranks
            with job.step(rows=rows, learning_rates=lr):
                norm = float(train_step(x[rows], y[rows], mean_rows))
        epochs_done.assign(epoch + 1)

        accuracy = accuracy_on(model, x_test, y_test, rank, ranks)
        seconds = job.log(accuracy=accuracy)
        # Distributed: one line, not one from each rank
        if rank == 0:
            print(f"epoch {epoch + 1}: accuracy {accuracy:.2%} after "
                  f"{seconds:.1f} s", flush=True)
        # TODO 7: let one rank alone keep the checkpoints.  (1 line)
        # BEGIN SOLUTION
        # Distributed: all hold the same; two writers could damage the file
        keeps = rank == 0
        # STARTER: keeps = True
        # END SOLUTION
        if args.checkpoint and keeps:
            job.keep_checkpoint(args.checkpoint, epoch + 1)

    job.note(norm=norm)  # for the check
    # Distributed: one record of all ranks; the slowest of them counts
    record = job.write(variant=args.schedule, batch_per_rank=batch,
                       seed=args.seed, rate_unit="images/s", images=n)
    if rank == 0:
        print(f"{ranks} rank(s): {record['rate']:.0f} images/s, "
              f"accuracy {accuracy:.2%}", flush=True)
    return accuracy


# Helpers. The lesson is above.


def learning_rate(epochs: float, scale: float, args: argparse.Namespace):
    """The learning rate after so many epochs.

    gradual: it grows from --lr to scale * --lr in the first quarter, and then
    falls to 0. constant: always scale * --lr. none: always --lr.
    """
    if args.schedule == "none":
        return args.lr
    if args.schedule == "constant":
        return args.lr * scale
    at = [0, args.epochs / 4, args.epochs]
    return args.lr * np.interp(epochs, at, [1, scale, 0])


def accuracy_on(model, x_test, y_test, rank, ranks) -> float:
    """The share of the test images that the network labels correctly."""
    # Distributed: each rank tests its part of the images
    logits = model.predict(x_test[rank::ranks], batch_size=500, verbose=0)
    right = np.sum(logits.argmax(axis=1) == y_test[rank::ranks])
    if ranks > 1:  # the untouched lab has not started Horovod
        # Distributed: what all ranks have right, added up
        right = hvd.allreduce(tf.constant(right), op=hvd.Sum, name="right")
    return int(right) / len(x_test)


def settings() -> argparse.Namespace:
    """The flags."""
    parser = flags.Parser(__doc__)
    epochs = 2 if data.quick() else 12
    parser.add_argument("--epochs", type=flags.one_or_more, default=epochs,
                        help=f"how often each image is seen ({epochs})")
    parser.add_argument("--batch-per-rank", type=flags.one_or_more, default=32,
                        help="images a step on each rank (32)")
    parser.add_argument("--lr", type=flags.above_zero, default=0.01,
                        help=f"learning rate at {BASE_BATCH} images a step "
                        "(0.01)")
    parser.add_argument("--schedule", default="gradual",
                        choices=["gradual", "constant", "none"],
                        help="how the learning rate is scaled (gradual)")
    parser.add_argument("--fp16", action="store_true",
                        help="send the gradients in half precision")
    parser.add_argument("--checkpoint",
                        help="folder to go on from and to keep checkpoints in")
    parser.add_argument("--seed", type=flags.zero_or_more, default=0,
                        help="seed of the weights and of the order (0)")
    return parser.parse_args()


if __name__ == "__main__":
    # Distributed: a rank that waits in vain says so, and then the job ends
    os.environ.setdefault("HOROVOD_STALL_CHECK_TIME_SECONDS", "10")
    os.environ.setdefault("HOROVOD_STALL_SHUTDOWN_TIME_SECONDS", "20")
    main(settings())
