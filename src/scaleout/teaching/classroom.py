"""Draw the figure of a class: what everybody's machine reached, and which TODOs are done."""

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from ..base.words import count as count_of
from ..plots.look import DARK, GREY, LIGHT, MIDDLE, PALE, Look, finish, style
from ..plots.primitives import stacked

if TYPE_CHECKING:
    import pandas as pd


EDGE: Look = {"edgecolor": "#555555", "linewidth": 0.6}
COLOURS = {"passed": DARK, "not yet": LIGHT, "not judged": GREY, "not started": PALE}
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
