"""Give all figures one look: colours, lines, the title, the words for who cannot see it, and the
reader's own guess.

A figure's function is decorated with `style` and ends with `return finish(figure, title)`. The text
that stands in for the picture is made here, from what was drawn.
"""

import base64
import io
import re
from collections.abc import Callable, Sequence
from functools import partial, wraps
from inspect import signature
from numbers import Real
from textwrap import fill
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import PathCollection
from matplotlib.container import BarContainer, ErrorbarContainer
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.rcsetup import cycler
from PIL import Image

from ..base.errors import ScaleoutError
from ..base.words import rounded

# From dark to light, so that the order survives without colour.
DARK, MIDDLE, LIGHT, PALE = "#1b4965", "#c1666b", "#7fb7be", "#e8e4d8"
GOLD = "#a98600"
GREY = "#888888"  # of lines that only guide the eye
INK = "#444444"  # of words and arrows inside a picture
Look = dict[str, Any]  # matplotlib's keywords for how a thing is drawn
NOT_ALLOWED: Look = {"facecolor": "white", "edgecolor": "#8a8a8a", "hatch": "////"}
WAITING: Look = {"facecolor": PALE, "edgecolor": GREY, "hatch": "////", "linewidth": 0}
# One look a line, told apart by its marker and its dashes where colours are not seen.
LINES: tuple[Look, ...] = (
    {"color": DARK, "linestyle": "-", "marker": "o"},
    {"color": MIDDLE, "linestyle": "--", "marker": "s"},
    {"color": GOLD, "linestyle": ":", "marker": "^"},
    {"color": GREY, "linestyle": "-.", "marker": "D"},
    {"color": LIGHT, "linestyle": "-", "marker": "v"},
)
# One look a bar, in the same order.
FILLS: tuple[Look, ...] = (
    {"color": DARK, "edgecolor": DARK},
    {"color": LIGHT, "edgecolor": DARK},
    {"color": PALE, "edgecolor": DARK, "hatch": "//"},
    {"color": MIDDLE, "edgecolor": DARK, "hatch": ".."},
    {"color": "white", "edgecolor": DARK, "hatch": "xx"},
)
LETTERS = 12  # of a title, for each inch of its figure
POINTS = 12  # of a line, that its words name one by one
LOOK: Any = {
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
    "axes.prop_cycle": cycler(color=[DARK, MIDDLE, LIGHT, "#6b705c"]),
    "legend.frameon": False,
}


def style(draw: Callable[..., Figure]) -> Callable[..., Figure]:
    """Decorate a function that draws a figure, so that it draws with the look that all share.

    The figure comes back closed, so that a notebook shows it once, and with a label: its words for
    those who do not see it.

    Parameters
    ----------
    draw : callable
        Returns a Figure, as `finish` does. Where it takes a `guess`, a number is meant, unless its
        annotation names str.

    Returns
    -------
    callable
        Takes what `draw` takes, and raises ScaleoutError for a guess that should be a number and is
        none.
    """
    takes = signature(draw)
    words = "guess" in takes.parameters and "str" in str(takes.parameters["guess"].annotation)

    @wraps(draw)
    def drawn(*args: Any, **kwargs: Any) -> Figure:
        guess = takes.bind(*args, **kwargs).arguments.get("guess")
        if not (guess is None or words or isinstance(guess, Real)):
            raise ScaleoutError(
                f"Your guess is {guess!r}: write a number, such as 1.5, or None for no guess."
            )
        with plt.rc_context(LOOK):
            figure = draw(*args, **kwargs)
            figure.canvas.draw()  # the look ends here, so the layout is settled here
        plt.close(figure)
        Palette(figure)
        figure.set_label(str(figure.get_label() or in_words(figure)))
        setattr(figure, "_repr_mimebundle_", partial(_shown, figure))  # noqa: B010  (IPython's name)
        return figure

    return drawn


class Palette(FigureCanvasAgg):
    """Writes a picture with 256 colours of its own, which makes a notebook a third as large.

    Pillow's MAXCOVERAGE leaves each colour so near that nobody sees a difference.
    """

    def print_png(self, filename_or_obj: Any, **_: Any) -> None:
        """Write the picture to a file, or to a file's path."""
        drawn = io.BytesIO()
        super().print_png(drawn)  # type: ignore[no-untyped-call]
        few = Image.open(drawn).convert("RGB").quantize(method=Image.Quantize.MAXCOVERAGE)
        few.save(filename_or_obj, format="png", optimize=True)


def _shown(figure: Figure, **_: object) -> tuple[dict[str, str], dict[str, dict[str, str]]]:
    """Give a notebook what it keeps of a figure: the picture, and the words that stand in for it."""
    png = io.BytesIO()
    figure.savefig(png, format="png", bbox_inches="tight")
    alt = str(figure.get_label())
    data = {"image/png": base64.b64encode(png.getvalue()).decode(), "text/plain": alt}
    return data, {"image/png": {"alt": alt}}


def finish(figure: Figure, title: str, values: str = "", legend: int = 0) -> Figure:
    """Give a figure its title, and a legend of all its panels below them.

    Parameters
    ----------
    figure : Figure
    title : str
        What the figure found, in a sentence; it is broken to the figure's width.
    values : str
        What it shows, in words, where these cannot be read from what was drawn, as for a picture
        of boxes. The title and the reader's guess are put to it.
    legend : int
        Columns of the legend; 0 for none.

    Returns
    -------
    Figure
        The same.
    """
    unbroken = title.replace(" %", "\N{NO-BREAK SPACE}%")
    width = round(LETTERS * figure.get_figwidth())
    figure.suptitle(fill(unbroken, width, break_on_hyphens=False), fontsize=11, x=0.01, ha="left")
    named: dict[str, Any] = {}
    for axes in figure.axes:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            named.setdefault(label, handle)
    if values:
        guess = [f"{label}." for label in named if label.startswith("your guess")]
        figure.set_label(" ".join([title.removesuffix(".") + ".", values, *guess]))
    if legend:
        figure.legend(
            named.values(), named.keys(), loc="outside lower center", ncols=legend, fontsize=9
        )
    return figure


def in_words(figure: Figure) -> str:
    """Describe a figure for those who do not see it.

    Parameters
    ----------
    figure : Figure

    Returns
    -------
    str
        Its title, and of each panel the title, the axes, what its legend names with the values, and
        the notes inside it, a sentence each.
    """
    said = [figure.get_suptitle()]
    for axes in figure.axes:
        said.append(axes.get_title(loc="left") or axes.get_title())
        labels = {"x axis": axes.get_xlabel(), "y axis": axes.get_ylabel()}
        said.append("; ".join(f"{which}: {label}" for which, label in labels.items() if label))
        for handle, name in zip(*axes.get_legend_handles_labels(), strict=True):
            said.append(f"{name}: {_values(axes, handle)}".removesuffix(": "))
        notes = [text.get_text() for text in axes.texts]
        said.append(", ".join(note for note in notes if re.search("[a-z%]", note)))
    plain = [" ".join(text.split()).removesuffix(".") for text in said]
    return " ".join(f"{text}." for text in plain if text)


def _values(axes: Axes, artist: Any) -> str:
    """Tell the values of something that a legend names; of a line with many points the two ends."""
    if isinstance(artist, ErrorbarContainer):
        artist = artist[0]
    if isinstance(artist, BarContainer):
        upright = artist.orientation == "vertical"
        sums: dict[float, float] = {}
        for bar in artist:
            x, y, width, height = bar.get_x(), bar.get_y(), bar.get_width(), bar.get_height()
            at, value = (x + width / 2, height) if upright else (y + height / 2, width)
            sums[at] = sums.get(at, 0.0) + value
        if len(sums) > 2 * POINTS:
            return ""
        return ", ".join(f"{_name(axes, at, upright)} {rounded(sums[at])}" for at in sums)
    if isinstance(artist, PathCollection):
        _, values = np.asarray(artist.get_offsets(), float).reshape(-1, 2).T
        several = len(values) > 1
        return f"{rounded(values.min())} to {rounded(values.max())}" if several else ""
    if not isinstance(artist, Line2D):
        return ""
    x, y = (np.asarray(data, float) for data in artist.get_data())
    if len(x) < 2 or np.ptp(x) == 0 or np.ptp(y) == 0:  # its name says where it is
        return ""
    if len(set(x)) < len(x):  # single runs
        return f"{rounded(y.min())} to {rounded(y.max())}"
    chosen = range(len(x)) if len(x) <= POINTS else (0, len(x) - 1)
    return ", ".join(f"{_name(axes, x[n])} {rounded(y[n])}" for n in chosen)


def _name(axes: Axes, at: float, upright: bool = True) -> str:
    """Name a place as its axis does: by the nearest tick, where ticks are words, else by the number."""
    axis = axes.xaxis if upright else axes.yaxis
    places = [float(place) for place in axis.get_ticklocs()]
    words = dict(zip(places, axis.get_major_formatter().format_ticks(list(places)), strict=True))
    if all(re.search("[A-Za-z]", text) and "$" not in text for text in words.values()) and words:
        return " ".join(words[min(words, key=lambda place: abs(place - at))].split()) + ":"
    return f"{at:,.9g}:"


def guess_line(axes: Axes, guess: float | None, upright: bool = False, unit: str = "") -> None:
    """Draw the reader's own guess, where there is one, as a dotted line.

    Parameters
    ----------
    axes : Axes
    guess : float or None
        On the y axis, or with `upright` on the x axis, in its unit.
    upright : bool
    unit : str
        What stands behind the number in the legend.
    """
    if guess is not None:
        draw = axes.axvline if upright else axes.axhline
        label = f"your guess: {guess:g} {unit}".strip()
        draw(guess, color=MIDDLE, linestyle=":", linewidth=2, label=label)


def guess_star(axes: Axes, x: float, y: float, guess: str, **how: Any) -> None:
    """Draw the reader's own guess as a star, with its words in the legend.

    Parameters
    ----------
    axes : Axes
    x, y : float
        The place, in the axes' units.
    guess : str
        What the legend says of it.
    **how
        Matplotlib's keywords for the star.
    """
    star: Look = {"marker": "*", "markersize": 16, "color": "black", "markeredgecolor": "white"}
    axes.plot([x], [y], label=f"your guess: {guess}", linestyle="", zorder=5, **star | how)


def find_name(names: Sequence[str], guess: str) -> int | None:
    """Find the name that a reader wrote, in capitals or not.

    Parameters
    ----------
    names : sequence of str
    guess : str

    Returns
    -------
    int or None
        The place of the name that is the guess, else of the first that holds it, else None.
    """
    wanted = guess.strip().casefold()
    plain = [" ".join(name.split()).casefold() for name in names]
    whole = [at for at, name in enumerate(plain) if name == wanted]
    part = [at for at, name in enumerate(plain) if wanted and wanted in name]
    return next(iter(whole + part), None)


def guess_name(axes: Axes, names: Sequence[str], guess: str | None, at: float) -> None:
    """Draw a star at the name on the x axis that the reader guessed.

    Parameters
    ----------
    axes : Axes
    names : sequence of str
        What stands at 0, 1, 2 ... on the x axis.
    guess : str or None
        A name or a part of one. One that is not among them stands in the legend alone.
    at : float
        The height of the star, from 0 to 1 of the axes.
    """
    if guess is None:
        return
    said, place = str(guess).strip(), find_name(names, str(guess))
    if place is not None:
        guess_star(axes, place, at, said, transform=axes.get_xaxis_transform())
    else:
        axes.plot([], [], linestyle="", label=f"your guess: {said} (not among these)")
