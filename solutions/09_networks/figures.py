"""The figures of 09_networks: two frameworks on one and two ranks, rates over
the work of an image, what ranks keep of it, and how gradients are averaged."""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.ticker import LogLocator, NullLocator

from scaleout import Comparison
from scaleout.plots import look, primitives

GIGA = 1e9
ONE = "one process"
NAMES = {"tensorflow": "TensorFlow", "torch": "PyTorch"}


@look.style
def frameworks(found, guess: float | None = None, asked: str = ""):
    """Draw how many times as fast as TensorFlow on one rank each other way
    is, in each cell; the title counts the verdicts on the one asked for."""
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
    if asked:
        found_of = [one.verdict(asked) for one in found.values()]
        said = (f"{asked}: slower than {base} in {found_of.count('slower')} "
                f"of {len(found_of)} cases, faster in "
                f"{found_of.count('faster')}.")
        said = said[0].upper() + said[1:]
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
    primitives.dots(axes, work, runs, color=look.MIDDLE, markersize=5,
                    label="single measurements")
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
    # Names stand on the side of their points that is away from the line.
    for at, times in enumerate(share):
        axes.annotate(networks[at], (work[at], rate[at]),
                      (0, 8 if times >= 1 else -8), textcoords="offset points",
                      fontsize=9, ha="left" if times == 1 else "center",
                      va="bottom" if times >= 1 else "top")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(LogLocator(subs=(1, 2, 3, 5)))
        axis.set_major_formatter("{x:g}")
        axis.set_minor_locator(NullLocator())
    axes.margins(0.12)
    ends = [f"{networks[at]} {share[at]:.2f}"
            for at in (int(np.argmin(share)), int(np.argmax(share)))]
    return look.finish(
        figure, f"In {name}, {networks[-1]} has {rate[-1] / rate[0]:.2f} "
        f"times the rate of {networks[0]}. GFLOP/s: from {ends[0]} times to "
        f"{ends[1]} times.",
        f"{'. '.join(each)}, as a share of the first network's GFLOP/s.",
        legend=2)


@look.style
def efficiency_over_bytes(records, link, guess: str | None = None):
    """Draw what two ranks keep of the copies' rate over the bytes that they
    average for each operation, with alpha + beta n of `link` as the curve."""
    rows = records.to_dict("records")
    found = [Comparison(row["metrics.runs"], metric="images/s")
             for row in rows]
    kept = [one.between("together", "copies") for one in found]
    copies = np.array([float(np.median(one.runs.loc[
        one.runs["variant"] == "copies", "value"])) for one in found])
    batch = records["metrics.batch"].to_numpy(float)
    ranks = 2
    flops = batch / ranks * records["metrics.flops_per_image"].to_numpy(float)
    sent = 4 * records["metrics.parameters"].to_numpy(float)
    step_s = batch / copies
    x = 1000 * sent / flops
    y = np.array([one.middle for one in kept])
    most = max(1.5, float(y.max()))  # too few rounds have no upper end
    ends = np.clip([[one.low, one.high] for one in kept], 0, most)
    promised = step_s / (step_s + link.alpha_s + link.beta_s * sent)
    figure, axes = plt.subplots(figsize=(7.2, 4.6))
    grid = np.geomspace(x.min() / 1.4, x.max() * 1.4, 60)
    # With the operations/s of the copies; alpha, which is short, left out.
    rates = flops / step_s
    curves = {at: 1 / (1 + link.beta_s * at * grid / 1000)
              for at in (rates.min(), np.median(rates), rates.max())}
    low, middle, high = curves.values() if len(curves) == 3 else (
        3 * list(curves.values()))
    axes.fill_between(grid, low, high, color=look.PALE, zorder=0,
                      label="from the slowest copies' GFLOP/s to the fastest")
    axes.plot(grid, middle, "--", color=look.GREY,
              label=f"formula of 07, beta {1e9 * link.beta_s:.2f} ns/byte")
    axes.errorbar(x, y, [y - ends[:, 0], ends[:, 1] - y], fmt="o",
                  color=look.DARK, label="measured, with its 95 % interval")
    axes.plot(x, promised, "D", color=look.MIDDLE, fillstyle="none",
              label="formula, with this network's own step")
    names = [f"{row['metrics.network']}, {row['metrics.side']} px"
             for row in rows]
    # The curve falls: there is room to the right of its upper points. The
    # names of the last two would meet, so one stands below.
    for nth, at in enumerate(np.argsort(x), 1):
        below = nth == len(x) - 1 > 0
        axes.annotate(names[at], (x[at], ends[at, 0 if below else 1]),
                      (4, -14 if below else 6), textcoords="offset points",
                      ha="right" if nth == len(x) > 1 else "left", fontsize=9)
    said = look.find_name(names, guess) if guess else None
    if said is not None:
        look.guess_star(axes, x[said], 0.03, f"{guess} keeps the least",
                        transform=axes.get_xaxis_transform())
    axes.set(xscale="log", ylabel="together / copies",
             xlabel="gradient for each thousand operations (bytes)")
    axes.axhline(1, color=look.GREY, linewidth=1)
    axes.set_xlim(grid[0], grid[-1])
    axes.margins(y=0.15)
    axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 3, 5)))
    axes.xaxis.set_major_formatter("{x:g}")
    axes.xaxis.set_minor_locator(NullLocator())
    least, most_of = int(np.argmin(y)), int(np.argmax(y))
    apart = ("their intervals are apart" if ends[least, 1] < ends[most_of, 0]
             else "but their intervals overlap")
    title = f"{names[least]} keeps {y[least]:.2f}"
    if least != most_of:
        title += f", {names[most_of]} {y[most_of]:.2f}: {apart}"
    title += "."
    off = 100 * (promised / y - 1)
    title += f" The formula is off by {off.min():+.0f} to {off.max():+.0f} %."
    each = [f"{name}: {a:.1f} bytes, {b:.2f} ({c:.2f} to {d:.2f}), "
            f"formula {e:.2f}." for name, a, b, (c, d), e
            in zip(names, x, y, ends, promised, strict=True)]
    return look.finish(figure, title, " ".join(each), legend=2)


@look.style
def buckets(one, guess: float | None = None):
    """Draw how many times as fast as one message for each parameter the other
    ways are; the title asks whether DDP's buckets gain on one message."""
    figure, axes = plt.subplots(figsize=(7.2, 3.2))
    names = ["all at once", "DDP", "no averages"]
    shown = {name: one.ratio(name) for name in names}
    for y, (name, ratio) in enumerate(shown.items()):
        bound = name == "no averages"
        primitives.interval(axes, y, ratio.low, ratio.middle, ratio.high,
                            color=look.GREY if bound else look.DARK,
                            fmt="D" if bound else "o", capsize=0)
    axes.axvline(1, color=look.GREY, linestyle="--", label="one by one: 1")
    look.guess_line(axes, guess, upright=True)
    axes.set_yticks(range(3), [*names[:2], "no averages (the bound)"])
    axes.set_ylim(2.6, -0.6)
    axes.grid(axis="y", visible=False)
    axes.set_xlabel("times as fast as one by one, median and 95 % interval")
    each = [f"{name}: {r.middle:.2f}, {r.low:.2f} to {r.high:.2f}."
            for name, r in shown.items()]
    return look.finish(figure, one.sentence("DDP", "all at once"),
                       " ".join(each), legend=3)
