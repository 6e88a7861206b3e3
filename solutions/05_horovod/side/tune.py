"""Settings of a training, measured in rounds, all in one job.

    mpirun -n 2 python -m mpi4py solutions/05_horovod/side/tune.py --rounds 3

TensorFlow is loaded once, and Horovod is started anew for each run, because it
reads its settings when it starts. You will see the images/s of all ranks
together, a line a run. A run takes 3 seconds, the start of the job 15.

A variant is a table of settings, see DEFAULTS. The numbers of its threads are
fixed when TensorFlow starts, so each pair has ranks of its own in the job, and
the others sleep meanwhile. What is trained stands in training.py; with
--lab 06_tuning it is the one of that folder.
"""

import argparse
import ast
import contextlib
import importlib
import os
import sys
from pathlib import Path

# Distributed: a rank that waits in vain says so, and then the job ends
os.environ.setdefault("HOROVOD_STALL_CHECK_TIME_SECONDS", "30")
os.environ.setdefault("HOROVOD_STALL_SHUTDOWN_TIME_SECONDS", "60")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "1")  # oneDNN, as in 01
import horovod.tensorflow as hvd
import numpy as np
import tensorflow as tf
from mpi4py import MPI

from scaleout import data, machine, records
from scaleout.kit.flags import Parser, one_or_more, refuse
from scaleout.kit.waiting import sleep_until_all_are_here

DEFAULTS = {
    "ranks": 2,
    "threads": 1,  # of a rank, for an operation (intra)
    "inter": 0,  # operations at a time; 0: as many as threads
    "bind": "core",  # each rank has cores of its own; "none": all use all
    "apart": False,  # the ranks do not talk, and need no Horovod
    "cycle_ms": 1,  # how often Horovod asks what there is to send
    "fp16": False,  # gradients are sent with half as many bits
    "bf16": False,  # oneDNN computes with half as many bits
    "evaluation": "shared",  # 06 and 12 only
    "evaluate_every": 10,  # steps, 06 only
    "input": "once",  # 12 only, as are the next ones
    "norm": "fused",
    "checkpoint": "rank 0",
}
FIRST = "{'1 rank': {'ranks': 1, 'apart': True}, '2 ranks': {}}"


def settings() -> argparse.Namespace:
    """What was typed behind the name of this file."""
    parser = Parser(__doc__)
    parser.add_argument("--lab", default="05_horovod",
                        help="whose training.py (05_horovod)")
    parser.add_argument("--variants", type=variants, default=FIRST,
                        help="a table of tables; the first is run twice a "
                        f"round ({FIRST})")
    parser.add_argument("--against", default="",
                        help="a variant that is run twice too, to compare "
                        "the others with")
    parser.add_argument("--rounds", type=one_or_more, default=5,
                        help="runs of each variant (5)")
    parser.add_argument("--steps", type=one_or_more, default=20,
                        help="of a run, at least (20)")
    batch = 8 if data.quick() else 64
    parser.add_argument("--batch-per-rank", type=one_or_more, default=batch,
                        help=f"images a step on each rank ({batch})")
    args = parser.parse_args()
    if data.quick():
        args.rounds = data.rounds(args.rounds)
        args.steps = 2
    return args


def variants(text: str) -> dict:
    """The value of --variants, each variant whole."""
    try:
        found = {name: {**DEFAULTS, **table}
                 for name, table in ast.literal_eval(text).items()}
    except (ValueError, SyntaxError, TypeError, AttributeError):
        raise argparse.ArgumentTypeError(
            "it takes a table of tables, such as {'a': {}, 'b': "
            "{'cycle_ms': 4}}"
        ) from None
    unknown = sorted({key for how in found.values() for key in how}
                     - set(DEFAULTS))
    if unknown:
        raise argparse.ArgumentTypeError(
            f"{', '.join(unknown)}: known are {', '.join(DEFAULTS)}"
        )
    if len(found) < 2:
        raise argparse.ArgumentTypeError("it takes two variants or more")
    return found


def threads_of(how: dict) -> tuple[int, int]:
    """Threads of a rank: for one operation, and operations at a time."""
    return how["threads"], how["inter"] or how["threads"]


def teams_of(found: dict) -> dict[tuple[int, int], range]:
    """For each pair of numbers of threads, the ranks that have so many."""
    teams = {}
    first = 0
    for threads in sorted({threads_of(how) for how in found.values()}):
        alike = [how for how in found.values() if threads_of(how) == threads]
        if len({how["ranks"] for how in alike if not how["apart"]}) > 1:
            # Seen: a world of 4 after one of 2 adds up unlike gradients.
            refuse("The variants that talk must all have as many ranks: "
                   "Horovod cannot be started again with others in one job.")
        most = max(how["ranks"] for how in alike)
        teams[threads] = range(first, first + most)
        first += most
    return teams


def cores() -> list[set[int]]:
    """The CPUs of each core that this job may use."""
    allowed = os.sched_getaffinity(0)
    found, _ = machine.read_cores(allowed=allowed)
    return [own for core in found if (own := allowed & set(core.cpus))]


def bind(cpus: set[int]) -> None:
    """Lets all threads of this process use these CPUs and no others."""
    for thread in os.listdir("/proc/self/task"):
        # A thread may have ended since it was listed
        with contextlib.suppress(ProcessLookupError):
            os.sched_setaffinity(int(thread), cpus)


def measure(how: dict, team: range, training, steps: int) -> float:
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
        if not how["apart"]:
            os.environ["HOROVOD_CYCLE_TIME"] = str(how["cycle_ms"])
            # Distributed: a world of those who take part
            hvd.init(comm=comm)
        comm.Barrier()
        step_s = training.run(how, steps)
        # Distributed: a step is as long as on the slowest rank
        step_s = comm.allreduce(step_s, op=MPI.MAX)
        if not how["apart"]:
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
    if args.against and args.against not in args.variants:
        refuse(f"{args.against!r} is none of the variants.")
    sys.path.insert(0, str(Path(__file__).resolve().parents[2] / args.lab))
    for (intra, inter), team in teams.items():
        if world.rank in team:
            tf.config.threading.set_intra_op_parallelism_threads(intra)
            tf.config.threading.set_inter_op_parallelism_threads(inter)
            lesson = importlib.import_module("training")
            training = lesson.Training(args.batch_per_rank, len(team))
    jobs = {
        name: (how, teams[threads_of(how)], training)
        for name, how in args.variants.items()
    }
    # Seen: the second time is still slow in an epoch of 12.
    for _ in range(1 if data.quick() else 2):
        for job in jobs.values():
            measure(*job, steps=1)  # builds its graphs, and warms up

    names = [*jobs]
    columns = [(name, 0) for name in names]
    columns += [(name, 1) for name in names
                if name in (names[0], args.against)]
    rows = []
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
        metrics = {
            "runs": compared_with(names[0], "", rows, names),
            "variants": args.variants,
        }
        if args.against:
            metrics["against"] = compared_with(args.against, names[0], rows,
                                               names)
        records.write(
            lab=args.lab,
            variant="tune",
            ranks=world.size,
            batch_per_rank=args.batch_per_rank,
            metrics=metrics,
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
