"""Figures of 11_parallelism: a pipeline's time, who talks to whom, memory, and which way is cheaper
to send."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, Rectangle

from .look import DARK, GREY, LIGHT, MIDDLE, PALE, Look, guess_line, style

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "crossing",
    "crossover",
    "idle_over_micro_batches",
    "pipeline_timeline",
    "rank_memory",
    "who_talks",
]

FORWARD: Look = {"facecolor": DARK, "edgecolor": "white"}
BACKWARD: Look = {"facecolor": LIGHT, "edgecolor": "white"}
WAYS: dict[str, Look] = {"data": {"color": DARK}, "tensor": {"color": MIDDLE, "linestyle": "--"}}


def idle_parts(row: Any) -> list[float]:
    """The part of a step in which the stages of a pipeline wait, for each step of a record."""
    logs = [each["logs"] for each in row["metrics.found"]]
    found = []
    for step, seconds in enumerate(row["step_s"]):
        busy = sum(end - start for log in logs for _, _, start, end, _ in log[step])
        found.append(1 - busy / (len(logs) * seconds))
    return found


def bubble(ranks: int, micro_batches: int) -> float:
    """The part of the time that stages of equal length must wait."""
    return (ranks - 1) / (micro_batches + ranks - 1)


def _typical(row: Any) -> int:
    """The step whose time is the median (the lower one of two)."""
    order = np.argsort(row["step_s"])
    return int(order[(len(order) - 1) // 2])


@style
def pipeline_timeline(records: "Mapping[str, pd.DataFrame]") -> Figure:
    """What each stage of a pipeline did in one step: forward (dark), backward (light), each with
    its micro-batch; white is waiting.

    records: {title: a frame with one record of 11_parallelism's pipeline}; of each the step of
    median length is drawn.
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
    """How much of the time the stages of a pipeline wait, over the number of micro-batches, beside
    the formula.

    records: one frame a job, each with one record of a pipeline; all on the same number of ranks.
    guess: the reader's, in percent.
    """
    figure, axes = plt.subplots(figsize=(6.4, 3.8))
    rows = sorted((frame.iloc[0] for frame in records), key=lambda r: r["metrics.micro_batches"])
    ranks = int(rows[0]["ranks"])
    counts = [int(row["metrics.micro_batches"]) for row in rows]
    x = np.geomspace(min(counts), max(counts), 100)
    axes.plot(
        x, 100 * (ranks - 1) / (x + ranks - 1), "--", color=GREY, label="(S - 1) / (M + S - 1)"
    )
    found = {}
    for count, row in zip(counts, rows, strict=True):
        parts = 100 * np.array(idle_parts(row))
        axes.plot(
            [count] * len(parts), parts, ".", color=LIGHT, markersize=4,
            label="single steps" if count == counts[0] else None,
        )  # fmt: skip
        found[count] = float(np.median(parts))
    axes.plot(list(found), list(found.values()), "o-", color=DARK, label="median")
    guess_line(axes, guess)
    axes.set_xscale("log", base=2)
    axes.set_xticks(counts, [str(count) for count in counts])
    axes.set(xlabel="micro-batches M (count)", ylabel="waiting, of the time of all stages (%)")
    axes.set_ylim(0, None)
    first, last = counts[0], counts[-1]
    axes.set_title(
        f"Waiting: {found[first]:.0f} % with M = {first}, {found[last]:.0f} % with M = {last}",
        fontsize=11,
        loc="left",
    )
    axes.legend(fontsize=9)
    pairs = ", ".join(
        f"{m}: {v:.0f} percent, by the formula {100 * bubble(ranks, m):.0f}"
        for m, v in found.items()
    )
    figure.set_label(f"Time that {ranks} stages wait, by the number of micro-batches. {pairs}.")
    return figure


@style
def rank_memory(records: "Sequence[pd.DataFrame]", guess: float | None = None) -> Figure:
    """The most memory that a rank held in each way of splitting, as a part of what one rank alone
    needs.

    records: frames of 11_parallelism, one of them of one rank, which 1 stands for. Adam's two ways
    are compared with Adam on one rank.
    guess: the reader's, of the pipeline on two ranks.
    """
    rows = [row for frame in records for _, row in frame.iterrows()]
    alone = {r["variant"]: r["metrics.peak_bytes"] for r in rows if r["ranks"] == 1}
    split = [row for row in rows if row["ranks"] > 1]
    names, parts = [], []
    for row in split:
        whole = alone["adam" if row["variant"] in ("adam", "sharded") else "data"]
        names.append(f"{row['variant']}\n{row['ranks']} ranks")
        parts.append(row["metrics.peak_bytes"] / whole)
    figure, axes = plt.subplots(figsize=(7, 3.8))
    axes.bar(range(len(parts)), parts, width=0.6, color=DARK)
    for x, part in enumerate(parts):
        axes.text(x, part - 0.06, f"{part:.2f}", ha="center", fontsize=9, color="white")
    axes.axhline(1, color=GREY, linestyle="--", label="one rank alone")
    guess_line(axes, guess)
    axes.set_xticks(range(len(names)), names, fontsize=9)
    axes.set(ylabel="memory of a rank\n(one rank alone = 1)", ylim=(0, max(1.15, *parts) + 0.1))
    axes.grid(axis="x", visible=False)
    axes.legend(fontsize=9, loc="upper right", ncols=2)
    said = ", ".join(
        f"{n} {p:.2f}".replace("\n", " on ") for n, p in zip(names, parts, strict=True)
    )
    figure.set_label(f"Memory of the rank that needs most, one rank alone being 1: {said}.")
    return figure


@style
def who_talks(records: "pd.DataFrame") -> Figure:
    """Who talks to whom in hybrid parallelism: along a row activations and their gradients, along a
    column gradients of the same layers.

    records: a frame with one record of 11_parallelism's hybrid; the circles are what the ranks'
    communicators said.
    """
    row = records.iloc[0]
    found = row["metrics.found"]
    place, size = {}, np.dtype(row["metrics.dtype"]).itemsize
    for rank, each in enumerate(found):
        pipe, same = each["circles"]
        place[rank] = (pipe.index(rank), same.index(rank))
    figure, axes = plt.subplots(figsize=(6.8, 3.6))
    for rank, (stage, replica) in place.items():
        axes.add_patch(
            Rectangle((3 * stage, -1.6 * replica), 1.3, 0.8, facecolor=PALE, edgecolor=GREY)
        )
        layers = found[rank]["layers"]
        text = f"rank {rank}\nlayers {layers[0]} to {layers[-1]}"
        axes.text(3 * stage + 0.65, 0.4 - 1.6 * replica, text, ha="center", va="center", fontsize=9)
    pipes = sorted({tuple(each["circles"][0]) for each in found})
    sames = sorted({tuple(each["circles"][1]) for each in found})
    for members, colour, dash in [(p, DARK, "-") for p in pipes] + [
        (s, MIDDLE, "--") for s in sames
    ]:
        for one, other in zip(members, members[1:], strict=False):
            (sa, ra), (sb, rb) = place[one], place[other]
            along = sa != sb
            begin = (3 * sa + (1.3 if along else 0.65), (0.4 if along else 0.0) - 1.6 * ra)
            end = (3 * sb + (0.0 if along else 0.65), (0.4 if along else 0.8) - 1.6 * rb)
            axes.add_patch(
                FancyArrowPatch(begin, end, arrowstyle="<|-|>", mutation_scale=12, color=colour,
                                linestyle=dash, linewidth=2)
            )  # fmt: skip
    replicas, width = len(pipes), row["metrics.width"]
    activations = row["metrics.batch"] // replicas * width * size / 1024
    gradients = len(found[0]["layers"]) * width**2 * size / 1024
    axes.plot([], [], color=DARK, label=f"activations: {activations:,.0f} KiB each way")
    axes.plot([], [], color=MIDDLE, linestyle="--", label=f"gradients: {gradients:,.0f} KiB")
    stages = len(pipes[0])
    axes.set(xlim=(-0.2, 3 * stages - 1.5), ylim=(-1.6 * (replicas - 1) - 0.15, 0.95))
    axes.axis("off")
    figure.legend(loc="outside lower center", ncols=2, fontsize=9)
    figure.set_label(
        f"Pipelines {', '.join(map(str, pipes))} hand on activations; "
        f"{', '.join(map(str, sames))} add up gradients of the same layers."
    )
    return figure


def crossing(rows: "pd.DataFrame") -> float:
    """The batch, as a part of the width, at which the sums of tensor parallelism begin to take
    longer than those of data parallelism; nan where they never change places.

    rows: records of 11_parallelism's which.py, of one width or several."""
    ratios = _ratios(rows)
    logs = np.log([ratios[part] for part in sorted(ratios)])
    parts = np.log(sorted(ratios))
    for k in range(len(logs) - 1):
        if logs[k] <= 0 < logs[k + 1]:
            share = -logs[k] / (logs[k + 1] - logs[k])
            return float(np.exp(parts[k] + share * (parts[k + 1] - parts[k])))
    return float("nan")


def _ratios(rows: "pd.DataFrame") -> dict[float, float]:
    """{batch / width: seconds of tensor's sums / those of data's}, the median over widths."""
    found: dict[float, list[float]] = {}
    for (width, batch), group in rows.groupby(["metrics.width", "metrics.batch"]):
        sums = {row["variant"]: np.median(row["metrics.sum_s"]) for _, row in group.iterrows()}
        found.setdefault(batch / width, []).append(sums["tensor"] / sums["data"])
    return {part: float(np.median(values)) for part, values in found.items()}


@style
def crossover(records: "pd.DataFrame", guess: float | None = None) -> Figure:
    """How long the sums of tensor parallelism take beside those of data parallelism, over batch and
    width; the formula's crossing dashed.

    records: a frame of 11_parallelism's which.py.  guess: the reader's, of the batch, as a part of
    the width, at which the two are equal."""
    figure, axes = plt.subplots(figsize=(7, 4))
    looks = ((DARK, "o"), (MIDDLE, "s"), (LIGHT, "^"), (GREY, "D"))
    widths = sorted(records["metrics.width"].unique())
    for width, (colour, mark) in zip(widths, looks, strict=False):
        ratios = _ratios(records[records["metrics.width"] == width])
        parts = sorted(ratios)
        axes.plot(
            parts, [ratios[part] for part in parts], color=colour, marker=mark,
            label=f"width {width}",
        )  # fmt: skip
    parts = sorted({b / w for b, w in zip(records["metrics.batch"], records["metrics.width"],
                                          strict=True)})  # fmt: skip
    axes.plot(parts, parts, "--", color=GREY, label="by their bytes")
    axes.axhline(1, color=GREY, linewidth=1)
    axes.axvline(1, color=GREY, linestyle="--", linewidth=1)
    guess_line(axes, guess, upright=True)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log", base=2)
    ticks = [part for part in parts if part in (0.25, 0.5, 1, 2, 4, 8)]
    axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.set_yticks([0.25, 0.5, 1, 2, 4], ["1/4", "1/2", "1", "2", "4"])
    axes.set(xlabel="batch / width", ylabel="time of sums, tensor / data")
    at = crossing(records)
    said = f"at batch / width = {at:.2f}" if np.isfinite(at) else "nowhere here"
    axes.set_title(f"The two change places {said}; by the formula at 1", fontsize=11, loc="left")
    axes.legend(fontsize=9)
    figure.set_label(
        f"Time of the sums of tensor over data parallelism. They change places {said}; the formula "
        "says 1."
    )
    return figure
