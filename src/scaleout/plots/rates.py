"""Figures that every topic draws: rates, seconds and speed-up, one picture for any record."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from .look import DARK, LIGHT, MIDDLE, PALE, Look, guess_star, medians, say, style

if TYPE_CHECKING:
    import pandas as pd


@style
def speed_up(records: "Sequence[pd.DataFrame]", guess: float | None = None) -> Figure:
    """How many times faster than one rank: single runs as points, their median as a line, the ideal
    dashed.
    """
    rows = [(int(frame.ranks.iloc[0]), float(frame.step_median_s.iloc[0])) for frame in records]
    middle = medians(rows)
    counts, one = list(middle), middle[min(middle)]
    figure, axes = plt.subplots()
    axes.plot(
        counts, [n / counts[0] for n in counts], linestyle="--", color="#888888", label="ideal"
    )
    axes.scatter(
        [n for n, _ in rows],
        [one / s for _, s in rows],
        color=MIDDLE,
        zorder=3,
        label="single runs",
    )
    median = [one / middle[count] for count in counts]
    axes.plot(counts, median, color=DARK, linewidth=2.5, marker="s", label="median")
    if guess is not None:
        guess_star(axes, 2, guess, f"{guess:g}")
    axes.set(
        xlabel="ranks (count)",
        ylabel=f"speed-up over {counts[0]} rank(s)",
        xticks=counts,
        ylim=(0, None),
    )
    axes.legend()
    return figure


@style
def rate_bars(
    records: "pd.DataFrame",
    by: str = "metrics.kernels",
    labels: Mapping[Any, str] | None = None,
    published: Mapping[str, float] | None = None,
    guess: float | None = None,
) -> Figure:
    """Images/s: bars are medians, points single runs; above each bar, how many times the first one
    it is.
    """
    ratios = [len(labels or records[by].unique()), len(published)] if published else [1]
    figure, panels = plt.subplots(
        1, len(ratios), width_ratios=ratios, squeeze=False, figsize=(7, 4)
    )
    groups = {value: group.rate.tolist() for value, group in records.groupby(by, sort=False)}
    rates = {
        text: groups[value]
        for value, text in (labels or {v: str(v) for v in groups}).items()
        if value in groups
    }
    _bars(panels[0, 0], rates, [DARK, LIGHT, PALE, MIDDLE, "white"])
    panels[0, 0].set_ylabel("images/s trained")
    if guess is not None:
        first = float(np.median(next(iter(rates.values()))))
        guess_star(panels[0, 0], 1, guess * first, f"{guess:g}x")
        panels[0, 0].set_ylim(0, max(panels[0, 0].get_ylim()[1], 1.2 * guess * first))
    panels[0, 0].legend(loc="upper left")
    if published:
        panels[0, 0].set_title("this machine", fontsize=11)
        panels[0, 1].set_title("a small cloud node, 2019", fontsize=11)
        _bars(
            panels[0, 1],
            {name: [rate] for name, rate in published.items()},
            ["#bbbbbb", "#eeeeee"],
            points=False,
        )
    return figure


def _bars(
    axes: Axes, rates: Mapping[str, Sequence[float]], fills: Sequence[str], points: bool = True
) -> None:
    """A bar a name at the median of its rates, the rates as points, and the ratio to the first bar
    above it."""
    middle = [float(np.median(group)) for group in rates.values()]
    hatches = ["", "", "//", "..", "xx"]
    for place, (group, median) in enumerate(zip(rates.values(), middle, strict=True)):
        look: Look = {
            "color": fills[place % len(fills)],
            "hatch": hatches[place % len(hatches)],
            "edgecolor": DARK,
        }
        axes.bar(place, median, width=0.65, **look)
        name: Look = {"label": "single runs"} if place == 0 else {}
        if points:
            spots = place + np.linspace(-0.12, 0.12, len(group)) * (len(group) > 1)
            axes.scatter(spots, group, s=28, color="white", edgecolor="black", zorder=3, **name)
        text = f"{median:,.0f}" if median >= 100 else f"{median:.2f}"
        text += f"\n{median / middle[0]:.2f}x" if place else ""
        axes.annotate(
            text, (place, max(group)), (0, 7), textcoords="offset points", ha="center", fontsize=10
        )
    axes.set_xticks(range(len(rates)), list(rates))
    axes.set_ylim(0, max(max(group) for group in rates.values()) * 1.4)
    axes.grid(axis="x", visible=False)


@style
def seconds_bars(
    seconds: Mapping[str, Sequence[float]],
    ylabel: str = "seconds for one fit",
    published: Mapping[str, float] | None = None,
    guess: float | None = None,
) -> Figure:
    """Seconds: bars are medians, points single runs; above each bar, how many times the first one
    it is.
    """
    ratios = [len(seconds), len(published)] if published else [1]
    figure, panels = plt.subplots(1, len(ratios), width_ratios=ratios, squeeze=False)
    _bars(panels[0, 0], seconds, [DARK, LIGHT, PALE, MIDDLE, "white"])
    panels[0, 0].set_ylabel(ylabel)
    if guess:
        expected = float(np.median(next(iter(seconds.values())))) / guess
        guess_star(panels[0, 0], 1, expected, f"{guess:g} times faster")
    panels[0, 0].legend(loc="upper right")
    if published:
        panels[0, 0].set_title("this machine", fontsize=11)
        panels[0, 1].set_title("published, 2019", fontsize=11)
        _bars(
            panels[0, 1],
            {name: [value] for name, value in published.items()},
            ["#bbbbbb", "#eeeeee"],
            points=False,
        )
    return figure


@style
def strong_and_weak(strong: "Sequence[pd.DataFrame]", weak: "Sequence[pd.DataFrame]") -> Figure:
    """Left, the same rows on more ranks: speed-up. Right, the same rows on each rank: efficiency.
    The ideal is dashed.
    """
    figure, panels = plt.subplots(1, 2)
    said, values = [], []
    names = (("speed-up", "all rows shared out"), ("efficiency", "as many rows on each rank"))
    for axes, frames, (what, how) in zip(panels, (strong, weak), names, strict=True):
        rows = [(int(f.ranks.iloc[0]), float(f.step_median_s.iloc[0])) for f in frames]
        middle = medians(rows)
        counts, one = list(middle), middle[min(middle)]
        ideal = [n / counts[0] for n in counts] if what == "speed-up" else [1] * len(counts)
        axes.plot(counts, ideal, linestyle="--", color="#888888", label="ideal")
        axes.scatter(
            [n for n, _ in rows],
            [one / s for _, s in rows],
            color=MIDDLE,
            zorder=3,
            label="single runs",
        )
        median = [one / middle[count] for count in counts]
        axes.plot(counts, median, color=DARK, linewidth=2.5, marker="s", label="median")
        cores = int(frames[0].cores.iloc[0])
        if counts[0] < cores <= counts[-1]:
            axes.axvline(cores, color="#888888", linestyle=":", label=f"cores: {cores}")
        shown = max(n for n in counts if n <= max(cores, counts[0]))
        said.append(f"{what} {one / middle[shown]:.2f} on {shown} ranks ({how})")
        every = ", ".join(f"{n}: {m:.2f}" for n, m in zip(counts, median, strict=True))
        values.append(f"{what} over ranks: {every}.".capitalize())
        axes.set_title(how, fontsize=11)
        axes.set(xlabel="ranks (count)", ylabel=f"{what} over {counts[0]} rank", xticks=counts)
        axes.set_ylim(0, 1.08 * max(*ideal, *median))
    panels[0].legend(fontsize=10)
    say(figure, f"{'; '.join(said)}.".capitalize(), " ".join(values))
    return figure
