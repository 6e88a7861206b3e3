"""Figures of parameter servers: beside the ring (03_spmd's servers.py), and with workers that wait
for each other or do not (11_parallelism's server.py)."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from .look import DARK, LIGHT, MIDDLE, PALE, Look, guess_star, medians, say, style

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
