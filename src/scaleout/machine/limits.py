"""Measure the limits of this machine: how fast it multiplies and copies, and what its cores do together."""

import functools
from collections.abc import Callable
from dataclasses import dataclass

from ..base.settings import quick
from .facts import lost_s, usable_cores

SIDE = 2048  # of the two matrices
COPIED_MIB = 256
PACE_S = 0.4


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


@dataclass(frozen=True)
class Pace:
    """What each core does while all of them work, as shares.

    Attributes
    ----------
    cores : int
    kept : float
        Of the speed of one core alone, that of the slowest: the others wait for it.
    waited : float
        Of the time, in which it wanted to run and had no core.
    stolen, held : float
        Of the time, in which the host ran other virtual machines, and in which a control group's
        limit held us back.
    """

    cores: int
    kept: float
    waited: float
    stolen: float
    held: float


def pace() -> Pace:
    """Measure what each core does while all work, in some 0.8 s; memory plays no part in it."""
    from concurrent.futures import ThreadPoolExecutor
    from hashlib import pbkdf2_hmac
    from time import perf_counter, thread_time

    def work(_: int) -> tuple[float, float]:
        """Return how often a core did it in a second of its own, and its share of the time."""
        start, own, done = perf_counter(), thread_time(), 0
        while (took := perf_counter() - start) < PACE_S:
            pbkdf2_hmac("sha256", b"", b"", 2000)  # lets go of the interpreter's lock
            done += 1
        return done / (thread_time() - own), min(1.0, (thread_time() - own) / took)

    cores = usable_cores()
    alone, _ = work(0)
    before = lost_s()
    with ThreadPoolExecutor(cores) as pool:
        each = list(pool.map(work, range(cores)))
    stolen, held = (
        min(1.0, (now - then) / (cores * PACE_S))
        for now, then in zip(lost_s(), before, strict=True)
    )
    speed, share = min(each, key=lambda one: one[0] * one[1])
    return Pace(cores, min(1.0, speed * share / alone), 1 - share, stolen, held)
