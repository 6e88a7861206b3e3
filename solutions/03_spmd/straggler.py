"""One worker is slow. What does it cost when all wait for each other, and what when nobody waits?

    mpirun -n 4 python -m mpi4py solutions/03_spmd/straggler.py --slow 4 --wait-for 1

You will see how long so many gradients take, how stale they were, and the loss they lead to. It takes about 3 seconds.
Rank 0 keeps the weights of a softmax regression on handwritten digits, the others are its workers. The gradients are
real; so that all ranks can share two cores, each is stretched to --step-ms by sleeping, the last rank's --slow times.
"""

import argparse
import time

import numpy as np
from mpi4py import MPI  # Distributed: this import also starts MPI

from scaleout import data, records

GO, STOP = 1, 2  # tags of what rank 0 sends


def gradient(w: np.ndarray, x: np.ndarray, y: np.ndarray) -> tuple[float, np.ndarray]:
    """Mean cross-entropy of weights (785, 10) on images x (n, 785) with labels y (n,), and its gradient (785, 10)."""
    scores = x @ w  # (n, 10)
    p = np.exp(scores - scores.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    loss = -np.log(p[np.arange(len(y)), y] + 1e-12).mean()
    p[np.arange(len(y)), y] -= 1
    return float(loss), (x.T @ p / len(y)).astype(np.float32)


def serve(comm: MPI.Comm, w: np.ndarray, wait_for: int, rate: float, gradients: int) -> tuple[list, list]:
    """Rank 0: collects as many gradients as it waits for, updates the weights, and sends them to those it heard from.

    Returns (seconds, gradients used, weights) now and then, and the staleness of each gradient in updates.
    """
    begin, g, status = MPI.Wtime(), np.empty_like(w), MPI.Status()
    used, update, sent_at, waiting, total = 0, 0, [0] * comm.size, [], np.zeros_like(w)
    history, stale, running = [(0.0, 0, w.copy())], [], comm.size - 1
    for worker in range(1, comm.size):
        comm.Send(w, worker, tag=GO)  # Distributed: the start
    while running:
        comm.Recv(g, MPI.ANY_SOURCE, status=status)  # Distributed: from whoever is ready first
        waiting.append(status.source)
        if used < gradients:
            used, total = used + 1, total + g
            stale.append(update - sent_at[status.source])
        if used == gradients or len(waiting) == wait_for:
            w -= rate * total / len(waiting)  # the mean gradient
            update, total[:] = update + 1, 0
            history.append((MPI.Wtime() - begin, used, w.copy()))
            for worker in waiting:
                comm.Send(w, worker, tag=STOP if used == gradients else GO)  # Distributed: fresh weights
                sent_at[worker], running = update, running - (used == gradients)
            waiting = []
    return history[:: max(1, len(history) // 50)] + history[-1:], stale


def work(comm: MPI.Comm, w: np.ndarray, step) -> list[list[float]]:
    """Every other rank: takes weights, gives a gradient, until told to stop. Returns when it computed and waited."""
    begin, status, log = MPI.Wtime(), MPI.Status(), []
    comm.Recv(w, 0, status=status)  # Distributed: (785, 10)
    while status.tag == GO:
        start, g = MPI.Wtime(), step(w)
        ready = MPI.Wtime()
        comm.Send(g, 0)  # Distributed: (785, 10)
        comm.Recv(w, 0, status=status)  # Distributed: the next weights, or the end
        log.append([comm.rank, start - begin, ready - begin, MPI.Wtime() - begin])
    return log


def main(args: argparse.Namespace) -> float:
    comm = MPI.COMM_WORLD  # Distributed: one server and its workers
    rank, workers, log = comm.rank, comm.size - 1, []
    x, y, x_test, y_test = data.digits()
    x, x_test = (np.pad(a.reshape(len(a), 784), ((0, 0), (0, 1)), constant_values=1) for a in (x, x_test))  # (n, 785)
    w = np.zeros((785, 10), np.float32)
    comm.Barrier()  # Distributed: all begin together
    if rank == 0:  # Distributed: one rank serves, the others work
        history, stale = serve(comm, w, min(args.wait_for or workers, workers), args.rate, args.gradients)
    else:
        mine = data.shard(len(x), rank - 1, workers)  # Distributed: each worker has images of its own
        draw, x, y = np.random.default_rng([args.seed, rank]), x[mine], y[mine]
        least_s = args.step_ms / 1e3 * (args.slow if rank == workers else 1)  # Distributed: the last rank is slow

        def step(w: np.ndarray) -> np.ndarray:
            start, rows = MPI.Wtime(), draw.integers(len(x), size=args.batch_per_rank)
            g = gradient(w, x[rows], y[rows])[1]  # (785, 10)
            time.sleep(max(0.0, start + least_s - MPI.Wtime()))
            return g

        log = work(comm, w, step)
    timeline = sum(comm.gather(log) or [], [])  # Distributed: rank 0 gets what each has written down
    if rank > 0:
        return 0.0
    curve = [[seconds, used, gradient(then, x_test, y_test)[0]] for seconds, used, then in history]
    took, loss = curve[-1][0], float(np.mean([row[2] for row in curve[-len(curve) // 4 :]]))
    assert len(stale) == args.gradients and w.shape == (785, 10)
    metrics = {"slow": args.slow, "wait_for": args.wait_for or workers, "learning_rate": args.rate, "loss": loss}
    metrics |= {"seconds": took, "stale_updates": stale, "curve": curve, "timeline": timeline}
    rate = {"batch_per_rank": args.batch_per_rank, "rate": args.gradients / took, "rate_unit": "gradients/s"}
    records.write(lab="03_spmd", variant="straggler", ranks=comm.size, seed=args.seed, metrics=metrics, **rate)
    print(f"{args.gradients} gradients in {took:.2f} s, {np.mean(stale):.1f} updates old; loss {loss:.3f}", flush=True)
    return loss


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--wait-for", type=int, default=0, help="gradients that an update waits for (count; 0: all)")
    parser.add_argument("--slow", type=float, default=1, help="how many times longer the last rank takes (factor)")
    parser.add_argument("--gradients", type=int, default=300 if data.quick() else 600, help="to use in all (count)")
    parser.add_argument("--batch-per-rank", type=int, default=32, help="images in a gradient (count)")
    parser.add_argument("--rate", type=float, default=0.5, help="learning rate (step along the mean gradient)")
    parser.add_argument("--step-ms", type=float, default=5, help="time that a gradient takes (milliseconds)")
    parser.add_argument("--seed", type=int, default=0, help="of the choice of images (number)")
    args = parser.parse_args()
    if MPI.COMM_WORLD.size < 2 or min(args.wait_for, args.gradients - 1, args.batch_per_rank - 1) < 0:
        parser.error("rank 0 needs a worker (mpirun -n 2 or more), and the counts are 1 or more.")
    main(args)
