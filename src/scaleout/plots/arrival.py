"""Figures of 10_input: the roofline of a step, what four forms of the same pictures give, and who
waits for them."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from ..words import rounded
from .look import DARK, GREY, LIGHT, MIDDLE, PALE, Look, guess_name, style

if TYPE_CHECKING:
    import pandas as pd


CACHES = ("cold", "warm")


@style
def input_roofline(records: "Sequence[pd.DataFrame]", guess: float | None = None) -> Figure:
    """The time of a step over that of its compute: max(input, compute) as a line, jobs as points."""
    jobs = [(float(row.metrics["step_ms"]), 1e3 * turn_s)
            for frame in records for _, row in frame.iterrows()
            for turn_s in row.metrics.get("turns_s", [float(np.median(row.step_s))])]  # fmt: skip
    alone = float(np.median([step for compute, step in jobs if compute == 0]))
    told = [(compute, step) for compute, step in jobs if compute > 0]
    middle = {
        compute: float(np.median([step for other, step in told if other == compute]))
        for compute, _ in told
    }
    off = max(abs(step / max(alone, compute) - 1) for compute, step in middle.items())
    figure, axes = plt.subplots()
    far = 1.08 * max(compute for compute, _ in told)
    axes.plot([0, alone, far], [alone, alone, far], "--", color=GREY, label="max(input, compute)")
    axes.axvline(alone, color=PALE, linewidth=6, zorder=0)
    axes.scatter(*zip(*[j for j in jobs if j[0] == 0], strict=True), color=LIGHT, edgecolor=DARK,
                 label="input alone: the line is made from these", zorder=3)  # fmt: skip
    axes.scatter(*zip(*told, strict=True), color=DARK, label="with a device", zorder=3)
    if guess is not None:
        axes.axvline(guess, color=MIDDLE, linestyle=":", linewidth=2, label=f"your guess: {guess:g} ms")  # fmt: skip
    top = max(step for _, step in jobs)
    axes.text(alone / 2, 0.05 * top, "input is\nthe limit", ha="center", fontsize=10)
    axes.text((alone + far) / 2, 0.05 * top, "compute is\nthe limit", ha="center", fontsize=10)
    axes.set(xlabel="compute of a step (ms)", ylabel="a whole step (ms)", ylim=(0, 1.15 * top))
    axes.set_title(f"Input alone takes {rounded(alone)} ms a step; the line is {100 * off:.0f} % off "
                   "at most", fontsize=11, loc="left")  # fmt: skip
    axes.legend(fontsize=9, loc="upper left")
    said = ", ".join(f"{c:g} ms: {rounded(s)} ms" for c, s in sorted(middle.items()))
    figure.set_label(f"A step by its compute; input alone {rounded(alone)} ms; {said}.")
    return figure


@style
def waits(records: "Sequence[pd.DataFrame]", guess: float | None = None) -> Figure:
    """What a step of each rank consists of: it waits for its images, it computes, it waits for
    others.
    """
    rows: list[Any] = [row for frame in records for _, row in frame.iterrows()]
    figure, axes = plt.subplots(
        figsize=(7, 1.4 + 0.42 * sum(len(r.metrics["waited"]) for r in rows))
    )
    names, place = [], 0
    said = []
    for row in rows:
        for rank, (waited, computed) in enumerate(
            zip(row.metrics["waited"], row.metrics["computed"], strict=True)
        ):
            left = 0.0
            parts = {
                "waits for images": (waited, {"color": MIDDLE}),
                "computes": (computed, {"color": DARK}),
                "waits for other ranks": (
                    1 - waited - computed,
                    {"facecolor": PALE, "edgecolor": GREY, "hatch": "////"},
                ),
            }
            for label, (share, look) in parts.items():
                drawn: Look = dict(look)
                name = label if place == 0 else ""
                axes.barh(place, 100 * share, left=left, height=0.75, label=name, **drawn)
                left += 100 * share
            box = {"color": "white", "pad": 1, "alpha": 0.85}
            axes.text(1, place, f"{100 * waited:.0f} %", va="center", fontsize=9, bbox=box)
            names.append(
                f"{row.variant}\nrank {rank}" if len(row.metrics["waited"]) > 1 else row.variant
            )
            said.append(f"{row.variant}, rank {rank}: {100 * waited:.0f} % waited for images")
            place += 1
    if guess is not None:
        axes.axvline(
            guess, color="black", linestyle=":", linewidth=2, label=f"your guess: {guess:g} %"
        )
    axes.set_yticks(range(place), names, fontsize=9)
    axes.set(xlabel="share of a step (%)", xlim=(0, 100), ylim=(place - 0.4, -0.6))
    axes.grid(False)
    figure.legend(fontsize=9, loc="outside upper left", ncols=4)
    figure.set_label("; ".join(said) + ".")
    return figure


@style
def format_rates(records: "pd.DataFrame", guess: str | None = None) -> Figure:
    """Images read in a second from each form, cold and warm, in order and shuffled."""
    forms = list(dict.fromkeys(records.variant))
    figure, panels = plt.subplots(1, 2, sharey=True, figsize=(7.4, 4))
    looks: dict[str, Look] = {"cold": {"color": LIGHT, "hatch": "//"}, "warm": {"color": DARK}}
    said = []
    for axes, order in zip(panels, ("in order", "shuffled"), strict=True):
        for place, form in enumerate(forms):
            for shift, cache in zip((-0.2, 0.2), CACHES, strict=True):
                (row,) = [
                    row
                    for _, row in records.iterrows()
                    if (row.variant, row.metrics["cache"], row.metrics["order"])
                    == (form, cache, order)
                ]
                rates = [row.metrics["images"] / seconds for seconds in row.step_s]
                name = cache if place == 0 else ""
                axes.bar(
                    place + shift, row.rate, width=0.38, edgecolor=DARK, label=name, **looks[cache]
                )
                points: Look = {"color": "white", "markeredgecolor": "black", "markersize": 4}
                axes.plot([place + shift] * len(rates), rates, "o", **points)
                said.append(f"{form} {order} {cache}: {row.rate:,.0f} images/s")
        opens = {row.variant: row.metrics["opens"] for _, row in records.iterrows()}
        axes.set_xticks(
            range(len(forms)), [f"{form}\n{opens[form]:,}" for form in forms], fontsize=9
        )
        axes.set_yscale("log")
        axes.set_title(order, fontsize=11)
        axes.set_xlabel("form, and how many files it opened")
        axes.grid(axis="x", visible=False)
    guess_name(panels[1], forms, guess, 0.04)
    panels[0].set_ylabel("images read per second")
    named = {
        label: handle
        for axes in panels
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)
    }
    figure.legend(named.values(), named.keys(), fontsize=9, loc="outside upper right", ncols=3)
    figure.set_label(". ".join(said) + ".")
    return figure
