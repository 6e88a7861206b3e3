"""Figures of 03_spmd: who holds what, what messages cost, what a straggler costs."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from .look import DARK, LIGHT, MIDDLE, PALE, guess_star, style

if TYPE_CHECKING:
    import pandas as pd

    from ..scaling import AlphaBeta

__all__ = [
    "allreduce_time",
    "bytes_sent",
    "message_time",
    "mpi_libraries",
    "servers_or_ring",
    "stale_losses",
    "straggler_timeline",
    "who_holds",
]

RANKS = (DARK, LIGHT, MIDDLE, "#c9b458", "#8a8a8a", "#5b8c5a", "#d9a5b3", "#3d3d3d")  # of the ranks 0, 1, 2 ...
WAYS = {
    "gather-broadcast": (MIDDLE, "o", "gather and broadcast"),
    "tree": ("#a98600", "^", "binary tree"),
    "ring": (DARK, "s", "ring"),
    "mpi": ("#8a8a8a", "D", "MPI's own"),
}


@style
def who_holds(held: Sequence[Sequence[tuple[str, Any, Any]]]) -> Figure:
    """Who holds what before and after each collective call, drawn from what the ranks really held.

    held: for each rank a list of (title, before, after), the last two an integer array or None. The piece that rank r
    brought as its element j is the number 2**(8 r + j), so that a sum tells what is in it. At most 8 ranks, 8 pieces.
    """
    calls, ranks = len(held[0]), len(held)
    rows = -(-calls // 2)
    figure, grid = plt.subplots(rows, 2, figsize=(7.4, (0.42 * ranks + 0.55) * rows), squeeze=False)
    for axes, call in zip(grid.flat, range(calls), strict=False):
        axes.set_title(held[0][call][0], fontsize=10, loc="left")
        for column, left in ((1, 0.0), (2, ranks + 1.4)):
            for rank, values in enumerate(mine[call][column] for mine in held):
                for place, value in enumerate(np.atleast_1d(values) if values is not None else []):
                    _pieces(axes, left + place, rank, int(value))
                if values is None:
                    axes.text(left, rank + 0.5, "nothing", fontsize=8, color="#8a8a8a", va="center")
        arrow = {"arrowstyle": "-|>", "color": "#444444", "linewidth": 1.5}
        axes.annotate("", (ranks + 1.1, ranks / 2), (ranks + 0.3, ranks / 2), arrowprops=arrow)
        axes.set(xlim=(-0.1, 2 * ranks + 1.5), ylim=(ranks + 0.05, -0.05))
        axes.set_yticks([rank + 0.5 for rank in range(ranks)], [f"rank {rank}" for rank in range(ranks)], fontsize=8)
        axes.tick_params(length=0)
        axes.set_xticks([])
        axes.spines[:].set_visible(False)
        axes.grid(False)
    for axes in grid.flat[calls:]:
        axes.axis("off")
    return figure


def _pieces(axes: Axes, x: float, y: float, value: int) -> None:
    """One element: a box, in stripes of the colours of all ranks whose pieces are in it."""
    bits = [bit for bit in range(value.bit_length()) if value >> bit & 1]
    for number, bit in enumerate(bits):
        colour, height = RANKS[bit // 8], 0.84 / len(bits)
        top = y + 0.08 + number * height
        axes.add_patch(Rectangle((x, top), 0.94, height, color=colour, linewidth=0))
        name, size = f"{'abcdefgh'[bit // 8]}{bit % 8}", 9 if len(bits) == 1 else 7
        white = "white" if colour in (DARK, MIDDLE) else "black"
        axes.text(x + 0.47, top + height / 2, name, fontsize=size, ha="center", va="center_baseline", color=white)
    axes.add_patch(Rectangle((x, y + 0.08), 0.94, 0.84, fill=False, edgecolor="#444444", linewidth=0.8))


@style
def message_time(n: Sequence[float], seconds: "Sequence[Sequence[float]]", fit: "AlphaBeta") -> Figure:
    """The time of one message over its size, both logarithmic: single measurements, their median, the fitted line.

    n: bytes of each message.  seconds: the measurements of each.  fit: from scaling.fit_alpha_beta.
    """
    figure, axes = plt.subplots()
    for x, row in zip(n, seconds, strict=True):
        label = "single messages" if x == n[0] else None
        axes.plot([x] * len(row), 1e6 * np.asarray(row), ".", color=LIGHT, markersize=4, label=label)
    axes.plot(n, [1e6 * np.median(row) for row in seconds], "s", color=DARK, markersize=6, label="median")
    x = np.geomspace(min(n), max(n), 200)
    axes.plot(x, 1e6 * fit.seconds(x), color=MIDDLE, linewidth=2, label="alpha + beta n, fitted")
    axes.axhline(1e6 * fit.alpha_s, color="#8a8a8a", linestyle="--", linewidth=1)
    alpha_us, corner = 1e6 * fit.alpha_s, fit.alpha_s / fit.beta_s
    axes.text(max(n), alpha_us, f"alpha: {alpha_us:.2g} us", va="bottom", ha="right", color="#444444")
    axes.plot([corner, corner], [alpha_us / 3, 2 * alpha_us], color="#8a8a8a", linestyle=":", linewidth=1.5)
    half = f" {corner:,.0f} bytes:\n half waiting, half moving"
    axes.text(corner, alpha_us / 3, half, fontsize=9, va="bottom", color="#444444")
    axes.set(xscale="log", yscale="log", xlabel="size of the message (bytes)", ylabel="time, one way (us)")
    axes.legend(loc="upper left")
    return figure


@style
def allreduce_time(records: "pd.DataFrame", expected: Mapping[str, Callable[[float], float]] | None = None) -> Figure:
    """The time of an allreduce over the size of the array, both logarithmic: a line a way, through its medians.

    records: of 03_spmd's runme.py, one number of ranks.  expected: {way: seconds for n bytes}, drawn dashed.
    """
    figure, axes = plt.subplots()
    for way, rows in records.groupby("variant", sort=False):
        colour, marker, name = WAYS[way]
        x = rows["metrics.bytes"].to_numpy()
        for size, times in zip(x, rows.step_s, strict=True):
            axes.plot([size] * len(times), 1e6 * np.asarray(times), ".", color=colour, markersize=2, alpha=0.5)
        axes.plot(x, 1e6 * rows.step_median_s, color=colour, marker=marker, markersize=6, label=name)
        if expected and way in expected:
            axes.plot(x, [1e6 * expected[way](size) for size in x], color=colour, linestyle="--", linewidth=1.2)
    if expected:
        axes.plot([], [], color="#444444", linestyle="--", linewidth=1.2, label="by alpha and beta")
    ranks = int(records.ranks.iloc[0])
    axes.set(xscale="log", yscale="log", xlabel="size of the array (bytes)", ylabel=f"time on {ranks} ranks (us)")
    axes.legend(loc="upper left", fontsize=9)
    return figure


@style
def bytes_sent(records: "Sequence[pd.DataFrame]", guess: float | None = None) -> Figure:
    """What the busiest rank sends, in arrays, over the ranks: counted by the program (marks), by the formula (dashed).

    records: of 03_spmd's runme.py, a frame a number of ranks.  guess: the reader's, of the ring on most ranks.
    """
    figure, axes = plt.subplots()
    most = max(int(frame.ranks.iloc[0]) for frame in records)
    p = np.arange(1, most + 1)
    formula = {"gather-broadcast": p - 1, "tree": np.ceil(np.log2(p)), "ring": 2 * (p - 1) / p}
    for way, arrays in formula.items():
        colour, marker, name = WAYS[way]
        axes.plot(p, arrays, color=colour, linestyle="--", linewidth=1.2)
        rows = [frame[frame.variant == way].iloc[-1] for frame in records]
        counted = [max(row["metrics.sent_bytes"]) / row["metrics.bytes"] for row in rows]
        axes.plot([row.ranks for row in rows], counted, marker, color=colour, markersize=8, label=f"{name}, counted")
    axes.plot([], [], color="#444444", linestyle="--", linewidth=1.2, label="by the formula")
    if guess is not None:
        guess_star(axes, most, guess, f"{guess:g}, for the ring")
    axes.set(xlabel="ranks (count)", ylabel="sent by the busiest rank (arrays)", xticks=p)
    axes.legend(loc="upper left")
    return figure


@style
def servers_or_ring(records: "Sequence[pd.DataFrame]", cores: int) -> Figure:
    """Parameter servers and the ring as the ranks grow: bytes that the busiest rank sends, and the time of an update.

    records: of 03_spmd's servers.py, a frame a job.  cores: where ranks begin to share them, shaded.
    """
    figure, (left, right) = plt.subplots(1, 2, figsize=(8, 4))
    every = [row for frame in records for _, row in frame.iterrows()]
    looks = {1: (MIDDLE, "o", "1 server"), 2: ("#a98600", "^", "2 servers"), 99: (LIGHT, "D", "a server on every rank"),
             0: (DARK, "s", "ring")}  # fmt: skip
    for servers, (colour, marker, name) in looks.items():
        rows = [row for row in every if row["metrics.servers"] == (row.ranks if servers == 99 else servers)]
        counts = sorted({row.ranks for row in rows})
        look = {"color": colour, "marker": marker, "markersize": 9 if servers == 99 else 6, "label": name}
        sent = {row.ranks: max(row["metrics.sent_bytes"]) / 2**20 for row in rows}
        left.plot(counts, [sent[count] for count in counts], **look)
        for row in rows:
            times = 1e3 * np.asarray(row.step_s)
            right.plot([row.ranks] * len(times), times, ".", color=colour, markersize=2, alpha=0.6)
        median = [1e3 * np.median([t for row in rows if row.ranks == count for t in row.step_s]) for count in counts]
        right.plot(counts, median, **look)
    most = max(row.ranks for row in every)
    if most > cores:
        right.axvspan(cores + 0.5, most + 0.3, color=PALE, zorder=0)
        place = {"transform": right.get_xaxis_transform(), "ha": "right", "fontsize": 9, "color": "#444444"}
        right.text(most, 0.02, "ranks share cores", **place)
    ticks = sorted({row.ranks for row in every})
    left.set(xlabel="ranks (count)", ylabel="sent by the busiest rank (MiB)", xticks=ticks, ylim=(0, None))
    right.set(xlabel="ranks (count)", ylabel="time of an update (ms)", xticks=ticks, ylim=(0, None))
    left.legend(fontsize=9)
    return figure


@style
def straggler_timeline(records: "Mapping[str, pd.DataFrame]", until_s: float = 0.12) -> Figure:
    """What each worker did in the first moments of 03_spmd's straggler.py: computed (dark) or waited (hatched)."""
    figure, panels = plt.subplots(len(records), 1, figsize=(7, 1.1 + 1.25 * len(records)), sharex=True, squeeze=False)
    for axes, (title, frame) in zip(panels.flat, records.items(), strict=True):
        for rank, start, ready, done in frame["metrics.timeline"].iloc[0]:
            if start < until_s:
                axes.barh(rank, 1e3 * (ready - start), left=1e3 * start, height=0.7, color=DARK, edgecolor="white")
                wait = {"height": 0.7, "color": PALE, "edgecolor": "#8a8a8a", "hatch": "////", "linewidth": 0}
                axes.barh(rank, 1e3 * (done - ready), left=1e3 * ready, **wait)
        ranks = int(frame.ranks.iloc[0])
        axes.set_yticks(range(1, ranks), [f"rank {rank}" for rank in range(1, ranks)])
        axes.set(xlim=(0, 1e3 * until_s), ylim=(ranks - 0.4, 0.4))
        axes.set_title(title, fontsize=10, loc="left")
        axes.grid(False)
    panels[-1, 0].set_xlabel("time since the start (ms)")
    looks = {"color": DARK}, {"facecolor": PALE, "edgecolor": "#8a8a8a", "hatch": "////"}
    marks = [Rectangle((0, 0), 1, 1, **look) for look in looks]
    figure.legend(marks, ["computes", "waits"], loc="outside upper right", ncols=2, fontsize=9)
    return figure


@style
def stale_losses(records: "Mapping[str, Sequence[pd.DataFrame]]") -> Figure:
    """The test loss of straggler.py over seconds and over gradients: points are single runs, lines their median.

    records: {what it was: one frame a run}; at most four, told apart by colour and dash.
    """
    figure, (left, right) = plt.subplots(1, 2, figsize=(8, 4), sharey=True)
    looks = ((DARK, "-"), (MIDDLE, "--"), ("#a98600", ":"), ("#8a8a8a", "-."))
    for (name, frames), (colour, dash) in zip(records.items(), looks, strict=False):
        # Each (points, 3): seconds, gradients, loss.
        curves = [np.array(frame["metrics.curve"].iloc[0]) for frame in frames]
        for axes, column in ((left, 0), (right, 1)):
            for curve in curves:
                axes.plot(curve[::2, column], curve[::2, 2], ".", color=colour, markersize=2, antialiased=False)
            x = np.linspace(0, min(curve[-1, column] for curve in curves), 60)
            middle = np.median([np.interp(x, curve[:, column], curve[:, 2]) for curve in curves], axis=0)
            axes.plot(x, middle, color=colour, linestyle=dash, linewidth=2.5, label=name)
    left.set(xlabel="time (s)", ylabel="loss on the test images", yscale="log")
    right.set(xlabel="gradients used (count)")
    right.legend(fontsize=9)
    return figure


@style
def mpi_libraries(records: "Mapping[str, pd.DataFrame]", published: float | None = None) -> Figure:
    """MPI's own allreduce in each library: its time over the size, and Open MPI's time in Intel MPI's, where both are.

    records: {library: frame of 03_spmd's runme.py}.  published: that ratio as somebody measured it elsewhere, dotted.
    """
    both = {"Intel MPI", "Open MPI"} <= set(records)
    figure, panels = plt.subplots(1, 1 + both, figsize=(8 if both else 7, 4), squeeze=False)
    axes = panels[0, 0]
    for (name, frame), colour, marker in zip(records.items(), (DARK, LIGHT, MIDDLE), "sDo", strict=False):
        for size, times in zip(frame["metrics.bytes"], frame.step_s, strict=True):
            axes.plot([size] * len(times), 1e6 * np.asarray(times), ".", color=colour, markersize=2, alpha=0.5)
        look = {"color": colour, "marker": marker, "markersize": 6, "label": name}
        axes.plot(frame["metrics.bytes"], 1e6 * frame.step_median_s, **look)
    ranks = int(next(iter(records.values())).ranks.iloc[0])
    axes.set(xscale="log", yscale="log", xlabel="size of the array (bytes)", ylabel=f"allreduce on {ranks} ranks (us)")
    axes.legend()
    if both:
        axes, (intel, other) = panels[0, 1], (records[name] for name in ("Intel MPI", "Open MPI"))
        ratio = other.step_median_s.to_numpy() / intel.step_median_s.to_numpy()
        axes.plot(intel["metrics.bytes"], ratio, color="#444444", marker="o", label="here, allreduce alone")
        axes.axhline(1, color="#8a8a8a", linestyle="--", linewidth=1)
        if published is not None:
            axes.axhline(published, color=MIDDLE, linestyle=":", linewidth=2, label="published, training")
        axes.set(xscale="log", yscale="log", xlabel="size of the array (bytes)", ylabel="Open MPI's time / Intel MPI's")
        axes.legend(fontsize=9)
    return figure
