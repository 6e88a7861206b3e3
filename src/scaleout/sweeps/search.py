"""Fewer trials than a whole grid: Optuna proposes the next point from what the points before it
gave.

TPE, the tree-structured Parzen estimator: Bergstra, Bardenet, Bengio and Kegl, "Algorithms for
Hyper-Parameter Optimization", NIPS 2011. Optuna is imported when a search begins, so that all else
works without it."""

import itertools
import math
import random
import warnings
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ..errors import ScaleoutError
from ..words import sort_key
from .points import Choices, Value

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["ask", "replay"]

Place = tuple[Value, ...]


def ask(
    choices: Choices, trials: int, seed: int, measure: Callable[[Place], float | None]
) -> list[Place]:
    """Measures points of the grid of choices, one after another, each chosen by what those before
    gave.

    Where TPE proposes a point that was tried, its nearest neighbour that was not takes its place.

    Parameters
    ----------
    choices : dict of axis to tuple of values
    trials : int
        At most so many different points.
    seed : int
        The same seed and the same worths give the same order, so that a search that was interrupted
        can be gone through again.
    measure : callable
        Takes a value from each axis and returns what the point is worth, more being better; None
        when it failed.

    Returns
    -------
    list of tuple
        The points in the order of asking.

    References
    ----------
    Bergstra, Bardenet, Bengio and Kegl, "Algorithms for Hyper-Parameter Optimization", NIPS 2011.
    """
    optuna = _optuna()
    sampler = optuna.samplers.TPESampler(
        seed=seed, multivariate=True, n_startup_trials=max(2, round(trials / 3))
    )
    study = optuna.create_study(direction="maximize", sampler=sampler)
    axes = [tuple(sorted(values, key=sort_key)) for values in choices.values()]
    spaces = {
        str(i): optuna.distributions.CategoricalDistribution(range(len(axis)))
        for i, axis in enumerate(axes)
    }
    left = list(itertools.product(*(range(len(axis)) for axis in axes)))
    random.Random(seed).shuffle(
        left
    )  # so that neighbours at the same distance have the same chance
    worth: dict[Place, float | None] = {}
    while left and len(worth) < trials:
        trial = study.ask(spaces)
        at = tuple(trial.params[name] for name in spaces)
        if at not in left:
            study.tell(trial, state=optuna.trial.TrialState.FAIL)
            near = min(left, key=lambda other: _distance(axes, at, other))
            study.enqueue_trial(dict(zip(spaces, near, strict=True)))  # what it asks for next
            continue
        left.remove(at)
        place = tuple(axis[i] for axis, i in zip(axes, at, strict=True))
        worth[place] = measure(place)
        worst = min((value for value in worth.values() if value is not None), default=0.0)
        study.tell(
            trial, worst if (value := worth[place]) is None else value
        )  # a failure is as bad as the worst
    return list(worth)


def _distance(axes: Sequence[Place], one: Sequence[int], other: Sequence[int]) -> int:
    """Steps between two points: along an axis of numbers as many as there are, between two words
    one."""
    return sum(
        abs(i - j) if _numbers(axis) else i != j
        for axis, i, j in zip(axes, one, other, strict=True)
    )


def _optuna() -> Any:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter(
                "ignore"
            )  # its progress bars, which we do not use, miss a package in a notebook
            import optuna
    except ImportError:
        raise ScaleoutError(
            "--search needs Optuna: type  pip install optuna  or leave --search out."
        ) from None
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    return optuna


def _numbers(values: Place) -> bool:
    return not any(math.isinf(place) for place, _ in map(sort_key, values) if place > 0)


def replay(
    frame: "pd.DataFrame", trials: int, seed: int = 0, lower: bool = False
) -> "pd.DataFrame":
    """What a search would have found on a grid that was measured whole; no job is started.

    Parameters
    ----------
    frame : DataFrame
        `Result.frame` of a whole grid.
    trials : int
        How many points the search may try.
    seed : int
    lower : bool
        The figure is a time: less is better.

    Returns
    -------
    DataFrame
        The rows of frame in the order of asking, with two more columns: `best_so_far`, and
        `of_best`, that as a share of the whole grid's best (1 when it was found).

    Raises
    ------
    ScaleoutError
        When the grid has gaps.
    """
    axes = list(frame.columns[: frame.columns.get_loc("rate")])
    axes = [axis for axis in axes if frame[axis].nunique() > 1]
    if (
        "ranks" in axes
        and "threads" in axes
        and (frame.groupby("ranks").threads.nunique() == 1).all()
    ):
        axes.remove("threads")  # each rank's share of the cores
    choices: Choices = {axis: tuple(frame[axis].unique()) for axis in axes}
    frame = frame.assign(rate=frame.rate.where(frame.status == "ok"))
    rates = frame.set_index(axes).rate if axes else frame.rate
    if not axes or len(rates) != math.prod(map(len, choices.values())) or rates.notna().sum() == 0:
        raise ScaleoutError("A search is replayed over a whole grid, each of its points measured.")
    worth = {
        k if isinstance(k, tuple) else (k,): v for k, v in (-rates if lower else rates).items()
    }
    order = ask(
        choices,
        trials,
        seed,
        lambda place: None if math.isnan(worth[place]) else float(worth[place]),
    )
    rows = (
        frame.set_index(axes)
        .loc[[p if len(axes) > 1 else p[0] for p in order]]
        .reset_index()[frame.columns]
    )
    best = rows.rate.cummin() if lower else rows.rate.cummax()
    top = rates.min() if lower else rates.max()
    return rows.assign(best_so_far=best, of_best=top / best if lower else best / top)
