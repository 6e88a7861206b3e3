"""Put figures together from panels, lines, bars, shares, spans, intervals, boxes and maps of values.

Each draws into axes and returns nothing but what a caller goes on with. A figure's own function
names its axes and calls `finish`.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from numpy.typing import ArrayLike

from ..base.words import rounded
from .look import DARK, FILLS, GREY, INK, LIGHT, LINES, MIDDLE, NOT_ALLOWED, PALE, Look

DOT: Look = {"marker": "o", "color": "white", "edgecolor": "black", "s": 22, "zorder": 3}
STEP: Look = {"width": 0.62, "edgecolor": INK}  # of a waterfall


def panels(
    names: Iterable[str], size: tuple[float, float], down: bool = False, **how: Any
) -> tuple[Figure, dict[str, Axes]]:
    """Make a figure with a panel for each name, which is its title.

    Parameters
    ----------
    names : iterable of str
    size : (float, float)
        Width and height of the figure in inches.
    down : bool
        One below the other, with a common x axis; else side by side, with a common y axis.
    **how
        Of `matplotlib.pyplot.subplots`.

    Returns
    -------
    figure : Figure
    panels : dict of str to Axes
    """
    titles = list(names)
    rows, columns = (len(titles), 1) if down else (1, len(titles))
    shared: Look = {"sharex": True} if down else {"sharey": True}
    figure, grid = plt.subplots(rows, columns, figsize=size, squeeze=False, **shared | how)
    for axes, title in zip(grid.flat, titles, strict=True):
        axes.set_title(title, fontsize=10, loc="left")
    return figure, dict(zip(titles, grid.flat, strict=True))


def dots(axes: Axes, x: ArrayLike, runs: Sequence[Any], label: str = "", **look: Any) -> None:
    """Draw a point for each single run.

    Parameters
    ----------
    axes : Axes
    x : array_like
        Places, (n,).
    runs : sequence
        The n places' values: of each a number, or a list of the single runs.
    label : str
    **look
        Matplotlib's keywords of a line.
    """
    each = [np.atleast_1d(np.asarray(values, float)) for values in runs]
    places = np.repeat(np.asarray(x, float), [len(values) for values in each])
    own: Look = {"linestyle": "", "marker": ".", "markersize": 3, "alpha": 0.6, **look}
    axes.plot(places, np.concatenate(each), label=label, **own)


def line(
    axes: Axes, x: ArrayLike, y: Iterable[Any], label: str = "", nth: int = 0, **look: Any
) -> list[float]:
    """Draw a line with its markers; where a value is a list of single runs, they are small points, and
    the line is their median.

    Parameters
    ----------
    axes : Axes
    x : array_like
        (n,).
    y : iterable
        n numbers, or lists of numbers.
    label : str
    nth : int
        Which of look.LINES: colour, dashes and marker.
    **look
        Matplotlib's keywords, which go before those.

    Returns
    -------
    list of float
        What the line goes through, (n,).
    """
    own = {**LINES[nth % len(LINES)], "markersize": 6, **look}
    runs = list(y)
    if any(np.size(values) > 1 for values in runs):
        dots(axes, x, runs, color=own["color"])
    middle = [float(np.median(values)) for values in runs]
    axes.plot(np.asarray(x, float), middle, label=label, **own)
    return middle


def ideal(axes: Axes, x: ArrayLike, y: ArrayLike, label: str = "ideal") -> None:
    """Draw what a law, a formula or perfect scaling would give, as a dashed grey line.

    Parameters
    ----------
    axes : Axes
    x, y : array_like
        (n,).
    label : str
    """
    axes.plot(x, y, linestyle="--", color=GREY, linewidth=1.2, label=label)


def bars(
    axes: Axes,
    runs: "Mapping[str, Sequence[float]]",
    text: Callable[[float, float], str] | None = None,
    shift: float = 0.0,
    width: float = 0.65,
    label: str = "",
    looks: Sequence[Look] = FILLS,
    flat: bool = False,
) -> None:
    """Draw a bar for each name at the median of its runs, with the runs as points.

    Parameters
    ----------
    axes : Axes
    runs : Mapping of str to sequence of float
        The single runs of each name, one at least.
    text : callable, optional
        Makes what stands at a bar's end, of its median and of the first bar's.
    shift, width : float
        Of bars that are 1 apart. Grouped bars are several calls, each with its shift, its label and
        one look.
    label : str
        What the legend calls these bars.
    looks : sequence of dict
        Matplotlib's keywords `color`, `edgecolor` and `hatch` of each bar, again from the first when
        they end.
    flat : bool
        Lying bars, the first on top.
    """
    middle = [float(np.median(values)) for values in runs.values()]
    places = np.arange(len(runs)) + shift
    chosen = [looks[n % len(looks)] for n in range(len(runs))]
    own: Look = {key: [look.get(key, "") for look in chosen] for key in ("color", "hatch")}
    own["edgecolor"] = [look.get("edgecolor", DARK) for look in chosen]
    (axes.barh if flat else axes.bar)(places, middle, width, label=label, **own)
    for place, value, each in zip(places, middle, runs.values(), strict=True):
        if len(each) > 1:
            spots = place + np.linspace(-0.2, 0.2, len(each)) * width
            axes.scatter(*((each, spots) if flat else (spots, each)), **DOT)
        if text:
            end = (max(each), place) if flat else (place, max(each))
            how: Look = {"va": "center"} if flat else {"ha": "center"}
            axes.annotate(text(value, middle[0]), end, (7, 0) if flat else (0, 6),
                          textcoords="offset points", fontsize=9, **how)  # fmt: skip
    names = list(runs)
    (axes.set_yticks if flat else axes.set_xticks)(range(len(names)), names)
    axes.grid(axis="y" if flat else "x", visible=False)
    if flat:
        axes.set_ylim(len(names) - 0.4, -0.6)


def stacked(
    axes: Axes,
    rows: "Sequence[Mapping[str, float]]",
    parts: Mapping[str, tuple[str, Look]],
    places: Sequence[float] | None = None,
    text: str = "",
    flat: bool = True,
    width: float = 0.7,
) -> "np.ndarray[Any, Any]":
    """Draw a bar for each row, made of parts.

    Parameters
    ----------
    axes : Axes
    rows : sequence of Mapping
        {key: value} of each bar; a key that it lacks is 0.
    parts : Mapping
        {key: (label, look)}, in the order in which the parts are drawn.
    places : sequence of float, optional
        Where the bars are; 0, 1, 2 ...
    text : str
        The format of a part's value inside it, such as "{:.0f} %"; a part of less than 6 % of the
        longest bar gets none.
    flat : bool
        Lying bars, the first on top; else upright ones.
    width : float

    Returns
    -------
    ndarray
        Where the bars end, (rows,).
    """
    at = np.arange(len(rows)) if places is None else np.asarray(places, float)
    table = {key: np.array([row.get(key, 0.0) for row in rows], float) for key in parts}
    whole = np.sum(list(table.values()), axis=0)
    ends = np.zeros(len(rows))
    for key, (label, look) in parts.items():
        named = label if table[key].any() else ""
        if flat:
            axes.barh(at, table[key], width, left=ends, label=named, **look)
        else:
            axes.bar(at, table[key], width, bottom=ends, label=named, **look)
        for place, value, end in zip(at, table[key], ends, strict=True):
            if text and value > 0.06 * whole.max():
                middle = (end + value / 2, place) if flat else (place, end + value / 2)
                paper = {"facecolor": "white", "edgecolor": "none", "pad": 1}
                axes.text(*middle, text.format(value), ha="center", va="center", fontsize=9,
                          bbox=paper)  # fmt: skip
        ends = ends + table[key]
    if flat and places is None:
        axes.set_ylim(len(rows) - 0.4, -0.6)
    axes.grid(axis="y" if flat else "x", visible=False)
    return ends


def spans(
    axes: Axes,
    rows: "Sequence[Sequence[tuple[str, float, float]]]",
    looks: Mapping[str, tuple[str, Look]],
    names: Sequence[str],
    height: float = 0.7,
) -> None:
    """Draw what each row did and when.

    Parameters
    ----------
    axes : Axes
        Its x axis is in milliseconds.
    rows : sequence of sequence of (str, float, float)
        What was done, from when to when, in seconds.
    looks : Mapping
        {what: (label, look)}; each label stands in the legend once.
    names : sequence of str
        Of the rows, the first on top.
    height : float
        Of a row's bars, where rows are 1 apart.
    """
    for what, (label, look) in looks.items():
        own = [(n, a, b) for n, row in enumerate(rows) for name, a, b in row if name == what]
        if own:
            at, start, end = (np.array(column, float) for column in zip(*own, strict=True))
            axes.barh(at, 1e3 * (end - start), height, left=1e3 * start, label=label, **look)
    axes.set_yticks(range(len(names)), list(names))
    axes.set_ylim(len(names) - 0.4, -0.6)
    axes.grid(False)


def interval(
    axes: Axes, at: float, low: float, middle: float, high: float, label: str = "",
    upright: bool = False, **look: Any,
) -> None:  # fmt: skip
    """Draw a value with its interval; where an end is not finite, the value alone.

    Parameters
    ----------
    axes : Axes
    at : float
        The row, or with `upright` the place on the x axis.
    low, middle, high : float
    label : str
    upright : bool
    **look
        Matplotlib's keywords of an error bar.
    """
    known = np.isfinite([low, high]).all()
    reach = [[middle - low], [high - middle]] if known else None
    own: Look = {"fmt": "o", "color": DARK, "capsize": 5, "linewidth": 2, **look}
    own["yerr" if upright else "xerr"] = reach
    place = ([at], [middle]) if upright else ([middle], [at])
    axes.errorbar(*place, label=label, **own)


def waterfall(
    axes: Axes, steps: "Mapping[str, tuple[Any, str]]", dropped: Collection[str] = (), **look: Any
) -> tuple[float, float]:
    """Draw what steps are worth, one after another, from a bar of 1 on.

    Each step begins where those before it have got to.

    Parameters
    ----------
    axes : Axes
        Upright, with a place for the first bar and one for each step.
    steps : Mapping
        {name: (ratio, words)}: how many times as fast as the step before, as a comparison's Ratio,
        and what stands above it.
    dropped : collection of str
        Names of steps that were not kept: their interval alone is drawn.
    **look
        Matplotlib's keywords of the intervals.

    Returns
    -------
    reached : float
        What all steps that were kept make together.
    top : float
        The height of the highest bar or interval.
    """
    own: Look = {"color": "black", "linewidth": 1.5, **look}
    axes.bar(0, 1.0, color=DARK, **STEP)
    level = top = 1.0
    for place, (name, (ratio, words)) in enumerate(steps.items(), 1):
        low, middle, high = (level * end for end in (ratio.low, ratio.middle, ratio.high))
        axes.plot([place - 0.69, place + 0.31], [level] * 2, color=GREY, linewidth=0.8)
        kept = name not in dropped
        if kept:
            way: Look = {"color": LIGHT} if middle >= level else {"color": MIDDLE, "hatch": "//"}
            axes.bar(place, abs(middle - level), bottom=min(level, middle), **way, **STEP)
        face = DARK if kept else "white"
        interval(axes, place, low, middle, high, upright=True, markerfacecolor=face, **own)
        own.pop("label", None)
        end = max(level, high if np.isfinite(high) else middle)
        axes.annotate(words, (place, end), (0, 5), ha="center", textcoords="offset points",
                      fontsize=9)  # fmt: skip
        level, top = middle if kept else level, max(top, end)
    axes.grid(axis="x", visible=False)
    return level, top


def noise_band(axes: Axes, noise: float, label: str = "", upright: bool = False) -> None:
    """Draw the ratios by which two identical jobs could differ, and the line at 1.

    Parameters
    ----------
    axes : Axes
    noise : float
        A share: 0.05 is a band from 1 / 1.05 to 1.05. Where it is not finite, there is no band.
    label : str
    upright : bool
        Ratios run upwards; else to the right.
    """
    span, line = (axes.axhspan, axes.axhline) if upright else (axes.axvspan, axes.axvline)
    if np.isfinite(noise):
        span(1 / (1 + noise), 1 + noise, color=PALE, label=label, zorder=0)
    line(1, color=GREY, linestyle="--", linewidth=1)


def heat(
    figure: Figure, axes: Axes, values: "np.ndarray[Any, Any]", rows: Sequence[str],
    columns: Sequence[str], unit: str, lower: bool = False, missing: Any = "",
) -> Any:  # fmt: skip
    """Draw a map of values, the better the darker, the best framed.

    Parameters
    ----------
    figure : Figure
    axes : Axes
    values : ndarray
        (rows, columns); NaN where there is none.
    rows, columns : sequence of str
        What stands at the axes.
    unit : str
        Of the values.
    lower : bool
        The smallest value is the best.
    missing : optional
        missing[row][column] are the words where there is no value; an empty one is hatched.

    Returns
    -------
    matplotlib.colorbar.Colorbar
    """
    known = values[~np.isnan(values)]
    low, high = (known.min(), known.max()) if known.size else (0.0, 1.0)
    spread = high - low or 1.0
    ramp = [PALE, LIGHT, DARK][:: -1 if lower else 1]
    shades = mpl.colors.LinearSegmentedColormap.from_list("values", ramp)
    picture = axes.imshow(values, cmap=shades, aspect="auto", vmin=low, vmax=low + spread)
    for (row, column), value in np.ndenumerate(values):
        corner = (column - 0.5, row - 0.5)
        text = rounded(value) if not np.isnan(value) else missing[row][column] if missing else ""
        dark = not np.isnan(value) and ((high - value if lower else value - low) / spread) > 0.6
        axes.text(column, row, text, ha="center", va="center", fontsize=10,
                  color="white" if dark else "black")  # fmt: skip
        if not text:
            axes.add_patch(Rectangle(corner, 1, 1, **NOT_ALLOWED | {"linewidth": 0}))
        elif value == (low if lower else high):
            frame: Look = {"fill": False, "edgecolor": "black", "linewidth": 3, "clip_on": False}
            axes.add_patch(Rectangle(corner, 1, 1, **frame))
    axes.set_xticks(range(len(columns)), list(columns))
    axes.set_yticks(range(len(rows)), list(rows))
    axes.invert_yaxis()
    axes.grid(False)
    return figure.colorbar(picture, ax=axes, label=unit, format=lambda value, _: rounded(value))


def box(
    axes: Axes, x: float, y: float, width: float, height: float, text: str = "",
    size: float = 9, **look: Any,
) -> None:  # fmt: skip
    """Draw a rectangle with words in its middle, white on dark.

    Parameters
    ----------
    axes : Axes
    x, y : float
        Its lower left corner.
    width, height : float
    text : str
    size : float
        Of the letters, in points.
    **look
        Matplotlib's keywords of a Rectangle.
    """
    own: Look = {"facecolor": "white", "edgecolor": INK, "linewidth": 0.8, **look}
    axes.add_patch(Rectangle((x, y), width, height, **own))
    if text:
        ink = "white" if own["facecolor"] in (DARK, MIDDLE) else "black"
        axes.text(x + width / 2, y + height / 2, text, ha="center", va="center_baseline",
                  fontsize=size, color=ink)  # fmt: skip
