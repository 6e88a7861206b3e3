"""Int8 after training: what does it cost, and what does it buy?

    mpirun -n 1 python -m mpi4py solutions/08_precision/convert.py

One rank. It trains the small network of 01, turns it into int8 in several
ways, and measures these in rounds; that takes about 40 seconds. You will see
accuracy and size of each, and images/s beside TensorFlow's fp32. The models
are kept in the folder of the run.
"""

import argparse
import os

os.environ["TF_ENABLE_ONEDNN_OPTS"] = "1"  # on every processor
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import numpy as np

# Distributed: this import also starts MPI
from mpi4py import MPI
from rounds import calls_per_s, in_rounds
from trained import (
    CALIBRATE,
    THREADS,
    Model,
    accuracy,
    convert,
    make_model,
    tiny_model,
    train,
)

from scaleout import data, records
from scaleout.kit.flags import Parser, one_or_more, refuse, zero_or_more


def settings() -> argparse.Namespace:
    """What was typed behind the name of this file."""
    parser = Parser(__doc__)
    parser.add_argument("--calibrate", type=zero_or_more, nargs="+",
                        default=[1, 10] if data.quick() else [1, 100],
                        help="batches to calibrate with (1 100)")
    parser.add_argument("--batches", type=one_or_more, nargs="+",
                        default=[1, 64], help="images at a time (1 64)")
    parser.add_argument("--steps", type=one_or_more,
                        default=40 if data.quick() else 200,
                        help="steps of the training (200)")
    parser.add_argument("--rounds", type=one_or_more,
                        default=data.rounds(7),
                        help="measurements of each (7)")
    args = parser.parse_args()
    if MPI.COMM_WORLD.Get_size() > 1:
        refuse("This script is for one rank: mpirun -n 1")
    if 0 in args.calibrate:
        refuse("--calibrate: an empty calibration set shows no range: it "
               "takes one batch or more.")
    return args


def name_of(count: int) -> str:
    """What a model is called that was calibrated with so many batches."""
    return f"int8, {count} {'batch' if count == 1 else 'batches'}"


def report(variant: str, content: bytes, x: np.ndarray, y: np.ndarray) -> None:
    """One line and one record for a model."""
    right = accuracy(content, x, y)
    records.write(lab="08_precision", variant=variant, ranks=1, seed=0,
                  metrics={"part": "models", "accuracy": right,
                           "images": len(y), "bytes": len(content)})
    print(f"{variant:24} {right:6.1%} right {len(content) / 1024:7.0f} KiB",
          flush=True)


def report_rates(name: str, batch: int, rows: list) -> None:
    """One line and one record for some models at one batch."""
    records.write(lab="08_precision", variant=f"{name}, batch {batch}",
                  ranks=1, batch_per_rank=batch,
                  metrics={"part": "rates", "network": name, "batch": batch,
                           "runs": rows})
    for variant in dict.fromkeys(row["variant"] for row in rows):
        rate = np.median([row["value"] for row in rows
                          if row["variant"] == variant])
        print(f"{name}, batch {batch}: {variant:16} {rate:10,.0f} "
              f"{rows[0]['unit']}", flush=True)


def rates(models: dict, x: np.ndarray, batch: int, rounds: int,
          unit: str = "images/s") -> list:
    """Images/s of some models, which all take and give numbers in fp32."""
    x = x[np.arange(batch) % len(x)]  # (batch, ...)
    variants = {}
    for name, content in models.items():
        if callable(content):
            variants[name] = lambda model=content: model(x).numpy()
        else:
            model = Model(content, batch, THREADS)
            variants[name] = lambda model=model: model(x)
    return in_rounds(variants, rounds, unit,
                     lambda work: batch * calls_per_s(work))


def main(args: argparse.Namespace) -> None:
    import tensorflow as tf

    x, y, x_test, y_test = data.digits()  # (n, 28, 28, 1), (n,)
    network = make_model()
    train(network, args.steps)

    def batches(count: int, images: np.ndarray = x) -> list:
        rows = np.arange(CALIBRATE * count) % len(images)
        return np.split(images[rows], count)  # (16, 28, 28, 1) each

    most = max(args.calibrate)
    models = {"fp32": convert(network)}
    for count in args.calibrate:
        models[name_of(count)] = convert(network, batches(count))
    # What it will not see later: one digit, too little light, and pixels that
    # nobody has divided by 255. Ranges come out too narrow, or too wide.
    odd = {"digit 1 alone": x[y == 1], "10 times as dark": x / 10,
           "100 times as dark": x / 100, "pixels up to 255": x * 255}
    for name, images in odd.items():
        models[f"int8, {name}"] = convert(network, batches(10, images))
    for variant, content in models.items():
        report(variant, content, x_test, y_test)
    best = models[name_of(most)]
    for name, content in (("fp32", models["fp32"]), ("int8", best)):
        (records.folder() / f"{name}.tflite").write_bytes(content)

    compiled = tf.function(lambda images: network(images, training=False))
    rivals = {"TFLite fp32": models["fp32"], "TensorFlow fp32": compiled,
              "TFLite int8": best}
    for batch in args.batches:
        report_rates("CNN", batch, rates(rivals, x_test, batch, args.rounds))

    numbers = np.random.default_rng(0).random((64, 10), np.float32)
    tiny = tiny_model()
    rivals = {"TFLite fp32": convert(tiny),
              "TFLite int8": convert(tiny, [numbers])}
    report_rates("tiny", 1, rates(rivals, numbers, 1, args.rounds, "calls/s"))


if __name__ == "__main__":
    main(settings())
