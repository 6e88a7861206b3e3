"""Figures of 01_onednn: what each operation takes, layouts, number formats."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from .look import DARK, LIGHT, PALE, Look, style

if TYPE_CHECKING:
    import pandas as pd


SMALLEST = 0.02  # of the tallest bar: a part that is lower holds no line of text
FILLS = {"oneDNN": DARK, "Eigen": LIGHT, "": "white"}
BETWEEN = "between operations"
Part = tuple[str, str, float]  # operation, library, milliseconds


@style
def operations(
    profiles: "Mapping[str, pd.DataFrame]", guess: str | None = None, rest: str = BETWEEN
) -> Figure:
    """What the operations of a step take, one on top of the other: a bar for each profile."""
    parts = {name: _parts(frame, rest) for name, frame in profiles.items()}
    tallest = max(sum(ms for *_, ms in found) for found in parts.values())
    stacks = {name: _lumped(found, SMALLEST * tallest) for name, found in parts.items()}
    figure, axes = plt.subplots(figsize=(1.2 + 3.1 * len(parts), 5.6))
    for place, stack in enumerate(stacks.values()):
        _stack(axes, place, stack, 0.034 * tallest)
    libraries = {library for found in parts.values() for _, library, _ in found}
    named = {"oneDNN": "run by oneDNN", "Eigen": "run by Eigen", "": rest}
    for library, name in named.items():
        if library not in libraries:
            continue
        patch = Rectangle((0, 0), 0, 0, facecolor=FILLS[library], edgecolor=DARK, label=name)
        axes.add_patch(patch)
    if guess:
        _guessed_operation(axes, stacks, str(guess).strip())
    axes.set_xticks(range(len(parts)), list(parts))
    axes.set(xlim=(-0.25, len(parts) - 0.12), ylim=(0, 1.1 * tallest), ylabel="time a step (ms)")
    axes.grid(axis="x", visible=False)
    title = _operations_found(parts)
    figure.suptitle(title, fontsize=11, x=0.02, ha="left")
    figure.legend(loc="outside lower center", ncols=2, fontsize=9)
    said = [f"{name}: {', '.join(map(_told, stack))}." for name, stack in stacks.items()]
    said += [f"Your guess: {guess}."] if guess else []
    figure.set_label(" ".join([f"{title}.", *said]))
    return figure


def _stack(axes: Axes, place: int, stack: list[Part], apart: float) -> None:
    """A bar of parts, each with its label at its right, as near as the labels below allow."""
    bottom, last = 0.0, -apart
    for part in stack:
        _, library, ms = part
        edge = "white" if library else DARK
        axes.bar(place, ms, 0.3, bottom, color=FILLS[library], edgecolor=edge)
        last = max(bottom + ms / 2, last + apart)
        axes.text(place + 0.18, last, _told(part), va="center", fontsize=9)
        bottom += ms


def _told(part: "Part") -> str:
    return f"{part[0]} {part[2]:,.{0 if part[2] >= 10 else 1}f} ms"


def _guessed_operation(axes: Axes, stacks: Mapping[str, list[Part]], guess: str) -> None:
    """A star on the operation that the reader named, in the first bar that shows it; else words."""
    for place, stack in enumerate(stacks.values()):
        names = [op.casefold() for op, *_ in stack]
        found = [at for at, name in enumerate(names) if name == guess.casefold()]
        found += [at for at, name in enumerate(names) if guess.casefold() in name]
        if found:
            middle = sum(ms for *_, ms in stack[: found[0]]) + stack[found[0]][2] / 2
            star: Look = {"marker": "*", "markersize": 15, "color": "black", "linestyle": ""}
            axes.plot(place, middle, markeredgecolor="white", label=f"your guess: {guess}", **star)
            return
    axes.plot([], [], linestyle="", label=f"your guess: {guess} (too small to be shown)")


def _parts(frame: "pd.DataFrame", rest: str) -> list[Part]:
    """(operation, library, milliseconds), oneDNN's before Eigen's, each the dearest first; then
    what a step takes beyond its operations."""
    sums = frame.groupby(["library", "op"]).time_ms.sum()
    found = [(op, library, float(ms)) for (library, op), ms in sums.items()]
    found.sort(key=lambda part: (part[1] != "oneDNN", -part[2]))
    left = frame.attrs.get("step_ms", 0.0) - float(sums.sum())
    return [*found, (rest, "", left)] if left > 0 else found


def _lumped(found: list[Part], least: float) -> list[Part]:
    """Those that can be labelled, and of each library what the others take together."""
    result = []
    for library in FILLS:
        own = [part for part in found if part[1] == library]
        few = [part for part in own if part[2] < least]
        result += [part for part in own if part[2] >= least]
        if few:
            name = f"others of {library}" if library else few[0][0]
            result.append((name, library, sum(part[2] for part in few)))
    return result


def _operations_found(parts: dict[str, list[Part]]) -> str:
    """What the bars show, in words."""
    totals = {name: sum(ms for *_, ms in found) for name, found in parts.items()}
    (first, before), (last, after) = list(totals.items())[0], list(totals.items())[-1]
    if len(parts) > 1:
        return f"{first}, then {last}: from {before:,.0f} to {after:,.0f} ms a step"
    dearest = max((part for part in parts[first] if part[1]), key=lambda part: part[2])
    return f"Dearest: {_told(dearest)}, {100 * dearest[2] / before:.0f} % of a step"


@style
def layouts(pixels: int = 4, channels: int = 8, block: int = 4) -> Figure:
    """The same image three times, as it lies in memory: numbers are pixels, lightness is the
    channel.
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
            axes.add_patch(
                Rectangle((address, -row), 1, 0.6, facecolor=shades[c], edgecolor="white")
            )
            ink = "white" if c > channels / 2 else "black"
            axes.text(address + 0.5, 0.3 - row, p, ha="center", va="center", fontsize=9, color=ink)
        axes.text(0, 0.68 - row, list(orders)[row], fontsize=10)
    for c, name in ((0, "first channel"), (channels - 1, "last channel")):
        axes.add_patch(Rectangle((0, 0), 0, 0, facecolor=shades[c], edgecolor=DARK, label=name))
    axes.set(
        xlim=(-0.2, pixels * channels + 0.2),
        ylim=(-2.15, 1.3),
        yticks=[],
        xlabel="address in memory (numbers)",
    )
    axes.legend(loc="upper right", ncols=2, borderaxespad=0)
    axes.spines["left"].set_visible(False)
    axes.grid(False)
    return figure


@style
def number_formats(table: "pd.DataFrame", guess: str | None = None) -> Figure:
    """The positive numbers that each format can hold, on a logarithmic axis; light where digits get
    lost.
    """
    figure, axes = plt.subplots(figsize=(7, 3.2))
    for place, row in enumerate(table.itertuples()):
        low, normal, high = (np.log10(v) for v in (row.smallest, row.smallest_normal, row.largest))
        names = ("full precision", "fewer digits") if place == 0 else ("", "")
        axes.barh(place, high - normal, 0.5, left=normal, color=DARK, label=names[0])
        if normal > low:
            axes.barh(
                place,
                normal - low,
                0.5,
                left=low,
                color=PALE,
                edgecolor=DARK,
                hatch="//",
                label=names[1],
            )
        gap = f"gap above 1: {row.epsilon:.2g}"
        mark = "  * your guess" if guess and str(guess).strip().lower() == row.Index else ""
        axes.text(max(high, 2.2) + 1, place, gap + mark, va="center", fontsize=10)
    axes.set_yticks(
        range(len(table)), [f"{name} ({bits} bits)" for name, bits in table.bits.items()]
    )
    axes.set_xticks(range(-40, 41, 20), [f"$10^{{{power}}}$" for power in range(-40, 41, 20)])
    axes.set(xlabel="numbers that can be held", xlim=(-47, 75))
    axes.axvline(0, color="#888888", linestyle="--", linewidth=1)
    axes.invert_yaxis()
    axes.grid(axis="y", visible=False)
    axes.legend(loc="upper center", bbox_to_anchor=(0.42, 1.18), ncols=2, fontsize=10)
    title = "bf16 reaches as far as fp32, with fewer digits; fp16 has more digits and less reach"
    figure.suptitle(title, fontsize=11, x=0.02, ha="left")
    figure.set_label(" ".join([f"{title}.", *(
        f"{row.Index}: {row.smallest:.2g} to {row.largest:.2g}, gap above 1 {row.epsilon:.2g}."
        for row in table.itertuples())]))  # fmt: skip
    return figure
