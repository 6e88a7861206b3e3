"""Figures of 02: who has threads and how busy they are, the rate over threads, settings side by
side."""

from collections.abc import Mapping
from textwrap import fill
from typing import TYPE_CHECKING

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from .. import words
from .look import DARK, LIGHT, MIDDLE, PALE, Look, guess_line, style

if TYPE_CHECKING:
    import pandas as pd


LIBRARIES = {
    "Eigen": (DARK, ""),
    "OpenMP": (MIDDLE, "//"),
    "Horovod": ("#a98600", "xx"),
    "Python": (LIGHT, ""),
    "other": (PALE, ".."),
}
MARKERS = "os^Dv*PX"


@style
def thread_census(runs: "Mapping[str, pd.DataFrame]", guess: float | None = None) -> Figure:
    """Each run by library, all ranks together: left the threads that it has, right the CPUs that
    they kept busy.
    """
    figure, panels = plt.subplots(1, 2, figsize=(7, 1.7 + 0.55 * len(runs)), sharey=True)
    cores = [len(frame["metrics.cores"].iloc[0]) for frame in runs.values()]
    fields = {"threads": "threads (count)", "cpus": "CPUs kept busy (count)"}
    for axes, (field, label_x) in zip(panels, fields.items(), strict=True):
        left = np.zeros(len(runs))
        for library, (colour, hatch) in LIBRARIES.items():
            on_rank = [frame["metrics.on_rank"].iloc[0] for frame in runs.values()]
            amount = np.array(
                [sum(each[field].get(library, 0) for each in ranks) for ranks in on_rank]
            )
            bars = {"color": colour, "hatch": hatch, "edgecolor": DARK, "linewidth": 0.8}
            label = library if amount.any() else ""
            axes.barh(range(len(runs)), amount, left=left, label=label, height=0.6, **bars)
            left += amount
        for place, whole in enumerate(left):
            axes.annotate(f"{whole:.0f}" if field == "threads" else f"{whole:.2f}", (whole, place), (4, -4),
                          textcoords="offset points", fontsize=10)  # fmt: skip
        for n in sorted(set(cores)):
            axes.axvline(n, color="black", linestyle=":", label=f"cores: {n}")
        if field == "threads":
            guess_line(axes, guess, upright=True)
        widest = max(left.max(), max(cores), (guess or 0) if field == "threads" else 0)
        axes.set(xlabel=label_x, xlim=(0, widest * 1.2))
        axes.xaxis.get_major_locator().set_params(integer=field == "threads")
        axes.grid(axis="y", visible=False)
    panels[0].set_yticks(range(len(runs)), [fill(name, 16) for name in runs])
    panels[0].invert_yaxis()
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=5, fontsize=10)
    said = [_census(name, frame) for name, frame in runs.items()]
    figure.suptitle("\n".join(said), fontsize=11, x=0.01, ha="left")
    figure.set_label(" ".join(said))
    return figure


def _census(name: str, frame: "pd.DataFrame") -> str:
    """Threads and busy CPUs of one job in a sentence."""
    ranks = frame["metrics.on_rank"].iloc[0]
    threads = sum(sum(each["threads"].values()) for each in ranks)
    busy = sum(sum(each["cpus"].values()) for each in ranks)
    cores = len(frame["metrics.cores"].iloc[0])
    return f"{name}: {threads} threads keep {busy:.1f} of {words.count(cores, 'core')} busy."


@style
def rate_over_threads(
    frame: "pd.DataFrame", cores: int, guess: float | None = None, unit: str = "images/s"
) -> Figure:
    """The rate over the threads of a rank, a line for each number of ranks; filled points fit the
    cores, hollow do not.
    """
    figure, axes = plt.subplots()
    one = frame[(frame.ranks == 1) & (frame.threads == 1)].rate
    counts = sorted(frame.threads.unique())
    if len(one) and one.notna().all():
        ideal = [float(one.iloc[0]) * min(n, cores) for n in counts]
        axes.plot(counts, ideal, linestyle="--", color="#888888", label="ideal, 1 rank")
    for place, (ranks, group) in enumerate(frame.sort_values("threads").groupby("ranks")):
        colour = [DARK, MIDDLE, LIGHT, "#6b705c"][place % 4]
        axes.plot(group.threads, group.rate, color=colour, linewidth=2)
        marker: Look = {
            "marker": MARKERS[place % len(MARKERS)],
            "edgecolor": colour,
            "s": 55,
            "zorder": 3,
        }
        fits = group.threads * ranks <= cores
        name: str | None = words.count(ranks, "rank")
        for some, fill_colour in ((group[fits], colour), (group[~fits], "white")):
            if len(some):
                axes.scatter(some.threads, some.rate, color=fill_colour, label=name, **marker)
                name = None
    guess_line(axes, guess, upright=True)
    axes.set(
        xlabel="threads a rank (count); hollow: more threads in all than cores",
        ylabel=f"{unit} trained",
    )
    axes.set(xticks=counts, ylim=(0, frame.rate.max() * 1.15))
    axes.legend(fontsize=10, ncols=2, loc="lower right")
    alone = frame[frame.ranks == 1]
    if alone.rate.notna().any():
        best = alone.loc[alone.rate.idxmax()]
        threads = words.count(int(best.threads), "thread")
        said = f"One rank: highest median with {threads}, {words.rounded(best.rate)} {unit}."
        axes.set_title(said, fontsize=11, loc="left")
        figure.set_label(said)
    return figure
