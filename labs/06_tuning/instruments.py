"""What the checks look at: the way to classify, who tests what, the settings.

    mpirun -n 2 python -m mpi4py labs/06_tuning/instruments.py

It takes 6 seconds, and trains nothing. You will see how often Python went
through the layers of a network while it classified a few batches, and which
batches each rank would test, for each --evaluation and some numbers of them.
There is nothing to fill in here.
"""

import os

import runme  # first: its settings come before TensorFlow

# Distributed: this import has also started MPI
from mpi4py import MPI

# isort: split
import horovod.tensorflow as hvd
import keras
import numpy as np
from bookkeeping import EVALUATIONS
from networks import networks

from scaleout import records
from scaleout.kit.flags import Parser

COMM = MPI.COMM_WORLD
SIZES = [100, 100, 97]  # images of the batches of an evaluation
TWICE = 2  # evaluations
COUNTS = [3, 7, 6, 1]  # batches to deal out


def classified(evaluation: str, seed: int) -> dict:
    """What becomes of a few batches, classified in this way."""
    found = {"calls": 0, "looked": 0, "error": None, "same": True,
             "after": True}
    keras.utils.set_random_seed(seed)
    trunk, head, _ = networks(28)
    classifier = keras.Sequential([trunk, head])
    looked = []
    way = runme.way_to_classify(classifier, evaluation, looked)
    found["gives"] = type(way).__name__
    if not callable(way):
        return found
    for n in SIZES * TWICE:
        images = np.random.default_rng(n + found["calls"]).random(
            (n, 28, 28, 1), np.float32)
        found["calls"] += 1
        try:
            logits = np.asarray(way(images))
        except Exception as error:
            last = str(error).strip().splitlines() or [""]
            found["error"] = f"{type(error).__name__}: {last[0][:100]}"
            found["size"] = n
            return found
        found["looked"] = len(looked)
        wanted = np.asarray(classifier(images, training=False))
        same = bool(logits.shape == wanted.shape
                    and np.allclose(logits, wanted, atol=1e-3))
        if found["calls"] <= len(SIZES):
            found["same"] &= same
        else:
            found["after"] &= same
        if found["calls"] == len(SIZES):  # as an epoch of training does
            for weights in classifier.trainable_variables:
                weights.assign_add(keras.random.normal(weights.shape))
    return found


def dealt(evaluation: str, count: int) -> dict:
    """Which of so many batches this rank tests."""
    batches = [slice(100 * i, 100 * i + 100) for i in range(count)]
    # Distributed: as the lab asks for them
    mine = runme.my_batches(list(batches), evaluation, hvd.rank(), hvd.size())
    found = {"gives": type(mine).__name__, "first": None, "again": None}
    for when in ("first", "again"):
        try:
            found[when] = [batches.index(part) for part in mine]
        except (TypeError, ValueError) as error:
            found["error"] = f"{type(error).__name__}: {error}"
            return found
    return found


def main() -> None:
    Parser(__doc__).parse_args()
    # Distributed: the ranks find each other
    hvd.init()
    errors = []
    for look in (settings, ways, deals):
        try:
            mine = look()
        except Exception as error:
            mine = None
            errors.append(error)
        tell(look.__name__, mine)
    if errors:
        raise errors[0]


def settings() -> dict:
    """What Horovod is told of its cycle, whatever it is called there."""
    return {"settings": {name: value for name, value in os.environ.items()
                         if "CYCLE" in name.upper()}}


def ways() -> dict:
    """Two of the ways to classify."""
    return {way: classified(way, seed)
            for seed, way in enumerate(("compiled", "shared"))}


def deals() -> dict:
    """Who tests what, for each of the counts."""
    return {way: [dealt(way, count) for count in COUNTS]
            for way in EVALUATIONS}


def tell(variant: str, mine: dict | None) -> None:
    """Write what all ranks have seen."""
    found = COMM.gather(mine)
    # Distributed: one record, not one from each rank
    if COMM.rank == 0:
        records.write(lab="06_tuning", variant=variant, ranks=COMM.size,
                      metrics={"found": found})
        for rank, each in enumerate(found):
            print(f"rank {rank}: {each}", flush=True)


if __name__ == "__main__":
    main()
