"""Figures of 08_precision: few bits, small gradients, an instruction set and a number, streams."""

from collections.abc import Mapping
from textwrap import fill
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from ..words import rounded
from .look import DARK, GREY, LIGHT, MIDDLE, PALE, guess_line, guess_star, style

if TYPE_CHECKING:
    import pandas as pd


LINES = ((DARK, "-", "o"), (MIDDLE, "--", "s"), ("#a98600", ":", "^"), (GREY, "-.", "D"))
TITLE = 84  # letters


@style
def few_bits(records: "pd.DataFrame", guess: float | None = None) -> Figure:
    """Accuracy of a network, and the error of its weights, over the bits of its whole numbers."""
    part = records[records["metrics.part"] == "int8"]
    plain = 100 * float(part[part.variant == "fp32"]["metrics.accuracy"].iloc[0])
    figure, (left, right) = plt.subplots(1, 2, figsize=(8, 3.8))
    said, fewest = [], {}
    for per, (colour, dash, marker) in zip(("tensor", "channel"), LINES, strict=False):
        own = part[part.variant.str.endswith(per)]
        bits = [int(name.split()[0]) for name in own.variant]
        percent = [100 * float(value) for value in own["metrics.accuracy"]]
        off = [100 * float(np.mean(value)) for value in own["metrics.off"]]
        look: dict[str, Any] = {"color": colour, "linestyle": dash, "marker": marker}
        left.plot(bits, percent, label=f"per {per}", **look)
        right.plot(bits, off, label=f"per {per}", **look)
        fewest[per] = min(
            (b for b, p in zip(bits, percent, strict=True) if p > plain - 5), default=0
        )
        said += [f"per {per} {b} bits {p:.1f} %" for b, p in zip(bits, percent, strict=True)]
    left.axhline(plain, color=GREY, linestyle="--", linewidth=1, label=f"fp32: {plain:.1f} %")
    guess_line(left, guess, upright=True)
    for axes in (left, right):
        axes.set_xlabel("bits of a whole number")
        axes.set_xticks(sorted(set(bits)))
        axes.invert_xaxis()
        axes.legend(fontsize=9, frameon=True, edgecolor="none", framealpha=0.9)
    left.set(ylabel="digits that are right (%)", ylim=(0, 103))
    right.set(ylabel="error of the weights (% of their spread)", yscale="log")
    ends = " and ".join(f"{count} bits per {per}" for per, count in fewest.items() if count)
    title = f"Within five points of fp32: down to {ends}" if ends else "None is within five points"
    figure.suptitle(title, fontsize=11, x=0.01, ha="left")
    figure.set_label(f"Of the digits right: fp32 {plain:.1f} %; " + ", ".join(said) + ".")
    return figure


@style
def loss_curves(records: "pd.DataFrame", guess: float | None = None) -> Figure:
    """The loss over the steps in each number format, and the accuracy of each seed."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(8, 3.9), width_ratios=[1.5, 1])
    names, said = [], []
    for at, (_, row) in enumerate(records.iterrows()):
        colour, dash, marker = LINES[at % len(LINES)]
        losses = np.array(row["metrics.losses"], float)  # (seeds, steps)
        width = max(1, losses.shape[1] // 30)
        smooth = np.array([np.convolve(each, np.ones(width) / width, "valid") for each in losses])
        steps = np.arange(smooth.shape[1]) + width
        left.plot(steps, smooth.mean(axis=0), color=colour, linestyle=dash, linewidth=2,
                  label=row["metrics.how"])  # fmt: skip
        left.fill_between(steps, smooth.min(axis=0), smooth.max(axis=0), color=colour, alpha=0.15,
                          linewidth=0)  # fmt: skip
        percent = 100 * np.array(row["metrics.accuracy"], float)
        right.plot([at] * len(percent), percent, linestyle="", color=colour, marker=marker,
                   alpha=0.8)  # fmt: skip
        lost = row.get("metrics.lost")
        zeros = "" if lost is None else f"\n{100 * lost:.0f} % to 0"
        names.append(fill(row["metrics.how"], 9) + zeros)
        low, high = f"{percent.min():.1f}", f"{percent.max():.1f}"
        ends = f"{low} %" if low == high else f"{low} to {high} %"
        said.append(f"{row['metrics.how']}: {ends}{zeros.replace(chr(10), ', ')}")
    if guess is not None and len(names) > 2:
        guess_star(right, 2, guess, f"{guess:g} %")
        right.legend(fontsize=8, loc="lower left")
    left.set(xlabel="step", ylabel="loss", ylim=(0, None))
    left.legend(fontsize=9)
    right.set_xticks(range(len(names)), names, fontsize=8)
    right.set(ylabel="test images right (%)", xlim=(-0.5, len(names) - 0.5))
    unbroken = "; ".join(text.replace(" ", "\u00a0") for text in said)
    figure.suptitle(fill(unbroken, TITLE), fontsize=9, x=0.01, ha="left")
    figure.set_label("Test images right, over the seeds. " + "; ".join(said) + ".")
    return figure


@style
def calibrations(records: "pd.DataFrame", guess: float | None = None) -> Figure:
    """Accuracy and size of a network in fp32 and, calibrated in several ways, in int8."""
    part = records[records["metrics.part"] == "models"]
    names = list(part.variant)
    percent = [100 * float(value) for value in part["metrics.accuracy"]]
    kib = [float(value) / 1024 for value in part["metrics.bytes"]]
    figure, axes = plt.subplots(figsize=(7.5, 3.9))
    axes.bar(range(len(names)), percent, width=0.65,
             color=[GREY, *[DARK] * (len(names) - 1)])  # fmt: skip
    axes.axhline(percent[0], color=GREY, linestyle="--", linewidth=1)
    for x, (value, size) in enumerate(zip(percent, kib, strict=True)):
        inside = value > 25
        axes.text(
            x,
            3 if inside else value + 2,
            f"{value:.1f} %\n{size:,.0f} KiB",
            ha="center",
            va="bottom",
            fontsize=9,
            color="white" if inside else "black",
        )
    if guess is not None:
        dark = [x for x, name in enumerate(names) if "dark" in name]
        guess_star(axes, dark[0] if dark else 0, guess, f"{guess:g} %", color=MIDDLE)
        axes.legend(fontsize=9, loc="upper right")
    axes.set_xticks(range(len(names)), [name.replace(", ", ",\n") for name in names], fontsize=9)
    axes.set(ylabel="test images right (%)", ylim=(0, 118))
    axes.grid(axis="x", visible=False)
    images = int(part["metrics.images"].iloc[0])
    one = 100 / images
    title = f"int8 has {min(kib[1:]) / kib[0]:.2f} of the size. One of {images:,} images is {one:.2f} points."
    axes.set_title(title, fontsize=11, loc="left")
    said = ", ".join(
        f"{name} {value:.1f} %, {size:,.0f} KiB"
        for name, value, size in zip(names, percent, kib, strict=True)
    )
    figure.set_label(f"Test images right, and size: {said}.")
    return figure


@style
def ladder(table: "pd.DataFrame", units: Mapping[str, str], guess: float | None = None) -> Figure:
    """Rates over instruction sets and number formats, as a heat map: white where a step is missing."""
    times = table.copy()
    for what in units:
        own = [name for name in table.columns if name.startswith(what)]
        first = table[f"{what} fp32"].dropna()
        times[own] = table[own] / (first.iloc[0] if len(first) else np.nan)
    shades = mpl.colors.LinearSegmentedColormap.from_list("times", [PALE, LIGHT, DARK])
    values = times.to_numpy(float)
    top = max(2.0, float(np.nanmax(values)))
    figure, axes = plt.subplots(figsize=(2.8 + 1.15 * table.shape[1], 1.5 + 0.55 * len(table)))
    picture = axes.imshow(
        values,
        cmap=shades,
        aspect="auto",
        norm=mpl.colors.LogNorm(min(1.0, np.nanmin(values)), top),
    )
    for (row, column), value in np.ndenumerate(values):
        there = table.iloc[row].notna().any()
        text = "" if not there else "none"
        if not np.isnan(value):
            text = f"{value:.1f}x\n{rounded(table.iloc[row, column])}"
        dark = not np.isnan(value) and value > top**0.65
        axes.text(column, row, text, ha="center", va="center", fontsize=9,
                  color="white" if dark else "black")  # fmt: skip
    missing = [step for step in table.index if table.loc[step].isna().all()]
    labels = [f"{step}{' (not measured)' if step in missing else ''}" for step in table.index]
    columns = []
    for name in table.columns:
        what, _, number = name.partition(" ")
        unit = units[what].replace("FLOP", "OP") if number == "int8" else units[what]
        columns.append(f"{what}\n{number}\n({unit})")
    axes.set_xticks(range(table.shape[1]), columns, fontsize=9)
    axes.set_yticks(range(len(table)), labels, fontsize=9)
    axes.invert_yaxis()
    axes.grid(False)
    bar = figure.colorbar(picture, ax=axes, label="times as fast as fp32 on the lowest step")
    bar.ax.yaxis.set_major_formatter(mpl.ticker.FuncFormatter(lambda value, _: f"{value:g}"))
    bar.ax.yaxis.set_minor_formatter(mpl.ticker.FuncFormatter(lambda value, _: f"{value:g}"))
    products = times[[name for name in times.columns if name.startswith("GEMM")]]
    best = products.stack().idxmax()
    said = f"The fastest product: {best[1].split()[1]} on {best[0]}, {products.stack().max():.1f}x"
    if guess is not None:
        said += f" (your guess: {guess:g}x)"
    axes.set_title(said, fontsize=11, loc="left")
    cells = ", ".join(
        f"{step} {name} {times.loc[step, name]:.1f}x"
        for step in times.index
        for name in times.columns
        if not np.isnan(times.loc[step, name])
    )
    figure.set_label(f"Times as fast as fp32 on the lowest step: {cells}.")
    return figure


@style
def streams(records: "pd.DataFrame", guess: float | None = None) -> Figure:
    """Latency within which 99 of 100 requests are answered, over images/s: one process with all
    cores, and one a core.
    """
    figure, axes = plt.subplots(figsize=(7.2, 4.2))
    said = []
    for way, (colour, dash, marker) in zip(("one process", "one a core"), LINES, strict=False):
        rates, late = [], []
        for _, row in records.iterrows():
            runs = [run["value"] for run in row["metrics.runs"] if run["variant"] == way]
            rates.append(float(np.median(runs)))
            late.append(row["metrics.took"][way]["ms_99"])
            batch = row["metrics.batch"]
            left = way == "one process"
            axes.annotate(
                f"batch {batch}",
                (rates[-1], late[-1]),
                (-8 if left else 8, 0),
                textcoords="offset points",
                ha="right" if left else "left",
                va="center",
                fontsize=9,
                color=colour,
            )
            said.append(f"{way}, batch {batch}: {rates[-1]:,.0f} images/s, {late[-1]:.2f} ms")
        axes.plot(rates, late, color=colour, linestyle=dash, marker=marker, label=way)
    if guess is not None:
        axes.plot([], [], linestyle="", label=f"your guess: from batch {guess:g} on")
    axes.margins(0.18, 0.08)
    axes.set(xscale="log", yscale="log", xlabel="images/s of the whole machine",
             ylabel="99 of 100 requests within (ms)")  # fmt: skip
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(mpl.ticker.LogLocator(subs=(1, 2, 5)))
        axis.set_major_formatter(mpl.ticker.FuncFormatter(lambda value, _: f"{value:,g}"))
        axis.set_minor_formatter(mpl.ticker.NullFormatter())
    figure.legend(loc="outside upper center", ncols=3, fontsize=9)
    axes.set_title("Lower is sooner, further right is more; a batch: the images of a request",
                   fontsize=10, loc="left")  # fmt: skip
    figure.set_label("99 of 100 requests within: " + "; ".join(said) + ".")
    return figure
