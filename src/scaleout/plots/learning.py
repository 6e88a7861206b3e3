"""Figures of 05_horovod: what many ranks learn, and with which learning rate."""

from collections.abc import Mapping, Sequence
from textwrap import fill
from typing import TYPE_CHECKING, Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from .. import words
from .look import DARK, GREY, LIGHT, MIDDLE, say, style

if TYPE_CHECKING:
    import pandas as pd


LINES = ((DARK, "o", "-"), (MIDDLE, "s", "--"), ("#6b705c", "^", ":"), (LIGHT, "D", "-."))
LINE = 92  # letters of a title


@style
def schedules(record: "pd.DataFrame", guess: str | None = None) -> Figure:
    """Left, the learning rate of each schedule over the training; right, the accuracy it led to."""
    job: dict[str, Any] = record["metrics"].iloc[0]
    runs = [run for run in job["runs"] if not run["again"]]
    names = list(job["rates"])
    percent = {
        name: np.array([100 * run["accuracy"] for run in runs if run["variant"] == name])
        for name in names
    }
    said = {name: _mean_and_error(found) for name, found in percent.items()}
    figure, (left, right) = plt.subplots(
        1, 2, sharey=True, figsize=(7.9, 1.6 + 0.42 * len(names)), width_ratios=[1, 1.9]
    )
    highest = max(max(rates) for rates in job["rates"].values())
    for row, name in enumerate(names):
        _rate(left, row, np.array(job["rates"][name]) / highest)
    _accuracies(right, percent, said, guess)
    seeds = words.count(len(percent[names[0]]), "seed")
    right.set_title(f"{seeds}, {runs[0]['tested']:,} images", fontsize=10, loc="left")
    left.set_title(f"learning rate, up to {highest:g}", fontsize=10, loc="left")
    left.set_yticks(range(len(names)), [fill(name, 26) for name in names], fontsize=9)
    left.set_ylim(len(names) - 0.5, -0.5)
    left.set(xlabel="part of the training (%)", xlim=(0, 100))
    left.grid(visible=False)
    large, small = (
        max(
            (name for name in names if name.startswith("batch") is batch_64),
            key=lambda name: float(percent[name].mean()),
        )
        for batch_64 in (False, True)
    )
    title = f"{large}: {said[large]} %, the best of the large batch; {small}: {said[small]} %"
    unbroken = title.replace(" ± ", "\u00a0±\u00a0").replace(" %", "\u00a0%")
    figure.suptitle(fill(unbroken, LINE), fontsize=11, x=0.01, ha="left")
    handles, labels = right.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3, fontsize=9)
    each = [f"{name}: {text} %." for name, text in said.items()]
    guessed = [] if guess is None else [f"Your guess: {guess}."]
    figure.set_label(" ".join([f"{title}.", *each, *guessed]))
    return figure


def _mean_and_error(percent: NDArray[np.float64]) -> str:
    """The mean over the seeds and its standard error."""
    if len(percent) < 2:
        return f"{percent.mean():.2f} ± ?"
    return f"{percent.mean():.2f} ± {percent.std(ddof=1) / np.sqrt(len(percent)):.2f}"


def _rate(axes: Axes, row: int, rates: NDArray[np.float64]) -> None:
    """The shape of one learning rate, as a small area in its row."""
    floor = row + 0.36
    axes.fill_between(np.linspace(0, 100, len(rates)), floor, floor - 0.72 * rates, color=LIGHT)
    axes.axhline(floor, color=GREY, linewidth=0.5)


def _accuracies(
    axes: Axes,
    percent: Mapping[str, NDArray[np.float64]],
    said: Mapping[str, str],
    guess: str | None,
) -> None:
    """A row a schedule: its seeds, their mean and standard error; what lies left of the axis stands
    at its end."""
    low = 80.0 if min(found.min() for found in percent.values()) < 90 else 90.0
    for row, (name, found) in enumerate(percent.items()):
        seeds, mean = len(found), float(found.mean())
        places = row + np.linspace(-0.2, 0.2, seeds)
        axes.scatter(
            np.maximum(found, low),
            places,
            s=20,
            color="white",
            edgecolor=DARK,
            zorder=3,
            label="" if row else "a seed",
        )
        known = seeds > 1 and mean > low
        axes.errorbar(
            [max(mean, low)],
            [row],
            xerr=[found.std(ddof=1) / np.sqrt(seeds)] if known else None,
            fmt="s",
            markersize=5,
            color=MIDDLE,
            capsize=4,
            linewidth=2,
            zorder=4,
            label="" if row else "mean and standard error",
        )
        axes.annotate(
            said[name],
            (1.01, row),
            xycoords=("axes fraction", "data"),
            va="center",
            fontsize=9,
            annotation_clip=False,
        )
    axes.set(xlabel="accuracy (%)", xlim=(low, 100))
    if guess is not None:
        _star(axes, low, list(percent), str(guess).strip())


def _star(axes: Axes, x: float, names: Sequence[str], guess: str) -> None:
    """The reader's guess at the start of its row, else in the legend alone."""
    rows = [row for row, name in enumerate(names) if guess == name]
    rows += [row for row, name in enumerate(names) if guess and guess in name]
    spot = ([x], rows[:1]) if rows else ([], [])
    axes.plot(
        *spot,
        "*",
        markersize=15,
        color="black",
        clip_on=False,
        zorder=5,
        label=f"your guess: {guess}",
    )


@style
def drifting_ranks(records: "Mapping[str, pd.DataFrame]") -> Figure:
    """One weight on each rank, step by step, of wrong.py: equal on all ranks, or apart for ever. A
    panel a job."""
    figure, panels = plt.subplots(1, len(records), sharey=True, squeeze=False, figsize=(7, 3.2))
    said = []
    for axes, (title, frame) in zip(panels.flat, records.items(), strict=True):
        ends = [weights[-1] for weights in frame["metrics.weight"].iloc[0]]
        said.append(f"{title} {max(ends) - min(ends):.2f}")
        for rank, weights in enumerate(frame["metrics.weight"].iloc[0]):
            colour, marker, line = LINES[rank % len(LINES)]
            look = {"linestyle": line, "marker": marker, "markersize": 9 - 4 * rank, "linewidth": 2}
            axes.plot(range(len(weights)), weights, color=colour, label=f"rank {rank}", **look)
        axes.set_title(title, fontsize=11)
        axes.set_xlabel("steps (count)")
    panels[0, 0].set_ylabel("the first weight")
    panels[0, 0].legend(fontsize=9)
    say(figure, f"How far apart the ranks' weights end: {', '.join(said)}.")
    return figure
