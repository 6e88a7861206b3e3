"""The figures of 04_kmeans: pictures in few colours, quality, scaling,
memory."""

import matplotlib.pyplot as plt
import numpy as np

from scaleout.plots import look
from scaleout.plots import primitives as draw

MEMORY = {
    "program": ("Python, libraries",
                {"color": look.PALE, "edgecolor": look.DARK}),
    "rows": ("rows and work", {"color": look.LIGHT, "hatch": "//",
                               "edgecolor": look.DARK}),
}


@look.style
def quantised(before, runs):
    """Draw the photograph beside its copies in few colours; below each copy
    its palette, as wide as the colour is common."""
    columns = min(1 + len(runs), 2)
    rows = -(-(1 + len(runs)) // columns)
    height = 7 / columns * before.shape[0] / before.shape[1]
    figure, grid = plt.subplots(
        2 * rows, columns, squeeze=False, dpi=64,
        height_ratios=[10, 1] * rows,
        figsize=(7, rows * (height * 1.1 + 0.45) + 0.3))
    for axes in grid.flat:
        axes.set_axis_off()
    grid[0, 0].imshow(before)
    grid[0, 0].set_title("before", fontsize=11)
    reached = []
    for place, run in enumerate(runs, 1):
        metrics = run.records["metrics"].iloc[0]
        row = 2 * (place // columns)
        picture = grid[row, place % columns]
        picture.imshow(plt.imread(run.folder / "quantised.png"))
        reached.append(f"{metrics['colours']} colours, "
                       f"PSNR {metrics['psnr_db']:.1f} dB")
        picture.set_title(reached[-1], fontsize=11)
        _palette(grid[row + 1, place % columns],
                 metrics["shares"][0]["palette"], metrics["count"])
    title = "The photograph, and its copies with their palettes."
    return look.finish(figure, title, f"{'; '.join(reached)}.")


def _palette(axes, palette, counts) -> None:
    """The colours in a bar from 0 to 1, from dark to light."""
    order = np.argsort(np.sum(palette, axis=1))  # (colours,)
    widths = np.array(counts)[order] / np.sum(counts)
    axes.barh(0, widths, 0.8, left=np.cumsum(widths) - widths,
              color=np.clip(np.array(palette)[order], 0, 1),
              edgecolor="white", linewidth=0.4 * (len(palette) <= 32))
    axes.set_xlim(0, 1)


@look.style
def quality(records, guess: float | None = None):
    """Draw what more colours buy: inertia and PSNR, a point for each
    job."""
    jobs = sorted((frame["metrics"].iloc[0] for frame in records),
                  key=lambda job: job["colours"])
    colours = [job["colours"] for job in jobs]
    psnr_db = [job["psnr_db"] for job in jobs]
    figure, (left, right) = plt.subplots(1, 2, figsize=(7, 3.7))
    draw.line(left, colours, [job["inertia"] for job in jobs], "inertia", 0)
    draw.line(right, colours, psnr_db, "PSNR", 1)
    left.set(ylabel="inertia (sum of squared distances)", yscale="log")
    right.set(ylabel="PSNR (dB)")
    for axes in (left, right):
        axes.set_xscale("log", base=2)
        axes.set_xticks(colours, [str(k) for k in colours])
        axes.set_xlabel("colours (count)")
        look.guess_line(axes, guess, upright=True)
    title = (f"{colours[-1]} colours reach {psnr_db[-1]:.1f} dB, "
             f"{colours[0]} reach {psnr_db[0]:.1f} dB.")
    return look.finish(figure, title, legend=3)


@look.style
def strong_and_weak(strong, weak):
    """Draw the speed-up of the same rows on more ranks, and the efficiency
    of more rows on more ranks."""
    figure, (left, right) = plt.subplots(1, 2)
    shared = _scaling(left, strong, "speed-up")
    grown = _scaling(right, weak, "efficiency")
    left.set_title("all rows shared out", fontsize=11)
    right.set_title("more rows with more ranks", fontsize=11)
    title = (f"All rows shared out: {shared}. More rows with more ranks: "
             f"{grown}.")
    return look.finish(figure, title, legend=4)


def _scaling(axes, records, what: str) -> str:
    """How much faster than on one rank; the ideal is dashed."""
    seconds = {}
    for frame in records:
        seconds.setdefault(int(frame.ranks.iloc[0]), []).append(
            frame.step_median_s.iloc[0])
    ranks = sorted(seconds)
    one = np.median(seconds[ranks[0]])
    growth = np.array(ranks) / ranks[0]
    ideal = growth if what == "speed-up" else np.ones(len(ranks))
    draw.ideal(axes, ranks, ideal)
    times = [one / np.array(seconds[n]) for n in ranks]
    middle = draw.line(axes, ranks, map(np.median, times), "median")
    draw.dots(axes, ranks, times, "single runs", color=look.MIDDLE,
              marker="o", markersize=4, alpha=1, zorder=3)
    cores = int(records[0].cores.iloc[0])
    if ranks[0] < cores <= ranks[-1]:
        axes.axvline(cores, color=look.GREY, linestyle=":",
                     label=f"cores: {cores}")
    axes.set(xlabel="ranks (count)", ylabel=f"{what} over {ranks[0]} rank",
             xticks=ranks, ylim=(0, 1.08 * max(*ideal, *middle)))
    inside = [n for n in ranks if n <= max(cores, ranks[0])]
    reached = middle[len(inside) - 1]
    return f"{what} {reached:.2f} on {inside[-1]} ranks"


@look.style
def memory_bars(records, data_mib: float, guess: float | None = None):
    """Draw the peak memory of each rank, in groups by job; the lower part
    is the program without rows."""
    figure, axes = plt.subplots()
    rows = []
    places = []
    ticks = []
    most = []
    for job, (name, frame) in enumerate(records.items()):
        peaks = np.array(frame["metrics.memory_mib"].iloc[0])
        programs = np.array(frame["metrics.program_mib"].iloc[0])
        own = len(rows) + 0.7 * job + np.arange(len(peaks))
        places.extend(own)
        ticks.append(own.mean())
        rows += [{"program": program, "rows": peak - program}
                 for peak, program in zip(peaks, programs, strict=True)]
        most.append(f"{name} {max(peaks - programs):.0f}")
    ends = draw.stacked(axes, rows, MEMORY, places, flat=False, width=0.9)
    for place, mib in zip(places, ends, strict=True):
        axes.annotate(f"{mib:.0f}", (place, mib), (0, 4), ha="center",
                      textcoords="offset points", fontsize=10)
    program = float(np.median(programs))
    axes.axhline(program + data_mib, color="black", linestyle="--",
                 label=f"all rows: {data_mib:.0f} MiB")
    if guess is not None:
        look.guess_star(axes, ticks[1], program + guess, f"{guess:g} MiB")
    axes.set_xticks(ticks, list(records))
    axes.set(ylabel="peak memory of each rank (MiB)",
             ylim=(0, 1.45 * max(program + data_mib, *ends)))
    axes.legend(loc="upper right")
    title = ("MiB that a rank needs beside Python and its libraries: "
             f"{', '.join(most)}.")
    return look.finish(figure, title)
