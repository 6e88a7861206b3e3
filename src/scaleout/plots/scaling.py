"""Figures of 07_scaling: laws with their intervals, and what they predict."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from .look import DARK, GREY, LIGHT, MIDDLE, Look, guess_star, style

if TYPE_CHECKING:
    from ..comparisons.intervals import Ratio
    from ..scaling import Amdahl, Published, RateFit


@style
def amdahl_law(
    law: "Amdahl", measured: "Mapping[int, Ratio]", most: int = 64, guess: float | None = None
) -> Figure:
    """Speed-up over ranks: what was measured, the law with the interval of its serial part, the
    ideal dashed.
    """
    figure, axes = plt.subplots()
    p = np.geomspace(1, most, 200)
    low, high = (1 / (serial + (1 - serial) / p) for serial in reversed(law.serial_range))
    axes.fill_between(p, low, high, color=LIGHT, alpha=0.5, linewidth=0, label="95 % interval")
    axes.plot(p, [law.speed_up(x) for x in p], color=DARK, linewidth=2, label="Amdahl's law")
    axes.plot(p, p, linestyle="--", color=GREY, label="ideal")
    middle = np.array([ratio.middle for ratio in measured.values()])
    low_ends = np.array([ratio.low for ratio in measured.values()])
    high_ends = np.array([ratio.high for ratio in measured.values()])
    known = np.isfinite(high_ends)  # else the rounds were too few for an interval
    reach = np.where(known, np.stack([middle - low_ends, high_ends - middle]), 0.0)  # (2, counts)
    axes.errorbar(
        list(measured), middle, yerr=reach, fmt="o", color=MIDDLE, capsize=4, label="measured"
    )
    if guess is not None:
        guess_star(axes, most, guess, f"{guess:g}")
    axes.set(xscale="log", yscale="log", xlabel="ranks (count)", ylabel="speed-up over 1 rank")
    ticks = [2**k for k in range(int(np.log2(most)) + 1)]
    axes.set_xticks(ticks, ticks)
    axes.set_yticks(ticks, ticks)
    axes.minorticks_off()
    axes.legend(loc="upper left")
    said = (
        f"If the law holds, {most} ranks are {low[-1]:.0f} to {high[-1]:.0f} times as fast as one."
    )
    axes.set_title(said, fontsize=11, loc="left")
    points = ", ".join(f"{n} ranks: {r.middle:.2f} times" for n, r in measured.items())
    figure.set_label(f"{said} Measured: {points}.")
    return figure


@style
def rate_predictions(
    tables: "Sequence[Published]",
    fits: "Sequence[RateFit]",
    count_of: str = "nodes",
    guess: float | None = None,
) -> Figure:
    """Published rates, each divided by its nodes: rows that the fit saw (full), rows held out
    (open), the prediction with its interval.
    """
    figure, panels = plt.subplots(1, len(tables), squeeze=False, sharey=True, figsize=(8, 4))
    for axes, table, fit in zip(panels[0], tables, fits, strict=True):
        nodes, each = np.array(table.nodes), np.array(table.rates) / np.array(table.nodes) * 1.0
        seen = np.isin(nodes, fit.nodes)
        p = np.geomspace(1, nodes.max(), 100)
        axes.plot(p, [fit.rate(x) / x for x in p], color=DARK, label="fit")
        axes.axhline(fit.one, linestyle="--", color=GREY, label="ideal")
        axes.plot(
            nodes[seen], each[seen], "o", color=MIDDLE, markersize=8, label="rows that it saw"
        )
        for count in nodes[~seen]:
            found = fit.predict(int(count))
            reach = [[(found.rate - found.low) / count], [(found.high - found.rate) / count]]
            look: Look = {
                "color": DARK,
                "capsize": 5,
                "marker": "_",
                "markersize": 12,
                "linestyle": "",
            }
            axes.errorbar(
                [count], [found.rate / count], yerr=reach, label="predicted, 95 %", **look
            )
        look = {
            "markerfacecolor": "white",
            "markeredgecolor": MIDDLE,
            "markeredgewidth": 2,
            "markersize": 9,
        }
        axes.plot(nodes[~seen], each[~seen], "o", label="row held out", zorder=4, **look)
        axes.set_title(table.name, fontsize=11)
        axes.set(xscale="log", xlabel=f"{count_of} (count)")
        axes.set_xticks(nodes, nodes)
        axes.minorticks_off()
    if guess is not None:
        last = tables[0].nodes[-1]
        guess_star(panels[0, 0], last, guess / last, f"{guess:g}")
    panels[0, 0].set_ylabel(f"{tables[0].unit} for each of the {count_of}")
    panels[0, 0].set_ylim(0, None)
    panels[0, 0].legend(fontsize=9, loc="lower left")
    figure.set_label(
        " ".join(_held_out(table, fit) for table, fit in zip(tables, fits, strict=True))
    )
    return figure


def _held_out(table: "Published", fit: "RateFit") -> str:
    """What was predicted of the rows that a fit did not see, in words."""
    rows = [(n, r) for n, r in zip(table.nodes, table.rates, strict=True) if n not in fit.nodes]
    said = [(n, r, fit.predict(int(n))) for n, r in rows]
    each = [
        f"{n}: {p.rate:,.0f} ({p.low:,.0f} to {p.high:,.0f}), published {r:,.0f}"
        for n, r, p in said
    ]
    return f"{table.name}, predicted for {'; '.join(each)}."
