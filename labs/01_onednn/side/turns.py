"""Several kinds of the same training step, one after another in one job.

    mpirun -n 3 python -m mpi4py labs/01_onednn/side/turns.py \
        --kinds onednn onednn onednn+eager

There is a rank for each kind, here the first kind twice: what these two
differ by is the noise. A kind is one of runme.py's --kernels; +fused gives it
the fused batch normalisation, and +eager takes tf.function away. "torch" is
PyTorch's step, with +channels_first or +compiled. All ranks build their
network at once. Then each has a turn with all cores, while the others sleep.
You will see images/s of each turn, after about 15 seconds; with --network
resnet50 it takes a minute.
"""

import argparse
import subprocess
import sys
import time
from pathlib import Path

# Distributed: this import also starts MPI
from mpi4py import MPI

# runme.py lies above.
sys.path.append(str(Path(__file__).parents[1]))

from runme import NETWORKS, batches, prepare

from scaleout import data, records
from scaleout.kit.flags import Parser, one_or_more, refuse, zero_or_more
from scaleout.kit.waiting import sleep_until_all_are_here


def settings() -> argparse.Namespace:
    """What was typed behind the name of this file."""
    parser = Parser(__doc__)
    parser.add_argument("--kinds", nargs="+", required=True,
                        help="what each rank does")
    parser.add_argument("--network", choices=NETWORKS, default="cnn",
                        help="what to train (cnn)")
    parser.add_argument("--batch", type=one_or_more, default=16,
                        help="images in a step (16)")
    parser.add_argument("--warmup", type=zero_or_more, default=5,
                        help="steps at the start of a turn, not timed (5)")
    parser.add_argument("--steps", type=one_or_more, default=50,
                        help="steps of a turn that are timed (50)")
    parser.add_argument("--torch", default="",
                        help="the Python that has PyTorch")
    args = parser.parse_args()
    ranks = MPI.COMM_WORLD.Get_size()
    if ranks != len(args.kinds):
        refuse(f"This script takes a rank for each of --kinds, not {ranks}: "
               f"mpirun -n {len(args.kinds)}")
    if data.quick():
        args.steps = min(args.steps, 5)
    return args


def tensorflow_step(args: argparse.Namespace, kind: str):
    """A step as a function."""
    kernels, *options = kind.split("+")
    args.kernels = kernels
    args.batch_norm = "fused" if "fused" in options else "keras"
    args.batch_per_rank = args.batch
    _, train_step = prepare(args, rank=0)
    if "eager" in options:
        # The function that tf.function was given.
        train_step = train_step.python_function
    # Always the same batch, so that making it takes no time of a step.
    x, y = next(batches(args, rank=0, ranks=1))
    # A number is there only when the step is done.
    return lambda: float(train_step(x, y))


def torch_step(args: argparse.Namespace, kind: str):
    """The same by another Python, which does a step for each line it gets."""
    script = Path(__file__).with_name("torch_steps.py")
    command = [args.torch, str(script), args.network, str(args.batch), kind]
    child = subprocess.Popen(command, text=True, stdin=subprocess.PIPE,
                             stdout=subprocess.PIPE)

    def step() -> float:
        child.stdin.write("step\n")
        child.stdin.flush()
        return float(child.stdout.readline())

    return step


def a_turn(step, args: argparse.Namespace) -> list[float]:
    """The seconds of the steps that are timed."""
    # While others had their turns, they took the caches.
    for _ in range(args.warmup):
        step()
    step_s = []
    for _ in range(args.steps):
        start = time.perf_counter()
        step()
        step_s.append(time.perf_counter() - start)
    return step_s


def main(args: argparse.Namespace) -> None:
    # Distributed: a rank for each kind
    comm = MPI.COMM_WORLD
    kind = args.kinds[comm.rank]
    build = torch_step if kind.startswith("torch") else tensorflow_step
    step = build(args, kind)
    # The first step builds the graph: all ranks do that at once.
    step()
    for turn in range(comm.size):
        # Distributed: one rank at a time computes, the others sleep
        sleep_until_all_are_here(comm)
        if turn == comm.rank:
            step_s = a_turn(step, args)
    # Distributed: nobody goes home while another computes
    sleep_until_all_are_here(comm)
    # Distributed: the steps of all ranks
    turns = records.gather(step_s)
    # Distributed: one report, not one from each rank
    if comm.rank == 0:
        for kind, step_s in zip(args.kinds, turns, strict=True):
            report(args, kind, step_s)


def report(args: argparse.Namespace, kind: str, step_s: list[float]) -> None:
    """A line and a record for each rank."""
    rate = args.batch * len(step_s) / sum(step_s)
    records.write(
        lab="01_onednn", variant=kind, batch_per_rank=args.batch,
        step_s=step_s, rate=rate, rate_unit="images/s",
        metrics={"network": args.network})
    print(f"{args.network}, {kind}: {rate:.1f} images/s", flush=True)


if __name__ == "__main__":
    main(settings())
