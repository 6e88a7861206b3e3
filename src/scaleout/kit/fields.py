"""The fields of a record: what may stand in each, and what is wrong with one that is damaged."""

import math
from collections.abc import Mapping
from typing import Any

_NOTHING = type(None)
# Each field, and the types of what may stand in it.
FIELDS: dict[str, tuple[type, ...]] = {
    "schema": (int,),
    "run_id": (str,),
    "utc": (str,),
    "lab": (str,),
    "variant": (str,),
    "ranks": (int,),
    "nodes": (int,),
    "threads_per_rank": (int, _NOTHING),
    "batch_per_rank": (int, _NOTHING),
    "batch_global": (int, _NOTHING),
    "warmup_steps": (int,),
    "step_s": (list,),
    "rate": (int, float, _NOTHING),
    "rate_unit": (str,),
    "metrics": (dict,),
    "seed": (int, _NOTHING),
    "host": (str,),
    "cpu": (str,),
    "cores": (int,),
    "mpi": (str, _NOTHING),
    "versions": (dict,),
    "commit": (str, _NOTHING),
    "dirty": (bool, _NOTHING),
}
COUNTS = ("ranks", "nodes", "threads_per_rank", "cores")  # at least 1


def wrong(row: Mapping[str, Any]) -> str:
    """Say what is wrong with a record, in a few words; "" when it is whole."""
    for name, types in FIELDS.items():
        if name not in row:
            return f"{name} is missing"
        value = row[name]
        numbers = value if name == "step_s" and isinstance(value, list) else [value]
        finite = all(type(n) is not float or math.isfinite(n) for n in numbers)
        seconds = name != "step_s" or all(type(n) in (int, float) for n in numbers)
        count = name not in COUNTS or value is None or type(value) is int and value >= 1
        if type(value) not in types or not (finite and seconds and count):
            return f"{name} has another type, or is out of range"
    return ""
