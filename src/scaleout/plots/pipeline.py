"""Figures of 11_parallelism's pipeline: what each stage does in a step, and how long it waits."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from .look import DARK, GREY, LIGHT, Look, guess_line, style

if TYPE_CHECKING:
    import pandas as pd


FORWARD: Look = {"facecolor": DARK, "edgecolor": "white"}
BACKWARD: Look = {"facecolor": LIGHT, "edgecolor": "white"}


def idle_parts(row: Any) -> list[float]:
    """The part of a step in which the stages of a pipeline wait, 0 to 1, for each step of a record."""
    logs = [each["logs"] for each in row["metrics.found"]]
    found = []
    for step, seconds in enumerate(row["step_s"]):
        busy = sum(end - start for log in logs for _, _, start, end, _ in log[step])
        found.append(1 - busy / (len(logs) * seconds))
    return found


def bubble_parts(row: Any) -> list[float]:
    """The part of a step, 0 to 1, in which stages wait because the pipeline fills, turns round and
    empties: before a stage's first micro-batch, between its last forward and its first backward,
    and after its last backward. What else it waits, between two micro-batches, is left out.
    """
    logs = [each["logs"] for each in row["metrics.found"]]
    found = []
    for step, seconds in enumerate(row["step_s"]):
        waited = 0.0
        for log in (each[step] for each in logs):
            forward = [line for line in log if line[0] == "forward"]
            backward = [line for line in log if line[0] == "backward"]
            fills, turns = forward[0][2], backward[0][2] - forward[-1][3]
            waited += fills + turns + seconds - backward[-1][3]
        found.append(waited / (len(logs) * seconds))
    return found


def bubble(ranks: int, micro_batches: int) -> float:
    """The part of the time that stages of equal length must wait: (S - 1) / (M + S - 1)."""
    return (ranks - 1) / (micro_batches + ranks - 1)


def _typical(row: Any) -> int:
    """The step whose time is the median (the lower one of two)."""
    order = np.argsort(row["step_s"])
    return int(order[(len(order) - 1) // 2])


@style
def pipeline_timeline(records: "Mapping[str, pd.DataFrame]") -> Figure:
    """What each stage of a pipeline did in one step: forward (dark), backward (light), each with
    its micro-batch; white is waiting.
    """
    rows = {title: frame.iloc[0] for title, frame in records.items()}
    ranks = max(int(row["ranks"]) for row in rows.values())
    figure, panels = plt.subplots(
        len(rows), 1, figsize=(7.4, 0.9 + (0.7 + 0.42 * ranks) * len(rows)), sharex=True,
        squeeze=False,
    )  # fmt: skip
    said = []
    for axes, (title, row) in zip(panels.flat, rows.items(), strict=True):
        step, most = _typical(row), []
        for rank, each in enumerate(row["metrics.found"]):
            log = each["logs"][step]
            for what, m, start, end, _ in log:
                look = FORWARD if what == "forward" else BACKWARD
                axes.add_patch(
                    Rectangle((1e3 * start, rank - 0.4), 1e3 * (end - start), 0.8, **look)
                )
                axes.text(
                    1e3 * (start + end) / 2, rank, str(m), ha="center", va="center", fontsize=8,
                    color="white" if what == "forward" else "black", clip_on=True,
                )  # fmt: skip
            most.append(max(kept for *_, kept in log))
        axes.set_yticks(range(len(most)), [f"rank {rank}" for rank in range(len(most))])
        axes.set(xlim=(0, 1e3 * row["step_s"][step]), ylim=(len(most) - 0.4, -0.6))
        idle = 100 * float(np.median(idle_parts(row)))
        kept = ", ".join(map(str, most))
        axes.set_title(
            f"{title}: {idle:.0f} % idle; micro-batches kept at once: {kept}",
            fontsize=10,
            loc="left",
        )
        axes.grid(False)
        said.append(f"{title}: {idle:.0f} percent idle, at most {kept} micro-batches kept")
    panels[-1, 0].set_xlabel("time since the start of a step (ms)")
    marks = [Rectangle((0, 0), 1, 1, **look) for look in (FORWARD, BACKWARD)]
    figure.legend(marks, ["forward", "backward"], loc="outside upper right", ncols=2, fontsize=9)
    figure.set_label("What each stage did in one step. " + "; ".join(said) + ".")
    return figure


@style
def idle_over_micro_batches(
    records: "Sequence[pd.DataFrame]", guess: float | None = None
) -> Figure:
    """How much of the time the stages of a pipeline wait, over the number of micro-batches, and
    which part of it is the bubble, beside the formula.
    """
    figure, axes = plt.subplots(figsize=(6.4, 3.8))
    rows = sorted((frame.iloc[0] for frame in records), key=lambda r: r["metrics.micro_batches"])
    ranks = int(rows[0]["ranks"])
    counts = [int(row["metrics.micro_batches"]) for row in rows]
    x = np.geomspace(min(counts), max(counts), 100)
    axes.plot(
        x, 100 * (ranks - 1) / (x + ranks - 1), "--", color=GREY, label="(S - 1) / (M + S - 1)"
    )
    found, bubbles = {}, {}
    for count, row in zip(counts, rows, strict=True):
        parts = 100 * np.array(idle_parts(row))
        axes.plot(
            [count] * len(parts), parts, ".", color=LIGHT, markersize=4,
            label="single steps" if count == counts[0] else None,
        )  # fmt: skip
        found[count] = float(np.median(parts))
        bubbles[count] = 100 * float(np.median(bubble_parts(row)))
    axes.plot(list(found), list(found.values()), "o-", color=DARK, label="all waiting, median")
    axes.plot(
        list(bubbles), list(bubbles.values()), "s", color="black", markerfacecolor="white",
        markersize=7, label="of it, the bubble",
    )  # fmt: skip
    guess_line(axes, guess)
    axes.set_xscale("log", base=2)
    axes.set_xticks(counts, [str(count) for count in counts])
    axes.set(xlabel="micro-batches M (count)", ylabel="waiting, of the time of all stages (%)")
    axes.set_ylim(0, None)
    first, last = counts[0], counts[-1]
    axes.set_title(
        f"Bubble: {bubbles[first]:.0f} % with M = {first}, {bubbles[last]:.0f} % with M = {last}; "
        f"all waiting: {found[first]:.0f} %, {found[last]:.0f} %",
        fontsize=11,
        loc="left",
    )
    axes.legend(fontsize=9)
    pairs = ", ".join(
        f"{m}: {v:.0f} percent, of it the bubble {bubbles[m]:.0f}, "
        f"by the formula {100 * bubble(ranks, m):.0f}"
        for m, v in found.items()
    )
    figure.set_label(f"Time that {ranks} stages wait, by the number of micro-batches. {pairs}.")
    return figure
