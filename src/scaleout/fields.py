"""The fields of a record: what may stand in each, and what is wrong with one that is damaged."""

import math
from collections.abc import Callable, Mapping
from typing import Any


def _text(value: object) -> bool:
    return isinstance(value, str)


def _whole(value: object) -> bool:
    return type(value) is int


def _count(value: object) -> bool:
    return type(value) is int and value >= 1


def _number(value: object) -> bool:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return False
    return math.isfinite(value)


def _numbers(value: object) -> bool:
    return isinstance(value, list) and all(map(_number, value))


def _table(value: object) -> bool:
    return isinstance(value, dict)


def _unknown_or(fits: Callable[[object], bool]) -> Callable[[object], bool]:
    return lambda value: value is None or fits(value)


# Each field, and whether a value may stand in it.
FIELDS: dict[str, Callable[[object], bool]] = {
    "schema": _whole,
    "run_id": _text,
    "utc": _text,
    "lab": _text,
    "variant": _text,
    "ranks": _count,
    "nodes": _count,
    "threads_per_rank": _unknown_or(_count),
    "batch_per_rank": _unknown_or(_whole),
    "batch_global": _unknown_or(_whole),
    "warmup_steps": _whole,
    "step_s": _numbers,
    "rate": _unknown_or(_number),
    "rate_unit": _text,
    "metrics": _table,
    "seed": _unknown_or(_whole),
    "host": _text,
    "cpu": _text,
    "cores": _count,
    "mpi": _unknown_or(_text),
    "versions": _table,
    "commit": _unknown_or(_text),
    "dirty": _unknown_or(lambda value: isinstance(value, bool)),
}

MOST_NAMES = 1000  # of a record's fields and metrics together


def wrong(row: Mapping[str, Any]) -> str:
    """What is wrong with a record, in a few words; "" when it is whole."""
    for name, fits in FIELDS.items():
        if name not in row:
            return f"{name} is missing"
        if not fits(row[name]):
            return f"{name} has another type, or is out of range"
    return "" if len(row) + len(row["metrics"]) < MOST_NAMES else "it has too many fields"
