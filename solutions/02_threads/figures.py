"""The figures of 02_threads: who has threads and how busy they are, which rank
runs where, which setting brings more CPUs to work, and the map of inter-op x
intra-op.
"""

from textwrap import fill

import matplotlib.pyplot as plt
import numpy as np

from scaleout import machine
from scaleout.base.words import count, rounded
from scaleout.plots import look
from scaleout.plots import primitives as draw

SHADES = (look.DARK, look.MIDDLE, look.LIGHT, "#e6c229")
EDGE = {"edgecolor": look.DARK, "linewidth": 0.8}
LIBRARIES = {
    "Eigen": ("Eigen", {"color": look.DARK, **EDGE}),
    "OpenMP": ("OpenMP", {"color": look.MIDDLE, "hatch": "//", **EDGE}),
    "Horovod": ("Horovod", {"color": look.GOLD, "hatch": "xx", **EDGE}),
    "Python": ("Python", {"color": look.LIGHT, **EDGE}),
    "other": ("other", {"color": look.PALE, "hatch": "..", **EDGE}),
}
# The fields of a rank's share that a census draws, with label and number.
CENSUS = {"threads": ("threads (count)", "{:.0f}"),
          "cpus": ("CPUs busy (count)", "{:.2f}")}


@look.style
def thread_census(runs, guess: float | None = None):
    """Draw each run, {name: records}, by library, all ranks together: the
    threads that it has, and the CPUs that they kept busy."""
    figure, panels = plt.subplots(1, 2, figsize=(7, 2 + 0.55 * len(runs)),
                                  sharey=True)
    jobs = [frame.iloc[0] for frame in runs.values()]
    cores = [len(job["metrics.cores"]) for job in jobs]
    totals = {}
    for axes, (field, (label, number)) in zip(panels, CENSUS.items(),
                                              strict=True):
        rows = [{name: sum(rank[field].get(name, 0)
                           for rank in job["metrics.shares"])
                 for name in LIBRARIES} for job in jobs]
        totals[field] = draw.stacked(axes, rows, LIBRARIES, width=0.6)
        for row, total in enumerate(totals[field]):
            axes.annotate(number.format(total), (total, row), (4, -4),
                          textcoords="offset points")
        for n in sorted(set(cores)):
            axes.axvline(n, color="black", linestyle=":", label=f"cores: {n}")
        guessed = (guess or 0) if field == "threads" else 0
        widest = max(*totals[field], *cores, guessed)
        axes.set(xlabel=label, xlim=(0, widest * 1.2))
    look.guess_line(panels[0], guess, upright=True)
    panels[0].xaxis.get_major_locator().set_params(integer=True)
    panels[0].set_yticks(range(len(runs)), [fill(name, 16) for name in runs])
    found = [f"{name}: {threads:.0f} threads keep {busy:.1f} CPUs busy, on "
             f"{count(n, 'core')}."
             for name, threads, busy, n in zip(
                 runs, totals["threads"], totals["cpus"], cores, strict=True)]
    return look.finish(figure, " ".join(found), legend=5)


def example_cores(sockets: int, cores: int):
    """Make the cores of a machine that is not here. CPUs are counted as Linux
    usually counts them: the first hardware thread of every core before the
    second of any."""
    whole = sockets * cores
    return [machine.Core(n // cores, n // cores, (n, n + whole))
            for n in range(whole)]


@look.style
def rank_map(maps):
    """Draw which rank runs on which core, a panel for each choice, given as
    {title: (cores, ranks, threads)}: cores in their NUMA nodes with the
    number of their rank, hatched where a core is nobody's."""
    figure, grid = plt.subplots(len(maps), 1, squeeze=False,
                                figsize=(7.5, 2.3 * len(maps) + 0.4))
    for axes, (name, choice) in zip(grid.flat, maps.items(), strict=True):
        cores, ranks, threads = choice
        nodes = {}
        for place, core in enumerate(cores):
            nodes.setdefault(core.numa_node, []).append(place // threads)
        across = _nodes(axes, nodes, ranks)
        text = f"{count(ranks, 'rank')} x {count(threads, 'thread')}"
        if len(nodes) > 1:
            shared = count(across, "rank") if across else "no rank"
            text += f", {shared} with cores in both memories"
        axes.set_title(f"{name}: {text}", fontsize=10, loc="left")
        axes.set_axis_off()
    titles = [axes.get_title(loc="left") for axes in grid.flat]
    title = "Each square is a core, with the number of its rank."
    return look.finish(figure, title, f"{'. '.join(titles)}.")


def _nodes(axes, nodes, ranks: int) -> int:
    """Draw the cores of each NUMA node; tell how many ranks lie in several
    of them."""
    most = max(map(len, nodes.values()))
    columns = min(most, 12)
    rows = -(-most // columns)
    for place, (node, taken) in enumerate(sorted(nodes.items())):
        left = place * (columns + 1)
        draw.box(axes, left - 0.2, -0.2, columns + 0.3, rows + 0.9,
                 facecolor=look.PALE, linewidth=0)
        axes.text(left, rows + 0.3, f"memory {node}: {len(taken)} cores",
                  fontsize=9, va="center")
        for spot, rank in enumerate(taken):
            used = {"facecolor": SHADES[rank % 4], "edgecolor": "white"}
            draw.box(axes, left + spot % columns, rows - 1 - spot // columns,
                     0.92, 0.86, str(rank) if rank < ranks else "",
                     **(used if rank < ranks else look.NOT_ALLOWED))
    axes.set(xlim=(-0.4, len(nodes) * (columns + 1)), ylim=(-0.4, rows + 0.9))
    return sum(sum(rank in taken for taken in nodes.values()) > 1
               for rank in range(ranks))


@look.style
def which_knob(builds, guess: float | None = None):
    """Draw the CPUs kept busy under each setting, a panel for each build: a
    knob is real where the bar follows it."""
    frames = builds.values()
    widest = max(frame["metrics.cpus_busy"].max() for frame in frames)
    figure, panels = draw.panels(builds, (7.5, 4))
    moved = []
    for build, axes in panels.items():
        groups = builds[build].groupby("variant", sort=False)
        busy = {fill(name, 18): own["metrics.cpus_busy"].tolist()
                for name, own in groups}
        looks = [{"color": look.PALE}, *[{"color": look.LIGHT}] * len(busy)]
        draw.bars(axes, busy, label="CPUs busy, in the median", looks=looks,
                  flat=True)
        for row, (_, own) in enumerate(groups):
            axes.annotate(f"{own.rate.median():,.0f} images/s",
                          (own["metrics.cpus_busy"].max(), row), (7, -4),
                          textcoords="offset points", fontsize=9)
        axes.set(xlabel="CPUs kept busy (count)", xlim=(0, widest * 1.7))
        before, *settings = busy
        more = [name for name in settings
                if min(busy[name]) > 1.1 * max(busy[before])]
        moved.append(f"{build}: {_more(more)}.")
    if guess is not None:
        first = next(iter(panels.values()))
        # Below the bar: behind it stands its rate.
        look.guess_star(first, guess, 1.38, f"{guess:g}")
    return look.finish(figure, " ".join(moved), legend=3)


def _more(names) -> str:
    """Which settings brought more CPUs to work, in all of their runs."""
    if not names:
        return "no setting was shown to bring more CPUs to work"
    return f"more CPUs work with {' or '.join(names)}"


@look.style
def inter_intra(frame, guess: str | None = None):
    """Draw the rate of a sweep over inter-op and intra-op threads as a map;
    guess: the best cell, such as "0 x 2"."""
    inter, intra = (frame[f"TF_NUM_{name}_THREADS"].astype(int)
                    for name in ("INTEROP", "INTRAOP"))
    rows, columns = sorted(inter.unique()), sorted(intra.unique())
    rates = np.full((len(rows), len(columns)), np.nan)
    for row, column, rate in zip(inter, intra, frame.rate, strict=True):
        rates[rows.index(row), columns.index(column)] = rate
    figure, axes = plt.subplots(figsize=(6, 3.6))
    # The short form of a sweep leaves cells out: they did not fail.
    missing = [["not run"] * len(columns) for _ in rows]
    for row, column in zip(inter, intra, strict=True):
        missing[rows.index(row)][columns.index(column)] = "fails"
    draw.heat(figure, axes, rates, [str(n) for n in rows],
              [str(n) for n in columns], "images/s", missing=missing)
    axes.set(xlabel="intra-op threads (count)",
             ylabel="inter-op threads (count)")
    spots = {f"{row} x {column}": (x + 0.3, y + 0.25)
             for y, row in enumerate(rows)
             for x, column in enumerate(columns)}
    if guess is not None:
        look.guess_star(axes, *spots.get(guess, (np.nan, np.nan)), guess)
    failed = int(frame.rate.isna().sum())
    title = "No setting gave a rate."
    if failed < len(frame):
        row, column = np.unravel_index(np.nanargmax(rates), rates.shape)
        title = (f"Highest median: inter-op {rows[row]}, intra-op "
                 f"{columns[column]}, {rounded(np.nanmax(rates))} images/s.")
    title += f" {failed} of {len(frame)} settings failed." * bool(failed)
    cells = [f"inter-op {rows[row]}, intra-op {columns[column]}: "
             f"{missing[row][column] if np.isnan(rate) else rounded(rate)}."
             for (row, column), rate in np.ndenumerate(rates)]
    return look.finish(figure, title, values=" ".join(cells), legend=1)
