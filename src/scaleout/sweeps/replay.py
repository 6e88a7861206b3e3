"""A search over a grid that was measured whole: what it would have found, and in which share of the
grid's time. No job is started."""

import math
import random
import statistics
from collections import defaultdict
from typing import TYPE_CHECKING, Any

from ..errors import ScaleoutError
from . import race
from .journal import POINT
from .outcome import Result
from .points import Choices
from .search import Place, ask

if TYPE_CHECKING:
    import pandas as pd


Job = tuple[float | None, float]


def replay(
    result: Result, trials: int, seed: int = 0, repeat: int = 1, cores: int = 2
) -> "pd.DataFrame":
    """What `--search` would have found on a grid that was measured whole."""
    import pandas as pd

    kept, choices = _jobs(result)
    truth = {
        place: statistics.median(rate for rate, _ in jobs if rate is not None)
        for place, jobs in kept.items()
        if all(rate is not None for rate, _ in jobs)
    }
    if not truth or len(kept) != math.prod(map(len, choices.values())):
        raise ScaleoutError("A search is replayed over a whole grid, each of its points measured.")
    best = (min if result.lower else max)(truth.values())
    whole_s = sum(statistics.fmean(wall_s for _, wall_s in jobs) for jobs in kept.values())
    draw = random.Random(seed)
    kept = {place: draw.sample(jobs, len(jobs)) for place, jobs in kept.items()}
    rows: list[dict[str, Any]] = []
    worth: dict[Place, list[float]] = {}

    def measure(place: Place, times: int) -> float | None:
        rate, wall_s = kept[place][times % len(kept[place])]
        if rate is None:
            worth.pop(place, None)
        else:
            worth.setdefault(place, []).append(-rate if result.lower else rate)
        first = race.leader(worth)
        known = math.nan if first is None else truth[first]
        spent = wall_s / whole_s + (rows[-1]["spent"] if rows else 0.0)
        share = best / known if result.lower else known / best
        rows.append(
            {
                **dict(zip(choices, place, strict=True)),
                "rate": rate,
                "spent": spent,
                "of_best": share,
            }
        )
        return rate

    ask(choices, trials, repeat, seed, cores, measure, result.lower)
    return pd.DataFrame(rows)


def _jobs(result: Result) -> tuple[dict[Place, list[Job]], Choices]:
    """The figure (None where it failed) and the seconds of each job of each point, and the axes
    that have a choice."""
    runs = result.runs[result.runs.role == POINT]
    axes = [axis for axis in result.axes if runs[axis].nunique() > 1]
    if {"ranks", "threads"} <= set(axes) and (runs.groupby("ranks").threads.nunique() == 1).all():
        axes.remove("threads")  # each rank's share of the cores
    kept: dict[Place, list[Job]] = defaultdict(list)
    for row in runs.to_dict("records"):
        place = tuple(None if row[axis] == "unset" else row[axis] for axis in axes)
        rate = float(row["rate"]) if row["status"] == "ok" else None
        kept[place].append((rate, float(row["wall_s"])))
    choices = {axis: tuple(dict.fromkeys(p[i] for p in kept)) for i, axis in enumerate(axes)}
    return dict(kept), choices
