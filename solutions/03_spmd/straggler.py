"""One worker is slow. What does it cost if all wait, and if nobody waits?

    mpirun -n 4 python -m mpi4py solutions/03_spmd/straggler.py --slow 4

Rank 0 serves, all others work: here 3 workers, of which the last takes 4 times
as long. You will see how long so many gradients take, how stale they were, and
the loss that they lead to. It takes about 5 seconds; add --wait-for 1, and
nobody waits.

Rank 0 keeps the weights of a softmax regression on handwritten digits. The
gradients are real; but so that all ranks can share two cores, a worker sleeps
until --step-ms have passed, the last one --slow times as long.
"""

import argparse
import math
import time
from collections.abc import Callable

import numpy as np

# Distributed: this import also starts MPI
from mpi4py import MPI

from scaleout import data, records
from scaleout.kit.flags import (
    Parser,
    above_zero,
    one_or_more,
    refuse,
    zero_or_more,
)

# The tags of what rank 0 sends: weights to go on with, or the end.
GO = 1
STOP = 2


def settings() -> argparse.Namespace:
    """What was typed behind the name of this file."""
    parser = Parser(__doc__)
    parser.add_argument("--wait-for", type=zero_or_more, default=0,
                        help="gradients that an update waits for "
                        "(0: one from each worker)")
    parser.add_argument("--slow", type=above_zero, default=1.0,
                        help="how many times as long the last rank takes (1)")
    parser.add_argument("--gradients", type=one_or_more,
                        default=90 if data.quick() else 600,
                        help="gradients to use in all (600)")
    parser.add_argument("--batch-per-rank", type=one_or_more, default=32,
                        help="images in each gradient (32)")
    parser.add_argument("--rate", type=above_zero, default=0.5,
                        help="learning rate: step along the gradient (0.5)")
    parser.add_argument("--step-ms", type=above_zero, default=5.0,
                        help="time a gradient takes, in milliseconds (5)")
    parser.add_argument("--seed", type=zero_or_more, default=0,
                        help="seed of the choice of images (0)")
    args = parser.parse_args()
    if MPI.COMM_WORLD.Get_size() < 2:
        refuse("Rank 0 needs a worker: mpirun -n 2 or more")
    return args


def softmax(scores: np.ndarray) -> np.ndarray:
    """Scores (n, 10) as probabilities (n, 10)."""
    e = np.exp(scores - scores.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def loss_of(w: np.ndarray, x: np.ndarray, y: np.ndarray) -> float:
    """The mean cross-entropy of weights w on images x with labels y."""
    p = softmax(x @ w)  # (n, 10)
    right = p[np.arange(len(y)), y]  # (n,)
    return float(-np.log(right + 1e-12).mean())


def gradient(w: np.ndarray, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The gradient of that loss by the weights."""
    p = softmax(x @ w)  # (n, 10)
    p[np.arange(len(y)), y] -= 1
    return (x.T @ p / len(y)).astype(np.float32)  # (785, 10)


def with_ones(x: np.ndarray) -> np.ndarray:
    """Images as rows, and a 1 behind each, so that w holds the bias too."""
    rows = x.reshape(len(x), 784)  # (n, 784)
    return np.pad(rows, ((0, 0), (0, 1)), constant_values=1)  # (n, 785)


def serve(comm: MPI.Comm, w: np.ndarray, wait_for: int, rate: float,
          gradients: int) -> tuple[list, list[int]]:
    """Rank 0: takes gradients, updates the weights, and sends them out.

    Returns (seconds, gradients used, weights) at about 50 moments, and how
    stale each gradient was: how many updates old.
    """
    begin = MPI.Wtime()
    status = MPI.Status()
    g = np.empty_like(w)  # (785, 10)
    total = np.zeros_like(w)  # (785, 10)
    waiting = []  # those who have given a gradient since the last update
    used = 0
    updates = 0
    sent_at = [0] * comm.size  # the update at which each got its weights
    history = [(0.0, 0, w.copy())]
    stale = []
    running = comm.size - 1

    for worker in range(1, comm.size):
        # Distributed: the start
        comm.Send(w, worker, tag=GO)
    while running:
        # Distributed: from whoever is ready first
        comm.Recv(g, MPI.ANY_SOURCE, status=status)
        waiting.append(status.source)
        if used < gradients:
            used += 1
            total += g
            stale.append(updates - sent_at[status.source])
        enough = used == gradients
        if not enough and len(waiting) < wait_for:
            continue

        w -= rate * total / len(waiting)  # the mean gradient
        total[:] = 0
        updates += 1
        history.append((MPI.Wtime() - begin, used, w.copy()))
        for worker in waiting:
            # Distributed: new weights, or the end
            comm.Send(w, worker, tag=STOP if enough else GO)
            sent_at[worker] = updates
        if enough:
            running -= len(waiting)
        waiting = []

    every = max(1, len(history) // 50)
    return history[::every] + history[-1:], stale


def work(comm: MPI.Comm, w: np.ndarray,
         step: Callable[[np.ndarray], np.ndarray]) -> list[list[float]]:
    """Every other rank: takes weights, gives a gradient, until told to stop.

    Returns its rank and three times for each gradient: when it began, when it
    was computed, and when the next weights had come.
    """
    begin = MPI.Wtime()
    status = MPI.Status()
    log = []
    # Distributed: the first weights, (785, 10)
    comm.Recv(w, 0, status=status)
    while status.tag == GO:
        start = MPI.Wtime()
        g = step(w)  # (785, 10)
        ready = MPI.Wtime()
        # Distributed: my gradient
        comm.Send(g, 0)
        # Distributed: the next weights, or the end
        comm.Recv(w, 0, status=status)
        end = MPI.Wtime()
        log.append([comm.rank, start - begin, ready - begin, end - begin])
    return log


def main(args: argparse.Namespace) -> None:
    # Distributed: one server and its workers
    comm = MPI.COMM_WORLD
    rank = comm.Get_rank()
    workers = comm.Get_size() - 1
    x, y, x_test, y_test = data.digits()
    x = with_ones(x)  # (n, 785)
    w = np.zeros((785, 10), np.float32)
    wait_for = min(args.wait_for or workers, workers)
    log = []

    # Distributed: all begin together
    comm.Barrier()
    # Distributed: one rank serves, the others work
    if rank == 0:
        history, stale = serve(comm, w, wait_for, args.rate, args.gradients)
    else:
        # Distributed: each worker has images of its own
        mine = data.shard(len(x), rank - 1, workers)
        x_mine = x[mine]  # (n / workers, 785)
        y_mine = y[mine]  # (n / workers,)
        rng = np.random.default_rng([args.seed, rank])
        # Distributed: the last rank is slow
        slow = args.slow if rank == workers else 1
        least_s = slow * args.step_ms / 1000

        def step(w: np.ndarray) -> np.ndarray:
            """A gradient on a random batch; sleeps until its time is up."""
            end = MPI.Wtime() + least_s
            rows = rng.integers(len(x_mine), size=args.batch_per_rank)
            g = gradient(w, x_mine[rows], y_mine[rows])
            time.sleep(max(0.0, end - MPI.Wtime()))
            return g

        log = work(comm, w, step)
    # Distributed: what each worker has written down
    found = records.gather({"log": log})
    # Distributed: one report, not one from each rank
    if rank == 0:
        timeline = [row for each in found for row in each["log"]]
        x_test = with_ones(x_test)  # (n_test, 785)
        curve = [
            [seconds, used, loss_of(then, x_test, y_test)]
            for seconds, used, then in history
        ]
        report(args, comm.Get_size(), curve, stale, timeline)


def report(args: argparse.Namespace, ranks: int, curve: list,
           stale: list[int], timeline: list) -> None:
    """One line and one record."""
    seconds = curve[-1][0]
    # The last quarter of the curve: a single moment would be chance.
    tail = curve[-math.ceil(len(curve) / 4) :]
    loss = float(np.mean([row[2] for row in tail]))
    records.write(
        lab="03_spmd",
        variant="straggler",
        ranks=ranks,
        seed=args.seed,
        batch_per_rank=args.batch_per_rank,
        rate=args.gradients / seconds,
        rate_unit="gradients/s",
        metrics={
            "slow": args.slow,
            "wait_for": args.wait_for or ranks - 1,
            "learning_rate": args.rate,
            "loss": loss,
            "seconds": seconds,
            "stale_updates": stale,
            "curve": curve,
            "timeline": timeline,
        },
    )
    print(f"{args.gradients} gradients in {seconds:.2f} s, "
          f"{np.mean(stale):.1f} updates old; loss {loss:.3f}", flush=True)


if __name__ == "__main__":
    main(settings())
