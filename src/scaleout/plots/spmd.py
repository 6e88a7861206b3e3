"""Figures of 03_spmd: who holds what before and after a call, and what a straggler costs."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from .look import DARK, LIGHT, MIDDLE, PALE, Look, say, style

if TYPE_CHECKING:
    import pandas as pd


# Of the ranks 0, 1, 2 ...
RANKS = (DARK, LIGHT, MIDDLE, "#c9b458", "#8a8a8a", "#5b8c5a", "#d9a5b3", "#3d3d3d")


@style
def who_holds(held: Sequence[Sequence[tuple[str, Any, Any]]]) -> Figure:
    """Who holds what before and after each collective call, drawn from what the ranks really held."""
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
        axes.set_yticks(
            [rank + 0.5 for rank in range(ranks)],
            [f"rank {rank}" for rank in range(ranks)],
            fontsize=8,
        )
        axes.tick_params(length=0)
        axes.set_xticks([])
        axes.spines[:].set_visible(False)
        axes.grid(False)
    for axes in grid.flat[calls:]:
        axes.axis("off")
    said = []
    for call in range(calls):
        after = (f"rank {rank} {_names(mine[call][2])}" for rank, mine in enumerate(held))
        said.append(f"{held[0][call][0]}: in the end {', '.join(after)}.")
    figure.set_label(" ".join(said))
    return figure


def _bits(value: int) -> list[int]:
    return [bit for bit in range(value.bit_length()) if value >> bit & 1]


def _name(bit: int) -> str:
    return f"{'abcdefgh'[bit // 8]}{bit % 8}"


def _names(values: Any) -> str:
    """What a rank holds, such as a0+b0 a1+b1."""
    every = [] if values is None else np.atleast_1d(values)
    return " ".join("+".join(map(_name, _bits(int(value)))) for value in every) or "nothing"


def _pieces(axes: Axes, x: float, y: float, value: int) -> None:
    """One element: a box, in stripes of the colours of all ranks whose pieces are in it."""
    bits = _bits(value)
    for number, bit in enumerate(bits):
        colour, height = RANKS[bit // 8], 0.84 / len(bits)
        top = y + 0.08 + number * height
        axes.add_patch(Rectangle((x, top), 0.94, height, color=colour, linewidth=0))
        size = 9 if len(bits) == 1 else 7
        white = "white" if colour in (DARK, MIDDLE) else "black"
        axes.text(
            x + 0.47,
            top + height / 2,
            _name(bit),
            fontsize=size,
            ha="center",
            va="center_baseline",
            color=white,
        )
    axes.add_patch(
        Rectangle((x, y + 0.08), 0.94, 0.84, fill=False, edgecolor="#444444", linewidth=0.8)
    )


@style
def straggler_timeline(records: "Mapping[str, pd.DataFrame]", until_s: float = 0.12) -> Figure:
    """What each worker did in the first moments of 03_spmd's straggler.py: computed (dark) or
    waited (hatched).
    """
    figure, panels = plt.subplots(
        len(records), 1, figsize=(7, 1.1 + 1.25 * len(records)), sharex=True, squeeze=False
    )
    waited = []
    for axes, (title, frame) in zip(panels.flat, records.items(), strict=True):
        times = np.array(frame["metrics.timeline"].iloc[0])  # (gradients, 4)
        lost = np.sum(times[:, 3] - times[:, 2]) / np.sum(times[:, 3] - times[:, 1])
        waited.append(f"{100 * lost:.0f} % ({title})")
        for rank, start, ready, done in frame["metrics.timeline"].iloc[0]:
            if start < until_s:
                axes.barh(
                    rank,
                    1e3 * (ready - start),
                    left=1e3 * start,
                    height=0.7,
                    color=DARK,
                    edgecolor="white",
                )
                wait: Look = {
                    "height": 0.7,
                    "color": PALE,
                    "edgecolor": "#8a8a8a",
                    "hatch": "////",
                    "linewidth": 0,
                }
                axes.barh(rank, 1e3 * (done - ready), left=1e3 * ready, **wait)
        ranks = int(frame.ranks.iloc[0])
        axes.set_yticks(range(1, ranks), [f"rank {rank}" for rank in range(1, ranks)])
        axes.set(xlim=(0, 1e3 * until_s), ylim=(ranks - 0.4, 0.4))
        axes.set_title(title, fontsize=10, loc="left")
        axes.grid(False)
    panels[-1, 0].set_xlabel("time since the start (ms)")
    looks: tuple[Look, ...] = (
        {"color": DARK},
        {"facecolor": PALE, "edgecolor": "#8a8a8a", "hatch": "////"},
    )
    marks = [Rectangle((0, 0), 1, 1, **look) for look in looks]
    figure.legend(marks, ["computes", "waits"], loc="outside lower right", ncols=2, fontsize=9)
    say(figure, f"The share of their time in which the workers wait: {', '.join(waited)}.")
    return figure


@style
def stale_losses(records: "Mapping[str, Sequence[pd.DataFrame]]") -> Figure:
    """The test loss of straggler.py over seconds and over gradients: points are single runs, lines
    their median.
    """
    figure, (left, right) = plt.subplots(1, 2, figsize=(8, 4), sharey=True)
    looks = ((DARK, "-"), (MIDDLE, "--"), ("#a98600", ":"), ("#8a8a8a", "-."))
    said = []
    for (name, frames), (colour, dash) in zip(records.items(), looks, strict=False):
        # Each (points, 3): seconds, gradients, loss.
        curves = [np.array(frame["metrics.curve"].iloc[0]) for frame in frames]
        seconds, _, loss = np.median([curve[-1] for curve in curves], axis=0)
        said.append(f"{name}: a loss of {loss:.2g} after {seconds:.2g} s")
        for axes, column in ((left, 0), (right, 1)):
            for curve in curves:
                axes.plot(
                    curve[::2, column],
                    curve[::2, 2],
                    ".",
                    color=colour,
                    markersize=2,
                    antialiased=False,
                )
            x = np.linspace(0, min(curve[-1, column] for curve in curves), 60)
            middle = np.median(
                [np.interp(x, curve[:, column], curve[:, 2]) for curve in curves], axis=0
            )
            axes.plot(x, middle, color=colour, linestyle=dash, linewidth=2.5, label=name)
    left.set(xlabel="time (s)", ylabel="loss on the test images", yscale="log")
    right.set(xlabel="gradients used (count)")
    right.legend(fontsize=9)
    gradients = max(
        frame["metrics.curve"].iloc[0][-1][1] for row in records.values() for frame in row
    )
    say(figure, f"After {gradients:.0f} gradients, in the median: {'; '.join(said)}.")
    return figure
