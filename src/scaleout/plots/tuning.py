"""Figures of 06_tuning: accuracy over time, where the time goes, memory, the digits that the
generator makes."""

import math
import statistics
from collections.abc import Mapping
from textwrap import fill
from typing import TYPE_CHECKING, Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from ..words import count
from .look import DARK, LIGHT, MIDDLE, PALE, Look, guess_line, guess_name, style

if TYPE_CHECKING:
    import pandas as pd

    from ..measure.comparison import Comparison

__all__ = [
    "accuracy_over_time",
    "kept_steps",
    "made_digits",
    "memory_over_time",
    "time_shares",
    "with_and_without",
]

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
def accuracy_over_time(records: "Mapping[str, pd.DataFrame]") -> Figure:
    """Accuracy on the test images over the seconds of the whole job, a line a job.

    Parameters
    ----------
    records : mapping of name to DataFrame
        Jobs of 06_tuning; the first of each frame is drawn. Evaluations count in the seconds.
    """
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
def with_and_without(records: "pd.DataFrame", guess: float | None = None) -> Figure:
    """The accuracy of each seed, from the labelled images alone and with the GAN.

    Parameters
    ----------
    records : DataFrame
        Of worth.py: two jobs of 06_tuning a seed.
    guess : float, optional
        The reader's, of the points that the GAN adds.
    """
    pairs: dict[int, dict[bool, float]] = {}
    for _, row in records.iterrows():
        job: dict[str, Any] = row["metrics"]
        alone = row["variant"] == "supervised"
        pairs.setdefault(row["seed"], {})[alone] = 100 * job["accuracy"][-1]
    whole = [pair for pair in pairs.values() if len(pair) == 2]
    gains = [pair[False] - pair[True] for pair in whole]
    labels = len(records["metrics"].iloc[0]["labelled"])
    said = _gain_in_words(gains, labels)
    figure, axes = plt.subplots(figsize=(6.4, 3.8))
    for place, pair in enumerate(whole):
        label = "a seed" if place == 0 else ""
        axes.plot([0, 1], [pair[True], pair[False]], "o-", color=DARK, linewidth=1.2, label=label)
    means = [statistics.fmean(pair[alone] for pair in whole) for alone in (True, False)]
    for place, mean in enumerate(means):
        label = "mean" if place == 0 else ""
        axes.plot([place - 0.12, place + 0.12], [mean] * 2, color=MIDDLE, linewidth=4, label=label)
        axes.annotate(f"{mean:.1f} %", (place, mean), (44 - 88 * (place == 0), 0), fontsize=10,
                      textcoords="offset points", ha="right" if place == 0 else "left", va="center")  # fmt: skip
    if guess is not None:
        ends = [means[0], means[0] + guess]
        label = f"your guess: {guess:+g} points"
        axes.plot([0, 1], ends, color=MIDDLE, linestyle=":", linewidth=2, label=label)
    axes.set_xticks([0, 1], [f"{labels} labels alone", f"{labels} labels and the GAN"])
    axes.set(ylabel="accuracy on the test images (%)", xlim=(-0.55, 1.55))
    figure.suptitle(fill(said, 74), fontsize=11, x=0.01, ha="left")
    figure.legend(fontsize=9, loc="outside lower center", ncols=3)
    figure.set_label(f"{said} {means[0]:.1f} % alone, {means[1]:.1f} % with the GAN, on average.")
    return figure


def _gain_in_words(gains: list[float], labels: int) -> str:
    """What the GAN adds to each seed's accuracy, with its 95 % interval, and what follows."""
    from scipy.special import stdtrit

    middle = statistics.fmean(gains)
    if len(gains) < 3:
        return f"{middle:+.1f} points with the GAN: {count(len(gains), 'seed')} tell too little."
    spread = statistics.stdev(gains) / math.sqrt(len(gains))
    half = float(stdtrit(len(gains) - 1, 0.975)) * spread
    said = f"{middle:+.1f} points with the GAN ({middle - half:+.1f} to {middle + half:+.1f})"
    ends = "it earns its place." if middle > half else "no gain is shown."
    if middle < -half:
        ends = "it does harm."
    return f"{labels} labels, {count(len(gains), 'seed')}: {said}, so {ends}"


@style
def kept_steps(steps: "Mapping[str, Comparison]", guess: str | None = None) -> Figure:
    """What each step of a tuning was worth, each beginning where the ones before have got to.

    Parameters
    ----------
    steps : mapping of name to Comparison
        In order. A step's best variant is kept, where it has one that is faster.
    guess : str, optional
        The step that the reader expected most of.
    """
    names = ["first written", *steps, "all kept"]
    figure, axes = plt.subplots(figsize=(1.6 + 1.25 * len(names), 4.2))
    level, kept, said = 1.0, 0, []
    whole: Look = {"width": 0.62, "color": DARK, "edgecolor": "#444444"}
    axes.bar(0, level, **whole)
    axes.annotate("1x", (0, level), (0, 4), textcoords="offset points", ha="center")
    top = level
    for place, (name, found) in enumerate(steps.items(), 1):
        better = found.best != found.baseline
        best = found.best if better else max(found.variants, key=lambda v: found.ratio(v).middle)
        ratio = found.ratio(best)
        low, high = level * ratio.low, level * ratio.high
        if better:
            look: Look = {"width": 0.62, "color": LIGHT, "edgecolor": "#444444"}
            axes.bar(place, level * (ratio.middle - 1), bottom=level, **look)
        axes.plot([place - 1 + 0.31, place + 0.31], [level] * 2, color=GREY, linewidth=0.8)
        middle = level * ratio.middle
        error = [[middle - low], [high - middle]] if math.isfinite(high) else None
        colour = "white" if not better else DARK
        axes.errorbar(place, middle, yerr=error, fmt="o", color="black", capsize=4,
                      markerfacecolor=colour)  # fmt: skip
        end = high if math.isfinite(high) else middle
        verdict = f"{ratio.middle:.2f}x" if better else f"{ratio.middle:.2f}x,\nnot kept"
        axes.annotate(f"{fill(best, 16)}\n{verdict}", (place, end), (0, 5), ha="center",
                      textcoords="offset points", fontsize=9)  # fmt: skip
        said.append(f"{name}: {found.sentence(best)}")
        kept += better
        level *= ratio.middle if better else 1.0
        top = max(top, end, level)
    last = len(names) - 1
    axes.plot([last - 1 + 0.31, last + 0.31], [level] * 2, color=GREY, linewidth=0.8)
    axes.bar(last, level, **whole)
    axes.annotate(f"{level:.1f}x", (last, level), (0, 4), textcoords="offset points", ha="center")
    guess_name(axes, names, guess, 0.05)
    axes.set_xticks(range(len(names)), [fill(name, 12) for name in names])
    axes.set(ylabel="times as fast as first written", ylim=(0, 1.3 * top))
    axes.grid(axis="x", visible=False)
    if guess is not None:
        axes.legend(fontsize=9, loc="upper left")
    title = f"{kept} of {count(len(steps), 'step')} kept, and together they promise {level:.1f}x"
    figure.suptitle(title, fontsize=11, x=0.01, ha="left")
    figure.set_label(f"{title}. {' '.join(said)}")
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
    """Resident memory of rank 0 and of the others, from one evaluation to the next.

    Parameters
    ----------
    records : mapping of name to DataFrame
        Jobs of 06_tuning; the first of each frame is drawn.
    """
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
