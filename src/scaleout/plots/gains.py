"""Figures of 06_tuning's comparisons: what each step gained, and which were kept."""

import math
import statistics
from collections.abc import Mapping
from textwrap import fill
from typing import TYPE_CHECKING, Any

import matplotlib.pyplot as plt
from matplotlib.figure import Figure

from ..words import count
from .look import DARK, GREY, LIGHT, MIDDLE, Look, guess_name, style

if TYPE_CHECKING:
    import pandas as pd

    from ..comparisons.comparison import Comparison


@style
def with_and_without(records: "pd.DataFrame", guess: float | None = None) -> Figure:
    """The accuracy of each seed, from the labelled images alone and with the GAN."""
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
    """What each step of a tuning was worth, each beginning where the ones before have got to."""
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
