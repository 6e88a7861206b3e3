"""The waterfall of a tuning: what each step was worth, one at a time or one after another, from any
records."""

from collections.abc import Mapping, Sequence
from textwrap import fill
from typing import TYPE_CHECKING, Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from .look import DARK, LIGHT, MIDDLE, Look, guess_name, style

if TYPE_CHECKING:
    import pandas as pd


GREY = "#888888"


@style
def waterfall(
    steps: "Mapping[str, Sequence[float] | pd.DataFrame]",
    ylabel: str = "images/s trained",
    chain: bool = False,
    reasons: Mapping[str, str] | None = None,
    ideal: float | None = None,
    goal: float | None = None,
    of: str = "rate",
    guess: str | None = None,
) -> Figure:
    """Tuning as a waterfall: the start, what each step adds to it or takes away, and what all
    together reach.
    """
    runs = {name: _runs(step, of) for name, step in steps.items()}
    why = {name: _reason(step) for name, step in steps.items() if not runs[name]} | dict(
        reasons or {}
    )
    figure, axes = plt.subplots(figsize=(max(7.4, 0.6 + 0.78 * len(runs)), 4.2 + 0.22 * len(why)))
    start = level = float(np.median(next(iter(runs.values()))))
    tops = [start]
    for place, (name, values) in enumerate(runs.items()):
        median = float(np.median(values)) if values and name not in why else level
        whole = place in (0, len(runs) - 1)
        low, high = (0.0, median) if whole else sorted((level, median))
        look: Look = (
            {"color": DARK}
            if whole
            else {"color": LIGHT if median >= level else MIDDLE, "hatch": "//"}
        )
        if name in why:
            axes.plot([place - 0.35, place + 0.35], [level] * 2, color="#444444", linewidth=3)
        else:
            axes.bar(place, high - low, bottom=low, width=0.7, edgecolor="#444444", **look)
        spots = place + np.linspace(-0.15, 0.15, len(values)) * (len(values) > 1)
        axes.scatter(spots, values, s=22, color="white", edgecolor="black", zorder=3,
                     label="single runs" if place == 0 else "")  # fmt: skip
        tops.append(max([high, *values]))
        text = _said(median, level if chain and not whole else start, chain, whole, place)
        axes.annotate(
            text, (place, tops[-1]), (0, 5), textcoords="offset points", ha="center", fontsize=10
        )
        if chain:
            axes.plot(
                [place - 0.35, place + 1.35 * (place < len(runs) - 1)],
                [median] * 2,
                color=GREY,
                linewidth=0.8,
            )
            level = median
    if not chain:
        axes.axhline(start, color=GREY, linewidth=0.8)
    if ideal is not None:
        axes.axhline(ideal, color=GREY, linestyle="--", label="ideal")
    if goal is not None:
        axes.axhline(
            goal, color=MIDDLE, linestyle=":", linewidth=2, label=f"to be reached: {goal:g}"
        )
    guess_name(axes, list(runs), guess, 0.04)
    axes.set_xticks(
        range(len(runs)), [name if "\n" in name else fill(name, 10) for name in runs], fontsize=9
    )
    axes.set(ylabel=ylabel, ylim=(0, (1.25 if chain else 1.35) * max(ideal or 0, *tops)))
    if why:
        said = [f"{' '.join(name.split())}: {why[name]}" for name in runs if why.get(name)]
        lines = "\n".join(
            fill(text, 110, initial_indent="1.0x  ", subsequent_indent=" " * 8) for text in said
        )
        axes.set_xlabel(lines, fontsize=9, loc="left", multialignment="left", labelpad=8)
    axes.grid(axis="x", visible=False)
    axes.legend(fontsize=9, ncols=3, loc="upper left")
    return figure


def _runs(step: "Sequence[float] | pd.DataFrame", of: str) -> list[float]:
    """The figures of one step's runs; none of those that failed."""
    table: Any = step
    values = np.asarray(table[of] if hasattr(table, "columns") else table, float)
    return [float(value) for value in values[np.isfinite(values)]]


def _reason(step: "Sequence[float] | pd.DataFrame") -> str:
    """Why a step has no figure, as a sweep's records say."""
    table: Any = step
    said = list(table["reason"]) if "reason" in getattr(table, "columns", ()) else []
    return next((f"failed: {text}" for text in said if text), "not measured here")


def _said(median: float, base: float, chain: bool, whole: bool, place: int) -> str:
    """What stands above a bar: in a chain how many times its base, else how much more; at both ends
    the figure."""
    times = f"{median / base:.2f}x" if median != base else "1.0x"
    digits = 0 if base >= 100 else 2
    if not chain:
        return f"{median:,.{digits}f}" if whole else f"{median - base:+,.{digits}f}"
    return (f"{median:,.{digits}f}" + f"\n{times}" * (place > 0)) if whole else times
