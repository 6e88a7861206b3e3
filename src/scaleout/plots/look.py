"""The look that all figures share."""

import base64
import io
from collections.abc import Callable, Iterable, Sequence
from functools import partial, wraps
from inspect import signature
from numbers import Real
from textwrap import fill
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.rcsetup import cycler

from ..errors import ScaleoutError

# From dark to light, so that the order survives without colour.
DARK, MIDDLE, LIGHT, PALE = "#1b4965", "#c1666b", "#7fb7be", "#e8e4d8"
GREY = "#888888"  # of lines that only guide the eye
Look = dict[str, Any]  # matplotlib's keywords for how a thing is drawn
NOT_ALLOWED: Look = {"facecolor": "white", "edgecolor": "#8a8a8a", "hatch": "////"}
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
    """Draws with the look that all figures share. The figure is returned, closed, so that it is
    shown once.

    What its docstring says first is the text that stands in for the picture where it cannot be
    seen, unless the figure has a label of its own (figure.set_label), made from its numbers. A guess=
    that is no number where one is asked for is refused in a sentence."""
    takes = signature(draw)
    words = "guess" in takes.parameters and "str" in str(takes.parameters["guess"].annotation)
    alt = " ".join((draw.__doc__ or "").split("\n\n")[0].split())

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
        shown = partial(_shown, figure, str(figure.get_label() or alt))
        setattr(figure, "_repr_mimebundle_", shown)  # noqa: B010  (a name that IPython asks for)
        return figure

    return drawn


def _shown(
    figure: Figure, alt: str, **_: object
) -> tuple[dict[str, str], dict[str, dict[str, str]]]:
    """What a notebook keeps of a figure: the picture, and the words that stand in for it."""
    png = io.BytesIO()
    figure.savefig(png, format="png", bbox_inches="tight")
    data = {"image/png": base64.b64encode(png.getvalue()).decode(), "text/plain": alt}
    return data, {"image/png": {"alt": alt}}


def say(figure: Figure, found: str, values: str = "") -> None:
    """Gives a figure its title, and the text that stands in for it."""
    figure.suptitle(fill(found, round(12 * figure.get_figwidth())), fontsize=11, x=0.01, ha="left")
    figure.set_label(f"{found} {values}".strip())


def medians(rows: Iterable[tuple[int, float]]) -> dict[int, float]:
    """The median of several jobs on each number of ranks."""
    groups: dict[int, list[float]] = {}
    for ranks, figure in rows:
        groups.setdefault(ranks, []).append(figure)
    return {ranks: float(np.median(groups[ranks])) for ranks in sorted(groups)}


def guess_line(axes: Axes, guess: float | None, upright: bool = False) -> None:
    """The reader's own guess, where there is one: a dotted line across, or upright at a place on
    the x axis.
    """
    if guess is not None:
        draw = axes.axvline if upright else axes.axhline
        draw(guess, color=MIDDLE, linestyle=":", linewidth=2, label=f"your guess: {guess:g}")


def guess_star(axes: Axes, x: float, y: float, guess: str, **how: Any) -> None:
    """The reader's own guess as a star, with its words in the legend."""
    star: Look = {"marker": "*", "markersize": 16, "color": "black", "markeredgecolor": "white"}
    axes.plot([x], [y], label=f"your guess: {guess}", linestyle="", zorder=5, **star | how)


def guess_name(axes: Axes, names: Sequence[str], guess: str | None, at: float) -> None:
    """A star at the name on the x axis that the reader guessed; else in the legend alone."""
    if guess is None:
        return
    said = str(guess).strip()
    plain = [" ".join(name.split()).casefold() for name in names]
    found = [x for x, name in enumerate(plain) if name == said.casefold()]
    found += [x for x, name in enumerate(plain) if said and said.casefold() in name]
    if found:
        guess_star(axes, found[0], at, said, transform=axes.get_xaxis_transform())
    else:
        axes.plot([], [], linestyle="", label=f"your guess: {said} (not among these)")
