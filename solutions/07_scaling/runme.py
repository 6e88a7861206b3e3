"""One training step on more and more ranks: where does its time go?

    mpirun -n 2 python -m mpi4py solutions/07_scaling/runme.py --mode strong

You will see the time of a step, of its parts, and of the exchange by the ring's formula. It takes 4 seconds.
"""

import argparse
from time import perf_counter as now

import numpy as np
from mpi4py import MPI  # Distributed: this import also starts MPI

from scaleout import data, records

Parts = tuple[list[np.ndarray], list[tuple[str, float, float]]]


def ring_s(n: float, ranks: int, alpha: float, beta: float) -> float:
    """Seconds that adding up n bytes takes in a ring, where a message of m bytes takes alpha + beta m seconds."""
    # TODO 1: ranks - 1 messages bring the sums together, as many bring them to all; each is a block.  (1 line)
    # BEGIN SOLUTION
    return 2 * (ranks - 1) * (alpha + beta * n / ranks)
    # STARTER: return 0.0
    # END SOLUTION


def my_rows(mode: str, batch: int, rank: int, ranks: int) -> slice:
    """The rows of this rank: strong scaling shares one batch out, weak scaling gives each rank a batch of its own."""
    # TODO 2: strong: its part of the batch. weak: `batch` rows, those after the rows of the ranks before.  (3 lines)
    # BEGIN SOLUTION
    if mode == "strong":
        return data.shard(batch, rank, ranks)  # Distributed: the same work, shared out
    return slice(rank * batch, (rank + 1) * batch)  # Distributed: as much work on each rank
    # STARTER: return slice(0, batch)
    # END SOLUTION


def neighbours_s(comm: MPI.Intracomm, n: int, repeats: int = 10) -> float:
    """Seconds until n bytes have come from the left, while as many go to the right; the best of some."""
    give, take, best = np.zeros(n, np.uint8), np.zeros(n, np.uint8), np.inf
    for _ in range(repeats):
        comm.Barrier()  # Distributed: all begin together
        start = now()
        comm.Sendrecv(give, (comm.rank + 1) % comm.size, 0, take, (comm.rank - 1) % comm.size)  # Distributed: the ring
        best = min(best, now() - start)
    return comm.allreduce(best, op=MPI.MAX)  # Distributed: the slowest pair holds up the ring


def step(comm: MPI.Intracomm, x: np.ndarray, error: np.ndarray, rows: int, layers: int) -> Parts:
    """The gradient of each layer, the last layer first, (width, width) each; and what was done when.

    x, error: (rows_local, width). Every layer has the same gradient here; what counts is its time.
    """
    gradients, sums, log = [], [], []
    for _ in range(layers):
        start = now()
        gradients.append(x.T @ error / rows)  # (width, width)
        middle = now()
        # TODO 3: start to add up this gradient over all ranks, and go on to the next layer meanwhile.  (1 line)
        # BEGIN SOLUTION
        sums.append(comm.Iallreduce(MPI.IN_PLACE, gradients[-1]))  # Distributed: returns at once
        # STARTER: comm.Allreduce(MPI.IN_PLACE, gradients[-1])  # Distributed: returns when the sum is here
        # END SOLUTION
        log += [("compute", start, middle), ("exchange", middle, now())]
    start = now()
    MPI.Request.Waitall(sums)  # Distributed: the sums that have begun must have come before the weights change
    return gradients, [*log, ("exchange", start, now())]


def main(args: argparse.Namespace) -> float:
    comm = MPI.COMM_WORLD  # Distributed: everybody who takes part
    rank, ranks = comm.Get_rank(), comm.Get_size()  # Distributed: which copy of the program this is, of how many
    mine = my_rows(args.mode, args.batch, rank, ranks)
    whole = args.batch if args.mode == "strong" else args.batch * ranks
    x, error = (data.points(mine, args.width, seed) - 0.5 for seed in (0, 1))  # (rows_local, width)

    begin, step_s, logs = now(), [], []
    for _ in range(args.warmup + args.steps):
        comm.Barrier()  # Distributed: all begin together
        start = now()
        gradients, log = step(comm, x, error, whole, args.layers)
        took = now() - start
        step_s.append(comm.allreduce(took, op=MPI.MAX))  # Distributed: the slowest rank counts
        logs.append([(what, a - begin, b - begin) for what, a, b in log])
    assert gradients[0].shape == (args.width, args.width)

    n = args.layers * gradients[0].nbytes
    alpha, large = (neighbours_s(comm, size) for size in (8, gradients[0].nbytes))
    beta = max(large - alpha, 0.0) / gradients[0].nbytes
    timed, median_s = step_s[args.warmup :], float(np.median(step_s[args.warmup :]))
    # TODO 4: the part of all ranks' time that was worth it, from args.one, one rank's step in seconds.  (1 line)
    # BEGIN SOLUTION
    efficiency = args.one / median_s / (ranks if args.mode == "strong" else 1)
    # STARTER: efficiency = 1.0
    # END SOLUTION
    seconds = {w: [sum(b - a for what, a, b in log if what == w) for log in logs] for w in ("compute", "exchange")}
    share = {"rank": rank, "first": mine.start, "stop": mine.stop, "log": logs[-1], "sum": float(gradients[-1].sum())}
    share |= {f"{what}_s": float(np.median(times[args.warmup :])) for what, times in seconds.items()}
    share |= {"spread_s": float(np.std(seconds["compute"][args.warmup :]))}
    shares = comm.gather(share, root=0)  # Distributed: rank 0 gets a list, the others None
    if rank == 0:  # Distributed: one report, one record
        by_formula_s = ring_s(n, ranks, alpha, beta)
        waits_s, compute_s = (max(share[f"{what}_s"] for share in shares) for what in ("exchange", "compute"))
        said = f"compute {1e3 * compute_s:.1f} ms, exchange {1e3 * waits_s:.1f} ms (ring {1e3 * by_formula_s:.1f} ms)"
        print(f"{args.mode}, {ranks} rank(s): step {1e3 * median_s:.1f} ms, {said}, worth {efficiency:.2f}", flush=True)
        metrics = {"bytes": n, "alpha_s": alpha, "beta_s": beta, "ring_s": by_formula_s, "efficiency": efficiency}
        metrics |= {"mode": args.mode, "rows": whole, "layers": args.layers, "one_s": args.one, "shares": shares}
        records.write(lab="07_scaling", variant=args.mode, ranks=ranks, batch_per_rank=mine.stop - mine.start,
                      warmup_steps=args.warmup, step_s=timed, rate=whole / median_s, rate_unit="rows/s",
                      metrics=metrics)  # fmt: skip
    return median_s


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--mode", choices=["strong", "weak"], default="strong", help="share the batch, or give it to all"
    )
    parser.add_argument("--batch", type=int, default=1024, help="rows of the batch, or of each rank's (count)")
    parser.add_argument("--width", type=int, default=1024, help="of a layer, whose gradient has its square (count)")
    parser.add_argument("--layers", type=int, default=4, help="gradients to add up (count)")
    parser.add_argument("--steps", type=int, default=5 if data.quick() else 20, help="timed steps (count)")
    parser.add_argument("--warmup", type=int, default=3, help="steps before those (count)")
    parser.add_argument("--one", type=float, default=0.0, help="the step of one rank alone, for the efficiency (s)")
    args = parser.parse_args()
    if min(args.batch, args.width, args.layers, args.steps, args.warmup + 1) < 1:
        parser.error("--batch, --width, --layers and --steps begin at 1, --warmup at 0.")
    main(args)
