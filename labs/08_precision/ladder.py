"""What do a number and an instruction set buy, each by itself?

    mpirun -n 2 python -m mpi4py labs/08_precision/ladder.py \
        --steps AVX2 AVX512_CORE

There is a rank for each step of the ladder, with oneDNN held to that step's
instructions. The ranks take turns, so that each has all cores for itself. You
will see GFLOP/s of a matrix product in fp32, bf16 and int8, and images/s of
two networks; it takes about a minute. Without --steps one rank takes what
ONEDNN_MAX_CPU_ISA says.
"""

import argparse
import os

# Distributed: nothing of this travels, but TensorFlow reads it when it starts
os.environ["TF_ENABLE_ONEDNN_OPTS"] = "1"
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import numpy as np

# Distributed: this import also starts MPI
from mpi4py import MPI
from rounds import calls_per_s
from trained import make_model

from scaleout import data, records
from scaleout.kit.flags import Parser, one_or_more, refuse
from scaleout.kit.waiting import sleep_until_all_are_here

NUMBERS = ["fp32", "bf16", "int8"]
WORK = ["GEMM", "tiny", "CNN", "ResNet-50"]
UNITS = {"GEMM": "GFLOP/s", "tiny": "calls/s"}  # of all else: images/s
STEPS = ["AVX2", "AVX512_CORE", "AVX512_CORE_VNNI", "AVX512_CORE_BF16",
         "AVX512_CORE_AMX"]
SIDE = 64  # pixels of ResNet-50's images
IMAGES = 8  # of a step of ResNet-50
TINY = 16  # inputs and outputs of a tiny layer
LAYERS = 20  # of the tiny network


def settings() -> argparse.Namespace:
    """What was typed behind the name of this file."""
    quick = data.quick()
    parser = Parser(__doc__)
    parser.add_argument("--steps", choices=STEPS, nargs="+",
                        help="what oneDNN may use on each rank "
                        "(ONEDNN_MAX_CPU_ISA)")
    parser.add_argument("--numbers", choices=NUMBERS, nargs="+",
                        default=NUMBERS, help="formats (fp32 bf16 int8)")
    parser.add_argument("--work", choices=WORK, nargs="+",
                        default=WORK[:-1] if quick else WORK,
                        help="what is measured (all)")
    parser.add_argument("--size", type=one_or_more,
                        default=256 if quick else 1024,
                        help="rows and columns of the matrices (1024)")
    parser.add_argument("--batch", type=one_or_more, default=64,
                        help="images at a time (64)")
    parser.add_argument("--rounds", type=one_or_more,
                        default=data.rounds(7),
                        help="turns of each rank (7)")
    args = parser.parse_args()
    ranks = MPI.COMM_WORLD.Get_size()
    wanted = len(args.steps) if args.steps else 1
    if ranks != wanted:
        refuse(f"This script takes a rank for each of --steps, not {ranks}: "
               f"mpirun -n {wanted}")
    return args


def product(number: str, size: int):
    """A matrix product in one format, as a function without arguments."""
    import tensorflow as tf

    if number == "int8":
        a = tf.bitcast(tf.constant(whole_numbers(size)[0]), tf.quint8)
        multiply_int8 = tf.function(lambda a: in_int8(a, size))
        return lambda: multiply_int8(a).numpy()
    kind = {"fp32": tf.float32, "bf16": tf.bfloat16}[number]
    rng = np.random.default_rng(0)
    a, weights = rng.random((2, size, size), np.float32)
    a = tf.cast(a, kind)
    # In each format the weights are constants of the graph.
    multiply = tf.function(lambda a: a @ tf.cast(tf.constant(weights), kind))
    return lambda: multiply(a).numpy()


def whole_numbers(size: int) -> tuple[np.ndarray, np.ndarray]:
    """Two matrices to multiply, as large as int8 and uint8 can be."""
    a = np.random.default_rng(0).integers(0, 256, (size, size), np.uint8)
    b = np.random.default_rng(1).integers(-127, 128, (size, size), np.int8)
    return a, b


def wrong_sums(found: np.ndarray) -> float:
    """Which share of the sums of a product in int8 is not the exact one."""
    a, b = whole_numbers(len(found))
    exact = a.astype(np.float64) @ b.astype(np.float64)
    # fp32 itself is off by no more than this.
    return float((np.abs(found - exact) > 1e-6 * np.abs(exact) + 1).mean())


def in_int8(a, size: int):
    """The product of a (rows, size) with weights in int8, as fp32."""
    import tensorflow as tf

    weights = tf.bitcast(tf.constant(whole_numbers(size)[1]), tf.qint8)
    return tf.raw_ops.QuantizedMatMulWithBiasAndDequantize(
        a=a, b=weights, bias=tf.zeros(size), min_a=0.0, max_a=255.0,
        min_b=-127.0, max_b=127.0, min_freezed_output=0.0,
        max_freezed_output=1.0, Toutput=tf.float32,
        input_quant_mode="SCALED")


def tiny_network(number: str):
    """Layers of 16 x 16 weights, whose inputs and outputs are in fp32."""
    import tensorflow as tf

    x = tf.constant(np.random.default_rng(0).random((1, TINY), np.float32))
    weights = np.full((TINY, TINY), 1 / TINY, np.float32)

    def layer(x):
        if number == "int8":
            # The layer before it gives fp32: that is turned into int8 first.
            a, _, _ = tf.quantization.quantize(x, 0.0, 1.0, tf.quint8)
            return in_int8(a, TINY)
        kind = {"fp32": tf.float32, "bf16": tf.bfloat16}[number]
        product = tf.cast(x, kind) @ tf.constant(weights, kind)
        return tf.cast(product, tf.float32)

    @tf.function
    def forward(x):
        for _ in range(LAYERS):
            x = layer(x)
        return x

    return lambda: forward(x).numpy()


def in_format(build, number: str):
    """A network whose layers compute in one format."""
    import keras

    policy = {"fp32": "float32", "bf16": "mixed_bfloat16"}[number]
    keras.mixed_precision.set_global_policy(policy)
    network = build()
    keras.mixed_precision.set_global_policy("float32")
    return network


def inference(number: str, batch: int):
    """The small network's forward pass, as a function without arguments."""
    import tensorflow as tf

    network = in_format(make_model, number)
    forward = tf.function(lambda images: network(images, training=False))
    x = tf.constant(np.random.default_rng(0).random((batch, 28, 28, 1),
                                                    np.float32))
    return lambda: forward(x).numpy()


def training(number: str):
    """A training step of ResNet-50, as a function without arguments."""
    import keras
    import tensorflow as tf

    network = in_format(lambda: keras.applications.ResNet50(
        weights=None, input_shape=(SIDE, SIDE, 3)), number)
    cross_entropy = keras.losses.SparseCategoricalCrossentropy()
    optimizer = keras.optimizers.SGD(0.01)
    optimizer.build(network.trainable_variables)
    rng = np.random.default_rng(0)
    x = tf.constant(rng.random((IMAGES, SIDE, SIDE, 3), np.float32))
    y = tf.constant(np.arange(IMAGES))

    @tf.function(autograph=False)
    def step():
        with tf.GradientTape() as tape:
            classes = tf.cast(network(x, training=True), tf.float32)
            loss = cross_entropy(y, classes)
        weights = [v.value for v in network.trainable_variables]
        optimizer.apply(tape.gradient(loss, weights),
                        network.trainable_variables)
        return loss

    return lambda: step().numpy()


def make(what: str, number: str, args: argparse.Namespace) -> tuple:
    """What is done, and how much of its unit a call is."""
    if what == "GEMM":
        # Both operations of a product count: multiplying and adding.
        operations = 2 * args.size ** 3 / 1e9
        return product(number, args.size), operations
    if what == "tiny":
        return tiny_network(number), 1
    if what == "CNN":
        return inference(number, args.batch), args.batch
    return training(number), IMAGES


def measure(what: str, here: dict, found: dict) -> None:
    """A rate of this work in each format, and in fp32 a second one."""
    for column, (call, amount) in here.items():
        if column[0] == what:
            # fp32 twice: what these two differ by is the noise.
            for again in range(2 if column[1] == "fp32" else 1):
                found[column][again].append(amount * calls_per_s(call))


def main(args: argparse.Namespace) -> None:
    # Distributed: a rank for each step
    comm = MPI.COMM_WORLD
    if args.steps:
        os.environ["ONEDNN_MAX_CPU_ISA"] = args.steps[comm.rank]
    step = os.environ.get("ONEDNN_MAX_CPU_ISA", "ALL")
    # TensorFlow reads that variable here, while it is imported.
    import tensorflow as tf

    tf.get_logger().setLevel("ERROR")
    # TensorFlow has no such networks in int8.
    columns = [(what, number) for what in args.work for number in args.numbers
               if number != "int8" or what in UNITS]
    # With AVX2 alone oneDNN has no kernels for bf16, and ends the process.
    here = {column: make(*column, args) for column in columns
            if not (column[1] == "bf16" and step == "AVX2")}
    # The first call builds the graph: all ranks do that at once, not in turns.
    first = {column: call() for column, (call, _) in here.items()}
    wrong = None
    if ("GEMM", "int8") in first:
        wrong = wrong_sums(first["GEMM", "int8"])
    found = {column: [[], []] for column in columns}
    for turn in range(args.rounds):
        order = list(range(comm.size))
        # Every second round runs backwards.
        if turn % 2:
            order.reverse()
        for what in args.work:
            for whose in order:
                # Distributed: one rank at a time measures, the others sleep
                sleep_until_all_are_here(comm)
                if whose == comm.rank:
                    measure(what, here, found)
    # Distributed: nobody goes home while another measures
    sleep_until_all_are_here(comm)
    # Distributed: what each rank has measured
    ranks = records.gather({"step": step, "wrong": wrong,
                            "found": list(found.values())})
    # Distributed: one report, not one from each rank
    if comm.rank == 0:
        for rank, each in enumerate(ranks):
            twin = [r["step"] for r in ranks[:rank]].count(each["step"])
            for column, (rates, again) in zip(columns, each["found"],
                                              strict=True):
                off = each["wrong"] if column == ("GEMM", "int8") else None
                report(each["step"], twin, column, rates, again, off)


def report(step: str, twin: int, column: tuple, rates: list,
           again: list, wrong: float | None) -> None:
    """One line and one record."""
    what, number = column
    unit = UNITS.get(what, "images/s")
    rate = float(np.median(rates)) if rates else None
    # twin: 1 in the second process with the same step
    records.write(lab="08_precision", variant=f"{what} {number}", ranks=1,
                  rate=rate, rate_unit=unit,
                  metrics={"part": "ladder", "step": step, "what": what,
                           "number": number, "rates": rates, "again": again,
                           "twin": twin, "wrong": wrong})
    said = f"{rate:10,.0f} {unit}" if rates else "oneDNN cannot do it"
    if wrong is not None:
        said += f", {wrong:.0%} of the sums are wrong"
    print(f"{step:18} {what:9} {number} {said}", flush=True)


if __name__ == "__main__":
    main(settings())
