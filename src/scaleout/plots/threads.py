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

__all__ = ["cliff", "rate_over_threads", "settings_dots", "thread_census", "which_knob"]

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

    Parameters
    ----------
    runs : mapping of name to DataFrame
        The records of one job each, of 02_threads or of 06's watch.py. The dotted line is at the
        cores of the job.
    guess : float, optional
        The threads that the reader expects.
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
    figure.legend(handles, labels, loc="outside upper center", ncols=5, fontsize=10)
    return figure


@style
def rate_over_threads(
    frame: "pd.DataFrame", cores: int, guess: float | None = None, unit: str = "images/s"
) -> Figure:
    """The rate over the threads of a rank, a line for each number of ranks; filled points fit the
    cores, hollow do not.

    Parameters
    ----------
    frame : DataFrame
        Of a sweep's result over ranks and threads.
    cores : int
        The dashed line is the ideal for one rank: as many times the rate as it has threads, up to
        the cores.
    guess : float, optional
        The number of threads that the reader expects to be best for one rank.
    unit : str
        Of the rate.
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
    return figure


@style
def cliff(builds: "Mapping[str, pd.DataFrame]", cores: str = "threads for each core") -> Figure:
    """The rate of one rank with more and more threads, a line a build: single runs as points,
    medians as lines.

    Parameters
    ----------
    builds : mapping of name to DataFrame
        Frames of `openmp.turns`, whose arms are told apart by `threads_per_rank`. Right of the
        dotted line there are more threads than cores.
    cores : str
        What the x axis is called.
    """
    figure, axes = plt.subplots()
    for place, (name, frame) in enumerate(builds.items()):
        colour = [DARK, MIDDLE, LIGHT][place % 3]
        each = frame.threads_per_rank / frame.cores
        axes.scatter(each, frame.rate, color=colour, marker=MARKERS[place], zorder=3, s=35)
        median = frame.groupby(each).rate.median()
        axes.plot(
            median.index,
            median,
            color=colour,
            linewidth=2,
            marker=MARKERS[place],
            label=_where(name, frame),
        )
    axes.axvline(1, color="black", linestyle=":", label="as many threads as cores")
    top = max(frame.rate.max() for frame in builds.values())
    axes.set(xlabel=cores, ylabel="images/s trained, one rank", ylim=(0, top * 1.15))
    axes.legend(fontsize=9, loc="lower right")
    return figure


def _where(name: str, frame: "pd.DataFrame") -> str:
    where = frame.attrs.get("where", "this machine")
    return name if where == "this machine" else f"{name}\n({fill(where, 48)})"


@style
def which_knob(builds: "Mapping[str, pd.DataFrame]") -> Figure:
    """CPUs kept busy under each setting, a panel a build: a knob is real where the bar follows it.

    builds: {name: frame of openmp.turns}.  Points are single runs; beside each bar its median rate.
    """
    figure, panels = plt.subplots(1, len(builds), figsize=(7, 3.2), sharey=True, squeeze=False)
    widest = max(frame["metrics.cpus_busy"].max() for frame in builds.values())
    for axes, (name, frame) in zip(panels[0], builds.items(), strict=True):
        arms = list(dict.fromkeys(frame.arm))
        for place, arm in enumerate(arms):
            runs = frame[frame.arm == arm]
            busy = runs["metrics.cpus_busy"]
            axes.barh(
                place, busy.median(), color=[PALE, LIGHT][place > 0], edgecolor=DARK, height=0.6
            )
            axes.scatter(
                busy, [place] * len(busy), color="white", edgecolor="black", s=26, zorder=3
            )
            axes.annotate(f"{runs.rate.median():,.0f}/s", (busy.max(), place), (7, -4), textcoords="offset points",
                          fontsize=9)  # fmt: skip
        axes.set(xlabel="CPUs kept busy (count)", xlim=(0, widest * 1.45))
        where = frame.attrs.get("where", "this machine")
        axes.set_title(
            name if where == "this machine" else f"{name}\n{fill(where, 36)}", fontsize=9
        )
        axes.grid(axis="y", visible=False)
        axes.set_yticks(range(len(arms)), [fill(arm, 18) for arm in arms])
    panels[0, 0].invert_yaxis()
    return figure


@style
def settings_dots(frame: "pd.DataFrame") -> Figure:
    """The rate of each arm: single runs as points, the median as a bar, the first arm's spread as a
    grey band.

    frame: of openmp.turns.  An arm whose points lie in the band does not differ from the first.
    """
    arms = list(dict.fromkeys(frame.arm))
    figure, axes = plt.subplots(figsize=(7, 1.4 + 0.45 * len(arms)))
    base = frame[frame.arm == arms[0]].rate
    axes.axvspan(base.min(), base.max(), color="#dddddd", label=f"all runs of: {arms[0]}")
    for place, arm in enumerate(arms):
        rates = frame[frame.arm == arm].rate
        axes.plot([rates.median()] * 2, [place - 0.3, place + 0.3], color=DARK, linewidth=3)
        axes.scatter(rates, [place] * len(rates), color="white", edgecolor="black", s=36, zorder=3)
    axes.set_xlim(0, frame.rate.max() * 1.1)
    axes.set_yticks(range(len(arms)), arms)
    axes.invert_yaxis()
    axes.set_xlabel("images/s trained")
    where = frame.attrs.get("where", "this machine")
    axes.set_title(where, fontsize=9, loc="left")
    figure.legend(fontsize=9, loc="outside lower right")
    return figure
