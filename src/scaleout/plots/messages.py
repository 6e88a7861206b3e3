"""Figures of 03_spmd: what messages and collective calls cost, in seconds and in bytes."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ..words import rounded
from .look import DARK, LIGHT, MIDDLE, Look, guess_star, say, style

if TYPE_CHECKING:
    import pandas as pd

    from ..scaling import AlphaBeta


WAYS = {
    "gather-broadcast": (MIDDLE, "o", "gather and broadcast"),
    "tree": ("#a98600", "^", "binary tree"),
    "ring": (DARK, "s", "ring"),
    "mpi": ("#8a8a8a", "D", "MPI's own"),
}


def _single(
    axes: Axes, sizes: Iterable[float], seconds: Iterable[Sequence[float]], look: Look
) -> None:
    """A point for each measurement, at the size that it was made with."""
    for size, times in zip(sizes, seconds, strict=True):
        axes.plot([size] * len(times), 1e6 * np.asarray(times), ".", **look)


@style
def message_time(
    n: Sequence[float],
    seconds: "Sequence[Sequence[float]]",
    fit: "AlphaBeta",
    guess: float | None = None,
) -> Figure:
    """The time of one message over its size, both logarithmic: single measurements, their median,
    the fitted line.
    """
    figure, axes = plt.subplots()
    _single(axes, n, seconds, {"color": LIGHT, "markersize": 4})
    axes.plot([], [], ".", color=LIGHT, markersize=4, label="single messages")
    axes.plot(
        n, [1e6 * np.median(row) for row in seconds], "s", color=DARK, markersize=6, label="median"
    )
    sizes = np.geomspace(min(n), max(n), 200)
    fitted = [1e6 * fit.seconds(size) for size in sizes]
    axes.plot(sizes, fitted, color=MIDDLE, linewidth=2, label="alpha + beta n, fitted")
    axes.axhline(1e6 * fit.alpha_s, color="#8a8a8a", linestyle="--", linewidth=1)
    alpha_us, corner = 1e6 * fit.alpha_s, fit.alpha_s / fit.beta_s
    axes.text(
        max(n), alpha_us, f"alpha: {alpha_us:.2g} us", va="bottom", ha="right", color="#444444"
    )
    axes.plot(
        [corner, corner],
        [alpha_us / 3, 2 * alpha_us],
        color="#8a8a8a",
        linestyle=":",
        linewidth=1.5,
    )
    half = f" {corner:,.0f} bytes:\n half waiting, half moving"
    axes.text(corner, alpha_us / 3, half, fontsize=9, va="bottom", color="#444444")
    axes.set(
        xscale="log",
        yscale="log",
        xlabel="size of the message (bytes)",
        ylabel="time, one way (us)",
    )
    if guess is not None:
        guess_star(axes, min(n), guess, f"{guess:g} us")
    axes.legend(loc="upper left")
    middle = [
        f"{s:,.0f} B: {rounded(1e6 * float(np.median(t)))} us"
        for s, t in zip(n, seconds, strict=True)
    ]
    each_ns = rounded(1e9 * fit.beta_s)
    found = f"A message takes {rounded(alpha_us)} us, and {each_ns} ns more for each byte."
    say(figure, found, f"{', '.join(middle)}.")
    return figure


@style
def allreduce_time(
    records: "pd.DataFrame", expected: Mapping[str, Callable[[float], float]] | None = None
) -> Figure:
    """The time of an allreduce over the size of the array, both logarithmic: a line a way, through
    its medians.
    """
    figure, axes = plt.subplots()
    for way, rows in records.groupby("variant", sort=False):
        colour, marker, name = WAYS[way]
        x = rows["metrics.bytes"].to_numpy()
        _single(axes, x, rows.step_s, {"color": colour, "markersize": 2, "alpha": 0.5})
        axes.plot(
            x, 1e6 * rows.step_median_s, color=colour, marker=marker, markersize=6, label=name
        )
        if expected and way in expected:
            axes.plot(
                x,
                [1e6 * expected[way](size) for size in x],
                color=colour,
                linestyle="--",
                linewidth=1.2,
            )
    if expected:
        axes.plot([], [], color="#444444", linestyle="--", linewidth=1.2, label="by alpha and beta")
    ranks = int(records.ranks.iloc[0])
    axes.set(
        xscale="log",
        yscale="log",
        xlabel="size of the array (bytes)",
        ylabel=f"time on {ranks} ranks (us)",
    )
    axes.legend(loc="upper left", fontsize=9)
    said = []
    for size in (records["metrics.bytes"].min(), records["metrics.bytes"].max()):
        rows = records[records["metrics.bytes"] == size].sort_values("step_median_s")
        each = (
            f"{WAYS[way][2]} {rounded(1e6 * s)} us"
            for way, s in zip(rows.variant, rows.step_median_s, strict=True)
        )
        said.append((f"{size:,.0f} bytes", list(each)))
    (small, first), (large, last) = said
    found = f"Lowest median for {small}: {first[0]}; for {large}: {last[0]}."
    say(figure, found, f"{small}: {', '.join(first)}. {large}: {', '.join(last)}.")
    return figure


@style
def bytes_sent(records: "Sequence[pd.DataFrame]", guess: float | None = None) -> Figure:
    """What the busiest rank sends, in arrays, over the ranks: counted by the program (marks), by
    the formula (dashed).
    """
    figure, axes = plt.subplots()
    most = max(int(frame.ranks.iloc[0]) for frame in records)
    p = np.arange(1, most + 1)
    formula = {"gather-broadcast": p - 1, "tree": np.ceil(np.log2(p)), "ring": 2 * (p - 1) / p}
    sent = {}
    for way, arrays in formula.items():
        colour, marker, name = WAYS[way]
        axes.plot(p, arrays, color=colour, linestyle="--", linewidth=1.2)
        rows = [frame[frame.variant == way].iloc[-1] for frame in records]
        counted = [max(row["metrics.sent_bytes"]) / row["metrics.bytes"] for row in rows]
        axes.plot(
            [row.ranks for row in rows],
            counted,
            marker,
            color=colour,
            markersize=8,
            label=f"{name}, counted",
        )
        sent[way] = counted[int(np.argmax([row.ranks for row in rows]))]
    axes.plot([], [], color="#444444", linestyle="--", linewidth=1.2, label="by the formula")
    if guess is not None:
        guess_star(axes, most, guess, f"{guess:g}, for the ring")
    axes.set(xlabel="ranks (count)", ylabel="sent by the busiest rank (arrays)", xticks=p)
    axes.legend(loc="upper left")
    arrays = [f"{WAYS[way][2]} {count:.3g}" for way, count in sent.items()]
    found = f"Arrays that the busiest of {most} ranks sends: {', '.join(arrays)}."
    say(figure, found, "" if guess is None else f"Your guess for the ring: {guess:g}.")
    return figure


@style
def mpi_libraries(records: "Mapping[str, pd.DataFrame]", published: float | None = None) -> Figure:
    """MPI's own allreduce in each library: its time over the size, and Open MPI's time in Intel
    MPI's, where both are.
    """
    both = {"Intel MPI", "Open MPI"} <= set(records)
    figure, panels = plt.subplots(1, 1 + both, figsize=(8 if both else 7, 4), squeeze=False)
    axes = panels[0, 0]
    for (name, frame), colour, marker in zip(
        records.items(), (DARK, LIGHT, MIDDLE), "sDo", strict=False
    ):
        points = {"color": colour, "markersize": 2, "alpha": 0.5}
        _single(axes, frame["metrics.bytes"], frame.step_s, points)
        look: Look = {"color": colour, "marker": marker, "markersize": 6, "label": name}
        axes.plot(frame["metrics.bytes"], 1e6 * frame.step_median_s, **look)
    ranks = int(next(iter(records.values())).ranks.iloc[0])
    axes.set(
        xscale="log",
        yscale="log",
        xlabel="size of the array (bytes)",
        ylabel=f"allreduce on {ranks} ranks (us)",
    )
    axes.legend()
    last = {name: frame.sort_values("metrics.bytes").iloc[-1] for name, frame in records.items()}
    each = [f"{name} {rounded(1e6 * row.step_median_s)} us" for name, row in last.items()]
    found = f"{max(row['metrics.bytes'] for row in last.values()):,.0f} bytes: {', '.join(each)}."
    if both:
        axes, (intel, other) = panels[0, 1], (records[name] for name in ("Intel MPI", "Open MPI"))
        ratio = other.step_median_s.to_numpy() / intel.step_median_s.to_numpy()
        axes.plot(
            intel["metrics.bytes"],
            ratio,
            color="#444444",
            marker="o",
            label="here, allreduce alone",
        )
        axes.axhline(1, color="#8a8a8a", linestyle="--", linewidth=1)
        if published is not None:
            axes.axhline(
                published, color=MIDDLE, linestyle=":", linewidth=2, label="published, training"
            )
        axes.set(
            xscale="log",
            yscale="log",
            xlabel="size of the array (bytes)",
            ylabel="Open MPI's time / Intel MPI's",
        )
        axes.legend(fontsize=9)
        found = f"""Open MPI takes {ratio.min():.2g} to {ratio.max():.2g} times as long as Intel MPI, \
depending on the size. {found}"""
    say(figure, found)
    return figure
