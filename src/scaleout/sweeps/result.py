"""What a sweep found: a row a point, the best and the default, in tables, sentences and scripts."""

import html
import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ..base.errors import ScaleoutError
from ..base.paths import show
from ..base.words import count, percent, rounded, sort_key
from ..comparisons.intervals import LEVEL, ROUNDS, paired, verdict
from ..measuring.asked import Sweeping
from ..measuring.journal import description, read_rows
from ..measuring.row import COPIES, FIRST, LAST, OK, POINT, Role, Swept
from .points import Point
from .rows import latest, point_of

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


BUSY = 0.1  # of the CPUs' time: as much, taken by others, is worth a sentence
# The columns of `runs`, and the fields of a row.
SINGLE = {
    **{"role": "role", "repeat": "round", "rate": "value", "others": "others", "status": "status"},
    **{"reason": "reason", "wall_s": "wall_s", "utc": "utc", "run_id": "run_id"},
}


class Result:
    """A sweep, as far as it was measured.

    Parameters
    ----------
    rows : iterable of Swept, or of mappings with its fields
        A row a job, as points.jsonl keeps them.
    lower : bool
        The figure is a time, so that less is better.
    folder : Path, optional
        The sweep's.

    Attributes
    ----------
    frame : pandas.DataFrame
        A row a point: ranks, threads, a column for each variable, then `rate` (the median of its
        jobs; none where one failed), `spread` (between the quartiles), `ratio` (times as good as
        the default), `repeats`, `others` (the largest share of the CPUs' time that others took
        meanwhile), `wall_s` (seconds a job, median), `status`, `reason`. A point whose status is
        "copies" ran as ranks that never talked: its rate is that of one copy, and it is never the
        best.
    runs : pandas.DataFrame
        A row a job, with its `role`.
    default, best : pandas.Series
        The same fields, of the default and of the best point; best is None where all failed, and
        the default itself where nothing beats it.
    drift : float
        By how much the last default differs from the first, as a share of it.
    rows, of_best : sequence of Swept
        All that was measured, and the rows of the best point.
    """

    def __init__(
        self,
        rows: Iterable[Swept | Mapping[str, object]],
        lower: bool = False,
        folder: Path | None = None,
    ) -> None:
        import pandas as pd

        kept = [row if isinstance(row, Swept) else Swept.of(row) for row in rows]
        self.lower, self.folder, self.rows = lower, folder, kept
        self.unit = next((row.unit for row in kept if row.unit), "")
        self._doubt = next((row.remark for row in kept if row.remark), "")
        self._ignored = {str(point_of(row)): row.ignored for row in kept if row.ignored}
        self._of_default = [row for row in kept if row.role != POINT]
        points: dict[Point, list[Swept]] = {}
        for row in kept:
            if row.role == POINT:
                points.setdefault(point_of(row), []).append(row)
        base = _median(self._of_default)
        by_size = sorted(points, key=lambda point: list(map(sort_key, point.settings.values())))
        groups = [self._of_default, *(points[point] for point in by_size)]
        lines = [pd.Series(self._line(jobs, base)) for jobs in groups]
        self.default: pd.Series = lines[0]
        self.frame = pd.DataFrame([line.to_dict() for line in lines[1:]])
        self.runs = pd.DataFrame(
            [
                {**point_of(row).settings, **{k: getattr(row, name) for k, name in SINGLE.items()}}
                for row in kept
            ]
        )
        self.drift = _median(self._of_default, LAST) / _median(self._of_default, FIRST) - 1
        pairs = zip(lines, groups, strict=True)
        found = [(line, jobs) for line, jobs in pairs if line.status == "ok"]
        self.of_best: Sequence[Swept] = ()
        self.best: pd.Series | None = None
        if found:
            self.best, self.of_best = (min if lower else max)(found, key=lambda pair: pair[0].rate)

    def _line(self, jobs: Sequence[Swept], base: float) -> dict[str, object]:
        if not jobs:
            nothing = dict.fromkeys(("rate", "spread", "ratio", "others"), math.nan)
            return {**nothing, "repeats": 0, "status": "missing", "reason": "it was not measured"}
        bad = [row for row in jobs if row.status != OK]
        copies = bool(bad) and all(row.status == COPIES for row in jobs)
        rates = _rates(jobs, COPIES if copies else OK)
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
            "others": max(row.others for row in jobs),
            "wall_s": statistics.median(row.wall_s for row in jobs),
            "status": bad[0].status if bad else "ok",
            "reason": bad[0].reason if bad else "",
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
        """Two lines: the default and the best, their settings, rates, spreads, how many times the
        default, and what others took of the CPUs' time meanwhile."""
        import pandas as pd

        names = [*self.axes, "rate", "spread", "ratio", "repeats", "others"]
        lines = {"default": self.default, "best": self.best}
        return pd.DataFrame({k: v.reindex(names) for k, v in lines.items() if v is not None}).T[
            names
        ]

    @property
    def summary(self) -> str:
        """What was found, in a few sentences, with what speaks against it."""
        if self.best is None:
            return "No point gave a figure; points.jsonl says why of each, and so does `frame`."
        finding = self._finding()
        if self._doubt:  # what may be read wrongly is no finding yet
            finding = (
                f"{self._doubt} If it is right as it was read, {finding[0].lower()}{finding[1:]}"
            )
        told = (finding, self._no_effect(), self._taken(), self._left_out())
        return " ".join(text for text in told if text)

    def _finding(self) -> str:
        """Say how the best compares with the default, and how sure that is."""
        assert self.best is not None
        unit = f" {self.unit}" if self.unit else ""
        points = count(len(self.frame), "point")
        if self.best is self.default:
            return f"None of {points} beats the default: {rounded(self.default.rate)}{unit}."
        text = f"The best of {points} gives {rounded(self.best.rate)}{unit}"
        if math.isnan(self.default.rate):
            return f"{text}; the default gives no figure ({self.default.reason})."
        text += f", {self.best.ratio:.2f} times the default's {rounded(self.default.rate)}."
        if interval := self._interval():
            return f"{text} {interval}"
        gap = abs(self.best.rate - self.default.rate)
        spreads = [s for s in (self.best.spread, self.default.spread) if not math.isnan(s)]
        if gap <= max(spreads, default=0.0):
            text += " That is no more than their spread: there is no difference to be seen here."
        elif abs(self.drift) * self.default.rate >= gap:
            text += (
                " That is no more than the default's own drift: measure again when the machine is "
                "quiet."
            )
        runs = "one run" if self.best.repeats == 1 else f"{self.best.repeats} runs"
        return (
            f"{text} It rests on {runs} of the best point: for an interval, add  --repeat {ROUNDS}."
        )

    def _interval(self) -> str:
        """Say in which interval the best's ratio to the default lies.

        It is "" with fewer than three repeats.
        """
        ends: dict[str, dict[int, float]] = {FIRST: {}, LAST: {}}
        for row in self._of_default:
            ends[row.role][row.round] = row.value or 0.0
        rates = {row.round: row.value or 0.0 for row in self.of_best}
        repeats = sorted(set(rates) & set(ends[FIRST]) & set(ends[LAST]))
        each = [(ends[FIRST][r], ends[LAST][r], rates[r]) for r in repeats]
        if len(each) < ROUNDS or not all(rate for row in each for rate in row):
            return ""
        speeds = [[1 / rate if self.lower else rate for rate in row] for row in each]
        points = len(self.frame)
        found = paired(
            [row[:2] for row in speeds], {"best": [row[2] for row in speeds]}, compared=points
        )
        ratio = found.ratios["best"]
        text = (
            f"The interval of that ratio ({100 * LEVEL:.0f} %, for the best of "
            f"{count(points, 'point')}): {ratio.low:.2f} to {ratio.high:.2f}"
        )
        if verdict(ratio, found.noise) == "faster":
            return f"{text}."
        return (
            f"{text}; the default alone varies by {100 * found.noise:.0f} %. That shows no gain:  "
            "scaleout compare  says more about the two."
        )

    def _taken(self) -> str:
        """Say what others took of the CPUs' time, where that was much."""
        shares = [share for share in self.runs.others.fillna(0.0) if share >= BUSY]
        if not shares:
            return ""
        return (
            f"Other programs took up to {percent(max(shares))} of the CPUs' time, during "
            f"{len(shares)} of {count(len(self.runs), 'job')}: measure again when the machine is quiet."
        )

    def _no_effect(self) -> str:
        """Say of which points a setting had no effect; "" for none."""
        if not self._ignored:
            return ""
        first, more = next(iter(self._ignored.items())), len(self._ignored) - 1
        others = f" The same goes for {count(more, 'other point')}." if more else ""
        return f"{first[0]}: {first[1]}.{others}"

    def _left_out(self) -> str:
        """Say which points were copies of one job; "" where there was none."""
        copies = int((self.frame.status == COPIES).sum()) if len(self.frame) else 0
        if not copies:
            return ""
        points = count(len(self.frame), "point")
        is_out = "is left out: its" if copies == 1 else "are left out: their"
        return (
            f"{copies} of {points} {is_out} ranks never talked to each other, so they were copies "
            "of one job, whose rates do not add up."
        )

    def __repr__(self) -> str:
        return f"{self._shown().to_string()}\n{self.summary}" if len(self.frame) else self.summary

    def _repr_html_(self) -> str:
        table = self._shown().to_html() if len(self.frame) else ""
        return f"{table}<p>{html.escape(self.summary)}</p>"

    def _shown(self) -> "pd.DataFrame":
        shown = self.table
        shown["others"] = shown.others.map(percent)
        return shown.map(lambda cell: cell if not isinstance(cell, float) else rounded(cell))

    def heat_map(self, x: str = "threads", y: str = "ranks") -> "Figure":
        """Draw the figure at each pair of two of `axes`, the better the darker.

        Parameters
        ----------
        x, y : str
            Two of `axes`.

        Returns
        -------
        matplotlib.figure.Figure
        """
        from . import picture

        return picture.heat_map(self.frame, x, y, self.unit, self.default.rate, self.lower)


def read(path: Path | str) -> Result:
    """Read a sweep that was measured before.

    Parameters
    ----------
    path : Path or str
        Its folder in results/sweep/, or a points.jsonl from anywhere. Damaged lines are named and
        left out.

    Returns
    -------
    Result

    Raises
    ------
    ScaleoutError
        There is no sweep.
    """
    place = Path(path)
    file = place / "points.jsonl" if place.is_dir() else place
    if not file.is_file():
        raise ScaleoutError(
            f"There is no sweep in {show(place)}: give its folder in results/sweep/."
        )
    about = description(file.parent / "sweep.json", Sweeping) or Sweeping()
    rows, left_out = read_rows(file, Swept)
    if left_out:
        print(f"{show(file)}{left_out}.")
    return Result(latest(rows).values(), about.metric.lower, file.parent)


def _rates(jobs: Iterable[Swept], status: str = OK) -> list[float]:
    return [row.value for row in jobs if row.status == status and row.value is not None]


def _median(jobs: Iterable[Swept], role: Role | None = None) -> float:
    """Take the median rate of the jobs that gave one, of one role or of all.

    It is not a number when there is none.
    """
    rates = _rates(row for row in jobs if role in (None, row.role))
    return statistics.median(rates) if rates else math.nan
