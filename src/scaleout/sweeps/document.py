"""What `sweep --json` writes."""

from collections.abc import Sequence
from typing import Annotated, Literal

import msgspec

from ..base.paths import show
from ..base.words import veiled
from ..measuring.document import Document, Stamp, about, argv, number
from ..measuring.row import POINT, RATED, Swept
from .points import Point
from .result import Result
from .rows import point_of


class Spot(msgspec.Struct, frozen=True, kw_only=True):
    """A setting, and what its jobs gave."""

    ranks: int
    threads: Annotated[int | None, about("null: unset")]
    env: dict[str, str | None]
    values: Annotated[list[float], about("the figure of each job that gave one")]
    status: Annotated[str, about("ok, copies, failed, timeout or no figure: the worst of its jobs")]
    reason: str


class Searched(Document, frozen=True, kw_only=True):
    """A sweep."""

    kind: Literal["sweep"] = "sweep"
    default: Annotated[Spot | None, about("one rank with nothing set, first and last")]
    points: list[Spot]
    best: Annotated[int | None, about("its place in points; null: the default, or none")]
    ratio: Annotated[float | None, about("of the best to the default")]
    drift: Annotated[float | None, about("of the default, from the first to the last, a share")]
    summary: str


def document(result: Result, metric: str, typed: list[str]) -> Searched:
    """Make the document of a sweep."""
    points: dict[Point, list[Swept]] = {}
    for row in result.rows:
        if row.role == POINT:
            points.setdefault(point_of(row), []).append(row)
    spots = list(points)
    best = point_of(result.of_best[0]) if result.of_best else None
    own = [row for row in result.rows if row.role != POINT]
    is_point = bool(result.of_best) and result.of_best[0].role == POINT
    return Searched(
        argv=argv(typed),
        folder=show(result.folder) if result.folder else "",
        metric=metric,
        lower=result.lower,
        unit=result.unit,
        stamp=Stamp.here(),
        default=_spot(own) if own else None,
        points=[_spot(jobs) for jobs in points.values()],
        best=spots.index(best) if is_point and best else None,
        ratio=None if result.best is None else number(float(result.best.ratio)),
        drift=number(float(result.drift)),
        summary=result.summary,
    )


def _spot(jobs: Sequence[Swept]) -> Spot:
    bad = next((row for row in jobs if row.status not in RATED), jobs[0])
    return Spot(
        ranks=jobs[0].ranks,
        threads=jobs[0].threads,
        env=veiled(jobs[0].env),
        values=[row.value for row in jobs if row.status in RATED and row.value is not None],
        status=bad.status,
        reason=bad.reason,
    )
