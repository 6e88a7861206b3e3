"""A picture of the machine: sockets, cores, hardware threads, caches, memory."""

from collections.abc import Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from .. import words
from .look import DARK, LIGHT, NOT_ALLOWED, PALE, Look, style

if TYPE_CHECKING:
    from ..machine import Cache, Core, Machine


@style
def machine_picture(
    facts: "Machine", sgemm: float | None = None, copy: float | None = None
) -> Figure:
    """The machine: sockets, cores with their hardware threads, caches, memory; filled is what you
    may use.
    """
    caches = [cache for cache in facts.caches if cache.kind != "instruction"]
    sizes = [
        _size([cache for cache in caches if cache.level == n])
        for n in sorted({c.level for c in caches})
    ]
    private, shared = sizes[:2], sizes[2:][-1:]
    cores = sorted(facts.layout, key=lambda core: (core.socket, core.cache_group, core.cpus))
    sockets = [
        [list(group) for _, group in groupby(socket, key=lambda core: core.cache_group)]
        for _, socket in groupby(cores, key=lambda core: core.socket)
    ]

    # Sizes in inches, from the outside in: sockets, in each the groups that share a cache, in each
    # the cores.
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
                _core(
                    axes,
                    core,
                    facts.allowed,
                    corner,
                    core_width - 0.05,
                    name,
                    private if detailed else [],
                )
            for size in shared:
                _box(
                    axes,
                    left,
                    up - rows * core_height,
                    group_width - 0.05,
                    0.26,
                    size,
                    facecolor=LIGHT,
                )
    _memory_and_legend(axes, facts, sgemm, copy, [] if detailed else private)
    figure.set_label(f"{facts.cpu}: {_summary(facts)}. Caches: {', '.join(sizes) or 'unknown'}.")
    return figure


def _tiles(count: int, widest: int) -> tuple[int, int]:
    """Columns and rows for so many tiles, at most `widest` in a row, the rows as even as they can
    be."""
    rows = -(-count // max(1, widest))
    return -(-count // rows), rows


def _box(
    axes: Axes, x: float, top: float, width: float, height: float, text: str = "", **look: Any
) -> None:
    """A rectangle that hangs from (x, top), in inches; a text that does not fit into it is left
    out."""
    whole: Look = {"facecolor": "white", "edgecolor": "#666666", "linewidth": 0.8} | look
    axes.add_patch(Rectangle((x, top - height), width, height, **whole))
    if len(text) * 0.085 < width:  # a letter of 9.5 points is about 0.085 in wide
        colour = "white" if whole["facecolor"] == DARK else "black"
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
        _box(
            axes,
            x + place * thread,
            top,
            thread,
            height,
            f"CPU {cpu}" if cpu in allowed else "",
            **look,
        )
    for place, size in enumerate(caches):
        _box(axes, x, top - height - 0.26 * place, width, 0.26, size)


def _size(caches: "Sequence[Cache]") -> str:
    """The caches of one level: "L2 1 MiB", or "L2 2/4 MiB" where the cores are unlike."""
    sizes = sorted({cache.kib for cache in caches})
    one, unit = (1024, "MiB") if sizes[0] >= 1024 else (1, "KiB")
    return f"L{caches[0].level} {'/'.join(f'{kib / one:g}' for kib in sizes)} {unit}"


def _summary(facts: "Machine") -> str:
    threads = words.count(facts.hardware_threads, "hardware thread")
    known = "" if facts.layout_source != "unknown" else " (what they share is unknown)"
    quota = "" if facts.cgroup_cpus is None else f", cgroup limit {facts.cgroup_cpus:g} CPUs"
    fill = f"a job fills {facts.usable_cores} of {facts.cores} allowed{quota}"
    return f"{words.count(len(facts.layout), 'core')}, {threads}{known}; {fill}"


def _memory_and_legend(
    axes: Axes, facts: "Machine", sgemm: float | None, copy: float | None, caches: Sequence[str]
) -> None:
    """The lowest inch of the picture: memory, what was measured, what the fillings mean."""
    memory = (
        "memory of unknown size"
        if facts.memory_gib is None
        else f"memory {facts.memory_gib:.1f} GiB"
    )
    limit = (
        "" if facts.memory_limit_gib is None else f", limited to {facts.memory_limit_gib:.1f} GiB"
    )
    _box(axes, 0.1, 0.98, 6.8, 0.3, memory + limit, facecolor=LIGHT)
    _box(axes, 0.1, 0.55, 0.22, 0.2, facecolor=DARK, edgecolor="white")
    axes.text(0.4, 0.45, "hardware thread you may use", fontsize=10, va="center")
    _box(axes, 2.7, 0.55, 0.22, 0.2, **NOT_ALLOWED)
    axes.text(3.0, 0.45, "not allowed", fontsize=10, va="center")
    if caches:
        axes.text(
            6.9, 0.45, "each core: " + ", ".join(caches), fontsize=10, va="center", ha="right"
        )
    rates = [(sgemm, "multiplies {:.0f} GFLOP/s (SGEMM)"), (copy, "copies {:.0f} GB/s")]
    measured = ", ".join(text.format(rate) for rate, text in rates if rate is not None)
    if measured:
        axes.text(0.1, 0.17, f"measured: {measured}", fontsize=11, fontweight="bold", va="center")
