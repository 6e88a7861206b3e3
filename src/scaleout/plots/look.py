"""The look that all figures share."""

import base64
import io
from collections.abc import Callable
from functools import partial, wraps
from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

__all__ = ["DARK", "LIGHT", "LOOK", "MIDDLE", "NOT_ALLOWED", "PALE", "guess_line", "style"]

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


def style(draw: Callable[..., Figure]) -> Callable[..., Figure]:
    """Draws with the look that all figures share. The figure is returned, closed, so that it is shown once.

    What its docstring says first is the text that stands in for the picture where it cannot be seen.
    """
    alt = " ".join((draw.__doc__ or "").split("\n\n")[0].split())

    @wraps(draw)
    def drawn(*args: Any, **kwargs: Any) -> Figure:
        with plt.rc_context(LOOK):
            figure = draw(*args, **kwargs)
            figure.canvas.draw()  # the look ends here, so the layout is settled here
        plt.close(figure)
        figure._repr_mimebundle_ = partial(_shown, figure, alt)
        return figure

    return drawn


def _shown(figure: Figure, alt: str, **_: object) -> tuple[dict[str, str], dict[str, dict[str, str]]]:
    """What a notebook keeps of a figure: the picture, and the words that stand in for it."""
    png = io.BytesIO()
    figure.savefig(png, format="png", bbox_inches="tight")
    data = {"image/png": base64.b64encode(png.getvalue()).decode(), "text/plain": alt}
    return data, {"image/png": {"alt": alt}}


def guess_line(axes: Axes, value: float | None, **at: Any) -> None:
    """The reader's own guess, where there is one: a dotted line."""
    if value is not None:
        axes.axhline(value, color=MIDDLE, linestyle=":", linewidth=2, label=f"your guess: {value:g}", **at)
