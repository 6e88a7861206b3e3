"""How long does one message take? Two ranks send it to and fro.

    mpirun -n 2 python -m mpi4py labs/03_spmd/pingpong.py

You will see a line for each size: half the time of a way there and back, the median of many. It takes about 2 seconds.
"""

import argparse

import numpy as np
from mpi4py import MPI  # Distributed: this import also starts MPI

from scaleout import data, records


def there_and_back(comm: MPI.Comm, x: np.ndarray) -> None:
    """Rank 0 sends x to rank 1, which sends it back."""
    if comm.rank == 0:
        comm.Send(x, 1)  # Distributed: there
        comm.Recv(x, 1)  # Distributed: and back
    else:
        comm.Recv(x, 0)  # Distributed: what rank 0 sent
        comm.Send(x, 0)  # Distributed: sent back


def main(args: argparse.Namespace) -> dict[int, list[float]]:
    comm, found = MPI.COMM_WORLD, {}
    for size in args.sizes:
        x, times = np.zeros(size, np.uint8), []  # (bytes,)
        for _ in range(args.warmup + args.repeats):
            comm.Barrier()  # Distributed: both are ready
            start = MPI.Wtime()
            there_and_back(comm, x)
            times.append((MPI.Wtime() - start) / 2)
        found[size] = times[args.warmup :]
        assert x.shape == (size,) and len(found[size]) == args.repeats
        if comm.rank == 0:  # Distributed: the rank that sees both ways reports
            about = {"warmup_steps": args.warmup, "step_s": found[size], "metrics": {"bytes": size}}
            records.write(lab="03_spmd", variant="ping-pong", ranks=2, **about)
            print(f"{size:>10,} bytes  {1e6 * np.median(found[size]):10.2f} us", flush=True)
    return found


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    powers = [4**k for k in range(13)]
    parser.add_argument("--sizes", type=int, nargs="+", default=powers, help="sizes of the message (bytes)")
    parser.add_argument("--repeats", type=int, default=20 if data.quick() else 60, help="timed round trips (count)")
    parser.add_argument("--warmup", type=int, default=20, help="round trips before those (count)")
    args = parser.parse_args()
    if MPI.COMM_WORLD.size != 2 or min(*args.sizes, args.warmup, args.repeats - 1) < 0:
        parser.error("it takes two ranks (mpirun -n 2), sizes of 0 or more, and --repeats of 1 or more.")
    main(args)
