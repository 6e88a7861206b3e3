"""Figures of 10_input's file system: what one server takes for an epoch, beside what a formula
foretells, and for how many nodes it is enough."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from ..words import count, rounded
from .look import DARK, GREY, LIGHT, MIDDLE, PALE, Look, guess_line, style

if TYPE_CHECKING:
    import pandas as pd


WAYS: dict[str, tuple[str, Look]] = {
    "one file an image": ("one file\nan image", {"color": MIDDLE, "marker": "o"}),
    "from shards": ("shards", {"color": DARK, "marker": "s"}),
    "staged first": ("a copy\nper node", {"color": LIGHT, "marker": "^"}),
    "staged": ("every later\nepoch", {"color": GREY, "marker": "v"}),
}
SERVED = 1e-3  # seconds; less is no work for the server
BAND = 0.2


@style
def one_server(records: "pd.DataFrame", guess: float | None = None) -> Figure:
    """Seconds of an epoch by way of one server; and all of them beside opens x delay + bytes /
    bandwidth.
    """
    rows: list[Any] = [row for _, row in records.iterrows()]
    speed = [rows[-1].metrics[name] for name in ("delay_ms", "mb_per_s")]
    shown = [row for row in rows if [row.metrics["delay_ms"], row.metrics["mb_per_s"]] == speed]
    figure, (left, right) = plt.subplots(1, 2, figsize=(8.2, 4.2), width_ratios=(3, 2))
    middles = {}
    for place, row in enumerate(shown):
        _, look = WAYS[row.variant]
        middles[row.variant, int(row.ranks)] = middle = float(np.median(row.step_s))
        left.bar(place, middle, width=0.7, color=look["color"], edgecolor=DARK)
        left.plot([place] * len(row.step_s), row.step_s, "o", color="white",
                  markeredgecolor="black", markersize=4)  # fmt: skip
        left.annotate(f"{row.metrics['opens']:,}", (place, max(row.step_s)), (0, 4),
                      textcoords="offset points", ha="center", fontsize=9)  # fmt: skip
    most = max(int(row.ranks) for row in rows)
    names = [
        f"{WAYS[row.variant][0]}\n{count(int(row.ranks), 'rank')}"
        if row.variant == "one file an image"
        else WAYS[row.variant][0]
        for row in shown
    ]
    left.set_xticks(range(len(shown)), names, fontsize=8)
    files, shards = (middles[way, most] for way in ("one file an image", "from shards"))
    if guess is not None:
        left.axhline(files / guess, color=MIDDLE, linestyle=":", linewidth=2,
                     label=f"your guess: {guess:g} times")  # fmt: skip
        left.legend(fontsize=9, loc="upper right")
    top = max(max(row.step_s) for row in shown)
    left.set(ylabel="an epoch (s)", ylim=(0, 1.3 * top))
    left.set_title(
        f"{speed[0]:g} ms an open, {speed[1]:g} MB/s; above the bars: opens", fontsize=10
    )
    left.grid(axis="x", visible=False)
    served = [row for row in rows if row.metrics["model_s"] > SERVED]
    off = max(abs(float(np.median(row.step_s)) / row.metrics["model_s"] - 1) for row in served)
    ends = np.array([0.7 * min(row.metrics["model_s"] for row in served),
                     1.4 * max(row.metrics["model_s"] for row in served)])  # fmt: skip
    right.fill_between(ends, (1 - BAND) * ends, (1 + BAND) * ends, color=PALE, label="within 20 %")
    right.plot(ends, ends, "--", color=GREY)
    named = set()
    for row in served:
        label, look = WAYS[row.variant]
        right.plot([row.metrics["model_s"]] * len(row.step_s), row.step_s, linestyle="",
                   markersize=6, label="" if row.variant in named else label.replace("\n", " "),
                   **look)  # fmt: skip
        named.add(row.variant)
    right.set(xscale="log", yscale="log", xlabel="opens x delay + bytes / bandwidth (s)",
              ylabel="measured (s)")  # fmt: skip
    right.set_title(f"The formula: {100 * off:.0f} % off at most", fontsize=10)
    right.legend(fontsize=8, loc="upper left")
    said = [f"{way}, {count(ranks, 'rank')}: {rounded(s)} s" for (way, ranks), s in middles.items()]
    figure.set_label(
        f"{'. '.join(said)}. Shards are {rounded(files / shards)} times as fast as one file an "
        f"image. The formula is {100 * off:.0f} percent off at most."
    )
    return figure


def _busy(opens_per_s: float, mb_per_s: float, delay_ms: float, server_mb_per_s: float) -> float:
    """The seconds that a server works for a second of one node."""
    return opens_per_s * delay_ms / 1e3 + mb_per_s / server_mb_per_s


@style
def server_load(
    opens_per_s: Mapping[str, float],
    mb_per_s: float,
    delay_ms: float,
    server_mb_per_s: float,
    nodes: int,
    guess: float | None = None,
) -> Figure:
    """How long one server works for a second of training, over the number of nodes."""
    figure, axes = plt.subplots(figsize=(7, 4))
    x = np.geomspace(1, 4 * nodes, 100)
    looks: list[Look] = [{"color": MIDDLE}, {"color": DARK, "linestyle": "-."}]
    said = []
    for (name, opens), look in zip(opens_per_s.items(), looks, strict=True):
        one = _busy(opens, mb_per_s, delay_ms, server_mb_per_s)
        axes.plot(x, one * x, linewidth=2, label=name, **look)
        axes.plot([nodes], [one * nodes], "o", color=look["color"])
        axes.annotate(f"{rounded(one * nodes)} s", (nodes, one * nodes), (8, -12),
                      textcoords="offset points", fontsize=10)  # fmt: skip
        said.append(f"{name}: {rounded(one * nodes)} s for {nodes} nodes, "
                    f"enough for {1 / one:,.0f} nodes")  # fmt: skip
    axes.axhline(1, color=GREY, linestyle="--", label="all that it has: 1 s in each second")
    guess_line(axes, guess, upright=True)
    axes.set(xscale="log", yscale="log", xlabel="nodes",
             ylabel="work of the server for a second of training (s)")  # fmt: skip
    first = _busy(next(iter(opens_per_s.values())), mb_per_s, delay_ms, server_mb_per_s)
    found = f"{next(iter(opens_per_s))}: the server is enough for {count(int(1 / first), 'node')}"
    axes.set_title(found[:1].upper() + found[1:], fontsize=11, loc="left")
    axes.legend(fontsize=9, loc="upper left")
    figure.set_label("; ".join(said) + ".")
    return figure
