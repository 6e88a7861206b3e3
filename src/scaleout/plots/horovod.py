"""Figures of 05_horovod: learning with many ranks, and where the time of a step goes."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from .. import words
from ..errors import ScaleoutError
from .look import DARK, LIGHT, MIDDLE, NOT_ALLOWED, PALE, Look, guess_star, medians, style

if TYPE_CHECKING:
    import pandas as pd

    from ..measure.timeline import Timeline

__all__ = ["drifting_ranks", "learning_curves", "rank_counts", "step_shares", "step_timeline"]

LINES = ((DARK, "o", "-"), (MIDDLE, "s", "--"), ("#6b705c", "^", ":"), (LIGHT, "D", "-."))
PARTS: dict[str, tuple[str, Look]] = {
    "compute_s": ("computes", {"color": DARK, "edgecolor": "white", "linewidth": 0.4}),
    "waiting_s": ("waits for the slowest", {**NOT_ALLOWED, "linewidth": 0.4}),
    "communication_s": ("communicates", {"color": LIGHT, "edgecolor": "white", "linewidth": 0.4}),
}


@style
def learning_curves(records: "Mapping[str, pd.DataFrame]") -> Figure:
    """Left, the accuracy after each epoch; right, the learning rate that brought it, logarithmic.

    records: one frame a job of 05_horovod.
    """
    figure, (left, right) = plt.subplots(1, 2, figsize=(7.4, 3.8))
    for (name, frame), (colour, marker, line) in zip(records.items(), LINES, strict=False):
        job = frame["metrics"].iloc[0]
        epochs = len(job["accuracy"])
        look = {"color": colour, "linestyle": line, "linewidth": 2}
        left.plot(
            range(1, epochs + 1),
            [100 * a for a in job["accuracy"]],
            marker=marker,
            markersize=4,
            **look,
        )
        rates = job["learning_rates"]
        right.plot(np.arange(len(rates)) * epochs / len(rates), rates, label=name, **look)
    left.set(xlabel="epochs (count)", ylabel="accuracy (%)", ylim=(0, 102))
    right.set(xlabel="epochs (count)", ylabel="learning rate", yscale="log")
    figure.legend(loc="outside upper center", ncols=2, fontsize=9)
    return figure


@style
def rank_counts(
    records: "Sequence[pd.DataFrame]", goal: float = 0.97, guess: float | None = None
) -> Figure:
    """Left, images/s over the ranks, the ideal dashed, with the efficiency of each; right, accuracy
    over the seconds.

    Parameters
    ----------
    records : sequence of DataFrame
        One frame a job of 05_horovod, the first on one rank.
    goal : float
        The accuracy, 0 to 1, whose time is marked.
    guess : float, optional
        How many times as fast as one rank the reader expects two to be.
    """
    figure, (left, right) = plt.subplots(1, 2, figsize=(7.4, 3.8))
    rows = sorted((int(f.ranks.iloc[0]), float(f.rate.iloc[0]), f) for f in records)
    middle = medians((ranks, rate) for ranks, rate, _ in rows)
    counts = list(middle)
    one = middle[counts[0]] / counts[0]
    left.plot(counts, [n * one for n in counts], linestyle="--", color="#888888", label="ideal")
    left.scatter(
        [n for n, _, _ in rows],
        [rate for _, rate, _ in rows],
        color=MIDDLE,
        zorder=3,
        label="single runs",
    )
    for n, rate in middle.items():
        left.annotate(
            f"{rate / n / one:.2f}", (n, rate), (6, -13), textcoords="offset points", fontsize=10
        )
    if guess is not None:
        guess_star(left, 2, guess * one, f"{guess:g}x")
    left.set(xlabel="ranks (count)", ylabel="images/s trained", xticks=counts, ylim=(0, None))
    left.set_title("beside each point: efficiency", fontsize=10)
    left.legend(fontsize=9, loc="upper left")
    for count, (colour, marker, line) in zip(counts, LINES, strict=False):
        job = next(frame for ranks, _, frame in rows if ranks == count)["metrics"].iloc[0]
        percent = [100 * a for a in job["accuracy"]]
        reached = [at for at, a in zip(job["at_s"], job["accuracy"], strict=True) if a >= goal][:1]
        name = f"{words.count(count, 'rank')}: " + (
            f"{reached[0]:.1f} s" if reached else "not reached"
        )
        right.plot(
            job["at_s"],
            percent,
            color=colour,
            linestyle=line,
            marker=marker,
            markersize=4,
            label=name,
        )
    right.axhline(100 * goal, color="#888888", linestyle="--", linewidth=1)
    right.set(xlabel="seconds since the first step", ylabel="accuracy (%)", ylim=(0, 102))
    right.set_title(f"in the legend: time to {100 * goal:g} %", fontsize=10)
    right.legend(fontsize=9, loc="lower right")
    return figure


@style
def step_shares(steps: "Mapping[str, pd.DataFrame]") -> Figure:
    """Where a step's time goes on each rank: a stacked bar a rank, medians over the steps, in
    groups by job.

    steps: of Timeline.steps(), a frame a job.
    """
    figure, axes = plt.subplots()
    ticks, names, at = [], [], 0.0
    for job, (title, frame) in enumerate(steps.items()):
        middle = 1e3 * frame.groupby("rank")[list(PARTS)].median()
        for rank, row in middle.iterrows():
            below = 0.0
            for part, (label, look) in PARTS.items():
                first = job == 0 and rank == middle.index[0]
                axes.bar(
                    at, row[part], width=0.8, bottom=below, label=label if first else "", **look
                )
                if row[part] > 0.06 * middle.sum(axis=1).max():
                    white = {"facecolor": "white", "edgecolor": "none", "pad": 1}
                    axes.annotate(f"{row[part]:.1f}", (at, below + row[part] / 2), ha="center", va="center",
                                  fontsize=9, bbox=white)  # fmt: skip
                below += row[part]
            ticks.append(at)
            names.append(f"{title}\nrank {rank}")
            at += 1
        at += 0.6
    axes.set_xticks(ticks, names)
    axes.set_ylabel("time of a step (ms)")
    axes.set_ylim(0, 1.3 * axes.get_ylim()[1])
    axes.grid(axis="x", visible=False)
    axes.legend(loc="upper center", ncols=3, fontsize=9)
    return figure


@style
def step_timeline(timeline: "Timeline", count: int = 2) -> Figure:
    """A few steps as Horovod saw them: what each rank did, and below it each phase of each
    gradient.

    Parameters
    ----------
    timeline : Timeline
        Of `timeline.read`.
    count : int
        How many steps, one after another; those are shown whose parts lie closest to the medians of
        all steps.

    Raises
    ------
    ScaleoutError
        Where no step is whole.
    """
    steps = timeline.steps()
    if steps.empty:
        raise ScaleoutError(
            "The timeline holds no whole step after the first: let the job take more steps."
        )
    parts = steps.pivot(index="step", columns="rank", values=list(PARTS))  # (steps, parts x ranks)
    unlike = (
        (parts - parts.median()).abs().sum(axis=1).rolling(min(count, len(parts))).sum()
    )  # (steps,)
    last = int(unlike.idxmin())
    shown = steps[(steps.step > last - count) & (steps.step <= last)]
    begin = float(shown.start_s.min())
    end = float((shown.start_s + shown.compute_s + shown.waiting_s + shown.communication_s).max())
    figure, (top, below) = plt.subplots(2, 1, figsize=(7.4, 5), sharex=True, height_ratios=[1, 2])
    for place, row in enumerate(shown.itertuples()):
        at = row.start_s - begin
        for part, (label, look) in PARTS.items():
            width = getattr(row, part)
            top.barh(
                row.rank,
                1e3 * width,
                left=1e3 * at,
                height=0.7,
                label=label if place == 0 else "",
                **look,
            )
            at += width
    ranks = sorted(shown["rank"].unique())
    top.set_yticks(ranks, [f"rank {rank}" for rank in ranks])
    top.invert_yaxis()
    top.legend(loc="lower center", bbox_to_anchor=(0.5, 1), ncols=3, fontsize=9)
    inside = timeline.spans[(timeline.spans.end_s > begin) & (timeline.spans.start_s < end)]
    tensors = list(inside.sort_values("start_s").tensor.unique())
    _phases(below, inside, tensors, begin)
    below.set(xlabel="time (ms)", xlim=(0, 1e3 * (end - begin)), ylabel="gradients")
    below.set_yticks(range(len(tensors)), [f"{n + 1}" for n in range(len(tensors))], fontsize=8)
    below.invert_yaxis()
    return figure


def _phases(axes: Axes, spans: "pd.DataFrame", tensors: list[str], begin: float) -> None:
    """A row a tensor: negotiation pale, the operation light, its allreduce proper dark."""
    looks = (("NEGOTIATE_ALLREDUCE", PALE, 0.8, "negotiated"), ("ALLREDUCE", LIGHT, 0.8, "packed and copied"),
             ("_ALLREDUCE", DARK, 0.4, "sent and added"))  # fmt: skip
    for phase, colour, height, label in looks:
        own = phase if phase != "_ALLREDUCE" else ("MPI_ALLREDUCE", "GLOO_ALLREDUCE")
        rows = spans[spans.phase.isin([own] if isinstance(own, str) else own)]
        for place, row in enumerate(rows.itertuples()):
            axes.barh(tensors.index(row.tensor), 1e3 * (row.end_s - row.start_s), left=1e3 * (row.start_s - begin),
                      height=height, color=colour, edgecolor="#444444", linewidth=0.3,
                      label=label if place == 0 else "")  # fmt: skip
    axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1), ncols=3, fontsize=9)


@style
def drifting_ranks(records: "Mapping[str, pd.DataFrame]") -> Figure:
    """One weight on each rank, step by step, of wrong.py: equal on all ranks, or apart for ever. A
    panel a job."""
    figure, panels = plt.subplots(1, len(records), sharey=True, squeeze=False, figsize=(7, 3.2))
    for axes, (title, frame) in zip(panels.flat, records.items(), strict=True):
        for rank, weights in enumerate(frame["metrics.weight"].iloc[0]):
            colour, marker, line = LINES[rank % len(LINES)]
            look = {"linestyle": line, "marker": marker, "markersize": 9 - 4 * rank, "linewidth": 2}
            axes.plot(range(len(weights)), weights, color=colour, label=f"rank {rank}", **look)
        axes.set_title(title, fontsize=11)
        axes.set_xlabel("steps (count)")
    panels[0, 0].set_ylabel("the first weight")
    panels[0, 0].legend(fontsize=9)
    return figure
