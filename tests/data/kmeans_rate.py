"""A small real job to sweep over: every rank clusters its share of the same points with scikit-learn's OpenMP K-means.

scaleout sweep -n 1,2,4 -t 1,2,4 --env OMP_WAIT_POLICY=active,passive --env OMP_PROC_BIND=false,close --repeat 3 \
    --metric 'total rows/s: ([0-9.]+)' -- python kmeans_rate.py
"""

import time

import numpy as np
from mpi4py import MPI
from sklearn.cluster import KMeans

ROWS, COLORS, ITERATIONS = 960_000, 32, 12
comm = MPI.COMM_WORLD
x = np.random.default_rng(comm.rank).random((ROWS // comm.size, 8), dtype=np.float32)  # (rows of a rank, 8)
start = x[:COLORS].copy()
KMeans(COLORS, init=start, n_init=1, max_iter=1, tol=0).fit(x)  # warm-up: the threads start here
comm.Barrier()
begin = time.perf_counter()
KMeans(COLORS, init=start, n_init=1, max_iter=ITERATIONS, tol=0).fit(x)
slowest_s = comm.allreduce(time.perf_counter() - begin, op=MPI.MAX)
if comm.rank == 0:
    print(f"total rows/s: {ROWS * ITERATIONS / slowest_s:.0f}", flush=True)
