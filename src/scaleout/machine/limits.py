"""The two limits of this machine, measured: how fast it multiplies and how fast it copies."""

from collections.abc import Callable

from ..settings import quick
from .facts import usable_cores

SIDE = 2048  # of the two matrices
COPIED_MIB = 256


def _rates(work: Callable[[], object], amount: float) -> tuple[float, list[float]]:
    """Median and single rates (amount / 1e9 per second) of timed calls, after one untimed call to
    warm up."""
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
    """Multiplies two float32 matrices with NumPy, after one untimed time to warm up."""
    import numpy as np
    from threadpoolctl import threadpool_limits

    left, right = np.random.default_rng(0).random((2, SIDE, SIDE), dtype=np.float32)
    result = np.empty_like(left)
    with threadpool_limits(usable_cores(), user_api="blas"):
        return _rates(lambda: np.matmul(left, right, out=result), 2 * SIDE**3)


def copy_gb_per_s() -> tuple[float, list[float]]:
    """Copies a float32 array with NumPy, after one untimed time to warm up."""
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
