"""The lines of a sweep's points.jsonl: which of them count, and the point that each measured."""

from collections.abc import Iterable

from ..measuring.row import LAST, POINT, Role, Swept
from .points import Point

Key = tuple[Role, Point, int]


def point_of(row: Swept) -> Point:
    """Read the point of a line of points.jsonl."""
    return Point(row.ranks, row.threads, tuple(row.env.items()))


def latest(rows: Iterable[Swept]) -> dict[Key, Swept]:
    """Keep the lines that count, in order: of several of the same job the last."""
    found: dict[Key, Swept] = {}
    for row in rows:
        put(found, row)
    return found


def put(found: dict[Key, Swept], row: Swept) -> None:
    """Add a line; once a point comes after it, the default that was measured last is left out."""
    key = (row.role, point_of(row), row.round)
    found.pop(key, None)
    if row.role == POINT:
        for old in [old for old in found if old[0] == LAST]:
            del found[old]
    found[key] = row
