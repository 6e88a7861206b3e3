"""Draw the figures of a class: what everybody's machine reached, which TODOs are done, and a
comparison on all of its machines; and of each learner's guesses."""

import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from ..base.words import count as count_of
from ..comparisons.comparison import Comparison
from ..plots.look import DARK, GREY, INK, LIGHT, MIDDLE, PALE, Look, finish, style
from ..plots.primitives import ideal, interval, stacked
from .calibration import FAR, NEAR, TIMES, Guess

if TYPE_CHECKING:
    import pandas as pd


EDGE: Look = {"edgecolor": "#555555", "linewidth": 0.6}
COLOURS = {"passed": DARK, "not yet": LIGHT, "not judged": GREY, "not started": PALE}
PANELS = 3  # variants that are drawn at most
SHOWN = ("faster", "slower")  # verdicts of a difference
THIN: Look = {"capsize": 0, "linewidth": 1, "markersize": 4, "color": DARK}
PARTS: Mapping[str, tuple[str, Look]] = {
    "times": ("times as fast", {"color": DARK, **EDGE}),
    "other": ("other numbers", {"color": LIGHT, "hatch": "//", **EDGE}),
}
BINS = ("below\n1/4", "1/4\nto 1/2", "1/2\nto 1", "1\nto 2", "2\nto 4", "above\n4")
STATES = {state: (state, {"color": colour, **EDGE}) for state, colour in COLOURS.items()}


@style
def class_picture(best: "pd.DataFrame", states: Mapping[str, Mapping[int, str]]) -> Figure:
    """Draw each attendee's best rate for a few kinds of job, a mark for each machine; beside it the
    attendees by TODO and state.

    Parameters
    ----------
    best : pandas.DataFrame
        A row for each attendee and job: `job`, `attendee`, `cpu`, `cores`, `rate`, `rate_unit`.
    states : Mapping
        {attendee: {TODO: "passed", "not yet" or "not judged"}}; a TODO that an attendee lacks is
        "not started".

    Returns
    -------
    matplotlib.figure.Figure
    """
    figure, (rates, checks) = plt.subplots(1, 2, figsize=(9, 4), width_ratios=[3, 2])
    jobs = list(dict.fromkeys(best.job))
    spread = np.random.default_rng(0)
    machines = best[["cpu", "cores"]].drop_duplicates().itertuples(index=False)
    for (cpu, cores), marker in zip(machines, "osD^vP*X" * 8, strict=False):
        own = best[(best.cpu == cpu) & (best.cores == cores)]
        x = own.job.map(jobs.index) + spread.uniform(-0.18, 0.18, len(own))
        label = f"{str(cpu)[:34]}, {cores} cores: {own.attendee.nunique()}"
        rates.scatter(
            x, own.rate, marker=marker, color=DARK, edgecolor="white", linewidth=0.6, label=label
        )
    for at, job in enumerate(jobs):
        middle = best[best.job == job].rate.median()
        rates.plot(
            [at - 0.3, at + 0.3],
            [middle, middle],
            color=MIDDLE,
            linewidth=2,
            label="median" if at == 0 else None,
        )
    rates.set_xticks(range(len(jobs)), jobs, fontsize=9)
    rates.set_xlabel("variant, ranks x threads")
    rates.set_ylabel(f"best of each attendee ({best.rate_unit.iloc[0]})" if len(best) else "")
    rates.set_ylim(bottom=0)
    rates.margins(x=0.1)
    if jobs:
        rates.legend(fontsize=8, loc="lower center", bbox_to_anchor=(0.5, 1), ncols=1)
    else:
        rates.text(0.5, 0.5, "no runs with a rate", ha="center", transform=rates.transAxes)
    todos = sorted({todo for each in states.values() for todo in each})
    counts = [Counter(s.get(todo, "not started") for s in states.values()) for todo in todos]
    stacked(checks, counts, STATES, todos, flat=False, width=0.8)
    checks.set(xticks=todos, xlabel="TODO (number)", ylabel="attendees (count)")
    checks.yaxis.get_major_locator().set_params(integer=True)
    if todos:
        checks.legend(fontsize=8, loc="lower center", bbox_to_anchor=(0.5, 1), ncols=2)
    passed = sum(state == "passed" for each in states.values() for state in each.values())
    people = count_of(len(states), "attendee")
    return finish(figure, f"{people} passed {passed} of {len(states) * len(todos)} checks.")


@style
def machines_picture(found: Mapping[str, Comparison]) -> Figure:
    """Draw how many times as fast as the baseline a few variants are on each attendee's machine.

    A machine is a thin line from end to end of its interval, those with the largest ratio of the
    first variant on top; its marker is filled where a difference is shown.

    Parameters
    ----------
    found : Mapping
        {attendee and machine: the comparison}, all with the same baseline.

    Returns
    -------
    matplotlib.figure.Figure
    """
    variants = _common(list(found.values()))
    rows = sorted(found, key=lambda name: _times(found[name], variants[0]), reverse=True)
    figure, grid = plt.subplots(
        1, len(variants), squeeze=False, sharey=True, figsize=(7.5, 1.8 + 0.17 * len(rows))
    )
    baseline = next(iter(found.values())).baseline
    told: list[str] = []
    values: list[str] = []
    for axes, variant in zip(grid.flat, variants, strict=True):
        own = {at: found[name] for at, name in enumerate(rows) if variant in found[name].variants}
        words = Counter(one.verdict(variant) for one in own.values())
        labels = {True: "a difference is shown", False: "no difference is shown, or it is unclear"}
        for at, one in own.items():
            ratio, shown = one.ratio(variant), one.verdict(variant) in SHOWN
            inside = DARK if shown else "white"
            ends = (ratio.low, ratio.middle, ratio.high)
            interval(axes, at, *ends, labels.pop(shown, ""), markerfacecolor=inside, **THIN)
            values.append(f"{variant}, {rows[at]}: {ends[1]:.2f} ({ends[0]:.2f} to {ends[2]:.2f}).")
        middle = statistics.median(one.ratio(variant).middle for one in own.values())
        axes.axvline(middle, color=MIDDLE, linestyle=":", linewidth=2, label="median of the class")
        axes.axvline(1, color=GREY, linestyle="--", linewidth=1)
        axes.set_title(_drawable(variant), fontsize=10, loc="left")
        axes.grid(axis="y", visible=False)
        than = "" if told else f" than {baseline}"
        told.append(
            f"{variant}: faster{than} for {words['faster']} of {count_of(len(own), 'attendee')}, "
            f"slower for {words['slower']}; in the median {middle:.2f} times as fast."
        )
    first = grid[0, 0]
    first.set_yticks(range(len(rows)), [*map(_drawable, rows)], fontsize=8)
    first.set_ylim(len(rows) - 0.4, -0.6)
    label = f"times as fast as {_drawable(baseline)}, with 95 % intervals"
    grid[0, (len(variants) - 1) // 2].set_xlabel(label)
    return finish(figure, _drawable(" ".join(told)), " ".join(values), legend=3)


@style
def guesses_picture(guesses: Sequence[Guess]) -> Figure:
    """Draw guesses over what came, where both are numbers above 0.

    Ratios are points, on the right side of 1 or not; all numbers are counted by how many times what
    came they are.

    Parameters
    ----------
    guesses : sequence of Guess

    Returns
    -------
    matplotlib.figure.Figure
    """
    figure, (points, bars) = plt.subplots(1, 2, figsize=(9, 4.6))
    factors = [(one.unit, one.factor) for one in guesses if one.factor]
    times = [one for one in guesses if one.factor and one.unit == TIMES]
    every = [float(value) for one in times for value in (one.guess, one.came)] or [1.0]
    ends = np.array([min(0.5, *every) / 1.3, max(2.0, *every) * 1.3])
    points.fill_between(ends, ends / FAR, ends * FAR, color=PALE, zorder=0, linewidth=0,
                        label=f"within a factor of {FAR:g}")  # fmt: skip
    for draw in (points.axhline, points.axvline):
        draw(1, color=GREY, linewidth=1)
    ideal(points, ends, ends, "as guessed")
    for right, label, inside, marker in (
        (True, "right side of 1", DARK, "o"),
        (False, "wrong side of 1", "white", "s"),
        (None, f"came within {100 * (NEAR - 1):.0f} % of 1", GREY, "^"),
    ):
        own = [one for one in times if one.right_side is right]
        if own:
            points.plot([one.came for one in own], [one.guess for one in own], marker, markersize=8,
                        color=DARK, markerfacecolor=inside, linestyle="", label=label)  # fmt: skip
    points.set(xscale="log", yscale="log", xlim=ends, ylim=ends)
    points.set(xlabel="what came (times as fast)", ylabel="your guess (times as fast)")
    digits = (1, 2, 5) if ends[1] < 1000 * ends[0] else (1,)
    ticks = [
        digit * 10.0**power
        for power in range(-15, 16)
        for digit in digits
        if ends[0] < digit * 10.0**power < ends[1]
    ]
    for axis in (points.xaxis, points.yaxis):
        axis.set_ticks(ticks, [f"{tick:g}" for tick in ticks])
        axis.set_ticks([], minor=True)
    columns = [Counter[str]() for _ in BINS]
    for unit, factor in factors:
        at = int(np.clip(np.floor(np.log2(factor)) + 3, 0, len(BINS) - 1))
        columns[at]["times" if unit == TIMES else "other"] += 1
    stacked(bars, columns, PARTS, flat=False, width=0.85)
    bars.axvline(2.5, color=INK, linestyle="--", linewidth=1)
    bars.set_xticks(range(len(BINS)), BINS, fontsize=9)
    bars.set(xlabel="your guess / what came", ylabel="guesses (count)")
    bars.grid(axis="x", visible=False)
    bars.yaxis.get_major_locator().set_params(integer=True)
    near = sum(1 / FAR <= factor <= FAR for _, factor in factors)
    sides = [one.right_side for one in times if one.right_side is not None]
    told = f"{near} of {len(factors)} numbers within a factor of {FAR:g} of what came"
    if sides:
        told += f"; {sum(sides)} of {len(sides)} ratios on the right side of 1"
    return finish(figure, f"{told}.", legend=3)


def _common(found: Sequence[Comparison]) -> list[str]:
    """Choose the variants that at least half of all have, or the most common one."""
    counts = Counter(variant for one in found for variant in one.variants)
    most = [name for name, number in counts.items() if 2 * number >= len(found)]
    return most[:PANELS] or [counts.most_common(1)[0][0]]


def _times(one: Comparison, variant: str) -> float:
    return one.ratio(variant).middle if variant in one.variants else 0.0


def _drawable(text: str) -> str:
    """Escape the sign that matplotlib takes for mathematics."""
    return text.replace("$", r"\$")
