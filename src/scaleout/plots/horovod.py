"""Figures of 05_horovod: its cycle time, and where the time of a step goes."""

import re
from collections.abc import Mapping
from textwrap import fill
from typing import TYPE_CHECKING

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ..errors import ScaleoutError
from .look import DARK, GREY, LIGHT, MIDDLE, NOT_ALLOWED, PALE, Look, guess_line, say, style

if TYPE_CHECKING:
    import pandas as pd

    from ..comparisons.comparison import Comparison
    from ..traces.horovod import Timeline


PARTS: dict[str, tuple[str, Look]] = {
    "compute_s": ("computes", {"color": DARK, "edgecolor": "white", "linewidth": 0.4}),
    "waiting_s": ("waits for the slowest", {**NOT_ALLOWED, "linewidth": 0.4}),
    "communication_s": ("communicates", {"color": LIGHT, "edgecolor": "white", "linewidth": 0.4}),
}


@style
def cycle_times(
    result: "Comparison", goal: float | None = None, guess: float | None = None
) -> Figure:
    """The parallel efficiency of two ranks over Horovod's cycle time."""
    runs = result.runs
    logs = np.log(runs[runs.variant == result.baseline].set_index("round").value)
    base = np.exp(logs.groupby("round").mean())
    found = {}
    for name in result.variants:
        own = runs[runs.variant == name].set_index("round").value
        found[name] = (own / base / 2).dropna().to_numpy()
    cycles = {name: re.search(r"cycle ([\d.]+) ms", name) for name in found}
    places = {name: float(match[1]) for name, match in cycles.items() if match}
    if not places:
        raise ScaleoutError('No variant has a cycle: name them "2 ranks, cycle 4 ms" and so on.')
    names = sorted(places, key=lambda name: places[name])
    middle = [result.ratio(name).middle / 2 for name in names]
    figure, axes = plt.subplots(figsize=(7, 4.2))
    axes.axhline(1, color=GREY, linestyle="--", label="ideal")
    apart = [result.ratio(name).middle / 2 for name in found if "apart" in name]
    if apart:
        axes.axhline(apart[0], color=DARK, linestyle="-.", label=f"without talking: {apart[0]:.2f}")
    if goal is not None:
        axes.axhline(goal, color=MIDDLE, linestyle=":", label=f"to be reached: {goal:g}")
    for name in names:
        axes.scatter(
            [places[name]] * len(found[name]),
            found[name],
            s=22,
            color="white",
            edgecolor=DARK,
            zorder=3,
            label="a run" if name == names[0] else "",
        )
    axes.plot([places[n] for n in names], middle, color=MIDDLE, linewidth=2, label="all rounds")
    guess_line(axes, guess, upright=True)
    best = int(np.argmax(middle))
    limit = f"; without talking they reach {apart[0]:.2f}" if apart else ""
    title = f"Best at {places[names[best]]:g} ms: an efficiency of {middle[best]:.2f}{limit}"
    axes.set_title(fill(title, 70), fontsize=11, loc="left")
    low = min(float(values.min()) for values in found.values())
    axes.set(
        xlabel="cycle time (ms)",
        ylabel="parallel efficiency of 2 ranks",
        xticks=[places[n] for n in names],
        ylim=(min(0.4, 0.95 * low), 1.08),
    )
    axes.legend(fontsize=9, ncols=3, loc="lower center")
    each = [f"{places[n]:g} ms: {m:.2f}." for n, m in zip(names, middle, strict=True)]
    figure.set_label(" ".join([f"{title}.", *each]))
    return figure


@style
def step_shares(steps: "Mapping[str, pd.DataFrame]") -> Figure:
    """Where a step's time goes on each rank: a stacked bar a rank, medians over the steps, in
    groups by job.
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
    whole, each = [], []
    for title, frame in steps.items():
        middle = 1e3 * frame.groupby("rank")[list(PARTS)].median()
        whole.append(f"{title} {middle.sum(axis=1).max():.1f} ms")
        for rank, row in middle.iterrows():
            parts = ", ".join(f"{label} {row[part]:.1f} ms" for part, (label, _) in PARTS.items())
            each.append(f"{title}, rank {rank}: {parts}.")
    say(figure, f"A step of the slower rank, in the median: {', '.join(whole)}.", " ".join(each))
    return figure


@style
def step_timeline(timeline: "Timeline", count: int = 2) -> Figure:
    """A few steps as Horovod saw them: what each rank did, and below it each phase of each
    gradient.
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
    middle = steps.groupby("rank")[list(PARTS)].median().mean()
    parts = ", ".join(f"{label} {1e3 * middle[part]:.1f} ms" for part, (label, _) in PARTS.items())
    say(
        figure,
        f"In a median step a rank, on average, {parts}.",
        f"{len(tensors)} gradients are shown.",
    )
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
