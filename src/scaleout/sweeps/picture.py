"""The figure of a sweep."""

from typing import TYPE_CHECKING

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from ..plots.look import style
from ..plots.primitives import heat
from ..words import rounded, sort_key

if TYPE_CHECKING:
    import pandas as pd

AXES = {"ranks": "ranks (count)", "threads": "threads of each rank (count)"}


@style
def heat_map(
    frame: "pd.DataFrame",
    x: str = "threads",
    y: str = "ranks",
    unit: str = "",
    default: float = float("nan"),
    lower: bool = False,
) -> Figure:
    """Draw the rate at each pair of two settings, the best over the others.

    Failed cells and those of copies say so, unmeasured ones are hatched.
    """
    columns, rows = (sorted(frame[axis].unique(), key=sort_key) for axis in (x, y))
    copies = frame.get("status", frame.rate).eq("copies")  # a rate of one copy, not of all ranks
    counted = frame.assign(rate=frame.rate.mask(copies), copies=copies)
    cells = {at: group for at, group in counted.groupby([y, x])}
    rates = np.full((len(rows), len(columns)), np.nan)
    missing = [["" for _ in columns] for _ in rows]
    for (r, row), (c, column) in ((a, b) for a in enumerate(rows) for b in enumerate(columns)):
        if (row, column) in cells:
            group = cells[row, column]
            rates[r, c] = group.rate.min() if lower else group.rate.max()
            missing[r][c] = "copies" if group.copies.all() else "failed"
    figure, axes = plt.subplots(
        figsize=(max(4.5, 2.2 + 0.9 * len(columns)), max(2.6, 1.5 + 0.6 * len(rows)))
    )
    what = unit or ("figure, less is better" if lower else "rate")
    names = [str(value) for value in rows], [str(value) for value in columns]
    bar = heat(figure, axes, rates, *names, unit=what, lower=lower, missing=missing)
    axes.set(xlabel=AXES.get(x, x), ylabel=AXES.get(y, y))
    notes = _notes(frame, rates, names, (x, y), unit, lower)
    known = rates[~np.isnan(rates)]
    if not np.isnan(default):
        within = bool(known.size and known.min() <= default <= known.max())
        notes.append(f"the default: {rounded(default)}" + " (line on the scale)" * within)
        if within:
            bar.ax.axhline(default, color="black", linewidth=2)
    axes.set_title("\n".join(notes), fontsize=10, loc="left")
    each = [
        f"{y} {rows[r]}, {x} {columns[c]}: {rounded(v)}"
        for (r, c), v in np.ndenumerate(rates)
        if not np.isnan(v)
    ]
    said = "; ".join(notes)
    figure.set_label(f"{said[:1].upper()}{said[1:]}. Each cell: {'; '.join(each)}.")
    return figure


def _notes(
    frame: "pd.DataFrame",
    rates: "np.ndarray[tuple[int, int], np.dtype[np.float64]]",
    names: tuple[list[str], list[str]],
    axes: tuple[str, str],
    unit: str,
    lower: bool,
) -> list[str]:
    """Say what was found, and what a cell stands for."""
    notes = []
    if not np.isnan(rates).all():
        best = np.nanargmin(rates) if lower else np.nanargmax(rates)
        row, column = np.unravel_index(best, rates.shape)
        pair = f"{axes[1]} {names[0][row]}, {axes[0]} {names[1][column]}"
        notes.append(f"best: {rounded(rates[row, column])} {unit}".strip() + f" with {pair}")
    settings = frame.columns[: frame.columns.get_loc("rate")]
    if any(axis not in axes and frame[axis].nunique() > 1 for axis in settings):
        notes.append("each cell: the best over the other settings")
    return notes
