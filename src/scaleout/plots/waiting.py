"""Figures of 07_scaling: where the time of a job really goes, and who waits for whom."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from .look import DARK, GREY, MIDDLE, PALE, Look, guess_star, medians, style

if TYPE_CHECKING:
    import pandas as pd


@style
def step_parts(records: "pd.DataFrame", guess: float | None = None) -> Figure:
    """What a step of 07_scaling consists of, strong and weak: the slowest rank's compute, and the
    rest, which waits.
    """
    figure, panels = plt.subplots(1, 2, sharey=True)
    every = [row for _, row in records.iterrows()]
    said = []
    for axes, mode in zip(panels, ("strong", "weak"), strict=True):
        rows = [row for row in every if row.metrics["mode"] == mode or row.ranks == 1]
        step_s = medians((int(row.ranks), row.step_median_s) for row in rows)
        compute_s = medians((int(row.ranks), _slowest(row.metrics["shares"])) for row in rows)
        ring_s = medians((int(row.ranks), row.metrics["ring_s"]) for row in rows)
        counts = list(step_s)
        for place, count in enumerate(counts):
            step, compute = step_s[count], min(compute_s[count], step_s[count])
            name = {"label": "compute"} if place == 0 else {}
            axes.bar(place, 1e3 * compute, width=0.6, color=DARK, **name)
            name = {"label": "exchange and waiting"} if place == 0 else {}
            look: Look = {"facecolor": PALE, "edgecolor": GREY, "hatch": "////"}
            axes.bar(place, 1e3 * (step - compute), bottom=1e3 * compute, width=0.6, **look, **name)
            if count > 1:
                end = 1e3 * (compute + ring_s[count])
                line: Look = {
                    "color": MIDDLE,
                    "linewidth": 2.5,
                    "label": "compute + ring's formula",
                }
                axes.plot([place - 0.36, place + 0.36], [end] * 2, **line)
            steps = 1e3 * np.concatenate([row.step_s for row in rows if row.ranks == count])
            name = {"label": "single steps"} if place == 0 else {}
            axes.plot(
                place + np.linspace(-0.2, 0.2, len(steps)),
                steps,
                ".",
                color="black",
                markersize=2,
                **name,
            )
        one = step_s[counts[0]]
        ideal = [1e3 * one / (n / counts[0] if mode == "strong" else 1) for n in counts]
        axes.plot(range(len(counts)), ideal, linestyle="--", color=GREY, label="ideal")
        if guess and mode == "strong":
            guess_star(axes, len(counts) - 1, ideal[-1] / guess, f"efficiency {guess:g}")
        last = counts[-1]
        other = 100 * (1 - min(compute_s[last] / step_s[last], 1.0))
        title = {"strong": "one batch, shared out", "weak": "a batch on each rank"}[mode]
        found = f"{other:.0f} % of a step on {last} ranks is not compute"
        axes.set_title(f"{title}:\n{found}", fontsize=11)
        axes.set_xticks(range(len(counts)), counts)
        axes.set_xlabel("ranks (count)")
        said.append(f"{mode} scaling: {1e3 * step_s[last]:.0f} ms, {found}.")
    top = float(np.percentile(1e3 * np.concatenate([row.step_s for row in every]), 99))
    top = max(
        top,
        *(
            line.get_ydata().max()
            for axes in panels
            for line in axes.lines
            if line.get_marker() == "*"
        ),
        0.0,
    )
    panels[0].set(ylabel="time of a step (ms)", ylim=(0, 1.35 * top))
    panels[0].legend(fontsize=8, loc="upper right")
    figure.set_label(" ".join(said).capitalize())
    return figure


def _slowest(shares: Sequence[Mapping[str, float]]) -> float:
    return max(share["compute_s"] for share in shares)


@style
def who_waits(records: "Mapping[str, pd.DataFrame]", guess: float | None = None) -> Figure:
    """What each rank did during 07_scaling's evaluation.py: trained (dark), evaluated (red), waited
    (hatched).
    """
    figure, panels = plt.subplots(
        len(records), 1, figsize=(7.4, 1 + 1.4 * len(records)), sharex=True, squeeze=False
    )
    looks: dict[str, Look] = {"step": {"color": DARK}, "evaluate": {"color": MIDDLE}}
    looks["wait"] = {"facecolor": PALE, "edgecolor": GREY, "hatch": "////", "linewidth": 0}
    for axes, (title, frame) in zip(panels.flat, records.items(), strict=True):
        logs = frame["metrics.logs"].iloc[0]
        for rank, log in enumerate(logs):
            for what, start, end in log:
                axes.barh(rank, 1e3 * (end - start), left=1e3 * start, height=0.7, **looks[what])
        rows = [f"rank {rank}" for rank in range(len(logs))]
        if guess is not None and axes is panels[0, 0]:
            whole = 1e3 * max(end for log in logs for _, _, end in log)
            for look, left, width in (
                ("step", 0.0, 1 - guess / 100),
                ("wait", 1 - guess / 100, guess / 100),
            ):
                axes.barh(len(rows), whole * width, left=whole * left, height=0.35, **looks[look])
            rows.append(f"your guess: {guess:g} %")
        axes.set_yticks(range(len(rows)), rows)
        axes.set_ylim(len(rows) - 0.4, -0.6)
        axes.set_title(
            f"{title}: {100 * frame['metrics.waited'].iloc[0]:.0f} % waited",
            fontsize=10,
            loc="left",
        )
        axes.grid(False)
    panels[-1, 0].set_xlabel("time since the start (ms)")
    waited = [f"{n}: {100 * f['metrics.waited'].iloc[0]:.0f} % waited" for n, f in records.items()]
    figure.set_label(f"What each rank did and when. {', '.join(waited)}.")
    marks = [Rectangle((0, 0), 1, 1, **look) for look in looks.values()]
    figure.legend(
        marks, ["trains", "evaluates", "waits"], loc="outside upper right", ncols=3, fontsize=9
    )
    return figure
