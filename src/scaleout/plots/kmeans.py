"""Figures of 04_kmeans: pictures, palettes, quality, memory."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from .look import DARK, LIGHT, MIDDLE, PALE, guess_line, guess_star, say, style

if TYPE_CHECKING:
    import pandas as pd

    from ..jobs.job import Run


@style
def quantised(before: "np.ndarray[Any, Any]", runs: "Sequence[Run]") -> Figure:
    """The photograph beside its copies in few colours; below each copy its palette, as wide as the
    colour is common.
    """
    count = 1 + len(runs)
    columns = min(count, 2)
    rows = -(-count // columns)
    height = 7 / columns * before.shape[0] / before.shape[1]
    figure, grid = plt.subplots(2 * rows, columns, squeeze=False, dpi=64, height_ratios=[10, 1] * rows,
                                figsize=(7, rows * (height * 1.1 + 0.45)))  # fmt: skip
    for axes in grid.flat:
        axes.set_axis_off()
    grid[0, 0].imshow(before)
    grid[0, 0].set_title("before", fontsize=11)
    said = []
    for place, run in enumerate(runs, 1):
        metrics = run.records["metrics"].iloc[0]
        picture, below = grid[2 * (place // columns) : 2 * (place // columns) + 2, place % columns]
        picture.imshow(plt.imread(run.folder / "quantised.png"))
        said.append(f"{metrics['colours']} colours, PSNR {metrics['psnr_db']:.1f} dB")
        picture.set_title(said[-1], fontsize=11)
        _swatches(below, 0, metrics["shares"][0]["palette"], metrics["count"])
    figure.set_label(f"The photograph, and its copies with their palettes: {'; '.join(said)}.")
    return figure


def _swatches(
    axes: Axes, y: float, palette: Sequence[Sequence[float]], weights: Sequence[float]
) -> None:
    """A palette as one bar from 0 to 1, from dark to light, each colour as wide as its weight."""
    left, line = 0.0, 0.4 if len(palette) <= 32 else 0.0
    for colour, weight in sorted(zip(palette, weights, strict=True), key=lambda pair: sum(pair[0])):
        width = weight / sum(weights)
        axes.barh(
            y,
            width,
            left=left,
            height=0.8,
            color=np.clip(colour, 0, 1),
            edgecolor="white",
            linewidth=line,
        )
        left += width
    axes.set_xlim(0, 1)


@style
def palettes(named: Mapping[str, Sequence[Sequence[float]]]) -> Figure:
    """Palettes side by side, from dark to light: equal bars are equal palettes."""
    figure, axes = plt.subplots(figsize=(7, 0.5 + 0.5 * len(named)))
    for y, palette in enumerate(named.values()):
        _swatches(axes, y, palette, [1] * len(palette))
    axes.set_yticks(range(len(named)), list(named))
    axes.set_xticks([])
    axes.invert_yaxis()
    axes.grid(False)
    axes.spines[:].set_visible(False)
    return figure


@style
def quality(records: "Sequence[pd.DataFrame]", guess: float | None = None) -> Figure:
    """What more colours buy: inertia and PSNR over the number of colours, a point each job."""
    jobs = sorted((frame["metrics"].iloc[0] for frame in records), key=lambda job: job["colours"])
    colours, inertia, psnr_db = (
        [job[name] for job in jobs] for name in ("colours", "inertia", "psnr_db")
    )
    figure, (left, right) = plt.subplots(1, 2, figsize=(7, 3.5))
    for axes, values, marker, fill in ((left, inertia, "s", DARK), (right, psnr_db, "o", MIDDLE)):
        axes.plot(colours, values, marker=marker, color=fill, linewidth=2)
        axes.set_xscale("log", base=2)
        axes.set_xticks(colours, [str(k) for k in colours])
        axes.set_xlabel("colours (count)")
        guess_line(axes, guess, upright=True)
    left.set(ylabel="inertia (sum of squared distances)", yscale="log")
    right.set(ylabel="PSNR (dB)")
    if guess is not None:
        right.legend(fontsize=9)
    reached = [f"{k}: {db:.1f} dB" for k, db in zip(colours, psnr_db, strict=True)]
    found = (
        f"{colours[-1]} colours reach {psnr_db[-1]:.1f} dB, {colours[0]} reach {psnr_db[0]:.1f} dB."
    )
    say(figure, found, f"Colours and PSNR: {', '.join(reached)}.")
    return figure


@style
def memory_bars(
    records: "Mapping[str, pd.DataFrame]", data_mib: float, guess: float | None = None
) -> Figure:
    """Peak memory of each rank, in MiB: a bar a rank, in groups by job; the lower part is the
    program without rows.
    """
    figure, axes = plt.subplots()
    ticks: list[float] = []
    at, said = 0.0, []
    for name, frame in records.items():
        peak, program = (
            np.array(frame["metrics.memory_mib"].iloc[0]),
            np.array(frame["metrics.program_mib"].iloc[0]),
        )
        spots = at + np.arange(len(peak))
        first = not ticks
        said.append(f"{name} {float(np.max(peak - program)):.0f}")
        axes.bar(
            spots,
            program,
            width=0.9,
            color=PALE,
            edgecolor=DARK,
            label="Python, libraries" if first else "",
        )
        axes.bar(spots, peak - program, width=0.9, bottom=program, color=LIGHT, edgecolor=DARK, hatch="//",
                 label="rows and work" if first else "")  # fmt: skip
        for spot, mib in zip(spots, peak, strict=True):
            axes.annotate(f"{mib:.0f}", (spot, mib), (0, 4), textcoords="offset points", ha="center", fontsize=10,
                          bbox={"facecolor": "white", "edgecolor": "none", "pad": 1})  # fmt: skip
        ticks.append(float(spots.mean()))
        at += len(peak) + 0.7
    whole = float(np.median(program)) + data_mib
    top = max(whole, *(max(frame["metrics.memory_mib"].iloc[0]) for frame in records.values()))
    axes.axhline(whole, color="black", linestyle="--", label=f"all rows: {data_mib:.0f} MiB")
    if guess is not None:
        guess_star(axes, ticks[1], float(np.median(program)) + guess, f"{guess:g} MiB")
    axes.set_xticks(ticks, list(records))
    axes.set(ylabel="peak memory of each rank (MiB)", ylim=(0, 1.45 * top))
    axes.grid(axis="x", visible=False)
    axes.legend(loc="upper right")
    say(
        figure,
        f"MiB that a rank needs beside Python and its libraries: {', '.join(said)}.",
        f"All rows have {data_mib:.0f} MiB.",
    )
    return figure
