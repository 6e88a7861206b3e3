"""Several pipelines in one job, an epoch each in turn: which is faster?

    mpirun -n 1 python -m mpi4py labs/10_input/compare_pipelines.py

All pipelines stay open, so TensorFlow starts once, and a cache is filled once.
In each round the first pipeline has two epochs: what they differ by is the
noise. The order is another one in each round. You will see the images/s of
every epoch, and the records say who waited. It takes one to three minutes.
"""

import argparse
import itertools
import os
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
import numpy as np
import tensorflow as tf
from files import examples
from images import SEED, SIDE, augment, read_image

# Distributed: this import also starts MPI
from mpi4py import MPI
from networks import Training
from runme import BATCH, STEPS, input_pipeline, my_images, steps_of

from scaleout import data, records
from scaleout.kit.flags import Parser, one_or_more, zero_or_more

# What is ready when an epoch begins was made while others had theirs.
WARM_UP = 2 if data.quick() else 5  # steps
FOR_EVER = 10**6  # epochs


def device(text: str) -> int | None:
    """A step of so many ms; None for the small network's own."""
    return None if text == "network" else zero_or_more(text)


def settings() -> argparse.Namespace:
    """What was typed behind the name of this file."""
    parser = Parser(__doc__)
    added = [STEPS[:count] for count in range(len(STEPS) + 1)]
    parser.add_argument("--pipelines", nargs="+", type=steps_of,
                        default=added, metavar="STEPS",
                        help="naive, or steps with a + between them (each of "
                        "the four added to those before)")
    parser.add_argument("--step-ms", nargs="+", type=device, default=[None],
                        help="a device's step of so many ms, or network "
                        "(network)")
    parser.add_argument("--rounds", type=one_or_more, default=7,
                        help="how often each has its turn (7)")
    args = parser.parse_args()
    args.rounds = data.rounds(args.rounds)
    return args


class Pipeline:
    """A pipeline, the training that it feeds, and the books of both."""

    def __init__(self, name: str, batches: tf.data.Dataset,
                 training: Training, labels: np.ndarray) -> None:
        # Distributed: all ranks of the job
        self.comm = MPI.COMM_WORLD
        self.name = name
        self.batches = iter(batches)
        self.training = training
        self.labels = labels
        self.books = records.Books("10_input", self.comm.rank, self.comm.size,
                                   warmup=0)
        self.turns_s = []  # the mean step of each turn

    def steps(self, books: records.Books, count: int) -> int:
        """Makes so many steps; the number of this rank's images in them."""
        seen = 0
        for _ in range(count):
            numbers = []  # of this step's images
            with books.step(rows=numbers):
                with books.time("wait"):
                    images, some, _ = next(self.batches)
                with books.time("compute"):
                    self.training.step(images, self.labels[some])
                    numbers.extend(some.numpy())
                with books.time("others"):
                    # Distributed: here the gradients would be averaged (05)
                    self.comm.Barrier()
            seen += len(numbers)
        return seen

    def warm_up(self, count: int) -> None:
        """Makes so many steps that no record tells of."""
        self.steps(records.Books("warm-up"), count)

    def turn(self, count: int) -> float:
        """Images/s of all ranks, in so many steps."""
        self.warm_up(WARM_UP)
        start = time.perf_counter()
        mine = self.steps(self.books, count)
        seconds = time.perf_counter() - start
        self.turns_s.append(seconds / count)
        # Distributed: the images of all ranks, which end each step together
        return self.comm.allreduce(mine) / seconds


def named(use: list, before: list | None) -> str:
    """What a pipeline is called, if possible by the step that it adds."""
    if before is not None and use[:-1] == before and use[-1] in STEPS:
        return f"+ {use[-1]}"
    if use == STEPS:
        return "all four"
    return "+".join(use) or "naive"


def combinations(args: argparse.Namespace) -> list:
    """A name for each of what was asked for, with its steps and step_ms."""
    found = []
    before = [None, *args.pipelines]
    for (nth, use), step_ms in itertools.product(
            enumerate(args.pipelines), args.step_ms):
        words = []
        if len(args.pipelines) > 1:
            words.append(named(use, before[nth]))
        if len(args.step_ms) > 1:
            words.append("network" if step_ms is None else f"{step_ms} ms")
        name = ", ".join(words) or named(use, None)
        found.append((name, use, step_ms))
    return found


def main(args: argparse.Namespace) -> None:
    # Distributed: all ranks of the job
    comm = MPI.COMM_WORLD
    paths, labels = examples(comm.size)
    mine = my_images(np.arange(len(paths)), comm.rank, comm.size)
    # Distributed: all make as many steps as the rank with most images
    most = comm.allreduce(len(mine), op=MPI.MAX)
    epoch = -(-most // BATCH)
    files = tf.constant(paths)
    # Pipelines with equal steps train one network, in turns.
    trainings = {step_ms: Training(SIDE, step_ms) for step_ms in args.step_ms}
    asked = combinations(args)
    pipelines = []
    for name, use, step_ms in asked:
        batches = input_pipeline(
            mine, lambda number: read_image(files[number]), augment, use,
            BATCH, epochs=FOR_EVER)
        pipelines.append(Pipeline(name, batches, trainings[step_ms], labels))
        # The first epoch fills a cache.
        pipelines[-1].warm_up(epoch if "cache" in use else 2)

    turns = [(each, 0) for each in pipelines] + [(pipelines[0], 1)]
    runs = []
    for round_ in range(args.rounds):
        rates = {}
        # Another order in each round, the same on all ranks.
        for at in np.random.default_rng(round_).permutation(len(turns)):
            rates[at] = turns[at][0].turn(5 if data.quick() else epoch)
        # In the order of the pipelines, as a comparison shows its variants.
        for at, (each, again) in enumerate(turns):
            runs.append({"round": round_, "variant": each.name, "again": again,
                         "value": rates[at], "unit": "images/s"})
        # Distributed: one report, not one from each rank
        if comm.rank == 0:
            line = "; ".join(f"{run['variant']}{', again' * run['again']} "
                             f"{run['value']:,.0f}"
                             for run in runs[-len(turns):])
            print(f"round {round_ + 1}: {line}", flush=True)
    for each, (_, use, step_ms) in zip(pipelines, asked, strict=True):
        each.books.write(variant=each.name, batch_per_rank=BATCH, seed=SEED,
                         rate_unit="images/s", use=use, step_ms=step_ms,
                         turns_s=each.turns_s, runs=runs)


if __name__ == "__main__":
    main(settings())
