"""Figures of 07_scaling: laws and models with their intervals, and what they predict."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from .look import DARK, GREY, LIGHT, MIDDLE, PALE, Look, guess_star, style

if TYPE_CHECKING:
    from ..scaling import Amdahl, Published, RateFit, Simulated, Step

__all__ = [
    "amdahl_law",
    "efficiency_of_networks",
    "rate_predictions",
    "simulated_allreduce",
    "step_of_many",
]

LINES = ((DARK, "-", "o"), (MIDDLE, "--", "s"), ("#a98600", ":", "^"), (GREY, "-.", "D"))


@style
def amdahl_law(
    ranks: Sequence[int],
    seconds: Sequence[float],
    fit: "Amdahl",
    most: int = 64,
    guess: float | None = None,
) -> Figure:
    """Speed-up over ranks: single runs, the fitted law with the interval of its serial part, the
    ideal dashed.

    guess: the reader's, of the speed-up on `most` ranks.
    """
    figure, axes = plt.subplots()
    p = np.geomspace(1, most, 200)
    low, high = (1 / (serial + (1 - serial) / p) for serial in reversed(fit.serial_range))
    axes.fill_between(p, low, high, color=LIGHT, alpha=0.5, linewidth=0, label="95 % interval")
    axes.plot(
        p, [fit.speed_up(x) for x in p], color=DARK, linewidth=2, label="Amdahl's law, fitted"
    )
    axes.plot(p, p, linestyle="--", color=GREY, label="ideal")
    axes.plot(
        ranks, fit.one_s / np.asarray(seconds), "o", color=MIDDLE, label="single runs", zorder=3
    )
    if guess is not None:
        guess_star(axes, most, guess, f"{guess:g}")
    axes.set(xscale="log", yscale="log", xlabel="ranks (count)", ylabel="speed-up over 1 rank")
    ticks = [2**k for k in range(int(np.log2(most)) + 1)]
    axes.set_xticks(ticks, ticks)
    axes.set_yticks(ticks, ticks)
    axes.minorticks_off()
    axes.legend(loc="upper left")
    return figure


@style
def rate_predictions(
    tables: "Sequence[Published]", fits: "Sequence[RateFit]", guess: float | None = None
) -> Figure:
    """Published rates a node: rows that the fit saw (full), rows held out (open), the prediction
    with its interval.

    tables[i] is what fits[i] was fitted to the first rows of. The ideal, as much a node as one
    alone, is dashed. guess: the reader's, of the rate in the last row of the first table."""
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
        axes.set(xscale="log", xlabel="nodes (count)")
        axes.set_xticks(nodes, nodes)
        axes.minorticks_off()
    if guess is not None:
        last = tables[0].nodes[-1]
        guess_star(panels[0, 0], last, guess / last, f"{guess:g}")
    panels[0, 0].set_ylabel(f"{tables[0].unit} on each node")
    panels[0, 0].legend(fontsize=9, loc="lower left")
    return figure


@style
def step_of_many(step: "Step", most: int = 1024) -> Figure:
    """A training step on more and more ranks, by the model, in its three parts."""
    figure, axes = plt.subplots()
    counts = [2**k for k in range(int(np.log2(most)) + 1)]
    parts = [step.parts(count) for count in counts]
    bottom = np.zeros(len(counts))
    looks: dict[str, Look] = {
        "compute": {"color": DARK},
        "exchange": {"color": LIGHT, "hatch": "//"},
        "stragglers": {"color": MIDDLE},
    }
    for name, look in looks.items():
        height = np.array([1e3 * part[name] for part in parts])
        axes.bar(
            range(len(counts)),
            height,
            bottom=bottom,
            width=0.75,
            label=name,
            edgecolor="white",
            **look,
        )
        bottom += height
    axes.axhline(1e3 * step.compute_s, linestyle="--", color=GREY, label="ideal")
    axes.set_xticks(range(len(counts)), counts)
    axes.set(xlabel="ranks (count)", ylabel="time of a step (ms)", ylim=(0, 1.35 * bottom.max()))
    axes.set_title(step.network.name, fontsize=11)
    axes.legend(ncols=4, fontsize=9, loc="upper left")
    return figure


@style
def efficiency_of_networks(
    steps: "Sequence[Step]", most: int = 1024, guess: float | None = None
) -> Figure:
    """The part of a step that is compute, over the ranks: a line a network; below the dotted line,
    half is lost.

    guess: the reader's, of the ranks with which half is lost.
    """
    figure, axes = plt.subplots()
    counts = [2**k for k in range(int(np.log2(most)) + 1)]
    for step, (colour, dash, marker) in zip(steps, LINES, strict=False):
        worth = [step.efficiency(count) for count in counts]
        axes.plot(
            counts, worth, color=colour, linestyle=dash, marker=marker, label=step.network.name
        )
    axes.axhline(1, linestyle="--", color=GREY, linewidth=1)
    axes.axhline(0.5, linestyle=":", color=GREY, linewidth=1)
    if guess is not None:
        guess_star(axes, guess, 0.5, f"{guess:g} ranks")
    axes.set(
        xscale="log", xlabel="ranks (count)", ylabel="efficiency (compute / step)", ylim=(0, 1.05)
    )
    axes.set_xticks(counts, counts)
    axes.minorticks_off()
    figure.legend(loc="outside upper center", ncols=2, fontsize=9)
    return figure


@style
def simulated_allreduce(
    simulated: "Sequence[Simulated]",
    formula: Mapping[int, float],
    recorded: "Sequence[Simulated]" = (),
) -> Figure:
    """An allreduce over the ranks: simulated (marks), by the formula (dashed line), with 20 % to
    each side shaded.

    formula: {ranks: seconds}.  recorded: simulated before, on another machine; drawn open.
    """
    figure, axes = plt.subplots()
    counts = sorted(formula)
    by_formula = 1e3 * np.array([formula[count] for count in counts])
    axes.fill_between(
        counts, 0.8 * by_formula, 1.2 * by_formula, color=PALE, linewidth=0, label="20 % around it"
    )
    axes.plot(
        counts, by_formula, linestyle="--", color=DARK, label="2 (p - 1) (alpha + beta n / p)"
    )
    for runs, name, full in (
        (simulated, "simulated here", True),
        (recorded, "simulated before, recorded", False),
    ):
        if runs:
            look: Look = {
                "markerfacecolor": MIDDLE if full else "white",
                "markeredgecolor": MIDDLE,
                "markersize": 9,
            }
            axes.plot(
                [run.ranks for run in runs],
                [1e3 * run.seconds for run in runs],
                "s",
                label=name,
                **look,
            )
    mb = (*simulated, *recorded)[0].bytes / 1e6
    axes.set(
        xscale="log",
        xlabel="ranks (count)",
        ylabel=f"allreduce of {mb:.0f} MB (simulated ms)",
        ylim=(0, None),
    )
    axes.set_xticks(counts, [str(count) for count in counts])
    axes.minorticks_off()
    axes.legend(loc="upper left")
    return figure
