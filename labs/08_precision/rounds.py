"""Measuring in rounds inside one job, as `compare` does between jobs.

There is nothing to fill in here.
"""

import time
from collections.abc import Callable

from scaleout import data

SECONDS = 0.02 if data.quick() else 0.15  # that a measurement takes at least


def calls_per_s(work: Callable, seconds: float = SECONDS) -> float:
    """How often a second work() can be done, after one that is not timed."""
    work()
    calls = 0
    start = time.perf_counter()
    spent = 0.0
    while spent < seconds:
        work()
        calls += 1
        spent = time.perf_counter() - start
    return calls / spent


def in_rounds(variants: dict, rounds: int, unit: str,
              measure: Callable = calls_per_s) -> list[dict]:
    """Each variant once a round, and the first of them twice.

    variants: what `measure` takes, by name. Every second round runs backwards.
    Returns the rows that scaleout.Comparison is made from.
    """
    columns = [(name, 0) for name in variants]
    columns.insert(1, (columns[0][0], 1))
    rows = []
    for k in range(rounds):
        for name, again in columns if k % 2 == 0 else columns[::-1]:
            value = measure(variants[name])
            rows.append({"round": k, "place": len(rows), "variant": name,
                         "again": again, "value": value, "unit": unit})
    return rows
