"""Figures of 02: who has threads and how busy they are, the rate over threads, settings side by
side."""

from collections.abc import Mapping, Sequence
from textwrap import fill
from typing import TYPE_CHECKING

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from .. import words
from .look import DARK, LIGHT, MIDDLE, NOT_ALLOWED, PALE, Look, guess_line, style

if TYPE_CHECKING:
    import pandas as pd

    from ..machine import Core


SHADES = (DARK, MIDDLE, LIGHT, "#e6c229")

LIBRARIES = {
    "Eigen": (DARK, ""),
    "OpenMP": (MIDDLE, "//"),
    "Horovod": ("#a98600", "xx"),
    "Python": (LIGHT, ""),
    "other": (PALE, ".."),
}
MARKERS = "os^Dv*PX"


@style
def thread_census(runs: "Mapping[str, pd.DataFrame]", guess: float | None = None) -> Figure:
    """Each run by library, all ranks together: left the threads that it has, right the CPUs that
    they kept busy.
    """
    figure, panels = plt.subplots(1, 2, figsize=(7, 1.7 + 0.55 * len(runs)), sharey=True)
    cores = [len(frame["metrics.cores"].iloc[0]) for frame in runs.values()]
    fields = {"threads": "threads (count)", "cpus": "CPUs kept busy (count)"}
    for axes, (field, label_x) in zip(panels, fields.items(), strict=True):
        left = np.zeros(len(runs))
        for library, (colour, hatch) in LIBRARIES.items():
            on_rank = [frame["metrics.on_rank"].iloc[0] for frame in runs.values()]
            amount = np.array(
                [sum(each[field].get(library, 0) for each in ranks) for ranks in on_rank]
            )
            bars = {"color": colour, "hatch": hatch, "edgecolor": DARK, "linewidth": 0.8}
            label = library if amount.any() else ""
            axes.barh(range(len(runs)), amount, left=left, label=label, height=0.6, **bars)
            left += amount
        for place, whole in enumerate(left):
            axes.annotate(f"{whole:.0f}" if field == "threads" else f"{whole:.2f}", (whole, place), (4, -4),
                          textcoords="offset points", fontsize=10)  # fmt: skip
        for n in sorted(set(cores)):
            axes.axvline(n, color="black", linestyle=":", label=f"cores: {n}")
        if field == "threads":
            guess_line(axes, guess, upright=True)
        widest = max(left.max(), max(cores), (guess or 0) if field == "threads" else 0)
        axes.set(xlabel=label_x, xlim=(0, widest * 1.2))
        axes.xaxis.get_major_locator().set_params(integer=field == "threads")
        axes.grid(axis="y", visible=False)
    panels[0].set_yticks(range(len(runs)), [fill(name, 16) for name in runs])
    panels[0].invert_yaxis()
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=5, fontsize=10)
    said = [_census(name, frame) for name, frame in runs.items()]
    figure.suptitle("\n".join(said), fontsize=11, x=0.01, ha="left")
    figure.set_label(" ".join(said))
    return figure


def _census(name: str, frame: "pd.DataFrame") -> str:
    """Threads and busy CPUs of one job in a sentence."""
    ranks = frame["metrics.on_rank"].iloc[0]
    threads = sum(sum(each["threads"].values()) for each in ranks)
    busy = sum(sum(each["cpus"].values()) for each in ranks)
    cores = len(frame["metrics.cores"].iloc[0])
    return f"{name}: {threads} threads keep {busy:.1f} of {words.count(cores, 'core')} busy."


@style
def rate_over_threads(
    frame: "pd.DataFrame", cores: int, guess: float | None = None, unit: str = "images/s"
) -> Figure:
    """The rate over the threads of a rank, a line for each number of ranks; filled points fit the
    cores, hollow do not.
    """
    figure, axes = plt.subplots()
    one = frame[(frame.ranks == 1) & (frame.threads == 1)].rate
    counts = sorted(frame.threads.unique())
    if len(one) and one.notna().all():
        ideal = [float(one.iloc[0]) * min(n, cores) for n in counts]
        axes.plot(counts, ideal, linestyle="--", color="#888888", label="ideal, 1 rank")
    for place, (ranks, group) in enumerate(frame.sort_values("threads").groupby("ranks")):
        colour = [DARK, MIDDLE, LIGHT, "#6b705c"][place % 4]
        axes.plot(group.threads, group.rate, color=colour, linewidth=2)
        marker: Look = {
            "marker": MARKERS[place % len(MARKERS)],
            "edgecolor": colour,
            "s": 55,
            "zorder": 3,
        }
        fits = group.threads * ranks <= cores
        name: str | None = words.count(ranks, "rank")
        for some, fill_colour in ((group[fits], colour), (group[~fits], "white")):
            if len(some):
                axes.scatter(some.threads, some.rate, color=fill_colour, label=name, **marker)
                name = None
    guess_line(axes, guess, upright=True)
    axes.set(
        xlabel="threads a rank (count); hollow: more threads in all than cores",
        ylabel=f"{unit} trained",
    )
    axes.set(xticks=counts, ylim=(0, frame.rate.max() * 1.15))
    axes.legend(fontsize=10, ncols=2, loc="lower right")
    alone = frame[frame.ranks == 1]
    if alone.rate.notna().any():
        best = alone.loc[alone.rate.idxmax()]
        threads = words.count(int(best.threads), "thread")
        said = f"One rank: highest median with {threads}, {words.rounded(best.rate)} {unit}."
        axes.set_title(said, fontsize=11, loc="left")
        figure.set_label(said)
    return figure


@style
def which_knob(builds: "Mapping[str, pd.DataFrame]", guess: float | None = None) -> Figure:
    """CPUs kept busy under each setting, a panel a build: a knob is real where the bar follows it."""
    figure, panels = plt.subplots(1, len(builds), figsize=(7.5, 3.6), sharey=True, squeeze=False)
    widest = max(frame["metrics.cpus_busy"].max() for frame in builds.values())
    settings = list(dict.fromkeys(name for frame in builds.values() for name in frame.variant))
    said = []
    for axes, (build, frame) in zip(panels[0], builds.items(), strict=True):
        for place, name in enumerate(settings):
            runs = frame[frame.variant == name]
            if runs.empty:
                continue
            busy = runs["metrics.cpus_busy"]
            bar: Look = {"color": [PALE, LIGHT][place > 0], "edgecolor": DARK, "height": 0.6}
            axes.barh(place, busy.median(), **bar)
            dot: Look = {"color": "white", "edgecolor": "black", "s": 22, "zorder": 3}
            axes.scatter(busy, [place] * len(busy), **dot)
            how: Look = {"textcoords": "offset points", "fontsize": 9}
            axes.annotate(f"{runs.rate.median():,.0f}/s", (busy.max(), place), (7, -4), **how)
            said.append(f"{build}, {name}: {busy.median():.1f} CPUs busy")
        axes.set(xlabel="CPUs kept busy (count)", xlim=(0, widest * 1.5))
        most = frame[frame.variant == settings[0]]["metrics.cpus_busy"].max()
        moved = [n for n in settings[1:] if _least(frame, n) > 1.1 * most]
        axes.set_title(f"{build}:\n{_moves(moved)}", fontsize=10, loc="left")
        axes.grid(axis="y", visible=False)
    if guess is not None:
        mark: Look = {"marker": "*", "color": "black", "s": 150, "zorder": 4, "edgecolor": "white"}
        panels[0, 0].scatter([guess], [1], label=f"your guess: {guess:g}", **mark)
        figure.legend(loc="outside lower left", fontsize=9)
    panels[0, 0].set_yticks(range(len(settings)), [fill(name, 18) for name in settings])
    panels[0, 0].set_ylim(len(settings) - 0.4, -0.6)
    figure.set_label("; ".join(said) + ".")
    return figure


def _least(frame: "pd.DataFrame", name: str) -> float:
    """What the idlest run of a setting kept busy: only all runs together show something."""
    return float(frame[frame.variant == name]["metrics.cpus_busy"].min())


def _moves(names: Sequence[str]) -> str:
    """Which settings brought more CPUs to work, in words."""
    if not names:
        return fill("no setting was shown to bring more CPUs to work", 34)
    return fill(f"more CPUs work with {' or '.join(names)}", 34)


@style
def rank_map(maps: "Mapping[str, tuple[Sequence[Core], int, int]]") -> Figure:
    """Which rank runs on which core, a panel a machine or a choice: cores in their NUMA nodes, the
    rank's number in each, hatched where a core is nobody's.
    """
    from matplotlib.patches import Rectangle

    figure, panels = plt.subplots(len(maps), 1, squeeze=False, figsize=(7.5, 2.3 * len(maps)))
    for axes, (title, (cores, ranks, threads)) in zip(panels.flat, maps.items(), strict=True):
        homes = sorted({core.numa_node for core in cores})
        most = max(sum(core.numa_node == home for core in cores) for home in homes)
        columns = min(most, 12)
        rows = -(-most // columns)
        taken: dict[int, set[int]] = {}
        for place, home in enumerate(homes):
            left = place * (columns + 1)
            axes.add_patch(Rectangle((left - 0.2, -0.2), columns + 0.3, rows + 0.9, facecolor=PALE))
            memory = f"memory {home}: {sum(core.numa_node == home for core in cores)} cores"
            axes.text(left, rows + 0.3, memory, fontsize=9, va="center")
            for spot, core in enumerate(core for core in cores if core.numa_node == home):
                rank = list(cores).index(core) // threads
                mine = rank < ranks
                look: Look = {"facecolor": SHADES[rank % 4], "edgecolor": "white"}
                corner = (left + spot % columns, rows - 1 - spot // columns)
                axes.add_patch(Rectangle(corner, 0.92, 0.86, **(look if mine else NOT_ALLOWED)))
                if mine:
                    taken.setdefault(rank, set()).add(home)
                    at = (corner[0] + 0.46, corner[1] + 0.43)
                    tone = "white" if rank % 4 < 2 else "black"
                    axes.text(*at, str(rank), ha="center", va="center", fontsize=9, color=tone)
        across = sum(len(both) > 1 for both in taken.values())
        said = f"{words.count(ranks, 'rank')} x {words.count(threads, 'thread')}"
        reach = "" if len(homes) == 1 else f", {across} of them in both memories"
        axes.set_title(f"{title}: {said}{reach}", fontsize=10, loc="left")
        axes.set(xlim=(-0.4, len(homes) * (columns + 1)), ylim=(-0.4, rows + 0.9))
        axes.set_axis_off()
    figure.set_label(". ".join(axes.get_title(loc="left") for axes in panels.flat) + ".")
    return figure
