"""How long does one message take? Two ranks send it to and fro.

    mpirun -n 2 python -m mpi4py solutions/03_spmd/pingpong.py

It takes two ranks and about 2 seconds. You will see a line for each size of
the message: half the time of a way there and back, the median of many.
"""

import argparse

import numpy as np

# Distributed: this import also starts MPI
from mpi4py import MPI

from scaleout import data, records
from scaleout.kit.flags import Parser, one_or_more, refuse, zero_or_more


def settings() -> argparse.Namespace:
    """What was typed behind the name of this file."""
    parser = Parser(__doc__)
    parser.add_argument("--sizes", type=zero_or_more, nargs="+",
                        default=[4**k for k in range(13)],
                        help="sizes of the message, in bytes "
                        "(1 4 16 ... 16777216)")
    parser.add_argument("--repeats", type=one_or_more,
                        default=5 if data.quick() else 60,
                        help="timed round trips of each size (60)")
    parser.add_argument("--warmup", type=zero_or_more,
                        default=2 if data.quick() else 20,
                        help="round trips before those, not timed (20)")
    args = parser.parse_args()
    if MPI.COMM_WORLD.Get_size() != 2:
        refuse("Ping-pong takes two ranks: mpirun -n 2")
    return args


def there_and_back(comm: MPI.Comm, x: np.ndarray) -> None:
    """Rank 0 sends x to rank 1, which sends it back."""
    if comm.rank == 0:
        # Distributed: there
        comm.Send(x, 1)
        # Distributed: and back
        comm.Recv(x, 1)
    else:
        # Distributed: what rank 0 sent
        comm.Recv(x, 0)
        # Distributed: sent back
        comm.Send(x, 0)


def measure(comm: MPI.Comm, size: int, round_trips: int) -> list[float]:
    """The seconds of one way, for each round trip."""
    x = np.zeros(size, np.uint8)  # (bytes,)
    seconds = []
    for _ in range(round_trips):
        # Distributed: both are ready
        comm.Barrier()
        start = MPI.Wtime()
        there_and_back(comm, x)
        seconds.append((MPI.Wtime() - start) / 2)
    return seconds


def main(args: argparse.Namespace) -> None:
    comm = MPI.COMM_WORLD
    for size in args.sizes:
        seconds = measure(comm, size, args.warmup + args.repeats)
        timed_s = seconds[args.warmup :]
        # Distributed: the rank that sees both ways reports
        if comm.rank == 0:
            records.write(
                lab="03_spmd",
                variant="ping-pong",
                ranks=2,
                warmup_steps=args.warmup,
                step_s=timed_s,
                metrics={"bytes": size},
            )
            us = 1e6 * np.median(timed_s)
            print(f"{size:>10,} bytes  {us:10.2f} us", flush=True)


if __name__ == "__main__":
    main(settings())
