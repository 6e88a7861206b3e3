"""The figures of 02_threads: what waiting threads cost, who has threads and
how busy they are, which rank runs where, and the map of inter-op x intra-op.
"""

from collections import Counter
from textwrap import fill

import matplotlib.pyplot as plt
import numpy as np

from scaleout import machine
from scaleout.base.words import count, percent, rounded
from scaleout.plots import look
from scaleout.plots import primitives as draw

# Neighbours differ in grey, too.
SHADES = (look.DARK, look.LIGHT, look.MIDDLE, "#e6c229")
MOST = 12  # cores in a row of the map
EDGE = {"edgecolor": look.DARK, "linewidth": 0.8}
LIBRARIES = {
    "Eigen": ("TensorFlow", {"color": look.DARK, **EDGE}),
    "OpenMP": ("OpenMP", {"color": look.MIDDLE, "hatch": "//", **EDGE}),
    "Horovod": ("Horovod", {"color": look.GOLD, "hatch": "xx", **EDGE}),
    "Python": ("Python", {"color": look.LIGHT, **EDGE}),
    "other": ("other", {"color": look.PALE, "hatch": "..", **EDGE}),
}
# The fields of a rank's share that a census draws, with label and number.
CENSUS = {"threads": ("threads (count)", "{:.0f}"),
          "cpus": ("CPUs busy (count)", "{:.2f}")}
# A smaller quotient of two rates, or of busy CPUs, gets no explanation.
MATTERS = 1.2


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
                          textcoords="offset points",
                          bbox={"facecolor": "white", "edgecolor": "none",
                                "pad": 0.5})
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
    sizes = []
    for cores, _, _ in maps.values():
        of_node = Counter(core.numa_node for core in cores)
        most = max(of_node.values())
        sizes.append((len(of_node) * (min(most, MOST) + 1),
                      -(-most // MOST) + 1.3))
    across, heights = zip(*sizes, strict=True)
    figure, grid = plt.subplots(
        len(maps), 1, squeeze=False, figsize=(7.5, 0.4 * sum(heights) + 1.4),
        gridspec_kw={"height_ratios": heights})
    for axes, (name, choice) in zip(grid.flat, maps.items(), strict=True):
        cores, ranks, threads = choice
        nodes = {}
        for place, core in enumerate(cores):
            nodes.setdefault(core.numa_node, []).append(place // threads)
        torn = _nodes(axes, nodes, ranks)
        axes.set_xlim(-0.4, max(across))  # a core is as large in each map
        text = f"{count(ranks, 'rank')} x {count(threads, 'thread')}"
        if len(nodes) > 1:
            shared = count(torn, "rank") if torn else "no rank"
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
    columns = min(most, MOST)
    rows = -(-most // columns)
    for place, (node, taken) in enumerate(sorted(nodes.items())):
        left = place * (columns + 1)
        draw.box(axes, left - 0.2, -0.2, columns + 0.7, rows + 0.9,
                 facecolor=look.PALE, linewidth=0)
        cores = f": {len(taken)} cores" * (columns > 5)  # else no room
        axes.text(left, rows + 0.3, f"memory {node}{cores}", fontsize=8,
                  va="center")
        for spot, rank in enumerate(taken):
            used = {"facecolor": SHADES[rank % 4], "edgecolor": "white"}
            draw.box(axes, left + spot % columns, rows - 1 - spot // columns,
                     0.92, 0.86, str(rank) if rank < ranks else "",
                     **(used if rank < ranks else look.NOT_ALLOWED))
    axes.set_ylim(-0.4, rows + 0.9)
    return sum(sum(rank in taken for taken in nodes.values()) > 1
               for rank in range(ranks))


@look.style
def crowd(compared, guess: float | None = None):
    """Draw the rates of the copies of K-means, of every run; the guess is how
    many times as fast as the last variant the first is."""
    names = [compared.baseline, *compared.variants]
    runs = compared.runs
    rates = {name: runs[runs.variant == name].value for name in names}
    figure, axes = plt.subplots(figsize=(7, 2.8))
    for row, rate in enumerate(rates.values()):
        axes.plot(rate.median(), row, "|", color=look.MIDDLE, markersize=26,
                  markeredgewidth=6, label="" if row else "median", zorder=1)
        again = runs.again[rate.index] == 1
        axes.plot(rate[~again], [row] * sum(~again), "o", color=look.DARK,
                  label="" if row else "a run")
        if any(again):
            axes.plot(rate[again], [row] * sum(again), "o", color=look.DARK,
                      markerfacecolor="white", label=f"{names[0]}, again")
        axes.annotate(_span(rate), (rate.max(), row), (9, -4),
                      textcoords="offset points")
    last = rates[names[-1]].median()
    if guess is not None:
        look.guess_star(axes, last * guess, 0, f"{guess:g} times")
    every = [last * (guess or 1), *runs.value]
    axes.set(xscale="log", xlabel="iterations/s of both copies",
             xlim=(min(every) / 2, max(every) * 7), ylim=(2.6, -0.75))
    axes.set_yticks(range(len(names)), names)
    values = [f"{name}: {_span(rate)} iterations/s, median "
              f"{rounded(rate.median())}." for name, rate in rates.items()]
    return look.finish(figure, finding(compared), " ".join(values), legend=4)


def _times(ratio: float) -> str:
    """A ratio without digits that its interval is not worth."""
    return f"{ratio:,.0f}" if ratio >= 10 else f"{ratio:.2f}"


def _span(values, say=rounded) -> str:
    """The lowest and the highest, or one number where both read the same."""
    low, high = say(min(values)), say(max(values))
    return low if low == high else f"{low} to {high}"


def _in_rounds(compared, name: str):
    """The rate of a variant in each round; of two runs the mean. No round is
    left out: where one is unlike the others, that is what was found."""
    runs = compared.runs
    return runs[runs.variant == name].groupby("round").value.mean()


def _gains(compared, name: str, other: str):
    """How many times as fast as another a variant is, in each round."""
    return _in_rounds(compared, name) / _in_rounds(compared, other)


def times(compared) -> str:
    """How many times as fast as the last variant the baseline is, from round
    to round."""
    last = compared.variants[-1]
    return _span(_gains(compared, compared.baseline, last), _times)


def finding(compared) -> str:
    """What the copies of K-means found, in a sentence."""
    gain = times(compared)
    rounds = ", from round to round" * (" to " in gain)
    return (f"With a fair share of threads, two copies of K-means are {gain} "
            f"times as fast as by default{rounds}.")


def luck(compared) -> str:
    """What the copies lose by default, and whether all rounds agree."""
    names = compared.baseline, compared.variants[-1]
    share, default = (_in_rounds(compared, name) for name in names)
    gain = (share / default).median()
    runs = compared.runs
    # Two copies share the rate: one has its next iteration after 2 / rate s
    own_ms, default_ms = (_span(2000 / runs[runs.variant == name].value)
                          for name in names)
    told = [f"In the median round, a fair share is {_times(gain)} times as "
            "fast as by default."]
    if gain > MATTERS:
        told += ["By default, a thread that has finished keeps asking whether "
                 "the slowest has, and takes the core on which the slowest "
                 "would finish. An iteration of one copy takes "
                 f"{own_ms} ms with a fair share, and {default_ms} ms by "
                 "default."]
    if default.max() > 1.5 * default.min():
        told += ["By default the rate is a matter of luck: it was "
                 f"{_span(default)} iterations/s."]
    elif len(default) > 1:
        told += [f"By default all {len(default)} rounds gave about the same: "
                 f"{_span(default)} iterations/s."]
    there = [f"{times(other.found)} times on {other.name}"
             for other in compared.others
             if other.found.variants == compared.variants]
    told += [f"In an earlier run: {'; '.join(there)}."] if there else []
    return "\n".join(told)


def crowds(compared, full: str, lone: str, kmeans) -> str:
    """What a crowd keeps of the rate in this comparison, and what it cost the
    copies of K-means."""
    gain = compared.between(full, lone)
    cost = f"K-means was slower by a factor of {times(kmeans)}"
    if not np.isfinite(gain.high):
        return f"By default, {cost}."
    return (f"The crowd keeps {gain.low:.2f} to {gain.high:.2f} of the rate "
            f"here; {cost}.")


def asking(compared) -> str:
    """Whether it is the asking that costs: threads that sleep, beside those
    that ask."""
    gains = _gains(compared, *compared.variants)
    found = (f"Threads that sleep are {_span(gains, _times)} times as fast as "
             "those that ask")
    if min(gains) > MATTERS:
        found += ": it is the asking that costs, not their number"
    return f"{found}."


def _cpus_busy(compared):
    """The CPUs that each variant kept busy, in the median."""
    groups = compared.records.groupby("variant", sort=False)
    return {name: own["metrics.cpus_busy"].median() for name, own in groups}


def busy(compared) -> str:
    """How many CPUs each variant of a comparison kept busy."""
    middle = _cpus_busy(compared)
    order = [compared.baseline, *compared.variants]
    told = "; ".join(f"{name}: {middle[name]:.2f}" for name in order)
    return f"CPUs kept busy, in the median. {told}."


def unread(compared, n: int) -> str:
    """What the busy CPUs tell of OMP_NUM_THREADS=n, where the rate shows no
    gain."""
    middle = _cpus_busy(compared)
    base, own = middle[compared.baseline], middle["OMP_NUM_THREADS"]
    found = f"OMP_NUM_THREADS={n}: no gain is shown"
    if own < MATTERS * base:
        return (f"{found}, and no more CPUs are busy, {own:.2f} (with 1: "
                f"{base:.2f}): nothing in this TensorFlow reads it, and no "
                "error told you.")
    return (f"{found}, but {own:.2f} CPUs are busy in place of {base:.2f}: "
            "something reads it.")


def together(compared, n: int) -> str:
    """What n inter-op threads bring beside n intra-op threads."""
    gain = compared.between(f"{n} x {n}", f"1 x {n}")
    if not np.isfinite(gain.high):
        return compared.sentence(f"{n} x {n}", f"1 x {n}")
    reach = (f"{_times(gain.middle)} times their rate ({gain.low:.2f} to "
             f"{gain.high:.2f})")
    both = f"Both pools with {n} threads, which is the default,"
    if gain.low > 1 and gain.middle - 1 > compared.noise:
        return f"{both} bring more than intra-op threads alone: {reach}."
    if gain.high < 1 and 1 / gain.middle - 1 > compared.noise:
        return f"{both} bring less than intra-op threads alone: {reach}."
    return (f"{both} are not shown to differ from intra-op threads alone: "
            f"{reach}.")


def account(frame, alone) -> str:
    """Say whose threads there are in a rank of this job, and how its rate
    compares with that of one process alone."""
    job = frame.iloc[0]
    each = job["metrics.shares"][0]["threads"]
    pool = job["metrics.threads"]
    more = each["Eigen"] - 2 * pool
    one = alone.rate.iloc[0]
    harm = ("no loss like that of K-means shows" if job["rate"] > 0.9 * one
            else "this crowd seems to cost part of the rate")
    return (f"Each rank has {sum(each.values())} threads: Python's first, "
            f"{each['other']} that NumPy, MPI and imports have started, "
            f"TensorFlow's {pool} intra-op and {pool} inter-op threads, and "
            f"{more} more of TensorFlow.\n"
            f"Together the ranks reach {rounded(job['rate'])} images/s, and "
            f"one process alone reached {rounded(one)}, in one run each: "
            f"{harm}.")


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
    intra, inter, nothing = (
        _times(compared.ratio(name).middle)
        for name in (f"1 x {most}", f"{most} x 1", "OMP_NUM_THREADS"))
    figure, axes = plt.subplots(figsize=(6, 3.4))
    marks = [str(n) for n in counts]
    draw.heat(figure, axes, rates, marks, marks, "times the rate of 1 x 1")
    for frame in list(axes.patches):
        frame.remove()  # no cell is the winner: neighbours may be equal
    corner = len(counts) - 1
    dark = rates[-1, -1] - 1 > 0.6 * (np.nanmax(rates) - 1)
    axes.text(corner, corner + 0.25, "default", ha="center", va="center",
              fontsize=9, color="white" if dark else "black")
    axes.text(0, 0.28, f"OMP_NUM_THREADS={most}\nalone: {nothing}",
              ha="center", va="center", fontsize=8)
    axes.set(xlabel="intra-op threads (count)",
             ylabel="inter-op threads (count)")
    if guess is not None:
        look.guess_star(axes, -0.3, corner + 0.3,
                        f"{guess:g} times, with inter-op {most}")
    title = (f"{most} threads in place of 1 bring {intra} times the rate as "
             f"intra-op threads, and {inter} times as inter-op threads; "
             f"OMP_NUM_THREADS={most} brings {nothing}.")
    if np.isfinite(compared.noise):
        noise = percent(compared.noise)
        title += f" Two identical jobs could differ by {noise}."
    values = " ".join(
        f"inter-op {counts[row]}, intra-op {counts[column]}: "
        f"{rounded(rate)} times." for (row, column), rate
        in np.ndenumerate(rates))
    return look.finish(figure, title, values=values, legend=1)
