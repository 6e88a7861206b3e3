"""Figures of a sweep."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from ..words import rounded, sort_key
from .look import DARK, GREY, LIGHT, NOT_ALLOWED, PALE, style

if TYPE_CHECKING:
    import pandas as pd


@style
def heat_map(
    frame: "pd.DataFrame",
    x: str = "threads",
    y: str = "ranks",
    unit: str = "",
    default: float | None = None,
    lower: bool = False,
) -> Figure:
    """The rate at each pair of two settings, the better the darker; failed cells and those of
    copies are white, unmeasured ones hatched.
    """
    columns, rows = (sorted(frame[axis].unique(), key=sort_key) for axis in (x, y))
    copies = frame.get("status", frame.rate).eq("copies")  # a rate of one copy, not of all ranks
    counted = frame.assign(rate=frame.rate.mask(copies), copies=copies)
    cells = {at: group for at, group in counted.groupby([y, x])}
    table = [
        [
            cells[r, c].rate.agg("min" if lower else "max") if (r, c) in cells else np.nan
            for c in columns
        ]
        for r in rows
    ]
    rates = np.array(table, float)  # (rows, columns)
    found = rates[~np.isnan(rates)]
    low, high = (found.min(), found.max()) if found.size else (0.0, 1.0)
    best = low if lower else high
    figure, axes = plt.subplots(
        figsize=(max(4.5, 2.2 + 0.9 * len(columns)), max(2.6, 1.5 + 0.6 * len(rows)))
    )
    ramp = [PALE, LIGHT, DARK][:: -1 if lower else 1]
    shades = mpl.colors.LinearSegmentedColormap.from_list("rates", ramp)
    spread = high - low or 1.0
    picture = axes.imshow(rates, cmap=shades, aspect="auto", vmin=low, vmax=low + spread)
    for (row, column), rate in np.ndenumerate(rates):
        at = rows[row], columns[column]
        measured = at in cells
        without = "" if not measured else "copies" if cells[at].copies.all() else "failed"
        text = without if np.isnan(rate) else rounded(rate)
        dark = not np.isnan(rate) and ((high - rate if lower else rate - low) / spread) > 0.6
        axes.text(
            column,
            row,
            text,
            ha="center",
            va="center",
            fontsize=10,
            color="white" if dark else "black",
        )
        corner = (column - 0.5, row - 0.5)
        if not measured:
            axes.add_patch(Rectangle(corner, 1, 1, **NOT_ALLOWED | {"linewidth": 0}))
        elif rate == best:
            axes.add_patch(
                Rectangle(corner, 1, 1, fill=False, edgecolor="black", linewidth=3, clip_on=False)
            )
    axes.set_xticks(range(len(columns)), [str(c) for c in columns])
    axes.set_yticks(range(len(rows)), [str(r) for r in rows])
    words = {"ranks": "ranks (count)", "threads": "threads a rank (count)"}
    axes.set(xlabel=words.get(x, x), ylabel=words.get(y, y))
    axes.invert_yaxis()
    axes.grid(False)
    what = unit or ("figure, less is better" if lower else "rate")
    bar = figure.colorbar(picture, ax=axes, label=what, format=lambda rate, _: rounded(rate))
    others = [
        a
        for a in frame.columns[: frame.columns.get_loc("rate")]
        if a not in (x, y) and frame[a].nunique() > 1
    ]
    notes = ["each cell: the best over the other settings"] if others else []
    if default is not None and not np.isnan(default):
        within = low <= default <= high
        notes.append(f"the default: {rounded(default)}" + " (dashed)" * bool(within))
        if within:
            bar.ax.axhline(default, color="black", linestyle="--", linewidth=2)
    if found.size:
        row, column = np.argwhere(rates == best)[0]
        pair = f"{y} {rows[row]}, {x} {columns[column]}"
        notes.insert(0, f"best: {rounded(best)} {unit}".strip() + f" with {pair}")
    axes.set_title("\n".join(notes), fontsize=10, loc="left")
    each = [f"{y} {rows[r]}, {x} {columns[c]}: {rounded(v)}" for (r, c), v in np.ndenumerate(rates)
            if not np.isnan(v)]  # fmt: skip
    said = "; ".join(notes)
    figure.set_label(f"{said[:1].upper()}{said[1:]}. Each cell: {'; '.join(each)}.")
    return figure


@style
def searches(replays: "Sequence[pd.DataFrame]", most: float = 0.2) -> Figure:
    """What searches of one grid had found, over the share of the grid's time that they took: each
    a thin line, their median thick, 95 % of the best dashed.
    """
    figure, axes = plt.subplots()
    at = np.linspace(0, most, 201)
    found = np.array([_so_far(rows, at) for rows in replays])  # (seeds, shares)
    for line in found:
        axes.plot(100 * at, 100 * line, color=LIGHT, linewidth=1, drawstyle="steps-post")
    middle = np.median(found, axis=0)
    axes.plot(100 * at, 100 * middle, color=DARK, linewidth=2, drawstyle="steps-post")
    axes.axhline(95, linestyle="--", color=GREY)
    axes.set(
        xlabel="time (% of the whole grid)", ylabel="what it would call the best (% of the best)"
    )
    tenth = middle[np.searchsorted(at, 0.1 - 1e-9)]
    axes.set_title(f"After a tenth of the time: {100 * tenth:.0f} % of the best in the median")
    return figure


def _so_far(
    rows: "pd.DataFrame", at: "np.ndarray[tuple[int], np.dtype[np.float64]]"
) -> list[float]:
    """of_best after each share of the time; not a number before the first job has ended."""
    spent, of_best = rows.spent.to_numpy(), rows.of_best.to_numpy()
    last = np.searchsorted(spent, at, side="right") - 1
    return [float(of_best[i]) if i >= 0 else float("nan") for i in last]
