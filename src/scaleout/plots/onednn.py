"""Figures of 01_onednn: where the time goes, layouts, number formats."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from .look import DARK, LIGHT, MIDDLE, PALE, Look, style

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "against_peak",
    "dot_errors",
    "layouts",
    "number_formats",
    "primitive_shares",
    "reorders",
]


@style
def primitive_shares(table: "pd.DataFrame", wall_s: float, steps: int = 1) -> Figure:
    """Where the time of a step went: a bar for each of oneDNN's primitives, and one for all that is
    not oneDNN.

    Parameters
    ----------
    table : DataFrame
        Of `onednn.shares`.
    wall_s : float
        Seconds that the same steps took by the clock.
    steps : int
        How many steps the table and wall_s are of.

    Notes
    -----
    With more than one inter-op thread, primitives run side by side, and their times can add up to
    more than the clock's: then what is not oneDNN cannot be told, and is not drawn.
    """
    names = [
        f"{row.primitive} {row.prop_kind.replace('_', ' ')}".strip() for row in table.itertuples()
    ]
    times = [ms / steps for ms in table.time_ms]
    few = [(name, ms) for name, ms in zip(names, times, strict=True) if ms >= 0.01 * sum(times)]
    other = sum(times) - sum(ms for _, ms in few)
    rest = 1000 * wall_s / steps - sum(times)
    bars = [
        *few,
        *([("other primitives", other)] if other else []),
        *([("not in oneDNN", rest)] if rest > 0 else []),
    ]
    figure, axes = plt.subplots(figsize=(7, 0.5 * len(bars) + 1.2))
    whole = sum(ms for _, ms in bars)
    for place, (name, ms) in enumerate(bars):
        outside = name == "not in oneDNN"
        axes.barh(
            place,
            ms,
            color=PALE if outside else DARK,
            edgecolor=DARK,
            hatch="//" if outside else "",
        )
        text = f"{ms:,.{0 if ms >= 10 else 2}f} ms, {100 * ms / whole:.0f} %"
        axes.annotate(
            text, (ms, place), (6, 0), textcoords="offset points", va="center", fontsize=10
        )
    axes.set_yticks(range(len(bars)), [name for name, _ in bars])
    overlap = (
        "" if rest > 0 else f", overlapping: {sum(times) * steps / 1000 / wall_s:.2f} x the step"
    )
    axes.set(xlabel=f"time a step (ms){overlap}", xlim=(0, 1.4 * max(ms for _, ms in bars)))
    axes.invert_yaxis()
    axes.grid(axis="y", visible=False)
    return figure


@style
def reorders(table: "pd.DataFrame", steps: int = 1) -> Figure:
    """What changes of layout cost: a bar for each, from and to; hatched where images, not weights,
    had to move.

    Parameters
    ----------
    table : DataFrame
        Of `onednn.reorders`.
    steps : int
        How many steps it is of.
    """
    figure, axes = plt.subplots(figsize=(7, 0.4 * max(1, len(table)) + 1.3))
    for place, row in enumerate(table.itertuples(index=False)):
        moved, start, end, calls, ms = row[:5]
        images = moved == "images"
        axes.barh(
            place,
            ms / steps,
            color=MIDDLE if images else LIGHT,
            edgecolor=DARK,
            hatch="//" if images else "",
        )
        text = f"{calls / steps:.0f} x"
        axes.annotate(
            text, (ms / steps, place), (6, 0), textcoords="offset points", va="center", fontsize=10
        )
    names = [f"{row[0]}: {row[1]} to {row[2]}" for row in table.itertuples(index=False)]
    axes.set_yticks(range(len(names)), names, fontsize=10)
    whole = 100 * table.share.sum()
    axes.set(xlabel=f"time a step (ms); all together {whole:.1f} % of oneDNN's time")
    axes.margins(x=0.15)
    axes.invert_yaxis()
    axes.grid(axis="y", visible=False)
    return figure


@style
def layouts(pixels: int = 4, channels: int = 8, block: int = 4) -> Figure:
    """The same image three times, as it lies in memory: numbers are pixels, lightness is the
    channel.

    Parameters
    ----------
    pixels : int
    channels : int
        A multiple of `block`.
    block : int
        Channels that lie together; oneDNN's own blocks have 8 or 16.
    """
    pixel, channel = np.meshgrid(np.arange(pixels), np.arange(channels), indexing="ij")
    orders = {
        "NHWC: all channels of a pixel": np.argsort((pixel * channels + channel).ravel()),
        "NCHW: all pixels of a channel": np.argsort((channel * pixels + pixel).ravel()),
        f"nChw{block}c: blocks of {block} channels": np.argsort(
            ((channel // block * pixels + pixel) * block + channel % block).ravel()
        ),
    }
    figure, axes = plt.subplots(figsize=(7, 3.2))
    shades = mpl.colormaps["Blues"](np.linspace(0.05, 0.85, channels))
    for row, order in enumerate(orders.values()):
        for address, cell in enumerate(order):
            p, c = pixel.ravel()[cell], channel.ravel()[cell]
            axes.add_patch(
                Rectangle((address, -row), 1, 0.6, facecolor=shades[c], edgecolor="white")
            )
            ink = "white" if c > channels / 2 else "black"
            axes.text(address + 0.5, 0.3 - row, p, ha="center", va="center", fontsize=9, color=ink)
        axes.text(0, 0.68 - row, list(orders)[row], fontsize=10)
    for c, name in ((0, "first channel"), (channels - 1, "last channel")):
        axes.add_patch(Rectangle((0, 0), 0, 0, facecolor=shades[c], edgecolor=DARK, label=name))
    axes.set(
        xlim=(-0.2, pixels * channels + 0.2),
        ylim=(-2.15, 1.3),
        yticks=[],
        xlabel="address in memory (numbers)",
    )
    axes.legend(loc="upper right", ncols=2, borderaxespad=0)
    axes.spines["left"].set_visible(False)
    axes.grid(False)
    return figure


@style
def number_formats(table: "pd.DataFrame") -> Figure:
    """The positive numbers that each format can hold, on a logarithmic axis; light where digits get
    lost.

    table: of onednn.formats.
    """
    figure, axes = plt.subplots(figsize=(7, 3.2))
    for place, row in enumerate(table.itertuples()):
        low, normal, high = (np.log10(v) for v in (row.smallest, row.smallest_normal, row.largest))
        names = ("full precision", "fewer digits") if place == 0 else ("", "")
        axes.barh(place, high - normal, 0.5, left=normal, color=DARK, label=names[0])
        if normal > low:
            axes.barh(
                place,
                normal - low,
                0.5,
                left=low,
                color=PALE,
                edgecolor=DARK,
                hatch="//",
                label=names[1],
            )
        gap = f"gap above 1: {row.epsilon:.2g}"
        axes.text(max(high, 2.2) + 1, place, gap, va="center", fontsize=10)
    axes.set_yticks(
        range(len(table)), [f"{name} ({bits} bits)" for name, bits in table.bits.items()]
    )
    axes.set_xticks(range(-40, 41, 20), [f"$10^{{{power}}}$" for power in range(-40, 41, 20)])
    axes.set(xlabel="numbers that can be held", xlim=(-47, 75))
    axes.axvline(0, color="#888888", linestyle="--", linewidth=1)
    axes.invert_yaxis()
    axes.grid(axis="y", visible=False)
    axes.legend(loc="upper center", bbox_to_anchor=(0.42, 1.18), ncols=2)
    return figure


@style
def dot_errors(errors: "pd.DataFrame") -> Figure:
    """The relative error of a dot product over its length: medians as lines, single products as
    points.

    errors: of onednn.dot_errors.
    """
    figure, axes = plt.subplots()
    lines = [("-", "o"), ("--", "s"), ("-.", "^"), (":", "v"), ("-", "x")]
    colors = [DARK, MIDDLE, LIGHT, "#6b705c", "black"]
    for (how, group), (line, marker), color in zip(
        errors.groupby("how"), lines, colors, strict=False
    ):
        axes.scatter(group.length, group.error, s=6, color=color, alpha=0.25, marker=marker)
        median = group.groupby("length").error.median()
        axes.plot(median.index, median, linestyle=line, marker=marker, color=color, label=how)
    axes.set(xscale="log", yscale="log", xlabel="length of the two vectors (numbers)")
    axes.set_ylabel("relative error of their dot product")
    axes.set_xticks(
        sorted(errors.length.unique()), [str(n) for n in sorted(errors.length.unique())]
    )
    axes.minorticks_off()
    axes.legend(fontsize=9, loc="upper left", bbox_to_anchor=(1, 1))
    return figure


@style
def against_peak(
    records: "pd.DataFrame", sgemm_gflops: float, labels: Mapping[str, str] | None = None
) -> Figure:
    """How much of the machine's own SGEMM rate (dashed) training reaches, by counted operations;
    single runs as points.

    Parameters
    ----------
    records : DataFrame
        A row each run, with `rate` in images/s, `metrics.flops_per_image` and `metrics.kernels`.
    sgemm_gflops : float
        GFLOP/s, as `machine.sgemm_gflops` measures.
    labels : mapping, optional
        What to call each value of `metrics.kernels`.
    """
    gflops = records.rate * records["metrics.flops_per_image"] / 1e9
    groups = {
        name: group.tolist()
        for name, group in gflops.groupby(records["metrics.kernels"], sort=False)
    }
    figure, axes = plt.subplots(figsize=(7, 3.4))
    for place, group in enumerate(groups.values()):
        fill, hatch = [(DARK, ""), (LIGHT, ""), (PALE, "//")][place % 3]
        median = float(np.median(group))
        axes.barh(place, median, 0.6, color=fill, edgecolor=DARK, hatch=hatch)
        axes.scatter(group, [place] * len(group), s=28, color="white", edgecolor="black", zorder=3)
        text = f"{median:.0f} GFLOP/s, {median / sgemm_gflops:.2f} of SGEMM"
        paper = {
            "facecolor": "white",
            "edgecolor": "none",
            "pad": 1,
        }  # the dashed line passes behind the words
        at: Look = {"textcoords": "offset points", "va": "center", "fontsize": 10, "bbox": paper}
        axes.annotate(text, (max(group), place), (8, 0), **at)
    axes.axvline(
        sgemm_gflops,
        color="#555555",
        linestyle="--",
        label=f"SGEMM in fp32: {sgemm_gflops:.0f} GFLOP/s",
    )
    axes.set_yticks(range(len(groups)), [(labels or {}).get(name, name) for name in groups])
    axes.set(
        xlabel="operations a second (GFLOP/s)", xlim=(0, 1.7 * max(sgemm_gflops, gflops.max()))
    )
    axes.invert_yaxis()
    axes.grid(axis="y", visible=False)
    axes.legend(loc="upper right", bbox_to_anchor=(1, 1.15), borderaxespad=0)
    return figure
