"""Measure the two limits of this machine: how fast it multiplies and how fast it copies."""

import functools
from collections.abc import Callable

from ..base.settings import quick
from .facts import usable_cores

SIDE = 2048  # of the two matrices
COPIED_MIB = 256


def _rates(work: Callable[[], object], amount: float) -> tuple[float, list[float]]:
    """Time some calls, after one untimed call to warm up: median and single rates (amount / 1e9 per
    second)."""
    from statistics import median
    from time import perf_counter

    rates = []
    work()
    for _ in range(3 if quick() else 5):
        start = perf_counter()
        work()
        rates.append(amount / (perf_counter() - start) / 1e9)
    return median(rates), rates


def sgemm_gflops() -> tuple[float, list[float]]:
    """Measure how fast NumPy multiplies two float32 matrices of 2048 x 2048 on all usable cores.

    Returns
    -------
    median : float
        GFLOP/s: 2 n**3 operations for each product.
    rates : list of float
        Of the single products, 5 (3 with SCALEOUT_QUICK), after an untimed one.
    """
    import numpy as np
    from threadpoolctl import threadpool_limits

    left, right = np.random.default_rng(0).random((2, SIDE, SIDE), dtype=np.float32)
    result = np.empty_like(left)
    with threadpool_limits(usable_cores(), user_api="blas"):
        return _rates(lambda: np.matmul(left, right, out=result), 2 * SIDE**3)


def copy_gb_per_s() -> tuple[float, list[float]]:
    """Measure how fast NumPy copies a float32 array of 256 MiB, with a thread for each usable core.

    Returns
    -------
    median : float
        GB/s: what is read and what is written both count, as in STREAM's Copy (McCalpin, 1995); in
        units of 10**9 bytes.
    rates : list of float
        Of the single copies, 5 (3 with SCALEOUT_QUICK), after an untimed one.
    """
    from concurrent.futures import ThreadPoolExecutor

    import numpy as np

    threads = usable_cores()
    source = np.ones(COPIED_MIB * 2**18, dtype=np.float32)
    target = np.empty_like(source)
    parts = np.array_split(target, threads), np.array_split(source, threads)
    with ThreadPoolExecutor(threads) as pool:
        # NumPy lets go of the interpreter lock while it copies, so the threads do work side by
        # side.
        return _rates(lambda: list(pool.map(np.copyto, *parts)), 2 * source.nbytes)


@functools.cache
def speed_limits() -> dict[str, float]:
    """Return both limits, measured once in a process: GFLOP/s of float32, and GB/s."""
    return {
        "multiplies float32 (GFLOP/s)": round(sgemm_gflops()[0], 1),
        "copies memory (GB/s)": round(copy_gb_per_s()[0], 1),
    }
