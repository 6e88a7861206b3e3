"""The figure of a sweep."""

import textwrap
from typing import TYPE_CHECKING

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from ..base.words import rounded, sort_key
from ..plots.look import style
from ..plots.primitives import heat

if TYPE_CHECKING:
    import pandas as pd

LETTERS = 9  # that the name of a cell has room for
INCHES = 0.12  # of each letter more
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
    names = [str(value) for value in rows], [str(value) for value in columns]
    longest_y, longest_x = (max(map(len, each)) for each in names)
    turned = longest_x > LETTERS  # such long words stand upright
    right = max(4.5, 2.2 + 0.9 * len(columns))  # of the names of the rows
    width = right + INCHES * max(0, longest_y - LETTERS)
    height = max(2.6, 1.5 + 0.6 * len(rows)) + INCHES * (longest_x if turned else 0)
    figure, axes = plt.subplots(figsize=(width, height))
    what = unit or ("figure, less is better" if lower else "rate")
    bar = heat(figure, axes, rates, *names, unit=what, lower=lower, missing=missing)
    axes.set(xlabel=AXES.get(x, x), ylabel=AXES.get(y, y))
    notes = _notes(frame, rates, names, (x, y), unit, lower)
    known = rates[~np.isnan(rates)]
    if not np.isnan(default):
        within = bool(known.size and known.min() <= default <= known.max())
        notes.append(f"the default: {rounded(default)}" + " (line on the scale)" * within)
        if within:
            bar.ax.axhline(default, color="black", linewidth=2)
    if turned:
        axes.tick_params(axis="x", rotation=90)
    lines = [line for note in notes for line in textwrap.wrap(note, int(11 * right))]
    axes.set_title("\n".join(lines), fontsize=10, loc="left")
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
