"""The figures of 01_onednn: layouts in memory, and number formats."""

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np

from scaleout.plots import look
from scaleout.plots import primitives as draw


@look.style
def layouts(pixels: int = 4, channels: int = 8, block: int = 4):
    """Draw the same image three times as it lies in memory: numbers are
    pixels, lightness is the channel."""
    cells = [(pixel, channel) for pixel in range(pixels)
             for channel in range(channels)]
    orders = {
        "NHWC: all channels of a pixel": cells,
        "NCHW: all pixels of a channel":
            sorted(cells, key=lambda cell: (cell[1], cell[0])),
        f"nChw{block}c: blocks of {block} channels":
            sorted(cells, key=lambda cell: (cell[1] // block, *cell)),
    }
    figure, axes = plt.subplots(figsize=(7, 3.5))
    shades = mpl.colormaps["Blues"](np.linspace(0.05, 0.85, channels))
    for row, (name, order) in enumerate(orders.items()):
        axes.text(0, 0.68 - row, name, fontsize=10)
        for address, (pixel, channel) in enumerate(order):
            draw.box(axes, address, -row, 1, 0.6, edgecolor="white",
                     facecolor=shades[channel])
            axes.text(address + 0.5, 0.3 - row, pixel, ha="center",
                      va="center", fontsize=9,
                      color="white" if channel > channels / 2 else "black")
    for channel, name in ((0, "first channel"), (-1, "last channel")):
        axes.add_patch(plt.Rectangle((0, 0), 0, 0, label=name,
                                     facecolor=shades[channel],
                                     edgecolor=look.DARK))
    axes.set(xlim=(-0.2, pixels * channels + 0.2), ylim=(-2.15, 1.3),
             yticks=[], xlabel="address in memory (numbers)")
    axes.legend(loc="upper right", ncols=2, borderaxespad=0)
    axes.spines["left"].set_visible(False)
    axes.grid(False)
    title = "The same image in three orders: each number is a pixel."
    return look.finish(figure, title, f"{'; '.join(orders)}.")


@look.style
def number_formats(table, guess: str | None = None):
    """Draw the positive numbers that each format can hold, on a logarithmic
    axis; light where digits get lost."""
    figure, axes = plt.subplots(figsize=(7, 3.2))
    ends = np.log10(table[["smallest", "smallest_normal", "largest"]])
    axes.barh(range(len(table)), ends.largest - ends.smallest_normal, 0.5,
              left=ends.smallest_normal, label="full precision",
              color=look.DARK)
    axes.barh(range(len(table)), ends.smallest_normal - ends.smallest, 0.5,
              left=ends.smallest, label="fewer digits", color=look.PALE,
              edgecolor=look.DARK, hatch="//")
    chosen = str(guess).strip().lower()
    values = []
    for row, name in enumerate(table.index):
        one = table.loc[name]
        mark = "  * your guess" if chosen == name else ""
        axes.text(max(ends.largest[name], 2.2) + 1, row, va="center",
                  s=f"gap above 1: {one.epsilon:.2g}{mark}", fontsize=10)
        values.append(f"{name}: {one.smallest:.2g} to {one.largest:.2g}, gap "
                      f"above 1 {one.epsilon:.2g}{mark}.")
    axes.set_yticks(range(len(table)), [
        f"{name} ({bits} bits)" for name, bits in table.bits.items()])
    powers = range(-40, 41, 20)
    axes.set_xticks(powers, [f"$10^{{{power}}}$" for power in powers])
    axes.set(xlabel="numbers that can be held (logarithmic)", xlim=(-47, 75))
    axes.axvline(0, color=look.GREY, linestyle="--", linewidth=1)
    axes.invert_yaxis()
    axes.grid(axis="y", visible=False)
    title = ("bf16 reaches as far as fp32, with fewer digits; fp16 has more "
             "digits and less reach")
    return look.finish(figure, title, " ".join(values), legend=2)
