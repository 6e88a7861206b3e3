"""The figures of 02_threads: which rank runs where, and which setting brings
more CPUs to work."""

from textwrap import fill

import matplotlib.pyplot as plt

from scaleout.plots import look
from scaleout.plots import primitives as draw
from scaleout.words import count

SHADES = (look.DARK, look.MIDDLE, look.LIGHT, "#e6c229")


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
            text += f", {across} of them in both memories"
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
        look.guess_star(first, guess, 1, f"{guess:g}")
    return look.finish(figure, " ".join(moved), legend=3)


def _more(names) -> str:
    """Which settings brought more CPUs to work, in all of their runs."""
    if not names:
        return "no setting was shown to bring more CPUs to work"
    return f"more CPUs work with {' or '.join(names)}"
