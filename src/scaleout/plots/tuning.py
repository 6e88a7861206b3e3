"""Figures of 06_tuning: accuracy over time, where the time goes, memory, the digits that the
generator makes."""

from collections.abc import Mapping
from textwrap import fill
from typing import TYPE_CHECKING, Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from .look import DARK, GREY, LIGHT, MIDDLE, PALE, Look, guess_line, style

if TYPE_CHECKING:
    import pandas as pd


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
def accuracy_over_time(records: "Mapping[str, pd.DataFrame]") -> Figure:
    """Accuracy on the test images over the seconds of the whole job, a line a job."""
    figure, axes = plt.subplots(figsize=(7.4, 4))
    ends = {}
    for (name, frame), (colour, line, marker) in zip(records.items(), LINES, strict=False):
        job = frame["metrics"].iloc[0]
        look: Look = {"color": colour, "linestyle": line, "marker": marker, "markersize": 4}
        percent = [100 * share for share in job["accuracy"]]
        axes.plot(job["at_s"], percent, label=name, linewidth=2, **look)
        ends[name] = (job["at_s"][-1], percent[-1])
    axes.set(xlabel="seconds since the start of the training", xlim=(0, None))
    axes.set(ylabel="accuracy on the test images (%)")
    said = "; ".join(f"{name}: {share:.1f} % after {s:.1f} s" for name, (s, share) in ends.items())
    figure.suptitle(fill(said, 84), fontsize=11, x=0.01, ha="left")
    axes.legend(fontsize=9, loc="lower right")
    figure.set_label(f"Accuracy over the seconds of the job. {said}.")
    return figure


@style
def time_shares(records: "Mapping[str, pd.DataFrame]", guess: float | None = None) -> Figure:
    """Where the time of each rank goes, in per cent: training, input, evaluation, waiting. A panel
    a job, a bar a rank.
    """
    figure, panels = plt.subplots(
        len(records), 1, figsize=(7.4, 1.4 + 1.15 * len(records)), sharex=True, squeeze=False
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
        if len(records) > 1:
            axes.set_title(title, fontsize=10, loc="left")
        axes.grid(axis="y", visible=False)
    guess_line(panels[0, 0], guess, upright=True)
    panels[-1, 0].set(xlabel="share of the whole time (%)", xlim=(0, 100))
    handles, labels = panels[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=5, fontsize=9)
    said = ". ".join(f"{name}: {_trains_and_waits(frame)}" for name, frame in records.items())
    figure.suptitle(fill(said, 84), fontsize=11, x=0.01, ha="left")
    figure.set_label(f"Where the time of each rank goes. {said}.")
    return figure


def _trains_and_waits(frame: "pd.DataFrame") -> str:
    """How much of its time rank 0 trains, and who waits most."""
    ranks = frame["metrics.shares"].iloc[0]
    whole = [sum(share[part] for part in SHARES) for share in ranks]
    waits = [share["wait_s"] / total for share, total in zip(ranks, whole, strict=True)]
    most = max(range(len(ranks)), key=lambda rank: waits[rank])
    trains = ranks[0]["train_s"] / whole[0]
    return (
        f"rank 0 trains in {100 * trains:.0f} % of its time, "
        f"rank {most} waits in {100 * waits[most]:.0f} %"
    )


@style
def memory_over_time(records: "Mapping[str, pd.DataFrame]") -> Figure:
    """Resident memory of rank 0 and of the others, from one evaluation to the next."""
    figure, axes = plt.subplots(figsize=(7.4, 3.6))
    said = []
    for (name, frame), (colour, line, marker) in zip(records.items(), LINES, strict=False):
        grows = {}
        for rank, share in enumerate(frame["metrics.shares"].iloc[0]):
            mib = np.array(share["rss_mib"], float)[:, 1]
            number = np.arange(1, len(mib) + 1)
            look: Look = {"color": colour, "linestyle": line, "marker": marker, "markersize": 4}
            label = name if rank == 0 else ""
            axes.plot(number, mib, linewidth=2.2 - 1.2 * (rank > 0), label=label, **look)
            later = mib[len(mib) // 2 :]  # the first evaluations build graphs and buffers
            grows[rank] = (
                float(np.polyfit(np.arange(len(later)), later, 1)[0]) if len(later) > 1 else 0.0
            )
        most = max(grows, key=lambda rank: grows[rank])
        said.append(f"{name} {max(0.0, grows[most]):.2f} MiB")
    low, high = axes.get_ylim()
    # From zero, so that what looks like a climb is one.
    axes.set(xlabel="evaluation", ylabel="resident memory of a rank (MiB)", ylim=(0, 1.15 * high))
    axes.legend(fontsize=9, loc="lower right")
    axes.locator_params(axis="x", integer=True)
    title = (
        f"What a rank gains with each evaluation, in the later half of the job: {', '.join(said)}"
    )
    figure.suptitle(fill(title, 84), fontsize=11, x=0.01, ha="left")
    figure.set_label(f"{title}. The thick lines are rank 0. No line is above {high:.0f} MiB.")
    return figure


@style
def made_digits(record: "pd.DataFrame") -> Figure:
    """What the generator makes of the same noise as it learns, from left to right; above, when it
    was made.
    """
    job: dict[str, Any] = record["metrics"].iloc[0]
    figure, panels = plt.subplots(
        1, len(job["samples"]), figsize=(3 * len(job["samples"]), 1.9), squeeze=False
    )
    for axes, picture, at_s in zip(panels[0], job["samples"], job["samples_at_s"], strict=True):
        axes.imshow(np.array(picture, np.uint8), cmap="gray", vmin=0, vmax=255)
        axes.set_title(f"after {at_s:.0f} s", fontsize=11)
        axes.set_axis_off()
    times = ", ".join(f"{at_s:.0f}" for at_s in job["samples_at_s"])
    figure.set_label(
        f"What the generator makes of the same noise, from left to right, after {times} seconds."
    )
    return figure
