"""Several pipelines in turns, in one job: which is faster, and who waits?

    mpirun -n 1 python -m mpi4py labs/10_input/turns.py

A turn is an epoch. All pipelines stay open, so TensorFlow starts once, and a
cache is filled once. In each round, the first pipeline has two turns: what
they differ by is the noise. You will see the images/s of every turn. It takes
about a minute. The order is another one in each round.
"""

import argparse
import os
import time
from collections.abc import Iterator

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
import numpy as np
import tensorflow as tf
from bookkeeping import STEPS, examples, milliseconds, steps_of

# Distributed: this import also starts MPI
from mpi4py import MPI
from networks import Training
from runme import (
    SIDE,
    augment,
    begun,
    input_pipeline,
    my_images,
    options_of,
    read_image,
)

from scaleout import data, records
from scaleout.flags import Parser, one_or_more, zero_or_more

# What is ready at the start of a turn was made while others had theirs.
WARM_UP = 2 if data.quick() else 5  # steps
FOR_EVER = 10**6  # epochs


def device(text: str) -> float | None:
    """A step of so many ms; None for the small network's own."""
    return None if text == "network" else milliseconds(text)


def settings() -> argparse.Namespace:
    """What was typed behind the name of this file."""
    parser = Parser(__doc__)
    added = [STEPS[:count] for count in range(len(STEPS) + 1)]
    parser.add_argument("--pipelines", nargs="+", type=steps_of,
                        default=added, metavar="STEPS",
                        help="naive, or steps with a + between them (each of "
                        "the four added to those before)")
    parser.add_argument("--workers", nargs="+", type=zero_or_more,
                        default=[2],
                        help="images that a rank reads at a time; 0 leaves "
                        "it to TensorFlow (2)")
    parser.add_argument("--step-ms", nargs="+", type=device, default=[None],
                        help="a device's step of so many ms, or network "
                        "(network)")
    parser.add_argument("--batch-per-rank", type=one_or_more, default=64,
                        help="images in a step of a rank (64)")
    parser.add_argument("--steps", type=zero_or_more, default=0,
                        help="steps of a turn (0: an epoch)")
    parser.add_argument("--rounds", type=one_or_more, default=7,
                        help="turns of each pipeline (7)")
    args = parser.parse_args()
    args.seed = 0
    args.skip_broken = False
    args.folder = None
    if data.quick():
        args.rounds = 1
        args.steps = min(args.steps or 5, 5)
    return args


class Runner:
    """A pipeline with its training, and what was measured of it."""

    def __init__(self, name: str, args: argparse.Namespace,
                 training: Training, arriving: Iterator) -> None:
        self.name = name
        self.args = args
        self.training = training
        self.arriving = arriving
        self.times = []
        self.rates = []
        self.turns_s = []

    def steps(self, count: int, labels: np.ndarray) -> tuple:
        """Seconds (count, 3): waits for images, computes, waits for others.

        And the images of this rank in these steps.
        """
        times = []
        seen = 0
        for _ in range(count):
            start = time.perf_counter()
            images, some, _ = next(self.arriving)
            got = time.perf_counter()
            self.training.step(images, labels[some])
            seen += len(some)
            done = time.perf_counter()
            # Distributed: here the gradients would be averaged (05)
            MPI.COMM_WORLD.Barrier()
            end = time.perf_counter()
            times.append([got - start, done - got, end - done])
        return np.array(times), seen

    def turn(self, count: int, labels: np.ndarray) -> float:
        """Images/s of all ranks, in so many steps."""
        comm = MPI.COMM_WORLD
        self.steps(WARM_UP, labels)
        times, mine = self.steps(count, labels)
        step_s = np.empty(count)
        # Distributed: the slowest rank counts
        comm.Allreduce(times.sum(axis=1), step_s, op=MPI.MAX)
        # Distributed: the images of all ranks
        images = comm.allreduce(mine)
        self.times.append(times)
        self.turns_s.append(step_s)
        self.rates.append(images / step_s.sum())
        return self.rates[-1]

    def report(self, runs: list) -> None:
        """One record of all turns."""
        comm = MPI.COMM_WORLD
        times = np.concatenate(self.times)  # (steps, 3)
        shares = times.sum(axis=0) / times.sum()  # (3,)
        # Distributed: what each rank waited and computed
        ranks = records.gather({"waited": shares[0], "computed": shares[1]})
        # Distributed: one report, not one from each rank
        if comm.rank != 0:
            return
        records.write(
            lab="10_input",
            variant=self.name,
            ranks=comm.size,
            batch_per_rank=self.args.batch_per_rank,
            warmup_steps=WARM_UP,
            step_s=np.concatenate(self.turns_s),
            rate=float(np.median(self.rates)),
            rate_unit="images/s",
            seed=self.args.seed,
            metrics={
                "use": self.args.use,
                "workers": self.args.workers,
                "step_ms": self.args.step_ms,
                "turns_s": [float(np.median(turn)) for turn in self.turns_s],
                "rates": self.rates,
                "waited": [each["waited"] for each in ranks],
                "computed": [each["computed"] for each in ranks],
                "runs": runs,
            },
        )


def named(use: list, before: list | None) -> str:
    """What a pipeline is called, if possible by the step that it adds."""
    if before is not None and use[:-1] == before:
        return f"+ {use[-1]}"
    if use == STEPS:
        return "all four"
    return "+".join(use) or "naive"


def runners(args: argparse.Namespace, mine: np.ndarray,
            paths: list) -> list:
    """All combinations of pipelines, workers and a device's steps."""
    files = tf.constant(paths)
    # Pipelines with equal steps train one network, in turns.
    trainings = {step_ms: Training(SIDE, step_ms) for step_ms in args.step_ms}
    found = []
    before = None
    for use in args.pipelines:
        for workers in args.workers:
            for step_ms in args.step_ms:
                own = argparse.Namespace(**vars(args))
                own.use = use
                own.workers = workers
                own.step_ms = step_ms
                arriving = input_pipeline(
                    mine, lambda number: read_image(files[number]), augment,
                    own, epochs=FOR_EVER).with_options(options_of(own))
                words = []
                if len(args.pipelines) > 1:
                    words.append(named(use, before))
                if len(args.workers) > 1:
                    words.append(f"{workers} threads" if workers
                                 else "AUTOTUNE")
                if len(args.step_ms) > 1:
                    words.append("network" if step_ms is None
                                 else f"{step_ms:g} ms")
                name = ", ".join(words) or named(use, None)
                found.append(Runner(name, own, trainings[step_ms],
                                    begun(arriving, use)))
        before = use
    return found


def main(args: argparse.Namespace) -> None:
    # Distributed: all ranks of the job
    comm = MPI.COMM_WORLD
    paths, labels = examples(args, comm.size)
    mine = my_images(np.arange(len(paths)), comm.rank, comm.size)
    # Distributed: all make as many steps as the rank with most images
    most = comm.allreduce(len(mine), op=MPI.MAX)
    epoch = -(-most // args.batch_per_rank)
    steps = args.steps or epoch
    pipelines = runners(args, mine, paths)
    for each in pipelines:
        # The first epoch fills a cache.
        each.steps(epoch if "cache" in each.args.use else 2, labels)
    turns = [(each, 0) for each in pipelines] + [(pipelines[0], 1)]
    runs = []
    for round_ in range(args.rounds):
        # Another order in each round, the same on all ranks.
        order = np.random.default_rng(round_).permutation(len(turns))
        said = {}
        for at in order:
            each, again = turns[at]
            rate = each.turn(steps, labels)
            said[at] = f"{each.name}{', again' if again else ''} {rate:,.0f}"
            runs.append({"round": round_, "place": len(runs),
                         "variant": each.name, "again": again,
                         "value": rate, "unit": "images/s"})
        # Distributed: one report, not one from each rank
        if comm.rank == 0:
            line = "; ".join(said[at] for at in sorted(said))
            print(f"round {round_ + 1}: {line}", flush=True)
    # A comparison shows its variants in the order in which it meets them.
    names = [each.name for each in pipelines]
    runs.sort(key=lambda run: (run["round"], names.index(run["variant"])))
    for each in pipelines:
        each.report(runs)


if __name__ == "__main__":
    main(settings())
