"""The figure of merit of one run: a field of its record, or what a function makes of it."""

import math
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from ..errors import ScaleoutError


class Reader(Protocol):
    """What reads a figure from what a job printed."""

    def read(self, run: Any, /) -> Mapping[str, Any]:
        """{"rate", "unit", ...}."""
        ...


Metric = str | Callable[[Any], float] | Reader


def figure(found: Any, metric: Metric) -> tuple[float, str]:
    """(value, unit) of what a job gave."""
    value, unit = _figure(found, metric)
    if not (math.isfinite(value) and value > 0):
        raise ScaleoutError(f"The figure is {value:g}, and a rate or a time is above 0.")
    return value, unit


def is_time(metric: Metric) -> bool:
    """Whether a field holds seconds, by its name, so that less is better."""
    return isinstance(metric, str) and metric.endswith("_s") and not metric.endswith("_per_s")


def _figure(found: Any, metric: Metric) -> tuple[float, str]:
    if callable(metric):
        return float(metric(found)), ""
    if not isinstance(metric, str):
        read = metric.read(found)
        return float(read["rate"]), str(read["unit"])
    if isinstance(found, (int, float)):
        return float(found), ""
    if metric == "wall_s" and hasattr(found, "wall_s"):
        return float(found.wall_s), "s"
    frame = getattr(found, "records", found)
    if not hasattr(frame, "columns"):
        raise ScaleoutError(
            f"The job returned {type(found).__name__}, and a comparison needs a run, a frame of "
            "records or a number: let it return what lab.run() gives."
        )
    if frame.empty:
        raise ScaleoutError(
            "The job wrote no record: choose what it is judged by with metric=, "
            'such as "wall_s" for the seconds it took.'
        )
    return _field(frame, metric)


def _field(frame: Any, metric: str) -> tuple[float, str]:
    if {"lab", "variant"} <= set(frame.columns) and len(
        frame[["lab", "variant"]].drop_duplicates()
    ) > 1:
        kinds = ", ".join(frame.variant.astype(str).unique())
        raise ScaleoutError(
            f"The job wrote records of several kinds ({kinds}), and a comparison needs one figure: "
            "choose with metric=, a function of the run."
        )
    if metric == "rate" and "rate" in frame and frame.rate.isna().all():
        return float((1 / frame.step_median_s.astype(float)).median()), "steps/s"
    numbers = {
        str(name).removeprefix("metrics."): name
        for name in frame.columns
        if frame[name].map(lambda x: isinstance(x, (int, float))).all()
        and frame[name].notna().all()
    }
    column = numbers.get(metric.removeprefix("metrics."))
    if column is None:
        raise ScaleoutError(
            f"The record has no figure {metric!r}: type one of {', '.join(sorted(numbers))}."
        )
    return float(frame[column].median()), _unit(frame, metric)


def _unit(frame: Any, metric: str) -> str:
    if is_time(metric):
        return "s"
    if metric == "rate" and "rate_unit" in frame:
        return str(frame.rate_unit.iloc[0])
    name = metric.removeprefix("metrics.")
    return name.removesuffix("_per_s") + "/s" if name.endswith("_per_s") else ""
