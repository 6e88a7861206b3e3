"""The figure of a comparison: what each run gave, and the intervals of the ratios."""

import math
import textwrap
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullFormatter

from ..base.words import count, rounded
from ..plots.look import DARK, GREY, MIDDLE, finish, guess_line, style
from ..plots.primitives import interval, noise_band
from .intervals import Ratio

if TYPE_CHECKING:
    import pandas as pd


NAME = 18  # letters on a line
LINE = 0.3  # of a row, for another machine's interval


@style
def comparison(
    runs: "pd.DataFrame",
    table: "pd.DataFrame",
    noise: float,
    disturbed: Sequence[tuple[int, str, int]] = (),
    title: str = "",
    values: str = "",
    axis: str = "rate",
    guess: float | None = None,
    elsewhere: Mapping[str, Mapping[str, Ratio]] | None = None,
) -> Figure:
    """Draw each run of each variant, and how many times as fast as the baseline it is.

    Below a variant are its intervals on other machines.
    """
    names = list(dict.fromkeys(runs.variant))
    there = {name: (elsewhere or {}).get(name, {}) for name in names}
    rows, end = [], 0.0
    for name in names:
        rows.append(end)
        end += 1 + LINE * len(there[name])
    figure, (left, right) = plt.subplots(
        1, 2, sharey=True, figsize=(7.5, 2.0 + 0.55 * end), width_ratios=[1, 1.15]
    )
    for row, name in zip(rows, names, strict=True):
        _single_runs(left, row, runs[runs.variant == name], disturbed)
        _elsewhere(left, right, row, there[name])
    _ratios(right, rows, table, noise, guess)
    left.set_yticks(rows, ["\n".join(textwrap.wrap(name, NAME)) for name in names])
    left.set_ylim(end - 0.5, -0.5)
    _values_axis(left, runs.value, axis)
    right.set_xlabel(f"times as fast as {names[0]}")
    words = _values(table, noise, values, axis, there)
    return finish(figure, title, words, legend=3)


@style
def over_ranks(
    curves: Mapping[str, Mapping[int, Ratio]], baseline: str, efficiency: bool, title: str
) -> Figure:
    """Draw ratios over the number of ranks, a curve each machine, one's own first."""
    figure, axes = plt.subplots(figsize=(7, 4))
    for nth, (name, curve) in enumerate(curves.items()):
        at = sorted(curve)
        middle, low, high = (
            np.array([getattr(curve[n], end) / (n if efficiency else 1) for n in at])
            for end in ("middle", "low", "high")
        )
        axes.errorbar(
            np.array(at) * 1.04**nth,  # beside one another
            middle,
            [middle - low, high - middle],
            label=name,
            fmt="D--" if nth else "o-",
            color=MIDDLE if nth else DARK,
            markerfacecolor="white" if nth else DARK,
            capsize=3,
            linewidth=1.2,
        )
    ticks = sorted({1}.union(*curves.values()))
    axes.set_xscale("log", base=2)
    axes.set_xticks(ticks, [str(tick) for tick in ticks])
    axes.minorticks_off()
    axes.set_xlim(0.85, 1.25 * ticks[-1])
    if efficiency:
        axes.axhline(1, color=GREY, linestyle=":", label="ideal")
        axes.set_ylim(0, max(1.1, axes.get_ylim()[1]))
    else:
        axes.plot(ticks, ticks, color=GREY, linestyle=":", label="ideal")
        axes.set_yscale("log", base=2)
        axes.yaxis.set_major_formatter(lambda value, place: f"{value:g}")
    axes.set_xlabel("ranks")
    axes.set_ylabel("parallel efficiency" if efficiency else f"times as fast as {baseline}")
    part = {n: n if efficiency else 1 for n in ticks}
    words = [
        f"{name}: "
        + ", ".join(f"{curve[n].middle / part[n]:.2f} on {count(n, 'rank')}" for n in sorted(curve))
        for name, curve in curves.items()
    ]
    return finish(figure, title, f"{'. '.join(words)}.", legend=3)


def _values_axis(axes: Axes, values: "pd.Series[float]", name: str) -> None:
    """Scale and name the axis of the runs such that the ticks are short and every variant is seen."""
    unit, prefix = 1.0, ""
    if values.max() >= 1e6:  # ticks of seven digits would run into one another
        unit, prefix = 1e6, "million "
    elif name == "seconds" and values.max() < 0.1:
        unit, prefix = (1e-3, "milli") if values.max() >= 1e-4 else (1e-6, "micro")
    if values.max() > 8 * values.min() > 0:
        axes.set_xscale("log")
        narrow = values.max() < 100 * values.min()
        axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if narrow else (1,), numticks=6))
        axes.xaxis.set_minor_formatter(NullFormatter())
    else:
        axes.locator_params(axis="x", nbins=4)
    axes.xaxis.set_major_formatter(lambda value, place: f"{value / unit:,.10g}")
    axes.set_xlabel(f"{prefix}{name}")


def _single_runs(
    axes: Axes, row: float, runs: "pd.DataFrame", disturbed: Sequence[tuple[int, str, int]]
) -> None:
    """Draw points for runs, the earlier the higher, and a bar at the median.

    The baseline's second ones are hollow.
    """
    spread = np.linspace(-0.22, 0.22, int(runs["round"].max()) + 1)
    for again, fill, label in ((0, DARK, "a run"), (1, "white", "the same job again")):
        some = runs[runs.again == again]
        places = row + spread[some["round"]] + 0.06 * again
        axes.scatter(
            some.value,
            places,
            s=22,
            color=fill,
            edgecolor=DARK,
            zorder=3,
            label="" if row else label,
        )
    median = runs.value[runs.again == 0].median()
    label = "" if row else "median"
    ends = [row - 0.34, row + 0.34]
    axes.plot([median] * 2, ends, label=label, color=MIDDLE, linewidth=3, zorder=2)
    for index, (round_, name, again) in enumerate(disturbed):
        own = runs[(runs["round"] == round_) & (runs.variant == name) & (runs.again == again)]
        label = "far off the others: left out" if index == 0 and len(own) else ""
        places = row + spread[own["round"]] + 0.06 * again
        axes.scatter(own.value, places, s=110, marker="x", color="black", zorder=4, label=label)


def _elsewhere(left: Axes, right: Axes, row: float, there: Mapping[str, Ratio]) -> None:
    """Draw the intervals of other machines below one's own, thin, each with its machine's name."""
    for line, (machine, ratio) in enumerate(there.items()):
        at = row + 0.5 + LINE * (line + 0.5)
        interval(
            right, at, ratio.low, ratio.middle, ratio.high, "stored runs",
            fmt="|", color=MIDDLE, capsize=2, linewidth=1, markersize=5,
        )  # fmt: skip
        left.annotate(
            f"{machine}: {ratio.middle:.2f}x",
            (0.99, at),
            xycoords=("axes fraction", "data"),
            ha="right",
            va="center",
            fontsize=8,
        )


def _ratios(
    axes: Axes, rows: Sequence[float], table: "pd.DataFrame", noise: float, guess: float | None
) -> None:
    """Draw the intervals, a row each, over the noise as a band.

    The first row is the baseline against itself.
    """
    noise_band(axes, noise, "noise: what identical variants may differ by")
    for row, line in zip(rows, table.iloc[1:].itertuples(), strict=True):
        known = math.isfinite(line.high)
        fmt, inside = ("o", DARK) if row else ("D", "white")
        label = "ratio and 95 % interval" if row == rows[1] else ""
        interval(axes, row, line.low, line.ratio, line.high, label, fmt=fmt, markerfacecolor=inside)
        if row:
            axes.annotate(
                f"{line.ratio:.2f}x" if known else "too few rounds",
                (line.ratio, row),
                (0, 9),
                textcoords="offset points",
                ha="center",
                fontsize=10,
                # readable where a line of the guess runs through it
                bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.5, "alpha": 0.8},
                zorder=5,
            )
    guess_line(axes, guess, upright=True)
    axes.margins(x=0.12)
    axes.locator_params(axis="x", nbins=6)  # of three digits, which more ticks would make overlap


def _values(
    table: "pd.DataFrame",
    noise: float,
    first: str,
    axis: str,
    there: Mapping[str, Mapping[str, Ratio]],
) -> str:
    """Write the numbers, for those who do not see the picture."""
    said = [first] if first else []
    for name, line in table.iterrows():
        ratio = (
            ""
            if math.isnan(line.low)
            else f", ratio {line.ratio:.3f} ({line.low:.3f} to {line.high:.3f})"
        )
        said.append(f"{name}: median {rounded(line['median'])} ({axis}){ratio}.")
    said.append(f"Noise: {100 * noise:.1f} %.")
    for name, machines in there.items():
        told = [f"{each.middle:.2f} on {machine}" for machine, each in machines.items()]
        said += [f"{name} in stored runs: {'; '.join(told)}."] if told else []
    return " ".join(said)
