"""One training step on more and more ranks: where does its time go?

    mpirun -n 2 python -m mpi4py labs/07_scaling/runme.py --mode strong

Each rank computes the gradients of its rows, layer by layer, and all ranks
add them up. You will see the time of a step and of its parts, and what the
formula of the ring says of the exchange. It takes 4 seconds.
"""

import argparse
from time import perf_counter

import numpy as np

# Distributed: this import also starts MPI
from mpi4py import MPI

from scaleout import data, records
from scaleout.kit.flags import Parser, one_or_more, zero_or_more


def settings() -> argparse.Namespace:
    """What was typed behind the name of this file."""
    parser = Parser(__doc__)
    parser.add_argument("--mode", choices=["strong", "weak"], default="strong",
                        help="share one batch, or give one to each (strong)")
    parser.add_argument("--batch", type=one_or_more, default=1024,
                        help="rows of the batch, or of each rank's (1024)")
    parser.add_argument("--width", type=one_or_more, default=1024,
                        help="of a layer; gradient: width x width (1024)")
    parser.add_argument("--layers", type=one_or_more, default=4,
                        help="gradients to add up (4)")
    parser.add_argument("--steps", type=one_or_more, default=20,
                        help="timed steps (20)")
    parser.add_argument("--warmup", type=zero_or_more, default=3,
                        help="steps before those (3)")
    parser.add_argument("--blocking", action="store_true",
                        help="Allreduce, which waits, after each layer")
    parser.add_argument("--one", type=float, default=0.0,
                        help="the step of one rank alone, in seconds (0)")
    args = parser.parse_args()
    if data.quick():
        args.steps = min(args.steps, 5)
    return args


def ring_s(n: float, ranks: int, alpha: float, beta: float) -> float:
    """Seconds that it takes a ring of ranks to add up n bytes.

    A message of m bytes takes alpha + beta m seconds.
    """
    # TODO 1: ranks - 1 messages bring the sums together, and as many bring
    # them to all. Each message is one block of the n bytes.  (1 line)
    return 0.0


def my_rows(mode: str, batch: int, rank: int, ranks: int) -> slice:
    """The rows of this rank.

    Strong scaling shares one batch out, weak scaling gives each rank a batch
    of its own.
    """
    # TODO 2: strong: the part of the batch that is this rank's. Weak: `batch`
    # rows, those after the rows of the ranks before.  (3 lines)
    return slice(0, batch)


def neighbours_s(comm: MPI.Intracomm, n: int, repeats: int = 10) -> float:
    """Seconds until n bytes have come from the left, the best of some.

    As many go to the right at the same time.
    """
    give = np.zeros(n, np.uint8)
    take = np.zeros(n, np.uint8)
    right = (comm.rank + 1) % comm.size
    left = (comm.rank - 1) % comm.size
    best = np.inf
    for _ in range(repeats):
        # Distributed: all begin together
        comm.Barrier()
        start = perf_counter()
        # Distributed: one message of the ring, on all ranks at once
        comm.Sendrecv(give, right, recvbuf=take, source=left)
        best = min(best, perf_counter() - start)
    # Distributed: the slowest pair holds up the ring
    return comm.allreduce(best, op=MPI.MAX)


def step(comm: MPI.Intracomm, x: np.ndarray, error: np.ndarray, rows: int,
         layers: int) -> tuple[list[np.ndarray], list[tuple], int]:
    """The gradient of each layer, what was done when, and the sums begun.

    x, error: (rows_local, width). A gradient is (width, width). Every layer
    has the same one here; what counts is its time.
    """
    gradients = []
    sums = []
    log = []
    for _ in range(layers):
        start = perf_counter()
        gradients.append(x.T @ error / rows)  # (width, width)
        middle = perf_counter()
        # TODO 3: in place of the line below, which waits: start to add up
        # this gradient over all ranks, keep what you get in `sums`, and go on
        # to the next layer meanwhile.  (1 line)
        # Distributed: returns when the sum is here
        comm.Allreduce(MPI.IN_PLACE, gradients[-1])
        log.append(("compute", start, middle))
        log.append(("exchange", middle, perf_counter()))
    # Sums that have begun and that nobody has waited for yet.
    begun = [request for request in sums if request != MPI.REQUEST_NULL]
    start = perf_counter()
    # Distributed: the sums must have come before the weights change
    MPI.Request.Waitall(sums)
    log.append(("exchange", start, perf_counter()))
    return gradients, log, len(begun)


def step_that_waits(comm: MPI.Intracomm, x: np.ndarray, error: np.ndarray,
                    rows: int, layers: int
                    ) -> tuple[list[np.ndarray], list[tuple], int]:
    """The same step, which has each sum before it computes the next layer."""
    gradients = []
    log = []
    for layer in range(layers):
        start = perf_counter()
        gradients.append(x.T @ error / rows)  # (width, width)
        middle = perf_counter()
        # Distributed: returns when the sum is here
        comm.Allreduce(MPI.IN_PLACE, gradients[layer])
        log.append(("compute", start, middle))
        log.append(("exchange", middle, perf_counter()))
    return gradients, log, 0


def seconds_of(what: str, log: list[tuple]) -> float:
    """How long a step spent on it: compute or exchange."""
    return sum(stop - start for did, start, stop in log if did == what)


def main(args: argparse.Namespace) -> None:
    # Distributed: everybody who takes part
    comm = MPI.COMM_WORLD
    # Distributed: which copy of the program this is
    rank = comm.Get_rank()
    # Distributed: how many copies there are
    ranks = comm.Get_size()

    mine = my_rows(args.mode, args.batch, rank, ranks)
    whole = args.batch
    if args.mode == "weak":
        whole = args.batch * ranks
    x = data.points(mine, args.width, seed=0) - 0.5  # (rows_local, width)
    error = data.points(mine, args.width, seed=1) - 0.5

    one_step = step_that_waits if args.blocking else step
    books = records.Books("07_scaling", rank, ranks, warmup=args.warmup)
    logs = []
    begin = perf_counter()
    for _ in range(args.warmup + args.steps):
        # Distributed: all begin together
        comm.Barrier()
        with books.step(work=len(x)):
            gradients, log, begun = one_step(comm, x, error, whole,
                                             args.layers)
        # Distributed: nobody's gradients go before all have read them
        comm.allreduce(begun)
        logs.append([(what, a - begin, b - begin) for what, a, b in log])
    assert gradients[0].shape == (args.width, args.width)

    # The messages of this machine: alpha + beta m seconds for m bytes.
    block = gradients[0].nbytes
    alpha = neighbours_s(comm, 8)
    beta = max(neighbours_s(comm, block) - alpha, 0.0) / block
    by_formula_s = ring_s(args.layers * block, ranks, alpha, beta)

    # Distributed: a job is as fast as its slowest rank
    median_s = float(np.median(books.slowest_s()))
    # TODO 4: what share of the ranks' time was useful work? args.one is the
    # step of one rank alone, in seconds.  (3 lines)
    efficiency = 1.0

    timed = logs[args.warmup:]
    compute_s = [seconds_of("compute", log) for log in timed]
    exchange_s = [seconds_of("exchange", log) for log in timed]
    books.note(first=mine.start, stop=mine.stop, log=logs[-1], begun=begun,
               sum=float(gradients[-1].sum()),
               compute_s=float(np.median(compute_s)),
               exchange_s=float(np.median(exchange_s)))
    # Distributed: one record of all ranks
    record = books.write(
        variant=args.mode, batch_per_rank=len(x), mode=args.mode, rows=whole,
        layers=args.layers, bytes=args.layers * block, alpha_s=alpha,
        beta_s=beta, ring_s=by_formula_s, efficiency=efficiency,
        one_s=args.one)
    # Distributed: one report, not one from each rank
    if rank == 0:
        shares = record["metrics"]["shares"]
        compute_ms = 1e3 * max(share["compute_s"] for share in shares)
        exchange_ms = 1e3 * max(share["exchange_s"] for share in shares)
        print(f"{args.mode}, {ranks} rank(s): step {1e3 * median_s:.1f} ms, "
              f"compute {compute_ms:.1f} ms, exchange {exchange_ms:.1f} ms "
              f"(ring {1e3 * by_formula_s:.1f} ms), "
              f"efficiency {efficiency:.2f}", flush=True)


if __name__ == "__main__":
    main(settings())
