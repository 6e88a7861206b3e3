"""Settings of Horovod, measured in rounds, all in one job.

    mpirun -n 2 python -m mpi4py solutions/05_horovod/tune.py --rounds 3

TensorFlow is loaded once, and Horovod is started anew for each variant: it
reads its settings when it starts. You will see the images/s of all ranks
together, a line a run. A run takes 3 seconds, the start of the job 10.

A variant is a list of words. "2 ranks": so many train together. "apart": they
train without talking. "unbound": they may use all cores, where each otherwise
has one of its own. "cycle 4 ms", "fp16" and "fusion off" are Horovod's. "2
threads": of a rank; it must be the last rank of the job.
"""

import argparse
import contextlib
import os
import re
import time
from pathlib import Path
from time import perf_counter

# Distributed: a rank that waits in vain says so, and then the job ends
os.environ.setdefault("HOROVOD_STALL_CHECK_TIME_SECONDS", "10")
os.environ.setdefault("HOROVOD_STALL_SHUTDOWN_TIME_SECONDS", "20")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
import horovod.tensorflow as hvd
import keras
import numpy as np
import tensorflow as tf
from mpi4py import MPI
from runme import network

from scaleout import data, records
from scaleout.flags import Parser, one_or_more, refuse

WARM_UP = 4  # steps
CYCLE = "HOROVOD_CYCLE_TIME"
TIMELINE = "HOROVOD_TIMELINE"
CACHE = "HOROVOD_CACHE_CAPACITY"


def settings() -> argparse.Namespace:
    """What was typed behind the name of this file."""
    parser = Parser(__doc__)
    start = ["1 rank", "2 ranks, unbound", "2 ranks", "2 ranks, cycle 4 ms"]
    parser.add_argument("--variants", nargs="+", default=start,
                        help="the first is run twice a round")
    parser.add_argument("--against", default="",
                        help="a variant that is run twice too, to compare "
                        "the others with")
    parser.add_argument("--traced", nargs="*", default=[],
                        help="variants to run once with a timeline, which "
                        "is kept in the folder of the run")
    parser.add_argument("--rounds", type=one_or_more, default=5,
                        help="runs of each variant (5)")
    parser.add_argument("--steps", type=one_or_more, default=40,
                        help="steps of a run (40)")
    batch = 16 if data.quick() else 64
    parser.add_argument("--batch-per-rank", type=one_or_more, default=batch,
                        help=f"images a step on each rank ({batch})")
    return parser.parse_args()


def number(pattern: str, variant: str, default: int) -> int:
    """The number that a variant holds, such as 4 in "cycle 4 ms"."""
    found = re.search(pattern, variant)
    return int(found[1]) if found else default


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
    """The lab's network, and its training step in three ways."""

    def __init__(self, batch: int) -> None:
        keras.utils.set_random_seed(0)
        self.batch = batch
        self.x, self.y, _, _ = data.digits()
        self.model = network()
        self.optimizer = keras.optimizers.SGD(0.01, momentum=0.9)
        self.optimizer.build(self.model.trainable_variables)
        self.step = {
            "apart": self.traced(None),
            "together": self.traced(hvd.Compression.none),
            "fp16": self.traced(hvd.Compression.fp16),
        }

    def traced(self, compression):
        """A step; without compression it talks to nobody."""

        @tf.function(autograph=False)
        def train_step(images, labels):
            with tf.GradientTape() as tape:
                logits = self.model(images)  # (batch, 10)
                losses = keras.losses.sparse_categorical_crossentropy(
                    labels, logits, from_logits=True
                )  # (batch,)
                loss = tf.reduce_mean(losses)
            if compression is not None:
                # Distributed: the average over all ranks that train
                tape = hvd.DistributedGradientTape(
                    tape, compression=compression
                )
            weights = self.model.trainable_variables
            gradients = tape.gradient(loss, [v.value for v in weights])
            self.optimizer.apply(gradients, weights)
            return tf.linalg.global_norm(gradients)

        return train_step

    def run(self, how: str, steps: int) -> list[float]:
        """Seconds of each step."""
        step_s = []
        for step in range(steps):
            first = step * self.batch % (len(self.x) - self.batch)
            rows = np.arange(first, first + self.batch)
            started = perf_counter()
            float(self.step[how](self.x[rows], self.y[rows]))
            step_s.append(perf_counter() - started)
        return step_s


def measure(variant: str, training: Training, steps: int, trace: str) -> float:
    """Images/s of all ranks together that take part."""
    world = MPI.COMM_WORLD
    threads = number(r"(\d+) threads", variant, 1)
    ranks = number(r"(\d+) ranks?", variant, world.size)
    # The last rank of the job alone has more threads than one.
    first = world.size - 1 if threads > 1 else 0
    takes_part = first <= world.rank < first + ranks
    # Distributed: those who train, and those who sleep meanwhile
    comm = world.Split(int(takes_part), world.rank)
    slowest_s = None
    if takes_part:
        allowed = cores()
        free = "unbound" in variant or ranks * threads > len(allowed)
        own = allowed[comm.rank * threads:(comm.rank + 1) * threads]
        before = os.sched_getaffinity(0)
        bind(set().union(*(allowed if free else own)))
        together = ranks > 1 and "apart" not in variant
        if together:
            os.environ[CYCLE] = str(number(r"cycle (\d+)", variant, 1))
            os.environ.pop(TIMELINE, None)
            os.environ.pop(CACHE, None)
            if trace:
                os.environ[TIMELINE] = trace
                os.environ[CACHE] = "0"  # or it does not say who was ready
            # Distributed: a world of those who take part
            hvd.init(comm=comm)
        how = "apart"
        if together:
            how = "fp16" if "fp16" in variant else "together"
        comm.Barrier()
        step_s = training.run(how, WARM_UP + steps)[WARM_UP:]
        # Distributed: a step is as long as on its slowest rank
        slowest_s = np.max(comm.allgather(step_s), axis=0)  # (steps,)
        if together:
            # Distributed: the next variant starts it with other settings
            hvd.shutdown()
        bind(before)
    comm.Free()
    sleep_until_all_are_here(world)
    if world.rank != first:
        slowest_s = None
    # Distributed: all hear the result from the one who has it
    slowest_s = world.bcast(slowest_s, root=first)
    return ranks * training.batch / float(np.median(slowest_s))


def main(args: argparse.Namespace) -> None:
    # Distributed: which copy of the program this is, of how many
    rank = MPI.COMM_WORLD.rank
    ranks = MPI.COMM_WORLD.size
    if rank == ranks - 1:
        most = max(number(r"(\d+) threads", v, 1) for v in args.variants)
        tf.config.threading.set_intra_op_parallelism_threads(most)
    talking = {number(r"(\d+) ranks?", v, ranks) for v in args.variants
               if "apart" not in v}
    if len(talking - {1}) > 1:
        # Seen: a world of 4 after one of 2 adds up unlike gradients.
        refuse("The variants that talk must all have as many ranks: Horovod "
               "cannot be started again with others in one job.")
    training = Training(args.batch_per_rank)
    kinds = {re.sub(r"cycle \d+ ms", "", name): name for name in args.variants}
    for name in kinds.values():
        measure(name, training, 1, "")  # traces what it needs, and warms up

    twice = {args.variants[0], args.against or args.variants[0]}
    names = [(name, 0) for name in args.variants]
    names += [(name, 1) for name in args.variants if name in twice]
    rows = []
    rounds = 1 if data.quick() else args.rounds
    steps = 2 if data.quick() else args.steps
    for round_ in range(rounds):
        # Another order in each round, the same on all ranks.
        order = np.random.default_rng(round_).permutation(len(names))
        for at in order:
            variant, again = names[at]
            rate = measure(variant, training, steps, "")
            rows.append({
                "round": round_, "place": len(rows), "variant": variant,
                "again": again, "value": rate, "unit": "images/s",
            })
            if rank == 0:
                print(f"round {round_ + 1}  {variant}: {rate:.0f} images/s",
                      flush=True)
    for index, variant in enumerate(args.traced):
        file = records.folder() / f"timeline-{index}.json"
        measure(variant, training, max(4, steps), str(file))

    first = args.variants[0]
    # Distributed: one record, not one from each rank
    if rank == 0:
        records.write(
            lab="05_horovod",
            variant="tune",
            ranks=ranks,
            batch_per_rank=args.batch_per_rank,
            metrics={
                "runs": compared_with(first, "", rows, args.variants),
                "against": compared_with(args.against, first, rows,
                                         args.variants),
            },
        )


def compared_with(baseline: str, left_out: str, rows: list, order: list):
    """The rows of one comparison: in each round its baseline first."""
    kept = [
        row for row in rows
        if row["variant"] != left_out
        and (row["variant"] == baseline or not row["again"])
    ]
    order = [baseline, *order]
    return sorted(kept, key=lambda row: (
        row["round"], order.index(row["variant"]), row["again"]
    ))


if __name__ == "__main__":
    main(settings())
