"""The lines of a sweep's points.jsonl: what each holds, which of them count, and what is wrong with one."""

import math
from collections.abc import Iterable, Mapping
from typing import Any

from ..base.jsonlines import Row
from .points import Point

FIRST, POINT, LAST = "default, first", "point", "default, last"
COPIES = "copies"  # the status of a job whose ranks never talked: its rate is that of one copy
RATED = ("ok", COPIES)
Key = tuple[str, Point, int]


def point_of(row: Mapping[str, Any]) -> Point:
    """Read the point of a line of points.jsonl."""
    return Point(row["ranks"], row["threads"], tuple(row["env"].items()))


def latest(rows: Iterable[Row]) -> dict[Key, Row]:
    """Keep the lines that count, in order: of several of the same job the last."""
    found: dict[Key, Row] = {}
    for row in rows:
        put(found, row)
    return found


def put(found: dict[Key, Row], row: Row) -> None:
    """Add a line.

    A default that was measured last is not the last any more once a point comes after it.
    """
    key = (row["role"], point_of(row), row["repeat"])
    found.pop(key, None)
    if row["role"] == POINT:
        for old in [old for old in found if old[0] == LAST]:
            del found[old]
    found[key] = row


def wrong(row: Row) -> str:
    """Say what is wrong with a line of a points.jsonl, in a few words; "" when it is whole."""
    env = row.get("env")
    known = isinstance(env, dict) and all(v is None or isinstance(v, str) for v in env.values())
    threads = row.get("threads")  # None in the default
    whole = (row.get("ranks"), 1 if threads is None else threads, row.get("cores", 1))
    if not known or not all(type(value) is int and value > 0 for value in whole):
        return "its setting is missing"
    repeat = row.get("repeat")
    if row.get("role") not in (FIRST, POINT, LAST) or type(repeat) is not int or repeat < 0:
        return "its place in the sweep is missing"
    numbers = [row.get("wall_s"), row.get("others", 0.0)]
    numbers += [row.get("rate")] if row.get("status") in RATED else []
    if not all(isinstance(n, (int, float)) and math.isfinite(n) and n >= 0 for n in numbers):
        return "a figure is missing"
    names = ("unit", "reason", "cpu", "command", "metric", "doubt", "utc", "run_id")
    texts = [row.get("status"), *(row.get(name, "") for name in names)]
    return "" if all(isinstance(text, str) for text in texts) else "a word is missing"
