"""Settings of the lab, measured in rounds, all in one job.

    mpirun -n 2 python -m mpi4py solutions/06_tuning/tune.py --rounds 3

TensorFlow is loaded once, and Horovod is started anew for each run, because it
reads its settings when it starts. You will see the images/s of each run, in
which all time counts: training, input, evaluation, waiting. A run takes 2
seconds, the start of the job 15. There is nothing to fill in here.

A variant is a table, see DEFAULTS. The number of its threads is fixed when
TensorFlow starts, so each number has ranks of its own in the job, and the
others sleep meanwhile.
"""

import argparse
import contextlib
import json
import os
import time
from pathlib import Path
from time import perf_counter

# Distributed: a rank that waits in vain says so, and then the job ends
os.environ.setdefault("HOROVOD_STALL_CHECK_TIME_SECONDS", "30")
os.environ.setdefault("HOROVOD_STALL_SHUTDOWN_TIME_SECONDS", "60")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
import horovod.tensorflow as hvd
import keras
import numpy as np
import tensorflow as tf
from bookkeeping import EVALUATIONS
from mpi4py import MPI
from networks import networks, way_to_classify, with_label
from runme import (
    BASE_BATCH,
    LEARNING_RATE,
    TEST_BATCH,
    my_batches,
    training_step,
)

from scaleout import data, records
from scaleout.flags import Parser, one_or_more, refuse

DEFAULTS = {
    "ranks": 2,
    "threads": 1,  # of a rank
    "bind": "core",  # each rank has cores of its own; "none": all use all
    "cycle_ms": 1,  # how often Horovod asks what there is to send
    "evaluation": "shared",
    "evaluate_every": 10,  # steps
    "bf16": False,
}
FIRST = {
    "as first written": {"evaluation": "predict"},
    "shared": {},
}


def settings() -> argparse.Namespace:
    """What was typed behind the name of this file."""
    parser = Parser(__doc__)
    first = variants_of(FIRST)
    parser.add_argument("--variants", type=variants, default=first,
                        help="a table of tables as JSON, the baseline first")
    rounds = 1 if data.quick() else 5
    parser.add_argument("--rounds", type=one_or_more, default=rounds,
                        help=f"runs of each variant ({rounds})")
    steps = 1 if data.quick() else 20
    parser.add_argument("--steps", type=one_or_more, default=steps,
                        help=f"of a run, at least ({steps})")
    batch = 8 if data.quick() else 64
    parser.add_argument("--batch-per-rank", type=one_or_more, default=batch,
                        help="images without label a step on each rank "
                        f"({batch})")
    return parser.parse_args()


def variants_of(tables: dict) -> dict:
    """Each variant whole."""
    return {name: {**DEFAULTS, **table} for name, table in tables.items()}


def variants(text: str) -> dict:
    """The value of --variants."""
    try:
        found = variants_of(json.loads(text))
    except (ValueError, TypeError, AttributeError):
        raise argparse.ArgumentTypeError(
            'it takes JSON, such as {"a": {}, "b": {"cycle_ms": 4}}'
        ) from None
    for name, table in found.items():
        unknown = sorted(set(table) - set(DEFAULTS))
        if unknown or table["evaluation"] not in EVALUATIONS:
            raise argparse.ArgumentTypeError(
                f"{name} has {', '.join(unknown) or table['evaluation']}, "
                f"which is none of {', '.join([*DEFAULTS, *EVALUATIONS])}"
            )
    if len(found) < 2:
        raise argparse.ArgumentTypeError("it takes two variants or more")
    return found


def teams_of(found: dict) -> dict[int, range]:
    """For each number of threads, the ranks of the job that have so many."""
    teams = {}
    first = 0
    for threads in sorted({table["threads"] for table in found.values()}):
        alike = [t["ranks"] for t in found.values() if t["threads"] == threads]
        teams[threads] = range(first, first + max(alike))
        first += max(alike)
    return teams


def cores() -> list[set[int]]:
    """The CPUs of each core that this job may use."""
    allowed = os.sched_getaffinity(0)
    found = []
    for cpu in sorted(allowed):
        folder = Path(f"/sys/devices/system/cpu/cpu{cpu}/topology")
        text = (folder / "thread_siblings_list").read_text()
        ends = [part.split("-") for part in text.strip().split(",")]
        twins = {c for e in ends for c in range(int(e[0]), int(e[-1]) + 1)}
        if twins & allowed not in found:
            found.append(twins & allowed)
    return found


def bind(cpus: set[int]) -> None:
    """Lets all threads of this process use these CPUs and no others."""
    for thread in os.listdir("/proc/self/task"):
        # A thread may have ended since it was listed
        with contextlib.suppress(ProcessLookupError):
            os.sched_setaffinity(int(thread), cpus)


def sleep_until_all_are_here(comm: MPI.Comm) -> None:
    """A barrier that leaves the cores to those who still compute."""
    # Distributed: a rank without work must not ask again and again
    request = comm.Ibarrier()
    while not request.Test():
        time.sleep(0.01)


class Training:
    """Both networks of the lab, and its step and evaluation in each way."""

    def __init__(self, batch: int, ranks: int) -> None:
        self.batch = batch
        self.x, self.y, self.x_test, self.y_test = data.digits()
        self.known = with_label(self.y, 20, seed=0)
        keras.utils.set_random_seed(0)
        self.trunk, self.head, self.generator = networks(28)
        self.classifier = keras.Sequential([self.trunk, self.head])
        rate = LEARNING_RATE * batch * ranks / BASE_BATCH
        self.learns = keras.optimizers.Adam(rate, beta_1=0.5)
        self.learns.build(self.classifier.trainable_variables)
        self.makes = keras.optimizers.Adam(rate, beta_1=0.5)
        self.makes.build(self.generator.trainable_variables)
        self.steps = {}
        self.ways = {}

    def step(self, ranks: int, bf16: bool):
        """The lab's step; alone it talks to nobody, so it is another graph."""
        options = {"auto_mixed_precision_onednn_bfloat16": bf16}
        tf.config.optimizer.set_experimental_options(options)
        if (ranks, bf16) not in self.steps:
            self.steps[ranks, bf16] = training_step(
                self.trunk, self.head, self.generator, self.learns, self.makes
            )
        return self.steps[ranks, bf16]

    def classify(self, evaluation: str):
        """The lab's way to classify."""
        if evaluation not in self.ways:
            way = way_to_classify(self.classifier, evaluation)
            self.ways[evaluation] = way
        return self.ways[evaluation]

    def run(self, how: dict, steps: int) -> float:
        """Seconds a step, from one evaluation to a later one."""
        # Distributed: of those who train now
        rank = hvd.rank()
        # Distributed: how many they are
        ranks = hvd.size()
        train_step = self.step(ranks, how["bf16"])
        classify = self.classify(how["evaluation"])
        firsts = range(0, len(self.x_test), TEST_BATCH)
        batches = [slice(first, first + TEST_BATCH) for first in firsts]
        mine = my_batches(batches, how["evaluation"], rank, ranks)
        every = how["evaluate_every"]
        if data.quick():
            every = -(-every // 5)
        # As many as asked for, and up to an evaluation.
        last = -(-steps // every) * every
        for step in range(-1, last + 1):
            draw = np.random.default_rng(step + 1)
            few = draw.choice(self.known, self.batch // 2 * ranks)[rank::ranks]
            more = draw.integers(len(self.x), size=self.batch * ranks)
            more = more[rank::ranks]
            given = [self.x[few], self.y[few], self.x[more]]
            float(train_step(*map(tf.constant, given))[0])
            if step % every == 0:
                right = 0
                for part in mine:
                    guessed = np.argmax(classify(self.x_test[part]), axis=1)
                    right += int((guessed == self.y_test[part]).sum())
                # Distributed: the counts of all ranks
                hvd.allreduce(tf.constant(right), op=hvd.Sum).numpy()
            if step == 0:
                started = perf_counter()
        return (perf_counter() - started) / last


def measure(how: dict, team: range, training: Training, steps: int) -> float:
    """Images/s of all ranks together that take part."""
    world = MPI.COMM_WORLD
    takes_part = world.rank in team[:how["ranks"]]
    # Distributed: those who train, and those who sleep meanwhile
    comm = world.Split(int(takes_part), world.rank)
    rate = 0.0
    if takes_part:
        before = os.sched_getaffinity(0)
        allowed = cores()
        threads = how["threads"]
        own = allowed[comm.rank * threads:(comm.rank + 1) * threads]
        if how["bind"] == "none" or how["ranks"] * threads > len(allowed):
            own = allowed
        bind(set().union(*own))
        os.environ["HOROVOD_CYCLE_TIME"] = str(how["cycle_ms"])
        # Distributed: a world of those who take part
        hvd.init(comm=comm)
        step_s = training.run(how, steps)
        # Distributed: the next run starts it with other settings
        hvd.shutdown()
        rate = how["ranks"] * training.batch / step_s
        bind(before)
    comm.Free()
    sleep_until_all_are_here(world)
    # Distributed: all hear the rate from the first who took part
    return world.bcast(rate, root=team[0])


def main(args: argparse.Namespace) -> None:
    world = MPI.COMM_WORLD
    teams = teams_of(args.variants)
    needed = max(team.stop for team in teams.values())
    if world.size != needed:
        refuse(f"These variants need {needed} ranks, not {world.size}.")
    for threads, team in teams.items():
        if world.rank in team:
            tf.config.threading.set_intra_op_parallelism_threads(threads)
            tf.config.threading.set_inter_op_parallelism_threads(threads)
            training = Training(args.batch_per_rank, len(team))
    jobs = {
        name: (how, teams[how["threads"]], training)
        for name, how in args.variants.items()
    }
    if not data.quick():
        for job in jobs.values():
            measure(*job, steps=1)  # builds its graphs, and warms up

    rows = []
    names = [*jobs]
    columns = [(names[0], 1)] + [(name, 0) for name in names]
    for round_ in range(args.rounds):
        # Another order in each round, the same on all ranks.
        for index in np.random.default_rng(round_).permutation(len(columns)):
            name, again = columns[index]
            rate = measure(*jobs[name], steps=args.steps)
            rows.append({
                "round": round_, "place": len(rows), "variant": name,
                "again": again, "value": rate, "unit": "images/s",
            })
            # Distributed: one line, not one from each rank
            if world.rank == 0:
                print(f"round {round_ + 1}  {name}: {rate:.0f} images/s",
                      flush=True)

    # Distributed: one record, not one from each rank
    if world.rank == 0:
        rows.sort(key=lambda row: (row["round"], names.index(row["variant"])))
        records.write(
            lab="06_tuning",
            variant="tune",
            ranks=world.size,
            batch_per_rank=args.batch_per_rank,
            metrics={"runs": rows, "variants": args.variants},
        )


if __name__ == "__main__":
    main(settings())
