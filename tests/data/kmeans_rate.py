"""A small real job to sweep over: every rank clusters its share of the same points with
scikit-learn's OpenMP K-means.

scaleout sweep -n 1,2,4 -t 1,2,4 --env OMP_WAIT_POLICY=active,passive --env
OMP_PROC_BIND=false,close --repeat 3 \
    --metric '([0-9.]+) Mrows/s' -- python kmeans_rate.py
"""

import time

import numpy as np
from mpi4py import MPI
from sklearn.cluster import KMeans

ROWS, COLORS, ITERATIONS, FITS = 240_000, 32, 12, 9
comm = MPI.COMM_WORLD
x = np.random.default_rng(comm.rank).random(
    (ROWS // comm.size, 8), dtype=np.float32
)  # (rows of a rank, 8)
step_s = []
for _ in range(FITS):
    comm.Barrier()
    begin = time.perf_counter()
    KMeans(COLORS, init=x[:COLORS], n_init=1, max_iter=ITERATIONS, tol=0).fit(x)
    step_s.append(
        comm.allreduce(time.perf_counter() - begin, op=MPI.MAX)
    )  # the slowest rank counts
if comm.rank == 0:
    # The quickest fit: on a machine with other work it says most about the settings.
    print(f"best of {FITS}: {ROWS * ITERATIONS / min(step_s) / 1e6:.3f} Mrows/s", flush=True)
