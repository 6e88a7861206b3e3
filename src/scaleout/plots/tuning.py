"""Figures of 06_tuning: accuracy over time, where the time goes, memory, the digits that the
generator makes."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from .look import DARK, LIGHT, MIDDLE, PALE, Look, guess_line, style

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["accuracy_over_time", "made_digits", "memory_over_time", "time_shares"]

GREY = "#888888"
LINES = (
    (DARK, "-", "o"),
    (MIDDLE, "--", "s"),
    ("#a98600", ":", "^"),
    (GREY, "-.", "D"),
    (LIGHT, "-", "v"),
)
SHARES = {
    "train_s": ("trains", {"color": DARK}),
    "input_s": ("gets its input", {"color": LIGHT, "hatch": "//"}),
    "evaluation_s": ("evaluates", {"color": MIDDLE}),
    "wait_s": ("waits for others", {"facecolor": PALE, "edgecolor": GREY, "hatch": "////"}),
}


@style
def accuracy_over_time(records: "Mapping[str, pd.DataFrame]", target: float) -> Figure:
    """Accuracy on the test images over the seconds of the whole job, a line a job; in the legend,
    time to the target.

    Parameters
    ----------
    records : mapping of name to DataFrame
        One frame a job of 06_tuning, evaluations included in the seconds.
    target : float
        0 to 1: dashed.
    """
    figure, axes = plt.subplots(figsize=(7.4, 4))
    lowest = 1.0
    for (name, frame), (colour, line, marker) in zip(records.items(), LINES, strict=False):
        job = frame["metrics"].iloc[0]
        reached = job["to_target_s"]
        label = f"{name}: " + ("not reached" if reached is None else f"{reached:.1f} s")
        look: Look = {
            "color": colour,
            "linestyle": line,
            "marker": marker,
            "markersize": 4,
            "linewidth": 2,
        }
        axes.plot(job["at_s"], [100 * share for share in job["accuracy"]], label=label, **look)
        lowest = min(lowest, *job["accuracy"])
        if reached is not None:
            axes.plot(
                [reached],
                [100 * target],
                marker="*",
                markersize=15,
                color=colour,
                markeredgecolor="white",
            )
    axes.axhline(100 * target, color=GREY, linestyle="--", label=f"target: {100 * target:g} %")
    bottom = max(0, 100 * min(lowest, target) - 5)
    axes.set(xlabel="seconds since the start of the training", xlim=(0, None))
    axes.set(ylabel="accuracy (%)", ylim=(bottom, 101))
    figure.legend(fontsize=9, loc="outside upper center", ncols=3)
    return figure


@style
def time_shares(records: "Mapping[str, pd.DataFrame]", guess: float | None = None) -> Figure:
    """Where the time of each rank goes, in per cent: training, input, evaluation, waiting. A panel
    a job, a bar a rank.

    Parameters
    ----------
    records : mapping of title to DataFrame
        One frame a job of 06_tuning.
    guess : float, optional
        The per cent of the time in which the reader expects the first rank to train.
    """
    figure, panels = plt.subplots(
        len(records), 1, figsize=(7.4, 0.9 + 1.15 * len(records)), sharex=True, squeeze=False
    )
    for axes, (title, frame) in zip(panels.flat, records.items(), strict=True):
        shares = frame["metrics.shares"].iloc[0]
        for rank, share in enumerate(shares):
            whole, left = sum(share[part] for part in SHARES) / 100, 0.0
            for part, (label, look) in SHARES.items():
                width = share[part] / whole
                axes.barh(rank, width, left=left, height=0.7, linewidth=0.5, **{"edgecolor": "white"} | look,
                          label=label if rank == 0 else "")  # fmt: skip
                if width >= 7:
                    white = {"facecolor": "white", "edgecolor": "none", "pad": 1}
                    axes.annotate(f"{width:.0f} %", (left + width / 2, rank), ha="center", va="center", fontsize=9,
                                  bbox=white)  # fmt: skip
                left += width
        axes.set_yticks(range(len(shares)), [f"rank {rank}" for rank in range(len(shares))])
        axes.set_ylim(len(shares) - 0.4, -0.6)
        axes.set_title(title, fontsize=10, loc="left")
        axes.grid(axis="y", visible=False)
    guess_line(panels[0, 0], guess, upright=True)
    panels[-1, 0].set(xlabel="share of the whole time (%)", xlim=(0, 100))
    handles, labels = panels[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper right", ncols=4, fontsize=9)
    return figure


@style
def memory_over_time(
    records: "Mapping[str, Mapping[str, pd.DataFrame]]", limit_mib: float | None = None
) -> Figure:
    """Resident memory of each rank over time, a panel a group of jobs and a line a rank of each
    job.

    Parameters
    ----------
    records : mapping of panel to mapping of name to DataFrame
        Frames of 06_tuning.
    limit_mib : float, optional
        A memory limit, dashed.
    """
    figure, panels = plt.subplots(1, len(records), figsize=(9, 3.6), sharey=True, squeeze=False)
    for axes, (title, jobs) in zip(panels[0], records.items(), strict=True):
        for (name, frame), (colour, line, _) in zip(jobs.items(), LINES, strict=False):
            for rank, share in enumerate(frame["metrics.shares"].iloc[0]):
                at_s, mib = np.array(share["rss_mib"], float).T
                label = name if rank == 0 else ""
                axes.plot(
                    at_s, mib, color=colour, linestyle=line, linewidth=2.2 - rank % 2, label=label
                )
        if limit_mib is not None:
            axes.axhline(
                limit_mib, color="black", linestyle="--", label=f"limit: {limit_mib:,.0f} MiB"
            )
        axes.set_title(title, fontsize=11)
        axes.set_xlabel("seconds since the start of the training")
    low, high = panels[0, 0].get_ylim()
    panels[0, 0].set(
        ylabel="resident memory of a rank (MiB)", ylim=(0.85 * low, 1.1 * high)
    )  # so that noise looks small
    handles, labels = panels[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=4, fontsize=9)
    return figure


@style
def made_digits(record: "pd.DataFrame") -> Figure:
    """What the generator makes of the same noise as it learns, from left to right; above, when it
    was made.

    record: the frame of one job of 06_tuning.
    """
    job: dict[str, Any] = record["metrics"].iloc[0]
    figure, panels = plt.subplots(
        1, len(job["samples"]), figsize=(3 * len(job["samples"]), 1.9), squeeze=False
    )
    for axes, picture, at_s in zip(panels[0], job["samples"], job["samples_at_s"], strict=True):
        axes.imshow(np.array(picture, np.uint8), cmap="gray", vmin=0, vmax=255)
        axes.set_title(f"after {at_s:.0f} s", fontsize=11)
        axes.set_axis_off()
    return figure
