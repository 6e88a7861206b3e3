"""Figures of 00_welcome: the limits of the machine, and the shares of a first job."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from ..words import count
from .look import DARK, LIGHT, MIDDLE, guess_line, say, style

if TYPE_CHECKING:
    import pandas as pd


@style
def limits(
    gflops: Sequence[float], gb_per_s: Sequence[float], guess: float | None = None
) -> Figure:
    """The roofline of this machine: what it can reach at most, over how much a program computes
    with each byte.
    """
    peak, bandwidth = float(np.median(gflops)), float(np.median(gb_per_s))
    intensity = np.logspace(-2, 3, 300)  # operations per byte
    figure, axes = plt.subplots()
    axes.loglog(intensity, np.minimum(peak, bandwidth * intensity), color=DARK, linewidth=3)
    axes.scatter(
        [2048 / 6] * len(gflops), gflops, s=25, color=MIDDLE, zorder=3, label="SGEMM, single runs"
    )
    guess_line(axes, guess)
    lowest = bandwidth * intensity[0]
    for x, name in (
        (1 / 12, "a + b"),
        (peak / bandwidth, "the corner"),
        (2048 / 6, "SGEMM, n = 2048"),
    ):
        axes.plot(
            [x, x], [lowest, min(peak, bandwidth * x)], color="#888888", linestyle="--", linewidth=1
        )
        axes.text(
            x * 1.12, lowest * 1.3, name, rotation=90, va="bottom", fontsize=10, color="#444444"
        )
    axes.text(0.011, bandwidth * 0.06, f"memory:\n{bandwidth:.0f} GB/s", va="bottom", color=DARK)
    axes.text(peak / bandwidth, peak * 1.2, f"cores: {peak:.0f} GFLOP/s", color=DARK)
    axes.set(xlabel="operations for each byte moved (FLOP/byte)", ylabel="within reach (GFLOP/s)")
    axes.set_ylim(lowest, max(peak, guess or 0) * 5)
    axes.legend(loc="upper left")
    found = f"At most {peak:.0f} GFLOP/s from the cores, and {bandwidth:.0f} GB/s from memory."
    corner = f"They meet at {peak / bandwidth:.1f} operations for each byte."
    say(figure, found, corner if guess is None else f"{corner} Your guess: {guess:g} GFLOP/s.")
    return figure


@style
def shares(records: "pd.DataFrame") -> Figure:
    """Who took which strips in 00_welcome: a bar for each rank, from its first strip to its
    last."""
    figure, axes = plt.subplots(figsize=(7, 2.6))
    every = [share for row in records["metrics.shares"] for share in row]
    for place, share in enumerate(every):
        width = share["last"] - share["first"]
        axes.barh(place, width, left=share["first"], color=LIGHT, edgecolor=DARK)
        text = f"{width:,} strips\npart {share['part']:.6f}"
        axes.text(share["first"] + width / 2, place, text, ha="center", va="center", fontsize=10)
    axes.set_yticks(range(len(every)), [f"rank {share['rank']}" for share in every])
    axes.set(xlabel="strip (number, counted from x = 0)", xlim=(0, max(s["last"] for s in every)))
    axes.xaxis.set_major_formatter("{x:,.0f}")
    axes.invert_yaxis()
    axes.grid(False)
    taken = [share["last"] - share["first"] for share in every]
    each = [f"rank {s['rank']} {n:,}" for s, n in zip(every, taken, strict=True)]
    whole = max(share["last"] for share in every)
    found = f"{count(len(every), 'rank')} took {sum(taken):,} strips together; there are {whole:,}."
    say(figure, found, f"Strips: {', '.join(each)}.")
    return figure
