"""The lab's training, but it may be killed at any moment, and goes on.

    mpirun -n 2 python -m mpi4py solutions/05_horovod/side/resume.py

After each epoch, rank 0 keeps a checkpoint. End the job with Ctrl-C, start it
again, on as many ranks as you like, and you will see it go on from the newest.
It takes 15 seconds with the images that come with scikit-learn. There is
nothing to fill in here, but the seven changes of runme.py are needed once
more, and two of them say more than there.
"""

import argparse
import os
import sys
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")  # before the next lines
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "1")  # oneDNN, as in 01
import horovod.tensorflow as hvd
import keras
import numpy as np
import tensorflow as tf

from scaleout import data, flags, records

sys.path.append(str(Path(__file__).parents[1]))  # runme.py lies above
import runme


def main(args: argparse.Namespace) -> None:
    # Distributed: the ranks find each other, and each hears its number
    hvd.init()
    rank = hvd.rank()
    ranks = hvd.size()
    x, y, x_test, y_test = data.digits()  # (n, 28, 28, 1), (n,), and to test
    n = len(x)
    batch = args.batch_per_rank
    keras.utils.set_random_seed(rank)
    model = runme.network()
    loss_of = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    optimizer = keras.optimizers.SGD(args.lr, momentum=0.9)
    optimizer.build(model.trainable_variables)  # makes the momentum
    weights = [v.value for v in model.trainable_variables]

    # AutoGraph would rewrite Horovod's code too, which takes 6 s.
    @tf.function(autograph=False)
    def train_step(images, labels):
        """Learn from this rank's images."""
        with tf.GradientTape() as tape:
            loss = loss_of(labels, model(images))
        # Distributed: gradient() gives the average over all ranks
        tape = hvd.DistributedGradientTape(tape)
        gradients = tape.gradient(loss, weights)
        optimizer.apply(gradients, model.trainable_variables)
        return tf.linalg.global_norm(gradients)

    # All that carries over from one epoch to the next: how many are done, the
    # weights, and what the optimizer keeps, such as the momentum.
    done = tf.Variable(0, dtype=tf.int64)
    state = [done, *weights, *(v.value for v in optimizer.variables)]
    # Distributed: one rank reads the file
    if rank == 0:
        records.take_checkpoint(args.checkpoint, state)
    # Distributed: all go on from what it has read, not only from its weights
    hvd.broadcast_variables(state, root_rank=0)
    if int(done) >= args.epochs:
        flags.refuse(f"{int(done)} epochs are done: ask for more with "
                     "--epochs.")

    # The number of ranks may be another one than before.
    steps = n // (batch * ranks)
    scale = ranks
    books = records.Books("05_horovod", rank, ranks, rows=n, weights=state)
    for epoch in range(int(done), args.epochs):
        # The same order for the same epoch, however often it is started.
        order = np.random.default_rng([0, epoch]).permutation(n)  # (n,)
        mine = order[rank::ranks]  # (n / ranks,)
        for step in range(steps):
            lr = runme.learning_rate(epoch + step / steps, scale, args)
            optimizer.learning_rate.assign(lr)
            rows = mine[step * batch:(step + 1) * batch]  # (batch,)
            with books.step(rows=rows, learning_rates=lr):
                float(train_step(x[rows], y[rows]))
        done.assign(epoch + 1)
        accuracy = runme.accuracy_on(model, x_test, y_test, rank, ranks)
        books.log(accuracy=accuracy)
        # Distributed: all hold the same; two writers could damage the file
        if rank == 0:
            print(f"epoch {epoch + 1}: accuracy {accuracy:.2%}", flush=True)
            books.keep_checkpoint(args.checkpoint, epoch + 1)

    # Distributed: one record of all ranks
    books.write(variant="resume", batch_per_rank=batch, rate_unit="images/s")


if __name__ == "__main__":
    # A rank that waits in vain says so, and then the job ends.
    os.environ.setdefault("HOROVOD_STALL_CHECK_TIME_SECONDS", "10")
    os.environ.setdefault("HOROVOD_STALL_SHUTDOWN_TIME_SECONDS", "20")
    parser = runme.parser(__doc__)
    parser.add_argument("--checkpoint", default="kept",
                        help="folder of the checkpoints (kept)")
    main(parser.parse_args())
