"""What does a thread that waits cost the others?

    mpirun -n 2 python -m mpi4py solutions/02_threads/side/crowd.py

Each rank, here two, groups points by K-means of scikit-learn, whose threads
are OpenMP's. The copies know nothing of each other. You will see how many
iterations of K-means they do in a second, together, after about 5 seconds.
"""

import time

import numpy as np

# Distributed: this import also starts MPI
from mpi4py import MPI
from sklearn.cluster import KMeans

from scaleout import data, records
from scaleout.kit.flags import Parser, one_or_more

GROUPS = 16
ITERATIONS = 10  # of one fit


def settings():
    """What was typed behind the name of this file."""
    parser = Parser(__doc__)
    parser.add_argument("--points", type=one_or_more, default=10_000,
                        help="random points, of 3 numbers (10,000)")
    parser.add_argument("--seconds", type=one_or_more, default=2,
                        help="for which each rank computes (2)")
    args = parser.parse_args()
    if data.quick():
        args.seconds = 1
    return args


def main(args) -> None:
    # Distributed: everybody who takes part
    comm = MPI.COMM_WORLD
    rng = np.random.default_rng(0)
    points = rng.random((args.points, 3), np.float32)  # (points, 3)
    kmeans = KMeans(GROUPS, init=points[:GROUPS], n_init=1,
                    max_iter=ITERATIONS, tol=0)
    kmeans.fit(points)  # not timed: it starts the threads

    # Distributed: each copy is timed while the others work too
    comm.Barrier()
    done = 0
    cpu_start = time.process_time()
    start = time.perf_counter()
    while time.perf_counter() - start < args.seconds:
        done += kmeans.fit(points).n_iter_
    took_s = time.perf_counter() - start
    cpus_busy = (time.process_time() - cpu_start) / took_s

    # Distributed: the copies are independent, so their rates add up
    rate = comm.allreduce(done / took_s, op=MPI.SUM)
    cpus_busy = comm.allreduce(cpus_busy, op=MPI.SUM)
    # Distributed: one report, not one from each rank
    if comm.rank == 0:
        records.write(lab="02_threads", variant="crowd", ranks=comm.size,
                      rate=rate, rate_unit="iterations/s",
                      metrics={"cpus_busy": cpus_busy})
        print(f"{rate:,.0f} iterations/s, {cpus_busy:.2f} CPUs busy",
              flush=True)


if __name__ == "__main__":
    main(settings())
