"""The lab's seven changes by mpi4py alone: for the day when Horovod is gone.

    mpirun -n 2 python -m mpi4py labs/05_horovod/side/by_mpi.py

All gradients of a step travel as one array, once the last of them is there.
You will see the loss of the last epoch, and images/s. It takes 15 seconds with
the images that come with scikit-learn.
"""

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")  # before the next lines
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "1")  # oneDNN, as in 01
import keras
import numpy as np
import tensorflow as tf
from mpi4py import MPI

from scaleout import data, flags, records

parser = flags.Parser(__doc__)
parser.add_argument("--epochs", type=flags.one_or_more, default=2)
parser.add_argument("--batch-per-rank", type=flags.one_or_more, default=32)
parser.add_argument("--lr", type=flags.above_zero, default=0.01)
parser.add_argument("--checkpoint", help="folder to keep checkpoints in")
args = parser.parse_args()

# Distributed: 1, the import has started MPI; who am I, of how many?
world = MPI.COMM_WORLD
rank, ranks = world.rank, world.size
x, y, _, _ = data.digits()  # (n, 28, 28, 1) and (n,)
batch = args.batch_per_rank * ranks  # of all ranks
keras.utils.set_random_seed(rank)
like = {"activation": "relu", "kernel_initializer": "he_normal"}
model = keras.Sequential([
    keras.Input((28, 28, 1)),
    keras.layers.Conv2D(32, 5, padding="same", **like),
    keras.layers.MaxPooling2D(),
    keras.layers.Conv2D(64, 5, padding="same", **like),
    keras.layers.MaxPooling2D(),
    keras.layers.Flatten(),
    keras.layers.Dense(128, **like),
    keras.layers.Dense(10),
])
# Distributed: 5, the rate grows with the images of a step
optimizer = keras.optimizers.SGD(args.lr * ranks, momentum=0.9)
optimizer.build(model.trainable_variables)
weights = [v.value for v in model.trainable_variables]
loss_of = keras.losses.SparseCategoricalCrossentropy(from_logits=True)


@tf.function(autograph=False)
def gradient(images, labels):
    """The loss, and this rank's gradients of it as one array."""
    with tf.GradientTape() as tape:
        loss = loss_of(labels, model(images))
    parts = tape.gradient(loss, weights)
    return loss, tf.concat([tf.reshape(part, [-1]) for part in parts], 0)


@tf.function(autograph=False)
def update(flat):
    shapes = [w.shape for w in weights]
    parts = tf.split(flat, [shape.num_elements() for shape in shapes])
    parts = list(map(tf.reshape, parts, shapes))
    optimizer.apply(parts, model.trainable_variables)


# Distributed: 3, all begin with what rank 0 has
state = [v.value for v in model.variables + optimizer.variables]
for value in state:
    value.assign(world.bcast(value.numpy()))

books = records.Books("05_horovod", rank, ranks, rows=len(x), weights=state)
# Distributed: 4, more ranks need fewer steps
steps = len(x) // batch
for epoch in range(args.epochs):
    order = np.random.default_rng([0, epoch]).permutation(len(x))
    loss = 0.0
    for step in range(steps):
        # Distributed: 6, these images are dealt to the ranks
        mine = order[step * batch + rank:(step + 1) * batch:ranks]
        with books.step(rows=mine):
            part, flat = gradient(x[mine], y[mine])
            total = flat.numpy()
            # Distributed: 2, the average of all ranks' gradients
            world.Allreduce(MPI.IN_PLACE, total)
            update(total / ranks)
        loss += float(part) / steps
    # Distributed: 7, one rank keeps the checkpoints
    if args.checkpoint and rank == 0:
        books.keep_checkpoint(args.checkpoint, epoch + 1)
    # Distributed: the mean over all ranks, which all of them ask for
    loss = world.allreduce(loss) / ranks
    books.log(loss=loss)

record = books.write(variant="mpi4py", batch_per_rank=args.batch_per_rank,
                     rate_unit="images/s")
if rank == 0:
    print(f"ranks: {ranks}, images/s: {record['rate']:.0f}, loss: {loss:.3f}",
          flush=True)
