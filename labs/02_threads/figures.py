"""The figures of 02_threads: what waiting threads cost, who has threads and
how busy they are, which rank runs where, and the map of inter-op x intra-op.
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
def crowd(compared, guess: float | None = None):
    """Draw the rates of the copies of K-means; the guess is how many times
    as fast as the last variant the first is."""
    names = [compared.baseline, *compared.variants]
    runs = compared.runs
    rates = {name: runs[runs.variant == name].value for name in names}
    figure, axes = plt.subplots(figsize=(7, 2.8))
    for row, rate in enumerate(rates.values()):
        draw.box(axes, rate.median() / 1.04, row - 0.35, rate.median() * 0.08,
                 0.7, facecolor=look.MIDDLE, linewidth=0)
        axes.plot(rate, [row] * len(rate), "o", color=look.DARK)
        axes.annotate(f"{rate.median():,.0f}", (rate.max(), row), (9, -4),
                      textcoords="offset points")
    last = rates[names[-1]].median()
    if guess is not None:
        look.guess_star(axes, last * guess, 0, f"{guess:g} times")
    every = [last * (guess or 1), *runs.value]
    axes.set(xscale="log", xlabel="iterations/s of both copies",
             xlim=(min(every) / 2, max(every) * 4), ylim=(2.6, -0.75))
    axes.set_yticks(range(len(names)), names)
    ratio = compared.ratio(names[-1])
    title = (f"With a fair share of threads, two copies are "
             f"{_times(1 / ratio.middle)} times as fast as by default")
    if ratio.low > 0:
        title += f" ({_times(1 / ratio.high)} to {_times(1 / ratio.low)})"
    values = [f"{name}: median {rounded(rate.median())} iterations/s."
              for name, rate in rates.items()]
    return look.finish(figure, f"{title}.", " ".join(values), legend=1)


def _times(ratio: float) -> str:
    """A ratio without digits that its interval is not worth."""
    return f"{ratio:,.0f}" if ratio >= 10 else f"{ratio:.2f}"


def busy(compared) -> str:
    """How many CPUs each variant of a comparison kept busy."""
    middle = {name: own["metrics.cpus_busy"].median()
              for name, own in compared.records.groupby("variant", sort=False)}
    order = [compared.baseline, *compared.variants]
    told = "; ".join(f"{name}: {middle[name]:.2f}" for name in order)
    return f"CPUs kept busy, in the median. {told}."


def account(frame) -> str:
    """Say whose threads there are in a rank of this job."""
    job = frame.iloc[0]
    each = job["metrics.shares"][0]["threads"]
    pool = job["metrics.threads"]
    more = each["Eigen"] - 2 * pool
    return (f"Each rank has {sum(each.values())} threads: Python's first, "
            f"{each['other']} that NumPy, MPI and imports have started, "
            f"TensorFlow's {pool} intra-op and {pool} inter-op threads, and "
            f"{more} more of TensorFlow.")


@look.style
def inter_intra(compared, guess: float | None = None):
    """Draw how many times as fast as one thread each number of inter-op and
    intra-op threads is, as a map; guess: with inter-op threads alone."""
    cells = {name: [int(n) for n in name.split(" x ")]
             for name in compared.runs.variant.unique() if " x " in name}
    counts = sorted({inter for inter, _ in cells.values()})
    most = counts[-1]
    rates = np.full((len(counts), len(counts)), np.nan)
    for name, (inter, intra) in cells.items():
        place = counts.index(inter), counts.index(intra)
        known = name != compared.baseline
        rates[place] = compared.ratio(name).middle if known else 1.0
    figure, axes = plt.subplots(figsize=(6, 3.4))
    marks = [str(n) for n in counts]
    draw.heat(figure, axes, rates, marks, marks, "times the rate of 1 x 1")
    for frame in list(axes.patches):
        frame.remove()  # no cell is the winner: neighbours may be equal
    corner = len(counts) - 1
    dark = rates[-1, -1] - 1 > 0.6 * (np.nanmax(rates) - 1)
    axes.text(corner, corner + 0.25, "default", ha="center", va="center",
              fontsize=9, color="white" if dark else "black")
    axes.set(xlabel="intra-op threads (count)",
             ylabel="inter-op threads (count)")
    if guess is not None:
        look.guess_star(axes, -0.3, corner + 0.3,
                        f"{guess:g} times, with inter-op {most}")
    intra, inter, nothing = (
        _times(compared.ratio(name).middle)
        for name in (f"1 x {most}", f"{most} x 1", "OMP_NUM_THREADS"))
    title = (f"{most} threads in place of 1 bring {intra} times the rate as "
             f"intra-op threads, and {inter} times as inter-op threads; "
             f"OMP_NUM_THREADS={most} brings {nothing}.")
    values = " ".join(
        f"inter-op {counts[row]}, intra-op {counts[column]}: "
        f"{rounded(rate)} times." for (row, column), rate
        in np.ndenumerate(rates))
    return look.finish(figure, title, values=values, legend=1)
