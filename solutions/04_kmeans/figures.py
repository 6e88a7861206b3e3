"""The figures of 04_kmeans: pictures in few colours, quality, memory."""

import matplotlib.pyplot as plt
import numpy as np

from scaleout.plots import look
from scaleout.plots import primitives as draw

MEMORY = {
    "rows": ("the rows it holds", {"color": look.LIGHT,
                                   "edgecolor": look.DARK}),
    "work": ("all else", {"color": look.PALE, "edgecolor": look.DARK}),
}
GOAL_DB = 40  # an error of a hundredth of the range
# By how much the inertia falls where each colour stands for half as large a
# part of a line, of a surface, of a space; and where the words stand.
FALLS = {"line": (1 - 2**-2, "right"), "surface": (1 - 2**-1, "right"),
         "space": (1 - 2**(-2 / 3), "left")}


@look.style
def quantised(before, runs):
    """Draw the photograph beside its copies in few colours; below each copy
    its palette, as wide as the colour is common."""
    columns = min(1 + len(runs), 2)
    rows = -(-(1 + len(runs)) // columns)
    height = 7 / columns * before.shape[0] / before.shape[1]
    figure, grid = plt.subplots(
        2 * rows, columns, squeeze=False, dpi=80,
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
                 metrics["palette"], metrics["count"])
    title = (f"The photograph, and below each copy its palette: "
             f"{'; '.join(reached)}.")
    wide = "A colour of a palette is as wide as it is common."
    return look.finish(figure, title, wide)


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
    """Draw what more colours buy: the PSNR of each job, up to the 40 dB that
    were asked for, and what each doubling takes from the inertia."""
    jobs = sorted((frame["metrics"].iloc[0] for frame in records),
                  key=lambda job: job["colours"])
    colours = np.array([job["colours"] for job in jobs])
    psnr_db = [job["psnr_db"] for job in jobs]
    inertia = np.array([job["inertia"] for job in jobs])
    figure, (left, right) = plt.subplots(1, 2, figsize=(8, 3.9))
    draw.line(left, colours, psnr_db, "PSNR", 0)
    left.axhline(GOAL_DB, color=look.GREY, linestyle="--",
                 label=f"{GOAL_DB} dB")
    look.guess_line(left, guess, upright=True)
    top = max(GOAL_DB, *psnr_db) + 2
    left.set(ylabel="PSNR (dB)", ylim=(min(psnr_db) - 2, top))
    doublings = np.diff(np.log2(colours))
    fell = 100 * (1 - (inertia[1:] / inertia[:-1]) ** (1 / doublings))
    draw.line(right, colours[1:], fell, "fall in inertia", 1)
    for number, (name, (share, side)) in enumerate(FALLS.items()):
        right.axhline(100 * share, color=look.GREY, linestyle=":",
                      label="" if number else "if the pixels filled a ...")
        # The points begin above "space" on the left, and end below the others.
        end, off, va = ((colours[-1], 3, "bottom") if side == "right"
                           else (colours[1], -4, "top"))
        right.annotate(f"{name}: {100 * share:.0f} %", (end, 100 * share),
                       (0, off), ha=side, va=va, fontsize=10,
                       textcoords="offset points")
    right.set(ylabel="fall in inertia at\neach doubling (%)", ylim=(0, 85))
    for axes in (left, right):
        axes.set_xscale("log", base=2)
        some = colours[::-2]
        axes.set_xticks(some, [f"{k:,}" for k in some])
        axes.set_xlabel("colours (count)")
    if max(psnr_db) < GOAL_DB:
        found = (f"{colours[-1]:,} colours reach {psnr_db[-1]:.1f} dB: "
                 f"{GOAL_DB} dB take more")
    else:
        enough = 2 ** np.interp(GOAL_DB, psnr_db, np.log2(colours))
        found = (f"It takes about {float(f'{enough:.2g}'):,.0f} colours to "
                 f"reach {GOAL_DB} dB")
    title = (f"{found}. Doubling the palette lowers the inertia by "
             f"{fell[0]:.0f} % up to {colours[1]} colours, and by "
             f"{fell[-1]:.0f} % up to {colours[-1]:,}.")
    return look.finish(figure, title, legend=4)


def needs_mib(frame) -> np.ndarray:
    """What each rank of a job needs besides Python and its libraries."""
    found = frame["metrics"].iloc[0]
    return np.subtract(found["memory_mib"], found["program_mib"])


@look.style
def memory_modes(records, data_mib: float, guess: float | None = None):
    """Draw three modes in one picture: the memory of each rank besides Python
    and its libraries, in groups by job; in the title whether the palettes
    agree, and how long each job took."""
    figure, axes = plt.subplots()
    rows = []
    places = []
    ticks = []
    most = []
    palettes = []
    for job, (name, frame) in enumerate(records.items()):
        found = frame["metrics"].iloc[0]
        palettes.append(np.array(found["palette"]))
        extra = needs_mib(frame)
        own = len(rows) + 0.7 * job + np.arange(len(extra))
        places.extend(own)
        ticks.append(own.mean())
        rows += [{"rows": mib, "work": max(0.0, all_mib - mib)}
                 for mib, all_mib in zip(found["rows_mib"], extra,
                                         strict=True)]
        seconds = frame.step_s.iloc[0][0]
        most.append(f"{name} {max(extra):.0f} ({seconds:.2f} s)")
    ends = draw.stacked(axes, rows, MEMORY, places, flat=False, width=0.9)
    for place, mib in zip(places, ends, strict=True):
        axes.annotate(f"{mib:.0f}", (place, mib), (0, 4), ha="center",
                      textcoords="offset points", fontsize=10)
    axes.axhline(data_mib, color="black", linestyle="--",
                 label=f"all rows: {data_mib:.0f} MiB")
    if guess is not None:
        look.guess_star(axes, ticks[1], guess, f"{guess:g} MiB")
    axes.set_xticks(ticks, list(records))
    axes.set(ylabel="memory of each rank, besides\nPython and libraries (MiB)",
             ylim=(0, 1.15 * max(data_mib, guess or 0, *ends)))
    same = all(np.allclose(palette, palettes[0], rtol=1e-3)
               for palette in palettes)
    agree = ("the same palette, to a thousandth" if same
             else "DIFFERENT PALETTES")
    title = (f"The modes find {agree}. Besides Python and its libraries, a "
             f"rank needs this many MiB (in brackets: how long one run took): "
             f"{', '.join(most)}.")
    return look.finish(figure, title, legend=4)
