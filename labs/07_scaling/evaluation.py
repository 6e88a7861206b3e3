"""Evaluation every few steps: by rank 0 while the others wait, or shared out. The stall that images/s do not show.

    mpirun -n 2 python -m mpi4py labs/07_scaling/evaluation.py --by rank0

You will see how long the ranks computed, evaluated and waited. It takes 3 seconds.
"""

import argparse
from time import perf_counter as now

import numpy as np
from mpi4py import MPI  # Distributed: this import also starts MPI

from scaleout import data, records


def main(args: argparse.Namespace) -> list[tuple[str, float, float]]:
    comm, log = MPI.COMM_WORLD, []  # log: what this rank did, from when to when
    x, test = data.points(slice(0, 1024), 512) - 0.5, data.points(slice(0, args.rows), 512) - 0.5
    w, total = np.zeros((512, 512), np.float32), 0.0
    comm.Barrier()  # Distributed: all clocks begin together
    begin = now()
    for step in range(1, args.steps + 1):
        start = now()
        gradient = x.T @ (x - x @ w) / len(x)  # (512, 512)
        middle = now()
        comm.Allreduce(MPI.IN_PLACE, gradient)  # Distributed: nobody goes on before all are here
        w += gradient / comm.size
        log += [("step", start, middle), ("wait", middle, now())]
        if step % args.every == 0:
            start = now()
            whole = slice(0, args.rows if comm.rank == 0 else 0)
            mine = whole if args.by == "rank0" else data.shard(args.rows, comm.rank, comm.size)
            error = float(((test[mine] - test[mine] @ w) ** 2).sum())
            middle = now()
            total = comm.allreduce(error)  # Distributed: one number from each rank
            log += [("evaluate", start, middle), ("wait", middle, now())]
    logs = comm.gather([(what, a - begin, b - begin) for what, a, b in log], root=0)  # Distributed: to rank 0
    if comm.rank == 0:  # Distributed: one report
        lost = 1 - sum(b - a for log in logs for what, a, b in log if what != "wait") / sum(log[-1][2] for log in logs)
        took_s, loss = now() - begin, total / args.rows
        print(f"evaluation by {args.by}: {took_s:.2f} s, {100 * lost:.0f} % of it waited, loss {loss:.3f}", flush=True)
        metrics = {"logs": logs, "waited": lost, "loss": loss, "every": args.every}
        records.write(lab="07_scaling", variant=args.by, ranks=comm.size, step_s=[logs[0][-1][2]], metrics=metrics)
    return log


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--by", choices=["rank0", "all"], default="rank0", help="who evaluates")
    parser.add_argument("--steps", type=int, default=20, help="training steps (count)")
    parser.add_argument("--every", type=int, default=5, help="steps between evaluations (count)")
    parser.add_argument("--rows", type=int, default=4096, help="of the test set (count)")
    main(parser.parse_args())
