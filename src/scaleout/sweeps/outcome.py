"""What a sweep found: a row a point, the best and the default, the drift between."""

import html
import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import ScaleoutError
from ..jobs.site import Site
from ..paths import show
from ..words import rounded, sort_key
from . import written
from .journal import (
    COPIES,
    FIRST,
    LAST,
    OTHERS_FIRST,
    OTHERS_LAST,
    POINT,
    description,
    load,
    point_of,
)
from .points import Point
from .summary import summary

if TYPE_CHECKING:
    import pandas as pd


Row = Mapping[str, Any]
SINGLE = ("role", "repeat", "rate", "status", "reason", "wall_s", "utc", "run_id")


class Result:
    """A sweep, as far as it was measured.

    Parameters
    ----------
    rows : iterable of mapping
        A row a job, as journal.py keeps them.
    lower : bool
        The figure is a time, so that less is better.
    folder : Path, optional
        The sweep's.

    Attributes
    ----------
    frame : pandas.DataFrame
        A row a point: ranks, threads, a column for each variable, then `rate` (the median of its
        jobs; none where one failed), `spread` (between the quartiles), `ratio` (times as good as
        the default), `repeats`, `wall_s` (seconds a job, median), `status`, `reason`. A point whose
        status is "copies" ran as ranks that never talked: its rate is that of one copy, and it is
        never the best.
    runs : pandas.DataFrame
        A row a job, with its `role`.
    default, best : pandas.Series
        The same fields, of the default and of the best point; best is None where all failed, and
        the default itself where nothing beats it.
    published : pandas.Series or None
        The same of the setting that others recommend, where it was measured.
    drift : float
        By how much the last default differs from the first, as a share of it.
    """

    def __init__(
        self, rows: Iterable[Row], lower: bool = False, folder: Path | None = None
    ) -> None:
        import pandas as pd

        kept = list(rows)
        self.lower, self.folder = lower, folder
        self.unit = next((row["unit"] for row in kept if row.get("unit")), "")
        of_default = [row for row in kept if row["role"] in (FIRST, LAST)]
        self._others = [row for row in kept if row["role"] in (OTHERS_FIRST, OTHERS_LAST)]
        points: dict[Point, list[Row]] = {}
        for row in kept:
            if row["role"] == POINT:
                points.setdefault(point_of(row), []).append(row)
        self._of_default = of_default
        base = _median(of_default)
        groups = [of_default, *(points[point] for point in sorted(points, key=_by_size))]
        lines = [pd.Series(self._line(jobs, base)) for jobs in groups]
        self.default: pd.Series = lines[0]
        self.frame = pd.DataFrame([line.to_dict() for line in lines[1:]])
        self.runs = pd.DataFrame(
            [point_of(row).settings | {k: row.get(k) for k in SINGLE} for row in kept]
        )
        self.published: pd.Series | None = None
        if self._others:
            self.published = pd.Series(self._line(self._others, base))
        self.drift = _median(of_default, LAST) / _median(of_default, FIRST) - 1
        pairs = zip(lines, groups, strict=True)
        found = [(line, jobs) for line, jobs in pairs if line.status == "ok"]
        self._jobs: Sequence[Row] = ()
        self.best: pd.Series | None = None
        if found:
            self.best, self._jobs = (min if lower else max)(found, key=lambda pair: pair[0].rate)

    def _line(self, jobs: Sequence[Row], base: float) -> dict[str, Any]:
        if not jobs:
            nothing = dict.fromkeys(("rate", "spread", "ratio"), math.nan)
            return {**nothing, "repeats": 0, "status": "missing", "reason": "it was not measured"}
        bad = [row for row in jobs if row["status"] != "ok"]
        copies = bool(bad) and all(row["status"] == COPIES for row in jobs)
        rates = [row["rate"] for row in jobs if row["status"] == ("ok", COPIES)[copies]]
        rate = float(statistics.median(rates)) if copies or not bad else math.nan
        quartiles = (
            statistics.quantiles(rates, n=4, method="inclusive")
            if len(rates) > 1
            else [math.nan] * 3
        )
        return {
            **point_of(jobs[0]).settings,
            "rate": rate,
            "spread": math.nan if math.isnan(rate) else quartiles[2] - quartiles[0],
            "ratio": math.nan if bad else base / rate if self.lower else rate / base,
            "repeats": len(rates),
            "wall_s": statistics.median(row["wall_s"] for row in jobs),
            "status": bad[0]["status"] if bad else "ok",
            "reason": bad[0]["reason"] if bad else "",
        }

    @property
    def axes(self) -> list[str]:
        """The columns of `frame` that hold settings: ranks, threads, the variables."""
        return (
            list(self.frame.columns[: self.frame.columns.get_loc("rate")])
            if len(self.frame)
            else []
        )

    @property
    def table(self) -> "pd.DataFrame":
        """Two lines: the default and the best, their settings, rates, spreads, and how many times
        the default."""
        import pandas as pd

        names = [*self.axes, "rate", "spread", "ratio", "repeats"]
        lines = {"default": self.default, "published": self.published, "best": self.best}
        return pd.DataFrame({k: v.reindex(names) for k, v in lines.items() if v is not None}).T[
            names
        ]

    @property
    def summary(self) -> str:
        """What was found, in a sentence or two, with what speaks against it."""
        return summary(self, self._jobs, self._of_default, self._others)

    def __repr__(self) -> str:
        return f"{self._shown().to_string()}\n{self.summary}" if len(self.frame) else self.summary

    def _repr_html_(self) -> str:
        table = self._shown().to_html() if len(self.frame) else ""
        return f"{table}<p>{html.escape(self.summary)}</p>"

    def _shown(self) -> "pd.DataFrame":
        return self.table.map(lambda cell: cell if not isinstance(cell, float) else rounded(cell))

    def write(self, command: Sequence[str], site: Site) -> list[Path]:
        """Writes what a person goes on with into the sweep's folder: heat maps, a table, and the
        best point as best.sh and best.sbatch.

        Parameters
        ----------
        command : sequence of str
            Of a rank, as it was given to the sweep.
        site : Site
            Where it ran.

        Returns
        -------
        list of Path
            What was written: nothing where all failed.
        """
        return [] if self.best is None else written.write(self, self._jobs[-1], command, site)


def _median(jobs: Iterable[Row], role: str = "") -> float:
    """The median rate of the jobs that gave one, of one role or of all; not a number when there is
    none."""
    rates = [job["rate"] for job in jobs if job["status"] == "ok" and role in ("", job["role"])]
    return statistics.median(rates) if rates else math.nan


def _by_size(point: Point) -> list[tuple[float, str]]:
    """Numbers by size, and before words."""
    return [sort_key(value) for value in point.settings.values()]


def read(path: Path | str) -> Result:
    """A sweep that was measured before: its folder in results/sweep/, or a points.jsonl from
    anywhere."""
    place = Path(path)
    file = place / "points.jsonl" if place.is_dir() else place
    if not file.is_file():
        raise ScaleoutError(
            f"There is no sweep in {show(place)}: give its folder in results/sweep/."
        )
    metric = description(file.parent).get("metric")
    lower = isinstance(metric, dict) and metric.get("lower") is True
    return Result(load(file, print).values(), lower, file.parent)
