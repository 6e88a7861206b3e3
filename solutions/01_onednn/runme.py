"""How many images a second does this machine train, and who does the work?

    mpirun -n 1 python -m mpi4py solutions/01_onednn/runme.py --kernels onednn

One rank, as here, trains one copy of a small network on handwritten digits.
You will see its images per second after about 8 seconds; with
--network resnet50 it takes about 30. With -n 2, two copies that know nothing
of each other share the cores, and their rates add up.

Put ONEDNN_VERBOSE=1 before the command, and oneDNN prints a line for each
primitive that it runs. With --profile, TensorFlow writes down what each of
its operations takes.
"""

import argparse
import os

import numpy as np

# Distributed: this import also starts MPI
from mpi4py import MPI
from networks import flops_per_image, load_data, make_model, with_batch_norm

from scaleout import data, records
from scaleout.kit.flags import Parser, one_or_more, zero_or_more

NETWORKS = ["cnn", "normed", "resnet50"]
KERNELS = ["default", "onednn", "bf16", "mixed", "xla"]


def settings() -> argparse.Namespace:
    """What was typed behind the name of this file."""
    parser = Parser(__doc__)
    parser.add_argument("--network", choices=NETWORKS,
                        default="cnn", help="what to train (cnn)")
    parser.add_argument("--kernels", choices=KERNELS, default="onednn",
                        help="what to train it with (onednn)")
    parser.add_argument("--batch-norm", choices=["keras", "fused"],
                        default="keras",
                        help="Keras's layer, or one operation (keras)")
    parser.add_argument("--batch-per-rank", type=one_or_more,
                        help="images in a step of each rank (64, or 8 of "
                        "resnet50)")
    parser.add_argument("--steps", type=one_or_more, default=10,
                        help="steps that are timed (10)")
    parser.add_argument("--warmup", type=zero_or_more, default=3,
                        help="steps before those, not timed (3)")
    parser.add_argument("--profile", action="store_true",
                        help="keep a profile of the steps that are timed")
    args = parser.parse_args()
    if args.batch_per_rank is None:
        args.batch_per_rank = 8 if args.network == "resnet50" else 64
    if data.quick():
        args.steps = min(args.steps, 20)
    return args


def normalise(x, gamma, beta, epsilon):
    """Batch normalisation of x (n, height, width, channels).

    Each channel gets mean 0 and variance 1, and is then multiplied by its
    gamma and moved by its beta. Returns that, the means and the variances.
    """
    import tensorflow as tf

    # TODO 3: these pieces are many operations, each of which reads all of x
    # again. tf.compat.v1.nn.fused_batch_norm does the same in one: give it
    # x, gamma, beta and epsilon=, and return what it returns.  (2 lines)
    # BEGIN SOLUTION
    fused = tf.compat.v1.nn.fused_batch_norm
    return fused(x, gamma, beta, epsilon=epsilon)
    # STARTER: x = tf.cast(x, tf.float32)
    # STARTER: mean, variance = tf.nn.moments(x, [0, 1, 2])
    # STARTER: y = (x - mean) * tf.math.rsqrt(variance + epsilon)
    # STARTER: return y * gamma + beta, mean, variance
    # END SOLUTION


def network(name: str, batch_norm: str):
    """The network, with the batch normalisation that was asked for."""
    model = make_model(name)
    if batch_norm == "fused":
        model = with_batch_norm(model, normalise)
    return model


def prepare(args: argparse.Namespace, rank: int):
    """Loads TensorFlow; returns the network and the step that trains it."""
    # TODO 1: choose the library, whatever the shell says: set the environment
    # variable TF_ENABLE_ONEDNN_OPTS to the text "0" if args.kernels is
    # "default", and to "1" if it is anything else.  (2 lines)
    # BEGIN SOLUTION
    choice = "0" if args.kernels == "default" else "1"
    os.environ["TF_ENABLE_ONEDNN_OPTS"] = choice
    # STARTER: pass
    # END SOLUTION

    # TensorFlow reads that variable here, while it is imported.
    import keras
    import tensorflow as tf

    # TensorFlow rewrites the graph into 16-bit numbers, which 08 is about.
    if args.kernels == "bf16":
        rewrite = {"auto_mixed_precision_onednn_bfloat16": True}
        tf.config.optimizer.set_experimental_options(rewrite)

    # Keras has a switch of its own: layers compute in bfloat16.
    if args.kernels == "mixed":
        keras.mixed_precision.set_global_policy("mixed_bfloat16")

    # Distributed: the copies are independent
    keras.utils.set_random_seed(rank)
    model = network(args.network, args.batch_norm)
    cross_entropy = keras.losses.SparseCategoricalCrossentropy()
    optimizer = keras.optimizers.SGD(0.01)
    optimizer.build(model.trainable_variables)

    @tf.function(jit_compile=args.kernels == "xla")
    def train_step(x, y):
        with tf.GradientTape() as tape:
            loss = cross_entropy(y, model(x, training=True))
        weights = [variable.value for variable in model.trainable_variables]
        gradients = tape.gradient(loss, weights)
        optimizer.apply(gradients, model.trainable_variables)
        return loss

    return model, train_step


def batches(args: argparse.Namespace, rank: int, ranks: int):
    """Endlessly, the images and labels of a step."""
    import tensorflow as tf

    images, labels = load_data(args.network, rank, ranks)
    first = 0
    while True:
        # Behind the last image comes the first again.
        rows = np.arange(first, first + args.batch_per_rank) % len(images)
        # (batch, height, width, channels), (batch,)
        yield tf.constant(images[rows]), tf.constant(labels[rows])
        first += args.batch_per_rank


def main(args: argparse.Namespace) -> float:
    # Distributed: everybody who takes part
    comm = MPI.COMM_WORLD
    # Distributed: which copy of the program this is
    rank = comm.Get_rank()
    # Distributed: how many copies there are
    ranks = comm.Get_size()
    model, train_step = prepare(args, rank)
    to_learn = batches(args, rank, ranks)
    # It is loaded already, with the library that was chosen.
    import tensorflow as tf

    books = records.Books("01_onednn", rank, ranks, warmup=args.warmup)
    for step in range(args.warmup + args.steps):
        if step == args.warmup:
            # Distributed: a copy is timed while the others work too
            comm.Barrier()
            # Distributed: one line, not one from each rank
            if rank == 0:
                print("Warm-up ends.", flush=True)
                if args.profile:
                    tf.profiler.experimental.start(str(records.folder()))
        x, y = next(to_learn)
        with books.step():
            # A number is there only when the step is done.
            loss = float(train_step(x, y))
    step_s = books.step_s

    # Distributed: the profile is that of rank 0
    if args.profile and rank == 0:
        tf.profiler.experimental.stop()

    # TODO 2: step_s holds the seconds of all steps. The first args.warmup of
    # them build the graph and settle: keep the others in timed_s.  (1 line)
    # BEGIN SOLUTION
    timed_s = step_s[args.warmup :]
    # STARTER: timed_s = step_s
    # END SOLUTION

    images_per_s = args.batch_per_rank * len(timed_s) / sum(timed_s)
    # Distributed: the copies are independent, so their rates add up
    rate = comm.allreduce(images_per_s, op=MPI.SUM)
    books.note(images_per_s=images_per_s)
    books.write(
        variant=f"{args.network} {args.kernels} {args.batch_norm}",
        batch_per_rank=args.batch_per_rank,
        seed=0,
        rate=rate,
        rate_unit="images/s",
        network=args.network,
        kernels=args.kernels,
        onednn=os.environ.get("TF_ENABLE_ONEDNN_OPTS", ""),
        batch_norm=args.batch_norm,
        loss=loss,
        all_step_s=step_s,
        timed_s=timed_s,
        flops_per_image=flops_per_image(model),
        weights=model.count_params(),
        moving=[float(np.mean(kept))
                for kept in model.non_trainable_variables],
    )
    # Distributed: one report, not one from each rank
    if rank == 0:
        norm = f", {args.batch_norm} batch norm" * (args.network != "cnn")
        print(f"{args.network}, {args.kernels}{norm}: {rate:.1f} images/s, "
              f"loss {loss:.3f}", flush=True)
    return images_per_s


if __name__ == "__main__":
    main(settings())
