"""Figures of parameter servers: beside the ring (03_spmd's servers.py), and with workers that wait
for each other or do not (11_parallelism's server.py)."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from .look import DARK, GREY, LIGHT, MIDDLE, PALE, Look, guess_star, medians, say, style

if TYPE_CHECKING:
    import pandas as pd


Array = NDArray[np.float64]


@style
def servers_or_ring(
    records: "Sequence[pd.DataFrame]", cores: int, guess: float | None = None
) -> Figure:
    """Parameter servers and the ring as the ranks grow: bytes that the busiest rank sends, and the
    time of an update.
    """
    figure, (left, right) = plt.subplots(1, 2, figsize=(8, 4))
    every = [row for frame in records for _, row in frame.iterrows()]
    looks = {1: (MIDDLE, "o", "1 server"), 2: ("#a98600", "^", "2 servers"), 99: (LIGHT, "D", "a server on every rank"),
             0: (DARK, "s", "ring")}  # fmt: skip
    for servers, (colour, marker, name) in looks.items():
        rows = [
            row
            for row in every
            if row["metrics.servers"] == (row.ranks if servers == 99 else servers)
        ]
        look: Look = {
            "color": colour,
            "marker": marker,
            "markersize": 9 if servers == 99 else 6,
            "label": name,
        }
        sent = {row.ranks: max(row["metrics.sent_bytes"]) / 2**20 for row in rows}
        left.plot(sorted(sent), [sent[count] for count in sorted(sent)], **look)
        for row in rows:
            times = 1e3 * np.asarray(row.step_s)
            right.plot([row.ranks] * len(times), times, ".", color=colour, markersize=2, alpha=0.6)
        middle = medians((int(row.ranks), 1e3 * t) for row in rows for t in row.step_s)
        right.plot(list(middle), list(middle.values()), **look)
    most = max(row.ranks for row in every)
    if most > cores:
        right.axvspan(cores + 0.5, most + 0.3, color=PALE, zorder=0)
        place = {
            "transform": right.get_xaxis_transform(),
            "ha": "right",
            "fontsize": 9,
            "color": "#444444",
        }
        right.text(most, 0.02, "ranks share cores", **place)
    ticks = sorted({row.ranks for row in every})
    left.set(
        xlabel="ranks (count)",
        ylabel="sent by the busiest rank (MiB)",
        xticks=ticks,
        ylim=(0, None),
    )
    right.set(xlabel="ranks (count)", ylabel="time of an update (ms)", xticks=ticks, ylim=(0, None))
    by_servers = {
        row["metrics.servers"]: max(row["metrics.sent_bytes"]) / 2**20
        for row in every
        if row.ranks == most
    }
    ring, one = by_servers[0], by_servers[1]
    if guess is not None:
        guess_star(left, most, guess * ring, f"{guess:g} x the ring")
    left.legend(fontsize=9)
    found = (
        f"On {most} ranks a single server sends {one / ring:.2g} times as much as a rank of a ring."
    )
    each = [f"{servers or 'a ring'}: {mib:.2f}" for servers, mib in sorted(by_servers.items())]
    say(figure, found, f"MiB sent by the busiest rank, by servers: {', '.join(each)}.")
    return figure


def _reached(curve: Array, column: int, loss: float) -> float:
    """The seconds (column 0) or gradients (1) at which a curve first comes down to a loss."""
    k = int(np.argmax(curve[:, 2] <= loss))
    if k == 0:
        return float(curve[0, column])
    (x0, y0), (x1, y1) = curve[k - 1, [column, 2]], curve[k, [column, 2]]
    return float(x0 + (x1 - x0) * (y0 - loss) / (y0 - y1))


def _in_words(ratios: Array) -> str:
    """The median, and between which two all rounds lie."""
    if len(ratios) == 1:
        return f"{ratios[0]:.2f}"
    return f"{np.median(ratios):.2f} ({ratios.min():.2f} to {ratios.max():.2f})"


@style
def sync_or_async(records: "pd.DataFrame", guess: float | None = None) -> Figure:
    """The loss of workers that wait for each other and of workers that do not, over time and over
    gradients: points are single rounds, lines their median.
    """
    curves: dict[str, list[Array]] = {}
    for _, row in records.iterrows():
        curve: Any = np.array(row["metrics.curve"], dtype=float)  # (points, 3)
        curves.setdefault(str(row["variant"]), []).append(curve)
    # The lowest that all rounds have come to.
    loss = max(curve[:, 2].min() for each in curves.values() for curve in each)
    figure, panels = plt.subplots(1, 2, figsize=(8, 4), sharey=True)
    said = []
    for column, (axes, unit) in enumerate(zip(panels, ("time", "gradients"), strict=True)):
        at = {
            rule: np.array([_reached(curve, column, loss) for curve in each])
            for rule, each in curves.items()
        }
        said.append(f"{_in_words(at['sync'] / at['async'])} times the {unit}")
        looks = (("async", MIDDLE, "--", "nobody waits"), ("sync", DARK, "-", "all wait"))
        for rule, colour, dash, name in looks:
            for curve in curves[rule]:
                axes.plot(curve[:, column], curve[:, 2], ".", color=colour, markersize=3)
            x = np.linspace(0, min(curve[-1, column] for curve in curves[rule]), 60)
            each = [np.interp(x, curve[:, column], curve[:, 2]) for curve in curves[rule]]
            middle = np.median(each, axis=0)
            axes.plot(x, middle, color=colour, linestyle=dash, linewidth=2.5, label=name)
        axes.axhline(loss, color=GREY, linewidth=1)
        if column == 0 and guess is not None:
            guess_star(axes, guess * float(np.median(at["async"])), loss, f"{guess:g} x the time")
    left, right = panels
    left.set(xlabel="time (s)", ylabel="loss on the test images", yscale="log", xlim=(0, None))
    ticks = [0.1, 0.2, 0.3, 0.5, 1, 2]
    inside = [tick for tick in ticks if loss <= tick <= left.get_ylim()[1]]
    left.set_yticks(inside, [f"{tick:g}" for tick in inside])
    left.minorticks_off()
    right.set(xlabel="gradients used (count)", xlim=(0, None))
    left.legend(fontsize=9)
    words = f"To a loss of {loss:.2f}, waiting takes {said[0]}\nand {said[1]}"
    figure.suptitle(words, fontsize=11, x=0.01, ha="left")
    figure.set_label(words.replace("\n", " ") + f", over {len(curves['sync'])} rounds.")
    return figure
