"""The figures of 09_networks: two frameworks on one and two ranks, and rates
over the work of an image."""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.ticker import LogLocator, NullLocator

from scaleout.plots import look, primitives

GIGA = 1e9
ONE = "one process"
NAMES = {"tensorflow": "TensorFlow", "torch": "PyTorch"}


@look.style
def frameworks(found, guess: float | None = None):
    """Draw how many times as fast as TensorFlow on one rank each other way
    is, in each cell."""
    rows = sum(len(one.variants) + 0.8 for one in found.values())
    figure, axes = plt.subplots(figsize=(7.2, 1.9 + 0.36 * rows))
    ticks = {}
    title = {}
    each = []
    y = 0.0
    for nth, (cell, one) in enumerate(found.items()):
        band = 1 + one.noise
        axes.fill_betweenx(
            [y - 0.5, y + len(one.variants) - 0.5], 1 / band, band,
            color=look.PALE, zorder=0,
            label="" if nth else "noise: how far identical jobs could differ")
        axes.annotate(cell, (0, y - 0.62), weight="bold", fontsize=10,
                      xycoords=("axes fraction", "data"),
                      annotation_clip=False)
        for name, own in zip(one.variants, look.LINES, strict=False):
            ratio = one.ratio(name)
            primitives.interval(axes, y, ratio.low, ratio.middle, ratio.high,
                                color=own["color"], fmt=own["marker"],
                                capsize=0)
            ticks[y] = name
            each.append(f"{cell}, {name}: {ratio.middle:.2f}, "
                        f"{ratio.low:.2f} to {ratio.high:.2f}.")
            y += 1
        y += 0.8
        verdicts = {one.verdict(name) for name in one.variants}
        says = f"nothing is shown to be faster than {one.baseline}."
        if one.best != one.baseline:
            times = one.ratio(one.best).middle
            says = f"{one.best} is {times:.2f} times as fast."
        elif verdicts == {"slower"}:
            says = f"{one.baseline} is the fastest."
        title[cell] = says
    base = next(iter(found.values())).baseline
    axes.axvline(1, color=look.GREY, linestyle="--", label=f"{base}: 1")
    look.guess_line(axes, guess, upright=True)
    axes.set_yticks(list(ticks), list(ticks.values()))
    axes.set_ylim(y - 0.8, -1.2)
    axes.grid(axis="y", visible=False)
    axes.set_xlabel(f"times as fast as {base}, median and 95 % interval")
    said = " ".join(f"{cell}: {says}" for cell, says in title.items())
    if len(title) > 1 and len(set(title.values())) == 1:
        said = f"In all {len(title)} cases, {says}"
    return look.finish(figure, said, " ".join(each), legend=3)


@look.style
def rates_over_work(records, guess: float | None = None):
    """Draw the images/s of each network over the arithmetic of one image,
    from images of one size."""
    rows = records[records["metrics.side"]
                   == records["metrics.side"].iloc[0]]
    figure, axes = plt.subplots(figsize=(7.2, 4.6))
    name = NAMES[rows["metrics.framework"].iloc[0]]
    work = rows["metrics.flops_per_image"].to_numpy(float) / GIGA
    rate = rows["rate"].to_numpy(float)
    networks = list(rows["metrics.network"])
    own = look.LINES[0]
    runs = [[run["value"] for run in of if run["variant"] == ONE]
            for of in rows["metrics.runs"]]
    primitives.dots(axes, work, runs, color=own["color"])
    axes.plot(work, rate, own["marker"], color=own["color"], markersize=8,
              label=f"{name}, median")
    law = np.array([work.min(), work.max()])
    axes.plot(law, rate[0] * work[0] / law, "--", color=own["color"],
              linewidth=1, label=f"as many GFLOP/s as {networks[0]}")
    share = rate * work / (rate[0] * work[0])
    each = [f"{network}: {r:.1f} images/s, {w:.1f} GFLOP, {s:.2f}"
            for network, w, r, s in zip(networks, work, rate, share,
                                        strict=True)]
    if guess is not None and len(rows) > 1:
        look.guess_star(axes, work[-1], guess * rate[0],
                        f"{guess:g} times {networks[0]}'s rate")
    axes.set(xscale="log", yscale="log", ylabel="rate (images/s)",
             xlabel="arithmetic per image, forward and backward (GFLOP)")
    # Names stand above and below their points, in turns; the reader's star
    # may stand below the last.
    for nth, at in enumerate(np.argsort(work)):
        above = nth % 2 == 0 or networks[at] == networks[-1]
        axes.annotate(networks[at], (work[at], rate[at]),
                      (0, 9 if above else -18), textcoords="offset points",
                      fontsize=9, ha="center")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(LogLocator(subs=(1, 2, 3, 5)))
        axis.set_major_formatter("{x:g}")
        axis.set_minor_locator(NullLocator())
    axes.margins(0.12)
    return look.finish(
        figure, f"In {name}, {networks[-1]} has {rate[-1] / rate[0]:.2f} "
        f"times the rate of {networks[0]}.",
        f"{'. '.join(each)}, as a share of the first network's GFLOP/s.",
        legend=2)
