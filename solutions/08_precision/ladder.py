"""What do a number and an instruction set buy, each by itself?

    mpirun -n 1 python -m mpi4py solutions/08_precision/ladder.py

One rank. ONEDNN_MAX_CPU_ISA=AVX512_CORE (or AVX2, AVX512_CORE_VNNI,
AVX512_CORE_BF16, AVX512_CORE_AMX) before the command takes instructions away
from oneDNN. You will see GFLOP/s of a matrix product in fp32, bf16 and int8,
and images/s of the small network of 01; it takes about 12 seconds.
"""

import argparse
import os

# Distributed: nothing of this travels, but TensorFlow reads it when it starts
os.environ["TF_ENABLE_ONEDNN_OPTS"] = "1"
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import numpy as np
from flags import one_or_more, refuse

# Distributed: this import also starts MPI
from mpi4py import MPI
from rounds import SECONDS, calls_per_s
from trained import make_model

from scaleout import data, records

NUMBERS = ["fp32", "bf16", "int8"]


def settings() -> argparse.Namespace:
    """What was typed behind the name of this file."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.error = refuse
    parser.add_argument("--numbers", choices=NUMBERS, nargs="+",
                        default=NUMBERS, help="formats (fp32 bf16 int8)")
    parser.add_argument("--size", type=one_or_more,
                        default=256 if data.quick() else 1024,
                        help="rows and columns of the matrices (1024)")
    parser.add_argument("--batch", type=one_or_more, default=64,
                        help="images at a time (64)")
    args = parser.parse_args()
    if MPI.COMM_WORLD.Get_size() > 1:
        refuse("This script is for one rank: mpirun -n 1")
    return args


def product(number: str, size: int):
    """A matrix product in one format, as a function without arguments."""
    import tensorflow as tf

    rng = np.random.default_rng(0)
    if number != "int8":
        kind = {"fp32": tf.float32, "bf16": tf.bfloat16}[number]
        a, b = (tf.cast(rng.random((size, size), np.float32), kind)
                for _ in range(2))
        multiply = tf.function(tf.matmul)
        return lambda: multiply(a, b).numpy()
    a = rng.integers(0, 256, (size, size), np.uint8)
    b = rng.integers(-127, 128, (size, size), np.int8)
    a = tf.bitcast(tf.constant(a), tf.quint8)

    @tf.function
    def multiply_int8(a):
        # A constant: oneDNN cuts weights into blocks once, not in each call.
        weights = tf.bitcast(tf.constant(b), tf.qint8)
        return tf.raw_ops.QuantizedMatMulWithBiasAndDequantize(
            a=a, b=weights, bias=tf.zeros(size), min_a=0.0, max_a=255.0,
            min_b=-127.0, max_b=127.0, min_freezed_output=0.0,
            max_freezed_output=1.0, Toutput=tf.float32,
            input_quant_mode="SCALED")

    return lambda: multiply_int8(a).numpy()


def inference(number: str, batch: int):
    """The small network's forward pass, as a function without arguments."""
    import keras
    import tensorflow as tf

    policy = {"fp32": "float32", "bf16": "mixed_bfloat16"}[number]
    keras.mixed_precision.set_global_policy(policy)
    network = make_model()
    keras.mixed_precision.set_global_policy("float32")
    forward = tf.function(lambda images: network(images, training=False))
    x = tf.constant(np.random.default_rng(0).random((batch, 28, 28, 1),
                                                    np.float32))
    return lambda: forward(x).numpy()


def twice(work, times: float) -> list:
    """Two rates of the same work."""
    return [times * calls_per_s(work, SECONDS / 2) for _ in range(2)]


def main(args: argparse.Namespace) -> None:
    import tensorflow as tf

    tf.get_logger().setLevel("ERROR")
    step = os.environ.get("ONEDNN_MAX_CPU_ISA", "ALL")
    # Both numbers of a product count: a multiplication and an addition.
    operations = 2 * args.size ** 3 / 1e9
    # With AVX2 alone oneDNN has no kernels for bf16, and ends the process.
    possible = [number for number in args.numbers
                if not (number == "bf16" and step == "AVX2")]
    for number in args.numbers:
        found = []
        if number in possible:
            found = twice(product(number, args.size), operations)
        report(step, "GEMM", number, found, "GFLOP/s")
    for number in args.numbers:
        found = []
        if number == "int8":
            continue  # TensorFlow has no such network; TFLite is no oneDNN
        if number in possible:
            found = twice(inference(number, args.batch), args.batch)
        report(step, "CNN", number, found, "images/s")


def report(step: str, what: str, number: str, found: list, unit: str) -> None:
    """One line and one record."""
    rate = float(np.mean(found)) if found else None
    records.write(lab="08_precision", variant=f"{what} {number}", ranks=1,
                  rate=rate, rate_unit=unit,
                  metrics={"part": "ladder", "step": step, "what": what,
                           "number": number, "rates": found})
    said = f"{rate:10,.0f} {unit}" if found else "oneDNN cannot do it"
    print(f"{step:18} {what:4} {number} {said}", flush=True)


if __name__ == "__main__":
    main(settings())
