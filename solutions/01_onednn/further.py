"""What else could make ResNet-50's training step in bf16 faster?

    mpirun -n 6 python -m mpi4py solutions/01_onednn/further.py

A rank for each way, all of them with the fused batch normalisation of
runme.py. The ranks take turns, so that each has all cores while it measures.
You will see images/s, and a verdict for each way against `fused`; it takes
about five minutes and 2.5 GiB of memory a rank.

fused: as runme.py trains it with --kernels bf16 --batch-norm fused
no bias: no convolution adds a bias, as batch normalisation takes it away again
products: a convolution of 1 x 1 pixels is a product of two matrices, and so
is the gradient of its weights
blocked: oneDNN's own order of channels between operations, as in 2019
relu: the gradient of ReLU as a choice between two numbers
by hand: the gradient of batch normalisation as its formula has it
"""

import argparse
import os
import time

import numpy as np
from flags import one_or_more, refuse

# Distributed: this import also starts MPI
from mpi4py import MPI
from networks import load_data, make_model, with_batch_norm
from runme import normalise

from scaleout import Comparison, records

WAYS = ["fused", "no bias", "products", "blocked", "relu", "by hand"]
BATCH = 16  # images of a step


def settings() -> argparse.Namespace:
    """What was typed behind the name of this file."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.error = refuse
    parser.add_argument("--ways", choices=WAYS, nargs="+", default=WAYS,
                        help="what each rank tries, fused first (all)")
    parser.add_argument("--kernels", choices=["onednn", "bf16"],
                        default="bf16", help="fp32, or bf16 (bf16)")
    parser.add_argument("--rounds", type=one_or_more, default=7,
                        help="turns of each rank (7)")
    parser.add_argument("--steps", type=one_or_more, default=2,
                        help="steps of a turn (2)")
    args = parser.parse_args()
    ranks = MPI.COMM_WORLD.Get_size()
    if ranks != len(args.ways):
        refuse(f"This script takes a rank for each of --ways, not {ranks}: "
               f"mpirun -n {len(args.ways)}")
    if args.ways[0] != "fused" or len(set(args.ways)) < 2:
        refuse("--ways: fused comes first, and then what is compared with it")
    return args


def relu(x):
    """ReLU; its gradient is the one that comes in, or 0."""
    import tensorflow as tf

    @tf.custom_gradient
    def chosen(x):
        y = tf.nn.relu(x)

        def gradient(of_y):
            return tf.where(y > 0, of_y, tf.zeros_like(of_y))

        return y, gradient

    return chosen(x)


def by_hand(x, gamma, beta, epsilon):
    """Batch normalisation in one operation, its gradient in several."""
    import tensorflow as tf

    @tf.custom_gradient
    def normalised(x, gamma, beta):
        y, mean, variance = normalise(x, gamma, beta, epsilon)

        def gradient(of_y, *_):
            over = [0, 1, 2]  # images, rows, columns
            n = tf.cast(tf.size(x[..., 0]), tf.float32)
            # The operation returns n / (n - 1) times the variance it uses.
            scale = tf.math.rsqrt(variance * (n - 1) / n + epsilon)
            normal = (x - mean) * scale
            of_beta = tf.reduce_sum(of_y, over)
            of_gamma = tf.reduce_sum(of_y * normal, over)
            of_x = of_y - (of_beta + normal * of_gamma) / n
            return gamma * scale * of_x, of_gamma, of_beta

        return (y, mean, variance), gradient

    return normalised(x, gamma, beta)


def changed(model, way: str):
    """The same network, its layers as this way has them."""
    import keras
    import tensorflow as tf

    class Product(keras.layers.Conv2D):
        """A convolution of 1 x 1 pixels, as a product of matrices."""

        def call(self, x):
            """(n, h, w, inputs) to (n, h / stride, w / stride, outputs)."""
            rows, columns = self.strides
            x = x[:, ::rows, ::columns]
            pixels = tf.reshape(x, (-1, x.shape[-1]))  # (n h w, inputs)
            y = tf.matmul(pixels, self.kernel[0, 0]) + self.bias
            n = tf.shape(x)[0]
            height, width = x.shape[1:3]
            return tf.reshape(y, (n, height, width, self.filters))

    def replaced(layer):
        kind = type(layer)
        how = layer.get_config()
        if kind is keras.layers.Conv2D:
            if way == "no bias":
                how["use_bias"] = False
            if way == "products" and layer.kernel_size == (1, 1):
                kind = Product
        if kind is keras.layers.Activation and way == "relu":
            how["activation"] = relu
        return kind.from_config(how)

    copy = keras.models.clone_model(model, clone_function=replaced)
    norm = by_hand if way == "by hand" else normalise
    return with_batch_norm(copy, norm)


def training(way: str, kernels: str):
    """A training step, as a function without arguments; gives the loss."""
    import keras
    import tensorflow as tf

    if kernels == "bf16":
        rewrite = {"auto_mixed_precision_onednn_bfloat16": True}
        tf.config.optimizer.set_experimental_options(rewrite)
    keras.utils.set_random_seed(0)
    model = changed(make_model("resnet50"), way)
    images, labels = load_data("resnet50", 0, 1)
    x = tf.constant(images[:BATCH])  # (batch, side, side, 3)
    y = tf.constant(labels[:BATCH])  # (batch,)
    cross_entropy = keras.losses.SparseCategoricalCrossentropy()
    optimizer = keras.optimizers.SGD(0.01)
    optimizer.build(model.trainable_variables)

    @tf.function(autograph=False)
    def train_step():
        with tf.GradientTape() as tape:
            loss = cross_entropy(y, model(x, training=True))
        weights = [variable.value for variable in model.trainable_variables]
        gradients = tape.gradient(loss, weights)
        optimizer.apply(gradients, model.trainable_variables)
        return loss

    return lambda: float(train_step())


def sleep_until_all_are_here(comm: MPI.Comm) -> None:
    """A barrier that leaves the cores to the rank that measures."""
    # Distributed: a rank without work must not ask again and again
    request = comm.Ibarrier()
    while not request.Test():
        time.sleep(0.001)


def main(args: argparse.Namespace) -> None:
    # Distributed: a rank for each way
    comm = MPI.COMM_WORLD
    way = args.ways[comm.rank]
    os.environ["TF_ENABLE_ONEDNN_OPTS"] = "1"
    # TensorFlow reads this when it is imported, in `training`.
    os.environ["TF_ENABLE_MKL_NATIVE_FORMAT"] = str(int(way != "blocked"))
    step = training(way, args.kernels)
    for _ in range(3):
        loss = step()
    rates = [[], []]
    for turn in range(args.rounds):
        order = list(range(comm.size))
        # Every second round runs backwards.
        if turn % 2:
            order.reverse()
        for whose in order:
            # Distributed: one rank at a time measures, the others sleep
            sleep_until_all_are_here(comm)
            if whose == comm.rank:
                # The first way twice: what these two differ by is the noise.
                for again in range(2 if whose == 0 else 1):
                    start = time.perf_counter()
                    for _ in range(args.steps):
                        step()
                    took_s = time.perf_counter() - start
                    rates[again].append(BATCH * args.steps / took_s)
    # Distributed: nobody goes home while another measures
    sleep_until_all_are_here(comm)
    # Distributed: what each rank has measured
    ranks = records.gather({"way": way, "loss": loss, "rates": rates})
    # Distributed: one report, not one from each rank
    if comm.rank == 0:
        report(ranks, args)


def report(ranks: list, args: argparse.Namespace) -> None:
    """A line and a record for each way, and what follows from them."""
    rows = []
    for turn in range(args.rounds):
        for each in ranks:
            for again, rates in enumerate(each["rates"]):
                if rates:
                    rows.append({"round": turn, "variant": each["way"],
                                 "again": again, "value": rates[turn],
                                 "unit": "images/s"})
    for each in ranks:
        rate = float(np.median(each["rates"][0]))
        records.write(
            lab="01_onednn", variant=f"resnet50 {args.kernels} {each['way']}",
            ranks=1, batch_per_rank=BATCH, rate=rate, rate_unit="images/s",
            metrics={"part": "further", "kernels": args.kernels, **each})
        print(f"{each['way']:10} {rate:6.2f} images/s, loss after three "
              f"steps {each['loss']:.3f}", flush=True)
    found = Comparison(rows, metric="images/s")
    for way in found.variants:
        print(found.sentence(way), flush=True)


if __name__ == "__main__":
    main(settings())
