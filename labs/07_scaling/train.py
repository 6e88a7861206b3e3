"""A training that may be killed at any moment, and goes on.

    mpirun -n 2 python -m mpi4py labs/07_scaling/train.py --every 50

The ranks fit a matrix, and rank 0 keeps checkpoints. End it with Ctrl-C, start
it again, and you will see it go on from the newest. In the end it says how
often a checkpoint would be worth its time. It takes some seconds.
"""

import argparse
import signal
from math import sqrt
from pathlib import Path
from time import perf_counter

import numpy as np

# Distributed: this import also starts MPI
from mpi4py import MPI

from scaleout import data, records
from scaleout.kit.flags import Parser, one_or_more

ROWS = 512
WIDTH = 256
FAILURES_S = 3 * 3600  # between two of them: Llama 3 on 16,384 GPUs, 2024


def settings() -> argparse.Namespace:
    """What was typed behind the name of this file."""
    parser = Parser(__doc__)
    parser.add_argument("--steps", type=one_or_more, default=2000,
                        help="until the end, all starts together (2000)")
    parser.add_argument("--every", type=one_or_more, default=100,
                        help="steps between checkpoints (100)")
    parser.add_argument("--folder", default="kept",
                        help="of the checkpoints (kept)")
    return parser.parse_args()


def young_s(save_s: float, failures_s: float) -> float:
    """Seconds between checkpoints that lose the least time (Young, 1974)."""
    return sqrt(2 * save_s * failures_s)


def main(args: argparse.Namespace) -> None:
    # Distributed: everybody who takes part
    comm = MPI.COMM_WORLD

    # Slurm can warn before the time is up. The step at hand is done first.
    warnings = []
    signal.signal(signal.SIGUSR1, lambda *_: warnings.append("USR1"))

    folder = Path(args.folder)
    w = np.zeros((WIDTH, WIDTH), np.float32)
    velocity = np.zeros_like(w)
    done = np.zeros(1, int)  # steps
    # TODO 6: a training that was killed and goes on must end with the same
    # weights as one that was not. What must its checkpoints hold?  (1 line)
    state = [w, done]
    # Distributed: one rank reads, and all go on from the same
    if comm.rank == 0:
        records.take_checkpoint(folder, state)
    for array in state:
        comm.Bcast(array)
    begin = step = int(done[0])
    # Distributed: one report, not one from each rank
    if comm.rank == 0:
        print(f"{comm.size} ranks, from step {step}", flush=True)

    # Distributed: each rank trains on its part of each batch
    mine = data.shard(ROWS, comm.rank, comm.size)
    step_s = []
    save_s = []
    warned = False
    while step < args.steps and not warned:
        start = perf_counter()
        # The same batch for the same step, however often it is started
        batch = np.random.default_rng(step).random((ROWS, WIDTH), np.float32)
        x = batch[mine] - 0.5  # (rows_local, WIDTH)
        gradient = x.T @ (x @ w - x) / ROWS
        # Distributed: the gradient of all rows
        comm.Allreduce(MPI.IN_PLACE, gradient)
        # In place, as `state` holds these arrays
        velocity *= 0.9
        velocity -= gradient
        w += velocity
        step += 1
        done[0] = step
        step_s.append(perf_counter() - start)

        # Distributed: when one is warned, all stop after the same step
        warned = comm.allreduce(bool(warnings), op=MPI.LOR)
        if warned or step % args.every == 0 or step == args.steps:
            start = perf_counter()
            # Distributed: all have the same weights, so one keeps them
            if comm.rank == 0:
                records.keep_checkpoint(folder, state, step)
                print(f"saved: step {step}", flush=True)
            save_s.append(perf_counter() - start)
    # The warning of this rank may still come, and would end it in MPI_Finalize
    signal.signal(signal.SIGUSR1, signal.SIG_IGN)

    # Distributed: one record of all ranks
    if comm.rank == 0 and save_s:
        median_s = float(np.median(save_s))
        interval_s = young_s(median_s, FAILURES_S)
        print(f"A save took {1e3 * median_s:.3g} ms, a step "
              f"{1e3 * np.median(step_s):.3g} ms. With a failure every 3 "
              f"hours, save every {interval_s:.3g} s.", flush=True)
        weights = records.digest([w])
        print(f"stopped after step {step}, weights {weights}", flush=True)
        records.write(
            lab="07_scaling", variant="train", ranks=comm.size,
            step_s=step_s, metrics={"save_s": median_s, "begin": begin,
                                    "step": step, "weights": weights})


if __name__ == "__main__":
    main(settings())
