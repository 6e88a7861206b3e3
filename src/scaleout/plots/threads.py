"""Who has threads and how busy they are, and the rate over threads."""

from collections.abc import Mapping
from textwrap import fill
from typing import TYPE_CHECKING, Any

import matplotlib.pyplot as plt
from matplotlib.figure import Figure

from .. import words
from .look import DARK, GOLD, LIGHT, LINES, MIDDLE, PALE, Look, finish, guess_line, style
from .primitives import dots, ideal, stacked

if TYPE_CHECKING:
    import pandas as pd


EDGE: Look = {"edgecolor": DARK, "linewidth": 0.8}
LIBRARIES: dict[str, tuple[str, Look]] = {
    "Eigen": ("Eigen", {"color": DARK, **EDGE}),
    "OpenMP": ("OpenMP", {"color": MIDDLE, "hatch": "//", **EDGE}),
    "Horovod": ("Horovod", {"color": GOLD, "hatch": "xx", **EDGE}),
    "Python": ("Python", {"color": LIGHT, **EDGE}),
    "other": ("other", {"color": PALE, "hatch": "..", **EDGE}),
}


@style
def thread_census(runs: "Mapping[str, pd.DataFrame]", guess: float | None = None) -> Figure:
    """Draw each run by library, all ranks together: the threads that it has, and the CPUs that they
    kept busy.
    """
    figure, panels = plt.subplots(1, 2, figsize=(7, 2 + 0.55 * len(runs)), sharey=True)
    cores = [len(frame["metrics.cores"].iloc[0]) for frame in runs.values()]
    shares = [frame["metrics.shares"].iloc[0] for frame in runs.values()]
    totals: dict[str, Any] = {}
    fields = {"threads": ("threads (count)", "{:.0f}"), "cpus": ("CPUs busy (count)", "{:.2f}")}
    for axes, (field, (label, number)) in zip(panels, fields.items(), strict=True):
        rows = [
            {name: sum(rank[field].get(name, 0) for rank in ranks) for name in LIBRARIES}
            for ranks in shares
        ]
        totals[field] = stacked(axes, rows, LIBRARIES, width=0.6)
        for row, total in enumerate(totals[field]):
            axes.annotate(number.format(total), (total, row), (4, -4), textcoords="offset points")
        for n in sorted(set(cores)):
            axes.axvline(n, color="black", linestyle=":", label=f"cores: {n}")
        widest = max(*totals[field], *cores, (guess or 0) if field == "threads" else 0)
        axes.set(xlabel=label, xlim=(0, widest * 1.2))
    guess_line(panels[0], guess, upright=True)
    panels[0].xaxis.get_major_locator().set_params(integer=True)
    panels[0].set_yticks(range(len(runs)), [fill(name, 16) for name in runs])
    found = [
        f"{name}: {threads:.0f} threads keep {busy:.1f} of {words.count(n, 'core')} busy."
        for name, threads, busy, n in zip(
            runs, totals["threads"], totals["cpus"], cores, strict=True
        )
    ]
    return finish(figure, " ".join(found), legend=5)


@style
def rate_over_threads(
    frame: "pd.DataFrame",
    cores: int,
    guess: float | None = None,
    runs: "pd.DataFrame | None" = None,
) -> Figure:
    """Draw the rate over the threads of a rank, a line for each number of ranks; filled points fit
    the cores, hollow ones do not. Single runs, a sweep's `runs`, are small points.
    """
    figure, axes = plt.subplots()
    counts = sorted(frame.threads.unique())
    one = frame[(frame.ranks == 1) & (frame.threads == 1)].rate
    if len(one) and one.notna().all():
        ideal(axes, counts, [float(one.iloc[0]) * min(n, cores) for n in counts], "ideal, 1 rank")
    for nth, (ranks, rows) in enumerate(frame.sort_values("threads").groupby("ranks")):
        line = LINES[nth % len(LINES)]
        fits = rows.threads * ranks <= cores
        solid = {**line, "linestyle": "-", "markersize": 7}
        axes.plot(rows.threads, rows.rate, label=words.count(int(ranks), "rank"), **solid)
        look: Look = {"marker": line["marker"], "edgecolor": line["color"], "s": 49, "zorder": 3}
        axes.scatter(rows.threads[~fits], rows.rate[~fits], color="white", **look)
        if runs is not None:
            own = runs[(runs.role == "point") & (runs.ranks == ranks) & runs.rate.notna()]
            dots(axes, own.threads, own.rate, color=line["color"], markersize=5)
    guess_line(axes, guess, upright=True)
    axes.set(
        xlabel="threads of each rank (count); hollow: more threads in all than cores",
        ylabel="images/s trained",
        xticks=counts,
        ylim=(0, frame.rate.max() * 1.15),
    )
    alone = frame[(frame.ranks == 1) & frame.rate.notna()]
    title = f"The rate over threads, {words.count(cores, 'core')}."
    if len(alone):
        best = alone.loc[alone.rate.idxmax()]
        threads = words.count(int(best.threads), "thread")
        title = f"One rank: highest median with {threads}, {words.rounded(best.rate)} images/s."
        top = frame.loc[frame.rate.idxmax()]
        if top.ranks > 1:
            job = f"{int(top.ranks)} ranks x {words.count(int(top.threads), 'thread')}"
            title += f" Of all: {job}, {words.rounded(top.rate)}."
    return finish(figure, title, legend=4)
