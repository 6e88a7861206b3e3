"""Figures of 11_parallelism: who talks to whom, memory, and which way is cheaper to send."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, Rectangle

from .look import DARK, GREY, LIGHT, MIDDLE, PALE, guess_line, style

if TYPE_CHECKING:
    import pandas as pd


@style
def rank_memory(records: "Sequence[pd.DataFrame]", guess: float | None = None) -> Figure:
    """The most memory that a rank held in each way of splitting, as a part of what one rank alone
    needs.
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
    """Where the sums of tensor parallelism begin to take longer than those of data parallelism."""
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
    """
    figure, axes = plt.subplots(figsize=(7, 4))
    looks = ((DARK, "o"), (MIDDLE, "s"), (LIGHT, "^"), (GREY, "D"))
    widths = sorted(records["metrics.width"].unique())
    low = high = 1.0
    for width, (colour, mark) in zip(widths, looks, strict=False):
        ratios = _ratios(records[records["metrics.width"] == width])
        parts = sorted(ratios)
        low, high = min(low, *ratios.values()), max(high, *ratios.values())
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
    axes.set_yticks([0.25, 0.5, 1, 2, 4, 8, 16], ["1/4", "1/2", "1", "2", "4", "8", "16"])
    axes.set_ylim(min(0.2, 0.8 * low), max(5, 1.25 * high))
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
