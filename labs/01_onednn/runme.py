"""How many images a second does this machine train, and which library does the work?

    mpirun -n 1 python -m mpi4py labs/01_onednn/runme.py --network cnn --kernels onednn

You will see the images/s of the small MNIST network after about 8 seconds; `--network resnet50` takes about 40.
One rank trains one copy. With -n 2 two copies that know nothing of each other share the cores, and their rates add up.
Put ONEDNN_VERBOSE=1 before the command, and oneDNN prints a line for each primitive that it runs.
"""

import argparse
import os
import time

import numpy as np
from mpi4py import MPI  # Distributed: this import also starts MPI

from scaleout import data, records


def load(network: str, rank: int, ranks: int):
    """A fresh network, images (n, height, width, channels) and labels (n,)."""
    from keras import Input, Sequential, applications, layers

    if network == "resnet50":
        images = np.random.default_rng(rank).random((16, 224, 224, 3), np.float32)  # any images take the same time
        return applications.ResNet50(weights=None), images, np.arange(16)
    x, y, _, _ = data.digits()
    mine = data.shard(len(x), rank, ranks)  # Distributed: each copy has digits of its own
    convolution = {"kernel_size": 5, "padding": "same", "activation": "relu"}
    small = [layers.Conv2D(32, **convolution), layers.MaxPooling2D()]  # (n, 14, 14, 32)
    small += [layers.Conv2D(64, **convolution), layers.MaxPooling2D(), layers.Flatten()]  # (n, 3136)
    small += [layers.Dense(128, activation="relu"), layers.Dense(10, activation="softmax")]  # (n, 10)
    return Sequential([Input((28, 28, 1)), *small]), x[mine], y[mine]


def flops_per_image(model) -> float:
    """Multiplications and additions of one training step: forward, then the gradients of weights and of inputs."""
    weighted = [layer for layer in model.layers if hasattr(layer, "kernel")]
    # Each weight is used once for each pixel of the layer's output, by a multiplication and an addition.
    forward = [2.0 * np.prod(layer.kernel.shape) * np.prod(layer.output.shape[1:-1]) for layer in weighted]
    return sum(forward) + sum(forward) + sum(forward[1:])  # the first layer's input, the image, needs no gradient


def main(args: argparse.Namespace) -> float:
    comm = MPI.COMM_WORLD  # Distributed: everybody who takes part
    rank, ranks = comm.Get_rank(), comm.Get_size()  # Distributed: which copy am I, of how many
    # TODO 1: choose the library: oneDNN off for "default", on for all others, whatever the shell says.  (1 line)
    pass
    import keras
    import tensorflow as tf

    # TODO 3: for "bf16", let oneDNN's graph rewrite turn what it can into bfloat16, before the first op.  (2 lines)
    pass
    if args.kernels == "mixed":
        keras.mixed_precision.set_global_policy("mixed_bfloat16")
    keras.utils.set_random_seed(rank)  # Distributed: the copies are independent
    model, images, labels = load(args.network, rank, ranks)
    loss_of, optimizer = keras.losses.SparseCategoricalCrossentropy(), keras.optimizers.SGD(0.01)
    optimizer.build(model.trainable_variables)

    @tf.function(jit_compile=args.kernels == "xla")
    def train_step(x, y):
        with tf.GradientTape() as tape:
            loss = loss_of(y, model(x, training=True))
        gradients = tape.gradient(loss, [v.value for v in model.trainable_variables])
        optimizer.apply(gradients, model.trainable_variables)
        return loss

    step_s = []
    for step in range(args.warmup + args.steps):
        if step == args.warmup:
            comm.Barrier()  # Distributed: a copy is timed while the others work too
        if step == args.warmup and rank == 0:  # Distributed: one line, not one from each rank
            print("Warm-up ends.", flush=True)
        rows = np.arange(step * args.batch_per_rank, (step + 1) * args.batch_per_rank) % len(images)
        x, y = tf.constant(images[rows]), tf.constant(labels[rows])  # (batch, height, width, channels), (batch,)
        start = time.perf_counter()
        loss = float(train_step(x, y))  # a number is there only when the step is done
        step_s.append(time.perf_counter() - start)

    # TODO 2: the first steps build the graph; keep the `args.warmup` steps out of what is timed.  (1 line)
    timed_s = step_s
    images_per_s = args.batch_per_rank * len(timed_s) / sum(timed_s)
    rates = comm.gather(images_per_s, root=0)  # Distributed: rank 0 gets a list, the others None
    slowest_s = np.max(comm.allgather(timed_s), axis=0)  # Distributed: of each step, the time of the slowest rank
    assert slowest_s.shape == (len(timed_s),) and np.isfinite(loss)
    if rank == 0:  # Distributed: one report, not one from each rank
        metrics = {"network": args.network, "kernels": args.kernels, "loss": loss, "all_step_s": step_s}
        metrics |= {"images_per_s": rates, "flops_per_image": flops_per_image(model), "weights": model.count_params()}
        told = {"lab": "01_onednn", "variant": f"{args.network} {args.kernels}", "seed": 0, "metrics": metrics}
        told |= {"ranks": ranks, "batch_per_rank": args.batch_per_rank, "warmup_steps": len(step_s) - len(timed_s)}
        rate = sum(rates)  # Distributed: the copies are independent, so their rates add up
        records.write(**told, step_s=slowest_s, rate=rate, rate_unit="images/s")
        print(f"{args.network}, {args.kernels}: {rate:.1f} images/s, loss {loss:.3f}", flush=True)
    return images_per_s


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--network", choices=["cnn", "resnet50"], default="cnn", help="what to train (cnn)")
    kernels = ["default", "onednn", "bf16", "mixed", "xla"]
    parser.add_argument("--kernels", choices=kernels, default="onednn", help="what to train it with (onednn)")
    parser.add_argument("--batch-per-rank", type=int, default=16, help="images a step on each rank (16)")
    parser.add_argument("--steps", type=int, default=10, help="steps that are timed, 1 or more (10)")
    parser.add_argument("--warmup", type=int, default=3, help="steps before those, 0 or more (3)")
    args = parser.parse_args()
    if min(args.batch_per_rank, args.steps, args.warmup + 1) < 1:
        parser.error("--batch-per-rank and --steps take 1 or more, --warmup 0 or more")
    main(args)
