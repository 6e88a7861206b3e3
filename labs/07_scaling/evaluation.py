"""Evaluation every few steps: by rank 0 alone, or shared out.

    mpirun -n 2 python -m mpi4py labs/07_scaling/evaluation.py --by all

While rank 0 evaluates, the others wait: the stall that images/s do not show.
You will see how long the job took, and what part of it was spent waiting. It
takes 3 seconds.
"""

import argparse
from time import perf_counter

import numpy as np

# Distributed: this import also starts MPI
from mpi4py import MPI

from scaleout import data, records
from scaleout.flags import Parser, one_or_more

ROWS = 1024
WIDTH = 512


def settings() -> argparse.Namespace:
    """What was typed behind the name of this file."""
    parser = Parser(__doc__)
    parser.add_argument("--by", choices=["rank0", "all"], default="rank0",
                        help="who evaluates (rank0)")
    parser.add_argument("--steps", type=one_or_more, default=20,
                        help="training steps (20)")
    parser.add_argument("--every", type=one_or_more, default=5,
                        help="steps between evaluations (5)")
    parser.add_argument("--rows", type=one_or_more, default=4096,
                        help="rows of the test set (4096)")
    return parser.parse_args()


def lost(logs: list[list[tuple]]) -> float:
    """What part of all ranks' time was spent waiting."""
    used_s = 0.0
    for log in logs:
        for what, start, stop in log:
            if what != "wait":
                used_s += stop - start
    all_s = sum(log[-1][2] for log in logs)
    return 1 - used_s / all_s


def main(args: argparse.Namespace) -> list[tuple[str, float, float]]:
    # Distributed: everybody who takes part
    comm = MPI.COMM_WORLD
    rank = comm.Get_rank()
    ranks = comm.Get_size()
    x = data.points(slice(0, ROWS), WIDTH) - 0.5  # (ROWS, WIDTH)
    test = data.points(slice(0, args.rows), WIDTH) - 0.5  # (rows, WIDTH)
    w = np.zeros((WIDTH, WIDTH), np.float32)

    # Distributed: rank 0 evaluates, and all others wait for it
    mine = slice(0, args.rows if rank == 0 else 0)
    if args.by == "all":
        # Distributed: each rank evaluates its part of the test set
        mine = data.shard(args.rows, rank, ranks)

    log = []  # what this rank did, from when to when
    total = 0.0
    # Distributed: all clocks begin together
    comm.Barrier()
    begin = perf_counter()
    for step in range(1, args.steps + 1):
        start = perf_counter()
        gradient = x.T @ (x - x @ w) / len(x)  # (WIDTH, WIDTH)
        middle = perf_counter()
        # Distributed: nobody goes on before all are here
        comm.Allreduce(MPI.IN_PLACE, gradient)
        w += gradient / ranks
        log.append(("step", start, middle))
        log.append(("wait", middle, perf_counter()))
        if step % args.every == 0:
            start = perf_counter()
            error = float(((test[mine] - test[mine] @ w) ** 2).sum())
            middle = perf_counter()
            # Distributed: the error of all parts
            total = comm.allreduce(error)
            log.append(("evaluate", start, middle))
            log.append(("wait", middle, perf_counter()))

    since = [(what, a - begin, b - begin) for what, a, b in log]
    # Distributed: rank 0 gets a list, the others None
    logs = comm.gather(since, root=0)
    # Distributed: one report, not one from each rank
    if rank == 0:
        waited = lost(logs)
        loss = total / args.rows
        print(f"evaluation by {args.by}: {perf_counter() - begin:.2f} s, "
              f"{100 * waited:.0f} % of it waited, loss {loss:.3f}",
              flush=True)
        records.write(
            lab="07_scaling",
            variant=args.by,
            ranks=ranks,
            step_s=[logs[0][-1][2]],
            metrics={"logs": logs, "waited": waited, "loss": loss,
                     "every": args.every},
        )
    return log


if __name__ == "__main__":
    main(settings())
