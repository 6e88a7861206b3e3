"""Figures of 09_networks: two frameworks on one and two ranks, and rates over the work of an image."""

import math
from collections.abc import Mapping
from textwrap import fill
from typing import TYPE_CHECKING

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullLocator, StrMethodFormatter

from .look import DARK, GREY, LIGHT, MIDDLE, PALE, guess_line, guess_star, style

if TYPE_CHECKING:
    import pandas as pd

    from ..comparisons.comparison import Comparison


WIDTH = 76  # letters of a title's line
MARKS = ("o", "s", "D", "^")
COLOURS = (DARK, MIDDLE, LIGHT, GREY)
GIGA = 1e9


@style
def frameworks(found: "Mapping[str, Comparison]", guess: float | None = None) -> Figure:
    """How many times as fast as TensorFlow on one rank each other way is, in each cell."""
    first = next(iter(found.values()))
    rows = [(cell, name) for cell, one in found.items() for name in one.variants]
    figure, axes = plt.subplots(figsize=(7.2, 1.9 + 0.34 * len(rows) + 0.25 * len(found)))
    ticks = []
    y = 0.0
    for cell, one in found.items():
        top = y
        for name, mark, colour in zip(one.variants, MARKS, COLOURS, strict=False):
            _interval(axes, one, name, y, mark, colour)
            ticks.append((y, name))
            y += 1
        band = 1 + one.noise
        label = "the noise of equal jobs" if cell == next(iter(found)) else ""
        axes.fill_betweenx([top - 0.5, y - 0.5], 1 / band, band, color=PALE, zorder=0, label=label)
        axes.annotate(cell, (0, top - 0.62), xycoords=("axes fraction", "data"), fontsize=10,
                      weight="bold", annotation_clip=False)  # fmt: skip
        y += 0.8
    axes.axvline(1, color=GREY, linestyle="--", label=f"{first.baseline}: 1")
    guess_line(axes, guess, upright=True)
    axes.set_yticks([at for at, _ in ticks], [name for _, name in ticks])
    axes.set_ylim(y - 0.8, -1.2)
    axes.grid(axis="y", visible=False)
    axes.set_xlabel(f"times as fast as {first.baseline}, median and 95 % interval")
    title = " ".join(_cell_in_words(cell, one) for cell, one in found.items())
    figure.suptitle(fill(title, WIDTH), fontsize=11, x=0.01, ha="left")
    figure.legend(
        *axes.get_legend_handles_labels(), fontsize=9, loc="outside lower center", ncols=3
    )
    said = [
        f"{cell}, {name}: {one.ratio(name).middle:.2f}, {one.ratio(name).low:.2f} to "
        f"{one.ratio(name).high:.2f}."
        for cell, one in found.items()
        for name in one.variants
    ]
    figure.set_label(" ".join([title, *said]))
    return figure


def _interval(axes: Axes, one: "Comparison", name: str, y: float, mark: str, colour: str) -> None:
    """The median of the ratios as a mark, its interval as a line where there is one."""
    ratio = one.ratio(name)
    if math.isfinite(ratio.low) and math.isfinite(ratio.high):
        axes.plot([ratio.low, ratio.high], [y, y], color=colour, linewidth=2.5)
    axes.plot([ratio.middle], [y], mark, color=colour, markersize=8, zorder=3)


def _cell_in_words(cell: str, one: "Comparison") -> str:
    verdicts = {name: one.verdict(name) for name in one.variants}
    if one.best != one.baseline:
        return f"{cell}: {one.best} is {one.ratio(one.best).middle:.2f} times as fast."
    if set(verdicts.values()) == {"slower"}:
        return f"{cell}: {one.baseline} is the fastest."
    return f"{cell}: nothing is shown to be faster than {one.baseline}."


@style
def rates_over_work(records: "pd.DataFrame", guess: float | None = None) -> Figure:
    """The images a second of each network over the arithmetic of one image, by each framework."""
    figure, axes = plt.subplots(figsize=(7.2, 4.2))
    said = []
    names = {"tensorflow": "TensorFlow", "torch": "PyTorch"}
    for (framework, label), mark, colour in zip(names.items(), MARKS, COLOURS, strict=False):
        own = records[records["metrics.framework"] == framework]
        if own.empty:
            continue
        work = own["metrics.flops_per_image"].to_numpy(float) / GIGA
        rate = own["rate"].to_numpy(float)
        axes.plot(work, rate, mark, color=colour, markersize=8, label=f"{label}, one run each")
        law = np.array([work.min(), work.max()])
        axes.plot(law, rate[0] * work[0] / law, "--", color=colour, linewidth=1,
                  label=f"as much arithmetic a second as {own['metrics.network'].iloc[0]}")  # fmt: skip
        off = rate * work / (rate[0] * work[0])
        for name, x, y, share in zip(own["metrics.network"], work, rate, off, strict=True):
            said.append(f"{label}, {name}: {y:.1f} images/s, {x:.1f} GFLOP, {share:.2f}")
    tensorflow = records[records["metrics.framework"] == "tensorflow"]
    if guess is not None and len(tensorflow) > 1:
        ends = tensorflow.iloc[[0, -1]]
        x = float(ends["metrics.flops_per_image"].iloc[1]) / GIGA
        guess_star(axes, x, guess * float(ends["rate"].iloc[0]), f"{guess:g} of the first")
    axes.set(xscale="log", yscale="log")
    _names(axes, records)
    axes.set_xlabel("arithmetic of one image, forward and backward (GFLOP)")
    axes.set_ylabel("images/s")
    done = tensorflow["rate"] * tensorflow["metrics.flops_per_image"] / GIGA
    title = (
        f"TensorFlow does {done.min():.0f} to {done.max():.0f} GFLOP/s in "
        f"{', '.join(tensorflow['metrics.network'])}."
    )
    figure.suptitle(fill(title, WIDTH), fontsize=11, x=0.01, ha="left")
    figure.legend(
        *axes.get_legend_handles_labels(), fontsize=9, loc="outside lower center", ncols=2
    )
    figure.set_label(f"{title} {'. '.join(said)} of the first network's arithmetic a second.")
    return figure


def _names(axes: Axes, records: "pd.DataFrame") -> None:
    """The networks above and below their points, in turns, and plain numbers on both axes."""
    ordered = records.groupby("metrics.network").agg(
        work=("metrics.flops_per_image", "first"), low=("rate", "min"), high=("rate", "max")
    )
    guessed = records["metrics.network"].iloc[-1]  # the reader's star stands below it, or on it
    for at, (name, row) in enumerate(ordered.sort_values("work").iterrows()):
        above = at % 2 == 0 or name == guessed
        axes.annotate(
            str(name),
            (row.work / GIGA, row.high if above else row.low),
            (0, 9 if above else -18),
            textcoords="offset points",
            fontsize=9,
            ha="center",
        )
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(LogLocator(subs=(1, 2, 3, 5)))
        axis.set_major_formatter(StrMethodFormatter("{x:g}"))
        axis.set_minor_locator(NullLocator())
    axes.margins(0.12)
