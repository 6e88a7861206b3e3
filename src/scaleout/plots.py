"""Pictures: one function a figure, axes with units, the ideal line dashed, single runs as points, readable in grey."""

from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from itertools import groupby
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from .points import sort_key
from .rates import rounded

if TYPE_CHECKING:
    import pandas as pd
    from IPython.display import SVG

    from .launch import Run
    from .machine import Cache, Core, Machine
    from .scaling import AlphaBeta

__all__ = [
    "against_peak",
    "allreduce_time",
    "bytes_sent",
    "dot_errors",
    "heat_map",
    "hwloc_picture",
    "layouts",
    "limits",
    "machine_picture",
    "memory_bars",
    "message_time",
    "mpi_libraries",
    "number_formats",
    "palettes",
    "primitive_shares",
    "quality",
    "quantised",
    "rate_bars",
    "reorders",
    "seconds_bars",
    "servers_or_ring",
    "shares",
    "speed_up",
    "stale_losses",
    "straggler_timeline",
    "strong_and_weak",
    "who_holds",
]

# From dark to light, so that the order survives without colour.
DARK, MIDDLE, LIGHT, PALE = "#1b4965", "#c1666b", "#7fb7be", "#e8e4d8"
NOT_ALLOWED = {"facecolor": "white", "edgecolor": "#8a8a8a", "hatch": "////"}
LOOK: dict[str, Any] = {
    "figure.figsize": (7, 4),
    "figure.dpi": 100,
    "figure.facecolor": "white",  # opaque: a transparent figure is unreadable in a dark theme
    "figure.constrained_layout.use": True,
    "font.size": 11,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#e6e6e6",
    "axes.axisbelow": True,
    "axes.prop_cycle": mpl.cycler(color=[DARK, MIDDLE, LIGHT, "#6b705c"]),
    "legend.frameon": False,
}


def _style(draw: Callable[..., Figure]) -> Callable[..., Figure]:
    """Draws with the look that all figures share. The figure is returned, closed, so that it is shown once."""

    @wraps(draw)
    def drawn(*args: Any, **kwargs: Any) -> Figure:
        with plt.rc_context(LOOK):
            figure = draw(*args, **kwargs)
            figure.canvas.draw()  # the look ends here, so the layout is settled here
        plt.close(figure)
        return figure

    return drawn


def _guess_line(axes: Axes, value: float | None, **at: Any) -> None:
    """The reader's own guess, where there is one: a dotted line."""
    if value is not None:
        axes.axhline(value, color=MIDDLE, linestyle=":", linewidth=2, label=f"your guess: {value:g}", **at)


@_style
def limits(gflops: Sequence[float], gb_per_s: Sequence[float], guess: float | None = None) -> Figure:
    """The roofline of this machine: what it can reach at most, over how much a program computes with each byte.

    gflops, gb_per_s: single measurements of SGEMM (GFLOP/s) and of copying (GB/s); the medians draw the roof.
    After Williams, Waterman and Patterson, "Roofline", Communications of the ACM 52 (4), 2009.
    """
    peak, bandwidth = float(np.median(gflops)), float(np.median(gb_per_s))
    intensity = np.logspace(-2, 3, 300)  # operations per byte
    figure, axes = plt.subplots()
    axes.loglog(intensity, np.minimum(peak, bandwidth * intensity), color=DARK, linewidth=3)
    axes.scatter([2048 / 6] * len(gflops), gflops, s=25, color=MIDDLE, zorder=3, label="SGEMM, single runs")
    _guess_line(axes, guess)
    lowest = bandwidth * intensity[0]
    for x, name in ((1 / 12, "a + b"), (peak / bandwidth, "the corner"), (2048 / 6, "SGEMM, n = 2048")):
        axes.plot([x, x], [lowest, min(peak, bandwidth * x)], color="#888888", linestyle="--", linewidth=1)
        axes.text(x * 1.12, lowest * 1.3, name, rotation=90, va="bottom", fontsize=10, color="#444444")
    axes.text(0.011, bandwidth * 0.06, f"memory:\n{bandwidth:.0f} GB/s", va="bottom", color=DARK)
    axes.text(peak / bandwidth, peak * 1.2, f"cores: {peak:.0f} GFLOP/s", color=DARK)
    axes.set(xlabel="operations for each byte moved (FLOP/byte)", ylabel="within reach (GFLOP/s)")
    axes.set_ylim(lowest, max(peak, guess or 0) * 5)
    axes.legend(loc="upper left")
    return figure


@_style
def machine_picture(facts: "Machine", sgemm: float | None = None, copy: float | None = None) -> Figure:
    """The machine: sockets, cores with their hardware threads, caches, memory; filled is what you may use.

    facts: of machine.facts().  sgemm (GFLOP/s) and copy (GB/s): as machine.sgemm_gflops and copy_gb_per_s measure.
    """
    caches = [cache for cache in facts.caches if cache.kind != "instruction"]
    sizes = [_size([cache for cache in caches if cache.level == n]) for n in sorted({c.level for c in caches})]
    private, shared = sizes[:2], sizes[2:][-1:]
    cores = sorted(facts.layout, key=lambda core: (core.socket, core.cache_group, core.cpus))
    sockets = [
        [list(group) for _, group in groupby(socket, key=lambda core: core.cache_group)]
        for _, socket in groupby(cores, key=lambda core: core.socket)
    ]

    # Sizes in inches, from the outside in: sockets, in each the groups that share a cache, in each the cores.
    gap = 0.1
    socket_columns, socket_rows = _tiles(len(sockets), 2)
    socket_width = (7 - gap) / socket_columns - gap
    group_columns, group_rows = _tiles(max(map(len, sockets)), 4 // socket_columns)
    group_width = (socket_width - 0.15) / group_columns
    most = max(len(group) for groups in sockets for group in groups)
    columns, rows = _tiles(most, 4 // group_columns)
    detailed = group_width / columns > 0.75 and rows < 3
    if not detailed:
        columns, rows = _tiles(most, int(group_width / 0.3))
    core_width = group_width / columns
    core_height = 0.65 + 0.26 * len(private) if detailed else 0.3
    group_height = rows * core_height + 0.3 * len(shared) + gap
    socket_height = 0.35 + group_rows * group_height
    # What was measured goes into a line below the others, which stand at fixed heights above 0.
    low = 0.25 if sgemm is None and copy is None else 0.0
    height = 1.75 - low + socket_rows * (socket_height + gap)

    figure = plt.figure(figsize=(7, height), layout="none")
    axes = figure.add_axes((0, 0, 1, 1), xlim=(0, 7), ylim=(low, low + height))
    axes.set_axis_off()
    axes.text(gap, low + height - 0.25, facts.cpu, fontsize=13, fontweight="bold", va="center")
    axes.text(gap, low + height - 0.53, _summary(facts), fontsize=10.5, va="center")
    for s, groups in enumerate(sockets):
        x = gap + s % socket_columns * (socket_width + gap)
        top = low + height - 0.75 - s // socket_columns * (socket_height + gap)
        _box(axes, x, top, socket_width, socket_height, facecolor=PALE)
        axes.text(x + gap, top - 0.17, f"socket {s}", fontsize=10, va="center")
        for g, group in enumerate(groups):
            left = x + gap + g % group_columns * group_width
            up = top - 0.35 - g // group_columns * group_height
            for c, core in enumerate(group):
                corner = left + c % columns * core_width, up - c // columns * core_height
                name = f"core {cores.index(core)}" if detailed else ""
                _core(axes, core, facts.allowed, corner, core_width - 0.05, name, private if detailed else [])
            for size in shared:
                _box(axes, left, up - rows * core_height, group_width - 0.05, 0.26, size, facecolor=LIGHT)
    _memory_and_legend(axes, facts, sgemm, copy, [] if detailed else private)
    return figure



def hwloc_picture() -> "SVG | None":
    """The machine as hwloc's lstopo draws it, with all its detail; None where lstopo is not installed."""
    import shutil
    import subprocess

    from IPython.display import SVG

    program = shutil.which("lstopo-no-graphics") or shutil.which("lstopo")
    if program is None:
        return None
    command = [program, "--no-io", "--of", "svg", "-"]
    try:
        drawn = subprocess.run(command, capture_output=True, text=True, timeout=10, stdin=subprocess.DEVNULL)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return SVG(drawn.stdout) if drawn.returncode == 0 and "<svg" in drawn.stdout else None


def _tiles(count: int, widest: int) -> tuple[int, int]:
    """Columns and rows for so many tiles, at most `widest` in a row, the rows as even as they can be."""
    rows = -(-count // max(1, widest))
    return -(-count // rows), rows


def _box(axes: Axes, x: float, top: float, width: float, height: float, text: str = "", **look: Any) -> None:
    """A rectangle that hangs from (x, top), in inches; a text that does not fit into it is left out."""
    look = {"facecolor": "white", "edgecolor": "#666666", "linewidth": 0.8} | look
    axes.add_patch(Rectangle((x, top - height), width, height, **look))
    if len(text) * 0.085 < width:  # a letter of 9.5 points is about 0.085 in wide
        colour = "white" if look["facecolor"] == DARK else "black"
        at = (x + width / 2, top - height / 2)
        axes.text(*at, text, ha="center", va="center", fontsize=9.5, color=colour)


def _core(
    axes: Axes,
    core: "Core",
    allowed: Sequence[int],
    corner: tuple[float, float],
    width: float,
    name: str,
    caches: Sequence[str],
) -> None:
    """One core: its name, its hardware threads side by side, its own caches below them."""
    x, top = corner
    if name:
        _box(axes, x, top, width, 0.61 + 0.26 * len(caches))
        axes.text(x + width / 2, top - 0.13, name, fontsize=9.5, ha="center", va="center")
        top -= 0.25
    height, thread = (0.36 if name else 0.24), width / len(core.cpus)
    for place, cpu in enumerate(core.cpus):
        look = {"facecolor": DARK, "edgecolor": "white"} if cpu in allowed else NOT_ALLOWED
        _box(axes, x + place * thread, top, thread, height, f"CPU {cpu}" if cpu in allowed else "", **look)
    for place, size in enumerate(caches):
        _box(axes, x, top - height - 0.26 * place, width, 0.26, size)


def _size(caches: "Sequence[Cache]") -> str:
    """The caches of one level: "L2 1 MiB", or "L2 2/4 MiB" where the cores are unlike."""
    sizes = sorted({cache.kib for cache in caches})
    one, unit = (1024, "MiB") if sizes[0] >= 1024 else (1, "KiB")
    return f"L{caches[0].level} {'/'.join(f'{kib / one:g}' for kib in sizes)} {unit}"


def _summary(facts: "Machine") -> str:
    threads = f"{facts.hardware_threads} hardware thread{'s' * (facts.hardware_threads > 1)}"
    known = "" if facts.layout_source != "unknown" else " (what they share is unknown)"
    quota = "" if facts.cgroup_cpus is None else f", cgroup limit {facts.cgroup_cpus:g} CPUs"
    fill = f"a job fills {facts.usable_cores} of {facts.cores} allowed{quota}"
    return f"{len(facts.layout)} core{'s' * (len(facts.layout) > 1)}, {threads}{known}; {fill}"


def _memory_and_legend(
    axes: Axes, facts: "Machine", sgemm: float | None, copy: float | None, caches: Sequence[str]
) -> None:
    """The lowest inch of the picture: memory, what was measured, what the fillings mean."""
    memory = "memory of unknown size" if facts.memory_gib is None else f"memory {facts.memory_gib:.1f} GiB"
    limit = "" if facts.memory_limit_gib is None else f", limited to {facts.memory_limit_gib:.1f} GiB"
    _box(axes, 0.1, 0.98, 6.8, 0.3, memory + limit, facecolor=LIGHT)
    _box(axes, 0.1, 0.55, 0.22, 0.2, facecolor=DARK, edgecolor="white")
    axes.text(0.4, 0.45, "hardware thread you may use", fontsize=10, va="center")
    _box(axes, 2.7, 0.55, 0.22, 0.2, **NOT_ALLOWED)
    axes.text(3.0, 0.45, "not allowed", fontsize=10, va="center")
    if caches:
        axes.text(6.9, 0.45, "each core: " + ", ".join(caches), fontsize=10, va="center", ha="right")
    rates = [(sgemm, "multiplies {:.0f} GFLOP/s (SGEMM)"), (copy, "copies {:.0f} GB/s")]
    measured = ", ".join(text.format(rate) for rate, text in rates if rate is not None)
    if measured:
        axes.text(0.1, 0.17, f"measured: {measured}", fontsize=11, fontweight="bold", va="center")


@_style
def shares(records: "pd.DataFrame") -> Figure:
    """Who took which strips in 00_welcome: a bar for each rank, from its first strip to its last."""
    figure, axes = plt.subplots(figsize=(7, 2.6))
    every = [share for row in records["metrics.shares"] for share in row]
    for place, share in enumerate(every):
        width = share["last"] - share["first"]
        axes.barh(place, width, left=share["first"], color=LIGHT, edgecolor=DARK)
        text = f"{width:,} strips\npart {share['part']:.6f}"
        axes.text(share["first"] + width / 2, place, text, ha="center", va="center", fontsize=10)
    axes.set_yticks(range(len(every)), [f"rank {share['rank']}" for share in every])
    axes.set(xlabel="strip (number, counted from x = 0)", xlim=(0, max(s["last"] for s in every)))
    axes.xaxis.set_major_formatter("{x:,.0f}")
    axes.invert_yaxis()
    axes.grid(False)
    return figure


@_style
def speed_up(records: "Sequence[pd.DataFrame]", guess: float | None = None) -> Figure:
    """How many times faster than one rank: single runs as points, their median as a line, the ideal dashed.

    records: one frame a job, with `ranks` and step_median_s; `guess`: what the reader expects of 2 ranks.
    """
    rows = [(int(frame.ranks.iloc[0]), float(frame.step_median_s.iloc[0])) for frame in records]
    counts = sorted({ranks for ranks, _ in rows})
    one = np.median([seconds for ranks, seconds in rows if ranks == counts[0]])
    figure, axes = plt.subplots()
    axes.plot(counts, [n / counts[0] for n in counts], linestyle="--", color="#888888", label="ideal")
    axes.scatter([n for n, _ in rows], [one / s for _, s in rows], color=MIDDLE, zorder=3, label="single runs")
    median = [one / np.median([s for n, s in rows if n == count]) for count in counts]
    axes.plot(counts, median, color=DARK, linewidth=2.5, marker="s", label="median")
    if guess is not None:
        axes.plot([2], [guess], marker="*", markersize=16, color="black", linestyle="", label=f"your guess: {guess:g}")
    axes.set(xlabel="ranks (count)", ylabel=f"speed-up over {counts[0]} rank(s)", xticks=counts, ylim=(0, None))
    axes.legend()
    return figure


@_style
def rate_bars(
    records: "pd.DataFrame",
    by: str = "metrics.kernels",
    labels: Mapping[Any, str] | None = None,
    published: Mapping[str, float] | None = None,
    guess: float | None = None,
) -> Figure:
    """Images/s: bars are medians, points single runs; above each bar, how many times the first one it is.

    records: a row each run, with `rate` and the column `by`; its values stand in the order of arrival, or of `labels`,
    which spells them.  published: figures of somebody else's machine, drawn beside on an axis of their own.
    guess: what the reader expects of the second bar, in times the first.
    """
    ratios = [len(labels or records[by].unique()), len(published)] if published else [1]
    figure, panels = plt.subplots(1, len(ratios), width_ratios=ratios, squeeze=False, figsize=(7, 4))
    groups = {value: group.rate.tolist() for value, group in records.groupby(by, sort=False)}
    rates = {text: groups[value] for value, text in (labels or {v: str(v) for v in groups}).items() if value in groups}
    _bars(panels[0, 0], rates, [DARK, LIGHT, PALE, MIDDLE, "white"])
    panels[0, 0].set_ylabel("images/s trained")
    if guess is not None:
        first = float(np.median(next(iter(rates.values()))))
        place = {"marker": "*", "markersize": 16, "color": "black", "linestyle": "", "zorder": 4}
        panels[0, 0].plot([1], [guess * first], label=f"your guess: {guess:g}x", **place)
        panels[0, 0].set_ylim(0, max(panels[0, 0].get_ylim()[1], 1.2 * guess * first))
    panels[0, 0].legend(loc="upper left")
    if published:
        panels[0, 0].set_title("this machine", fontsize=11)
        panels[0, 1].set_title("a small cloud node, 2019", fontsize=11)
        _bars(panels[0, 1], {name: [rate] for name, rate in published.items()}, ["#bbbbbb", "#eeeeee"], points=False)
    return figure


def _bars(axes: Axes, rates: Mapping[str, Sequence[float]], fills: Sequence[str], points: bool = True) -> None:
    """A bar a name at the median of its rates, the rates as points, and the ratio to the first bar above it."""
    medians = [float(np.median(group)) for group in rates.values()]
    hatches = ["", "", "//", "..", "xx"]
    for place, (group, median) in enumerate(zip(rates.values(), medians, strict=True)):
        style = {"color": fills[place % len(fills)], "hatch": hatches[place % len(hatches)], "edgecolor": DARK}
        axes.bar(place, median, width=0.65, **style)
        name = {"label": "single runs"} if place == 0 else {}
        if points:
            spots = place + np.linspace(-0.12, 0.12, len(group)) * (len(group) > 1)
            axes.scatter(spots, group, s=28, color="white", edgecolor="black", zorder=3, **name)
        text = f"{median:,.0f}" if median >= 100 else f"{median:.2f}"
        text += f"\n{median / medians[0]:.2f}x" if place else ""
        axes.annotate(text, (place, max(group)), (0, 7), textcoords="offset points", ha="center", fontsize=10)
    axes.set_xticks(range(len(rates)), list(rates))
    axes.set_ylim(0, max(max(group) for group in rates.values()) * 1.4)
    axes.grid(axis="x", visible=False)


@_style
def primitive_shares(table: "pd.DataFrame", wall_s: float, steps: int = 1) -> Figure:
    """Where the time of a step went: a bar for each of oneDNN's primitives, and one for all that is not oneDNN.

    table: of onednn.shares.  wall_s: seconds that the same `steps` took by the clock. With more than
    one inter-op thread primitives run side by side and their times can add up to more than the clock's: then what is
    not oneDNN cannot be told, and is not drawn.
    """
    names = [f"{row.primitive} {row.prop_kind.replace('_', ' ')}".strip() for row in table.itertuples()]
    times = [ms / steps for ms in table.time_ms]
    few = [(name, ms) for name, ms in zip(names, times, strict=True) if ms >= 0.01 * sum(times)]
    other = sum(times) - sum(ms for _, ms in few)
    rest = 1000 * wall_s / steps - sum(times)
    bars = [*few, *([("other primitives", other)] if other else []), *([("not in oneDNN", rest)] if rest > 0 else [])]
    figure, axes = plt.subplots(figsize=(7, 0.5 * len(bars) + 1.2))
    whole = sum(ms for _, ms in bars)
    for place, (name, ms) in enumerate(bars):
        outside = name == "not in oneDNN"
        axes.barh(place, ms, color=PALE if outside else DARK, edgecolor=DARK, hatch="//" if outside else "")
        text = f"{ms:,.{0 if ms >= 10 else 2}f} ms, {100 * ms / whole:.0f} %"
        axes.annotate(text, (ms, place), (6, 0), textcoords="offset points", va="center", fontsize=10)
    axes.set_yticks(range(len(bars)), [name for name, _ in bars])
    overlap = "" if rest > 0 else f", overlapping: {sum(times) * steps / 1000 / wall_s:.2f} x the step"
    axes.set(xlabel=f"time a step (ms){overlap}", xlim=(0, 1.4 * max(ms for _, ms in bars)))
    axes.invert_yaxis()
    axes.grid(axis="y", visible=False)
    return figure


@_style
def reorders(table: "pd.DataFrame", steps: int = 1) -> Figure:
    """What changes of layout cost: a bar for each, from and to; hatched where images, not weights, had to move.

    table: of onednn.reorders.
    """
    figure, axes = plt.subplots(figsize=(7, 0.4 * max(1, len(table)) + 1.3))
    for place, row in enumerate(table.itertuples(index=False)):
        moved, start, end, calls, ms = row[:5]
        images = moved == "images"
        axes.barh(place, ms / steps, color=MIDDLE if images else LIGHT, edgecolor=DARK, hatch="//" if images else "")
        text = f"{calls / steps:.0f} x"
        axes.annotate(text, (ms / steps, place), (6, 0), textcoords="offset points", va="center", fontsize=10)
    names = [f"{row[0]}: {row[1]} to {row[2]}" for row in table.itertuples(index=False)]
    axes.set_yticks(range(len(names)), names, fontsize=10)
    whole = 100 * table.share.sum()
    axes.set(xlabel=f"time a step (ms); all together {whole:.1f} % of oneDNN's time")
    axes.margins(x=0.15)
    axes.invert_yaxis()
    axes.grid(axis="y", visible=False)
    return figure


@_style
def layouts(pixels: int = 4, channels: int = 8, block: int = 4) -> Figure:
    """The same image three times, as it lies in memory: numbers are pixels, lightness is the channel.

    channels must be a multiple of `block`; oneDNN's own blocks have 8 or 16 channels.
    """
    pixel, channel = np.meshgrid(np.arange(pixels), np.arange(channels), indexing="ij")
    orders = {
        "NHWC: all channels of a pixel": np.argsort((pixel * channels + channel).ravel()),
        "NCHW: all pixels of a channel": np.argsort((channel * pixels + pixel).ravel()),
        f"nChw{block}c: blocks of {block} channels": np.argsort(
            ((channel // block * pixels + pixel) * block + channel % block).ravel()
        ),
    }
    figure, axes = plt.subplots(figsize=(7, 3.2))
    shades = mpl.colormaps["Blues"](np.linspace(0.05, 0.85, channels))
    for row, order in enumerate(orders.values()):
        for address, cell in enumerate(order):
            p, c = pixel.ravel()[cell], channel.ravel()[cell]
            axes.add_patch(plt.Rectangle((address, -row), 1, 0.6, facecolor=shades[c], edgecolor="white"))
            ink = "white" if c > channels / 2 else "black"
            axes.text(address + 0.5, 0.3 - row, p, ha="center", va="center", fontsize=9, color=ink)
        axes.text(0, 0.68 - row, list(orders)[row], fontsize=10)
    for c, name in ((0, "first channel"), (channels - 1, "last channel")):
        axes.add_patch(plt.Rectangle((0, 0), 0, 0, facecolor=shades[c], edgecolor=DARK, label=name))
    axes.set(xlim=(-0.2, pixels * channels + 0.2), ylim=(-2.15, 1.3), yticks=[], xlabel="address in memory (numbers)")
    axes.legend(loc="upper right", ncols=2, borderaxespad=0)
    axes.spines["left"].set_visible(False)
    axes.grid(False)
    return figure


@_style
def number_formats(table: "pd.DataFrame") -> Figure:
    """The positive numbers that each format can hold, on a logarithmic axis; light where digits get lost.

    table: of onednn.formats.
    """
    figure, axes = plt.subplots(figsize=(7, 3.2))
    for place, row in enumerate(table.itertuples()):
        low, normal, high = (np.log10(v) for v in (row.smallest, row.smallest_normal, row.largest))
        names = ("full precision", "fewer digits") if place == 0 else ("", "")
        axes.barh(place, high - normal, 0.5, left=normal, color=DARK, label=names[0])
        if normal > low:
            axes.barh(place, normal - low, 0.5, left=low, color=PALE, edgecolor=DARK, hatch="//", label=names[1])
        gap = f"gap above 1: {row.epsilon:.2g}"
        axes.text(max(high, 2.2) + 1, place, gap, va="center", fontsize=10)
    axes.set_yticks(range(len(table)), [f"{name} ({bits} bits)" for name, bits in table.bits.items()])
    axes.set_xticks(range(-40, 41, 20), [f"$10^{{{power}}}$" for power in range(-40, 41, 20)])
    axes.set(xlabel="numbers that can be held", xlim=(-47, 75))
    axes.axvline(0, color="#888888", linestyle="--", linewidth=1)
    axes.invert_yaxis()
    axes.grid(axis="y", visible=False)
    axes.legend(loc="upper center", bbox_to_anchor=(0.42, 1.18), ncols=2)
    return figure


@_style
def dot_errors(errors: "pd.DataFrame") -> Figure:
    """The relative error of a dot product over its length: medians as lines, single products as points.

    errors: of onednn.dot_errors.
    """
    figure, axes = plt.subplots()
    lines = [("-", "o"), ("--", "s"), ("-.", "^"), (":", "v"), ("-", "x")]
    colors = [DARK, MIDDLE, LIGHT, "#6b705c", "black"]
    for (how, group), (line, marker), color in zip(errors.groupby("how"), lines, colors, strict=False):
        axes.scatter(group.length, group.error, s=6, color=color, alpha=0.25, marker=marker)
        median = group.groupby("length").error.median()
        axes.plot(median.index, median, linestyle=line, marker=marker, color=color, label=how)
    axes.set(xscale="log", yscale="log", xlabel="length of the two vectors (numbers)")
    axes.set_ylabel("relative error of their dot product")
    axes.set_xticks(sorted(errors.length.unique()), [str(n) for n in sorted(errors.length.unique())])
    axes.minorticks_off()
    axes.legend(fontsize=9, loc="upper left", bbox_to_anchor=(1, 1))
    return figure


@_style
def against_peak(records: "pd.DataFrame", sgemm_gflops: float, labels: Mapping[str, str] | None = None) -> Figure:
    """How much of the machine's own SGEMM rate (dashed) training reaches, by counted operations; single runs as points.

    records: a row each run, with `rate` in images/s, `metrics.flops_per_image` and `metrics.kernels`.
    """
    gflops = records.rate * records["metrics.flops_per_image"] / 1e9
    groups = {name: group.tolist() for name, group in gflops.groupby(records["metrics.kernels"], sort=False)}
    figure, axes = plt.subplots(figsize=(7, 3.4))
    for place, group in enumerate(groups.values()):
        fill, hatch = [(DARK, ""), (LIGHT, ""), (PALE, "//")][place % 3]
        median = float(np.median(group))
        axes.barh(place, median, 0.6, color=fill, edgecolor=DARK, hatch=hatch)
        axes.scatter(group, [place] * len(group), s=28, color="white", edgecolor="black", zorder=3)
        text = f"{median:.0f} GFLOP/s, {median / sgemm_gflops:.2f} of SGEMM"
        paper = {"facecolor": "white", "edgecolor": "none", "pad": 1}  # the dashed line passes behind the words
        at = {"textcoords": "offset points", "va": "center", "fontsize": 10, "bbox": paper}
        axes.annotate(text, (max(group), place), (8, 0), **at)
    axes.axvline(sgemm_gflops, color="#555555", linestyle="--", label=f"SGEMM in fp32: {sgemm_gflops:.0f} GFLOP/s")
    axes.set_yticks(range(len(groups)), [(labels or {}).get(name, name) for name in groups])
    axes.set(xlabel="operations a second (GFLOP/s)", xlim=(0, 1.7 * max(sgemm_gflops, gflops.max())))
    axes.invert_yaxis()
    axes.grid(axis="y", visible=False)
    axes.legend(loc="upper right", bbox_to_anchor=(1, 1.15), borderaxespad=0)
    return figure


@_style
def quantised(before: np.ndarray, runs: "Sequence[Run]") -> Figure:
    """The photograph beside its copies in few colours; below each copy its palette, as wide as the colour is common.

    before: (h, w, 3) in [0, 1].  runs: jobs of 04_kmeans, whose folders hold quantised.png.
    """
    count = 1 + len(runs)
    columns = min(count, 2)
    rows = -(-count // columns)
    height = 7 / columns * before.shape[0] / before.shape[1]
    figure, grid = plt.subplots(2 * rows, columns, squeeze=False, dpi=64, height_ratios=[10, 1] * rows,
                                figsize=(7, rows * (height * 1.1 + 0.45)))  # fmt: skip
    for axes in grid.flat:
        axes.set_axis_off()
    grid[0, 0].imshow(before)
    grid[0, 0].set_title("before", fontsize=11)
    for place, run in enumerate(runs, 1):
        metrics = run.records["metrics"].iloc[0]
        picture, below = grid[2 * (place // columns) : 2 * (place // columns) + 2, place % columns]
        picture.imshow(plt.imread(run.folder / "quantised.png"))
        picture.set_title(f"{metrics['colours']} colours, PSNR {metrics['psnr_db']:.1f} dB", fontsize=11)
        _swatches(below, 0, metrics["shares"][0]["palette"], metrics["count"])
    return figure


def _swatches(axes: Axes, y: float, palette: Sequence[Sequence[float]], weights: Sequence[float]) -> None:
    """A palette as one bar from 0 to 1, from dark to light, each colour as wide as its weight."""
    left, line = 0.0, 0.4 if len(palette) <= 32 else 0.0
    for colour, weight in sorted(zip(palette, weights, strict=True), key=lambda pair: sum(pair[0])):
        width = weight / sum(weights)
        axes.barh(y, width, left=left, height=0.8, color=np.clip(colour, 0, 1), edgecolor="white", linewidth=line)
        left += width
    axes.set_xlim(0, 1)


@_style
def palettes(named: Mapping[str, Sequence[Sequence[float]]]) -> Figure:
    """Palettes side by side, from dark to light: equal bars are equal palettes. named: (k, 3) in [0, 1] for each."""
    figure, axes = plt.subplots(figsize=(7, 0.5 + 0.5 * len(named)))
    for y, palette in enumerate(named.values()):
        _swatches(axes, y, palette, [1] * len(palette))
    axes.set_yticks(range(len(named)), list(named))
    axes.set_xticks([])
    axes.invert_yaxis()
    axes.grid(False)
    axes.spines[:].set_visible(False)
    return figure


@_style
def quality(records: "Sequence[pd.DataFrame]") -> Figure:
    """What more colours buy: inertia and PSNR over the number of colours, a point each job.

    records: one frame a job of 04_kmeans. PSNR is 10 log10(1 / mean squared error) for values in [0, 1].
    """
    jobs = sorted((frame["metrics"].iloc[0] for frame in records), key=lambda job: job["colours"])
    colours, inertia, psnr_db = ([job[name] for job in jobs] for name in ("colours", "inertia", "psnr_db"))
    figure, (left, right) = plt.subplots(1, 2, figsize=(7, 3.5))
    for axes, values, marker, fill in ((left, inertia, "s", DARK), (right, psnr_db, "o", MIDDLE)):
        axes.plot(colours, values, marker=marker, color=fill, linewidth=2)
        axes.set_xscale("log", base=2)
        axes.set_xticks(colours, [str(k) for k in colours])
        axes.set_xlabel("colours (count)")
    left.set(ylabel="inertia (sum of squared distances)", yscale="log")
    right.set(ylabel="PSNR (dB)")
    return figure


@_style
def seconds_bars(
    seconds: Mapping[str, Sequence[float]],
    ylabel: str = "seconds for one fit",
    published: Mapping[str, float] | None = None,
    guess: float | None = None,
) -> Figure:
    """Seconds: bars are medians, points single runs; above each bar, how many times the first one it is.

    published: figures of somebody else's machine, beside, on an axis of their own.  guess: how many times faster than
    the first bar the reader expects the second to be.
    """
    ratios = [len(seconds), len(published)] if published else [1]
    figure, panels = plt.subplots(1, len(ratios), width_ratios=ratios, squeeze=False)
    _bars(panels[0, 0], seconds, [DARK, LIGHT, PALE, MIDDLE, "white"])
    panels[0, 0].set_ylabel(ylabel)
    if guess:
        expected = float(np.median(next(iter(seconds.values())))) / guess
        star = {"marker": "*", "markersize": 16, "color": "black", "linestyle": "", "zorder": 4}
        panels[0, 0].plot([1], [expected], label=f"your guess: {guess:g} times faster", **star)
    panels[0, 0].legend(loc="upper right")
    if published:
        panels[0, 0].set_title("this machine", fontsize=11)
        panels[0, 1].set_title("published, 2019", fontsize=11)
        _bars(panels[0, 1], {name: [value] for name, value in published.items()}, ["#bbbbbb", "#eeeeee"], points=False)
    return figure


@_style
def strong_and_weak(strong: "Sequence[pd.DataFrame]", weak: "Sequence[pd.DataFrame]") -> Figure:
    """Left, the same rows on more ranks: speed-up. Right, the same rows on each rank: efficiency. The ideal is dashed.

    strong, weak: one frame a job, with `ranks`, step_median_s and `cores`; beyond the cores (dotted) ranks take turns.
    """
    figure, panels = plt.subplots(1, 2)
    names = (("speed-up", "all rows shared out"), ("efficiency", "as many rows on each rank"))
    for axes, frames, (what, how) in zip(panels, (strong, weak), names, strict=True):
        rows = [(int(f.ranks.iloc[0]), float(f.step_median_s.iloc[0])) for f in frames]
        counts = sorted({ranks for ranks, _ in rows})
        one = float(np.median([seconds for ranks, seconds in rows if ranks == counts[0]]))
        ideal = [n / counts[0] for n in counts] if what == "speed-up" else [1] * len(counts)
        axes.plot(counts, ideal, linestyle="--", color="#888888", label="ideal")
        axes.scatter([n for n, _ in rows], [one / s for _, s in rows], color=MIDDLE, zorder=3, label="single runs")
        median = [one / float(np.median([s for n, s in rows if n == count])) for count in counts]
        axes.plot(counts, median, color=DARK, linewidth=2.5, marker="s", label="median")
        cores = int(frames[0].cores.iloc[0])
        if counts[0] < cores <= counts[-1]:
            axes.axvline(cores, color="#888888", linestyle=":", label=f"cores: {cores}")
        axes.set_title(how, fontsize=11)
        axes.set(xlabel="ranks (count)", ylabel=f"{what} over {counts[0]} rank", xticks=counts, ylim=(0, None))
    panels[0].legend(fontsize=10)
    return figure


@_style
def memory_bars(records: "Mapping[str, pd.DataFrame]", data_mib: float) -> Figure:
    """Peak memory of each rank, in MiB: a bar a rank, in groups by job; the lower part is the program without rows.

    records: one frame a job of modes.py.  data_mib: that of all rows, drawn as the dashed line above the program.
    """
    figure, axes = plt.subplots()
    ticks, at = [], 0.0
    for frame in records.values():
        peak, program = np.array(frame["metrics.memory_mib"].iloc[0]), np.array(frame["metrics.program_mib"].iloc[0])
        spots = at + np.arange(len(peak))
        first = not ticks
        axes.bar(spots, program, width=0.9, color=PALE, edgecolor=DARK, label="Python, libraries" if first else "")
        axes.bar(spots, peak - program, width=0.9, bottom=program, color=LIGHT, edgecolor=DARK, hatch="//",
                 label="rows and work" if first else "")  # fmt: skip
        for spot, mib in zip(spots, peak, strict=True):
            axes.annotate(f"{mib:.0f}", (spot, mib), (0, 4), textcoords="offset points", ha="center", fontsize=10,
                          bbox={"facecolor": "white", "edgecolor": "none", "pad": 1})  # fmt: skip
        ticks.append(float(spots.mean()))
        at += len(peak) + 0.7
    whole = float(np.median(program)) + data_mib
    top = max(whole, *(max(frame["metrics.memory_mib"].iloc[0]) for frame in records.values()))
    axes.axhline(whole, color="black", linestyle="--", label=f"all rows: {data_mib:.0f} MiB")
    axes.set_xticks(ticks, list(records))
    axes.set(ylabel="peak memory of each rank (MiB)", ylim=(0, 1.45 * top))
    axes.grid(axis="x", visible=False)
    axes.legend(loc="upper right")
    return figure


RANKS = (DARK, LIGHT, MIDDLE, "#c9b458", "#8a8a8a", "#5b8c5a", "#d9a5b3", "#3d3d3d")  # of the ranks 0, 1, 2 ...
WAYS = {
    "gather-broadcast": (MIDDLE, "o", "gather and broadcast"),
    "tree": ("#a98600", "^", "binary tree"),
    "ring": (DARK, "s", "ring"),
    "mpi": ("#8a8a8a", "D", "MPI's own"),
}


@_style
def who_holds(held: Sequence[Sequence[tuple[str, Any, Any]]]) -> Figure:
    """Who holds what before and after each collective call, drawn from what the ranks really held.

    held: for each rank a list of (title, before, after), the last two an integer array or None. The piece that rank r
    brought as its element j is the number 2**(8 r + j), so that a sum tells what is in it. At most 8 ranks, 8 pieces.
    """
    calls, ranks = len(held[0]), len(held)
    rows = -(-calls // 2)
    figure, grid = plt.subplots(rows, 2, figsize=(7.4, (0.42 * ranks + 0.55) * rows), squeeze=False)
    for axes, call in zip(grid.flat, range(calls), strict=False):
        axes.set_title(held[0][call][0], fontsize=10, loc="left")
        for column, left in ((1, 0.0), (2, ranks + 1.4)):
            for rank, values in enumerate(mine[call][column] for mine in held):
                for place, value in enumerate(np.atleast_1d(values) if values is not None else []):
                    _pieces(axes, left + place, rank, int(value))
                if values is None:
                    axes.text(left, rank + 0.5, "nothing", fontsize=8, color="#8a8a8a", va="center")
        arrow = {"arrowstyle": "-|>", "color": "#444444", "linewidth": 1.5}
        axes.annotate("", (ranks + 1.1, ranks / 2), (ranks + 0.3, ranks / 2), arrowprops=arrow)
        axes.set(xlim=(-0.1, 2 * ranks + 1.5), ylim=(ranks + 0.05, -0.05))
        axes.set_yticks([rank + 0.5 for rank in range(ranks)], [f"rank {rank}" for rank in range(ranks)], fontsize=8)
        axes.tick_params(length=0)
        axes.set_xticks([])
        axes.spines[:].set_visible(False)
        axes.grid(False)
    for axes in grid.flat[calls:]:
        axes.axis("off")
    return figure


def _pieces(axes: Axes, x: float, y: float, value: int) -> None:
    """One element: a box, in stripes of the colours of all ranks whose pieces are in it."""
    bits = [bit for bit in range(value.bit_length()) if value >> bit & 1]
    for number, bit in enumerate(bits):
        colour, height = RANKS[bit // 8], 0.84 / len(bits)
        top = y + 0.08 + number * height
        axes.add_patch(Rectangle((x, top), 0.94, height, color=colour, linewidth=0))
        name, size = f"{'abcdefgh'[bit // 8]}{bit % 8}", 9 if len(bits) == 1 else 7
        white = "white" if colour in (DARK, MIDDLE) else "black"
        axes.text(x + 0.47, top + height / 2, name, fontsize=size, ha="center", va="center_baseline", color=white)
    axes.add_patch(Rectangle((x, y + 0.08), 0.94, 0.84, fill=False, edgecolor="#444444", linewidth=0.8))


@_style
def message_time(n: Sequence[float], seconds: "Sequence[Sequence[float]]", fit: "AlphaBeta") -> Figure:
    """The time of one message over its size, both logarithmic: single measurements, their median, the fitted line.

    n: bytes of each message.  seconds: the measurements of each.  fit: from scaling.fit_alpha_beta.
    """
    figure, axes = plt.subplots()
    for x, row in zip(n, seconds, strict=True):
        label = "single messages" if x == n[0] else None
        axes.plot([x] * len(row), 1e6 * np.asarray(row), ".", color=LIGHT, markersize=4, label=label)
    axes.plot(n, [1e6 * np.median(row) for row in seconds], "s", color=DARK, markersize=6, label="median")
    x = np.geomspace(min(n), max(n), 200)
    axes.plot(x, 1e6 * fit.seconds(x), color=MIDDLE, linewidth=2, label="alpha + beta n, fitted")
    axes.axhline(1e6 * fit.alpha_s, color="#8a8a8a", linestyle="--", linewidth=1)
    alpha_us, corner = 1e6 * fit.alpha_s, fit.alpha_s / fit.beta_s
    axes.text(max(n), alpha_us, f"alpha: {alpha_us:.2g} us", va="bottom", ha="right", color="#444444")
    axes.plot([corner, corner], [alpha_us / 3, 2 * alpha_us], color="#8a8a8a", linestyle=":", linewidth=1.5)
    half = f" {corner:,.0f} bytes:\n half waiting, half moving"
    axes.text(corner, alpha_us / 3, half, fontsize=9, va="bottom", color="#444444")
    axes.set(xscale="log", yscale="log", xlabel="size of the message (bytes)", ylabel="time, one way (us)")
    axes.legend(loc="upper left")
    return figure


@_style
def allreduce_time(records: "pd.DataFrame", expected: Mapping[str, Callable[[float], float]] | None = None) -> Figure:
    """The time of an allreduce over the size of the array, both logarithmic: a line a way, through its medians.

    records: of 03_spmd's runme.py, one number of ranks.  expected: {way: seconds for n bytes}, drawn dashed.
    """
    figure, axes = plt.subplots()
    for way, rows in records.groupby("variant", sort=False):
        colour, marker, name = WAYS[way]
        x = rows["metrics.bytes"].to_numpy()
        for size, times in zip(x, rows.step_s, strict=True):
            axes.plot([size] * len(times), 1e6 * np.asarray(times), ".", color=colour, markersize=2, alpha=0.5)
        axes.plot(x, 1e6 * rows.step_median_s, color=colour, marker=marker, markersize=6, label=name)
        if expected and way in expected:
            axes.plot(x, [1e6 * expected[way](size) for size in x], color=colour, linestyle="--", linewidth=1.2)
    if expected:
        axes.plot([], [], color="#444444", linestyle="--", linewidth=1.2, label="by alpha and beta")
    ranks = int(records.ranks.iloc[0])
    axes.set(xscale="log", yscale="log", xlabel="size of the array (bytes)", ylabel=f"time on {ranks} ranks (us)")
    axes.legend(loc="upper left", fontsize=9)
    return figure


@_style
def bytes_sent(records: "Sequence[pd.DataFrame]", guess: float | None = None) -> Figure:
    """What the busiest rank sends, in arrays, over the ranks: counted by the program (marks), by the formula (dashed).

    records: of 03_spmd's runme.py, a frame a number of ranks.  guess: the reader's, of the ring on most ranks.
    """
    figure, axes = plt.subplots()
    most = max(int(frame.ranks.iloc[0]) for frame in records)
    p = np.arange(1, most + 1)
    formula = {"gather-broadcast": p - 1, "tree": np.ceil(np.log2(p)), "ring": 2 * (p - 1) / p}
    for way, arrays in formula.items():
        colour, marker, name = WAYS[way]
        axes.plot(p, arrays, color=colour, linestyle="--", linewidth=1.2)
        rows = [frame[frame.variant == way].iloc[-1] for frame in records]
        counted = [max(row["metrics.sent_bytes"]) / row["metrics.bytes"] for row in rows]
        axes.plot([row.ranks for row in rows], counted, marker, color=colour, markersize=8, label=f"{name}, counted")
    axes.plot([], [], color="#444444", linestyle="--", linewidth=1.2, label="by the formula")
    if guess is not None:
        axes.plot([most], [guess], "*", color="black", markersize=15, label=f"your guess for the ring: {guess:g}")
    axes.set(xlabel="ranks (count)", ylabel="sent by the busiest rank (arrays)", xticks=p)
    axes.legend(loc="upper left")
    return figure


@_style
def servers_or_ring(records: "Sequence[pd.DataFrame]", cores: int) -> Figure:
    """Parameter servers and the ring as the ranks grow: bytes that the busiest rank sends, and the time of an update.

    records: of 03_spmd's servers.py, a frame a job.  cores: where ranks begin to share them, shaded.
    """
    figure, (left, right) = plt.subplots(1, 2, figsize=(8, 4))
    every = [row for frame in records for _, row in frame.iterrows()]
    looks = {1: (MIDDLE, "o", "1 server"), 2: ("#a98600", "^", "2 servers"), 99: (LIGHT, "D", "a server on every rank"),
             0: (DARK, "s", "ring")}  # fmt: skip
    for servers, (colour, marker, name) in looks.items():
        rows = [row for row in every if row["metrics.servers"] == (row.ranks if servers == 99 else servers)]
        counts = sorted({row.ranks for row in rows})
        look = {"color": colour, "marker": marker, "markersize": 9 if servers == 99 else 6, "label": name}
        sent = {row.ranks: max(row["metrics.sent_bytes"]) / 2**20 for row in rows}
        left.plot(counts, [sent[count] for count in counts], **look)
        for row in rows:
            times = 1e3 * np.asarray(row.step_s)
            right.plot([row.ranks] * len(times), times, ".", color=colour, markersize=2, alpha=0.6)
        median = [1e3 * np.median([t for row in rows if row.ranks == count for t in row.step_s]) for count in counts]
        right.plot(counts, median, **look)
    most = max(row.ranks for row in every)
    if most > cores:
        right.axvspan(cores + 0.5, most + 0.3, color=PALE, zorder=0)
        place = {"transform": right.get_xaxis_transform(), "ha": "right", "fontsize": 9, "color": "#444444"}
        right.text(most, 0.02, "ranks share cores", **place)
    ticks = sorted({row.ranks for row in every})
    left.set(xlabel="ranks (count)", ylabel="sent by the busiest rank (MiB)", xticks=ticks, ylim=(0, None))
    right.set(xlabel="ranks (count)", ylabel="time of an update (ms)", xticks=ticks, ylim=(0, None))
    left.legend(fontsize=9)
    return figure


@_style
def straggler_timeline(records: "Mapping[str, pd.DataFrame]", until_s: float = 0.12) -> Figure:
    """What each worker did in the first moments of 03_spmd's straggler.py: computed (dark) or waited (hatched)."""
    figure, panels = plt.subplots(len(records), 1, figsize=(7, 1.1 + 1.25 * len(records)), sharex=True, squeeze=False)
    for axes, (title, frame) in zip(panels.flat, records.items(), strict=True):
        for rank, start, ready, done in frame["metrics.timeline"].iloc[0]:
            if start < until_s:
                axes.barh(rank, 1e3 * (ready - start), left=1e3 * start, height=0.7, color=DARK, edgecolor="white")
                wait = {"height": 0.7, "color": PALE, "edgecolor": "#8a8a8a", "hatch": "////", "linewidth": 0}
                axes.barh(rank, 1e3 * (done - ready), left=1e3 * ready, **wait)
        ranks = int(frame.ranks.iloc[0])
        axes.set_yticks(range(1, ranks), [f"rank {rank}" for rank in range(1, ranks)])
        axes.set(xlim=(0, 1e3 * until_s), ylim=(ranks - 0.4, 0.4))
        axes.set_title(title, fontsize=10, loc="left")
        axes.grid(False)
    panels[-1, 0].set_xlabel("time since the start (ms)")
    looks = {"color": DARK}, {"facecolor": PALE, "edgecolor": "#8a8a8a", "hatch": "////"}
    marks = [Rectangle((0, 0), 1, 1, **look) for look in looks]
    figure.legend(marks, ["computes", "waits"], loc="outside upper right", ncols=2, fontsize=9)
    return figure


@_style
def stale_losses(records: "Mapping[str, Sequence[pd.DataFrame]]") -> Figure:
    """The test loss of straggler.py over seconds and over gradients: points are single runs, lines their median.

    records: {what it was: one frame a run}; at most four, told apart by colour and dash.
    """
    figure, (left, right) = plt.subplots(1, 2, figsize=(8, 4), sharey=True)
    looks = ((DARK, "-"), (MIDDLE, "--"), ("#a98600", ":"), ("#8a8a8a", "-."))
    for (name, frames), (colour, dash) in zip(records.items(), looks, strict=False):
        # Each (points, 3): seconds, gradients, loss.
        curves = [np.array(frame["metrics.curve"].iloc[0]) for frame in frames]
        for axes, column in ((left, 0), (right, 1)):
            for curve in curves:
                axes.plot(curve[::2, column], curve[::2, 2], ".", color=colour, markersize=2, antialiased=False)
            x = np.linspace(0, min(curve[-1, column] for curve in curves), 60)
            middle = np.median([np.interp(x, curve[:, column], curve[:, 2]) for curve in curves], axis=0)
            axes.plot(x, middle, color=colour, linestyle=dash, linewidth=2.5, label=name)
    left.set(xlabel="time (s)", ylabel="loss on the test images", yscale="log")
    right.set(xlabel="gradients used (count)")
    right.legend(fontsize=9)
    return figure


@_style
def mpi_libraries(records: "Mapping[str, pd.DataFrame]", published: float | None = None) -> Figure:
    """MPI's own allreduce in each library: its time over the size, and Open MPI's time in Intel MPI's, where both are.

    records: {library: frame of 03_spmd's runme.py}.  published: that ratio as somebody measured it elsewhere, dotted.
    """
    both = {"Intel MPI", "Open MPI"} <= set(records)
    figure, panels = plt.subplots(1, 1 + both, figsize=(8 if both else 7, 4), squeeze=False)
    axes = panels[0, 0]
    for (name, frame), colour, marker in zip(records.items(), (DARK, LIGHT, MIDDLE), "sDo", strict=False):
        for size, times in zip(frame["metrics.bytes"], frame.step_s, strict=True):
            axes.plot([size] * len(times), 1e6 * np.asarray(times), ".", color=colour, markersize=2, alpha=0.5)
        look = {"color": colour, "marker": marker, "markersize": 6, "label": name}
        axes.plot(frame["metrics.bytes"], 1e6 * frame.step_median_s, **look)
    ranks = int(next(iter(records.values())).ranks.iloc[0])
    axes.set(xscale="log", yscale="log", xlabel="size of the array (bytes)", ylabel=f"allreduce on {ranks} ranks (us)")
    axes.legend()
    if both:
        axes, (intel, other) = panels[0, 1], (records[name] for name in ("Intel MPI", "Open MPI"))
        ratio = other.step_median_s.to_numpy() / intel.step_median_s.to_numpy()
        axes.plot(intel["metrics.bytes"], ratio, color="#444444", marker="o", label="here, allreduce alone")
        axes.axhline(1, color="#8a8a8a", linestyle="--", linewidth=1)
        if published is not None:
            axes.axhline(published, color=MIDDLE, linestyle=":", linewidth=2, label="published, training")
        axes.set(xscale="log", yscale="log", xlabel="size of the array (bytes)", ylabel="Open MPI's time / Intel MPI's")
        axes.legend(fontsize=9)
    return figure


@_style
def heat_map(
    frame: "pd.DataFrame",
    x: str = "threads",
    y: str = "ranks",
    unit: str = "",
    default: float | None = None,
    lower: bool = False,
) -> Figure:
    """The rate at each pair of two settings, the better the darker; failed cells are white, unmeasured ones hatched.

    frame: of a sweep's result, a row a point.  x, y: two of its columns.  A cell shows the best over all other settings
    and the best cell has a frame.  default: the rate with nothing set.  lower: the rate is a time, less is better.
    """
    columns, rows = (sorted(frame[axis].unique(), key=sort_key) for axis in (x, y))
    cells = {at: group.rate for at, group in frame.groupby([y, x])}
    table = [[cells[r, c].agg("min" if lower else "max") if (r, c) in cells else np.nan for c in columns] for r in rows]
    rates = np.array(table, float)  # (rows, columns)
    found = rates[~np.isnan(rates)]
    low, high = (found.min(), found.max()) if found.size else (0.0, 1.0)
    best = low if lower else high
    figure, axes = plt.subplots(figsize=(max(4.5, 2.2 + 0.9 * len(columns)), max(2.6, 1.5 + 0.6 * len(rows))))
    ramp = [PALE, LIGHT, DARK][:: -1 if lower else 1]
    shades = mpl.colors.LinearSegmentedColormap.from_list("rates", ramp)
    spread = high - low or 1.0
    picture = axes.imshow(rates, cmap=shades, aspect="auto", vmin=low, vmax=low + spread)
    for (row, column), rate in np.ndenumerate(rates):
        measured = (rows[row], columns[column]) in cells
        text = rounded(rate) if not np.isnan(rate) else "failed" if measured else ""
        dark = not np.isnan(rate) and ((high - rate if lower else rate - low) / spread) > 0.6
        axes.text(column, row, text, ha="center", va="center", fontsize=10, color="white" if dark else "black")
        corner = (column - 0.5, row - 0.5)
        if not measured:
            axes.add_patch(Rectangle(corner, 1, 1, **NOT_ALLOWED | {"linewidth": 0}))
        elif rate == best:
            axes.add_patch(Rectangle(corner, 1, 1, fill=False, edgecolor="black", linewidth=3, clip_on=False))
    axes.set_xticks(range(len(columns)), [str(c) for c in columns])
    axes.set_yticks(range(len(rows)), [str(r) for r in rows])
    words = {"ranks": "ranks (count)", "threads": "threads a rank (count)"}
    axes.set(xlabel=words.get(x, x), ylabel=words.get(y, y))
    axes.invert_yaxis()
    axes.grid(False)
    what = unit or ("figure, less is better" if lower else "rate")
    bar = figure.colorbar(picture, ax=axes, label=what, format=lambda rate, _: rounded(rate))
    others = [a for a in frame.columns[: frame.columns.get_loc("rate")] if a not in (x, y) and frame[a].nunique() > 1]
    notes = ["each cell: the best over the other settings"] if others else []
    if default is not None and not np.isnan(default):
        within = low <= default <= high
        notes.append(f"the default: {rounded(default)}" + " (dashed)" * within)
        if within:
            bar.ax.axhline(default, color="black", linestyle="--", linewidth=2)
    axes.set_title("\n".join(notes), fontsize=10, loc="left")
    return figure
