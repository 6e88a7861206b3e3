"""One job made faster step by step: what `compare` calls faster is kept, and nothing else."""

import json
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from ..comparisons.comparison import Comparison
from ..errors import ScaleoutError

if TYPE_CHECKING:
    from matplotlib.figure import Figure


Settings = dict[str, Any]


class Tuning:
    """A job's settings, improved one step at a time, each step in rounds against what is kept so
    far.

    Parameters
    ----------
    job : callable
        A lab's `run`. Its script tune.py measures variants in rounds, all in one job, and writes
        metrics.runs.
    rounds : int, optional
        Of each step; without it the script decides.
    **first
        The settings to begin with: ranks, threads and whatever else tune.py takes.

    Attributes
    ----------
    kept : dict
        The settings that are kept now.
    steps : dict of str to Comparison
        What each step found, in order.
    """

    def __init__(self, job: Callable[..., Any], rounds: int | None = None, **first: Any) -> None:
        self._job, self._rounds = job, rounds
        self._before = "first written"
        self.kept: Settings = dict(first)
        self.steps: dict[str, Comparison] = {}

    def step(self, name: str, variants: Mapping[str, Mapping[str, Any]]) -> Comparison:
        """Compares changes with what is kept so far, and keeps the fastest of those that are shown
        to be faster.

        Parameters
        ----------
        name : str
            Of the step. The same name again measures that step anew, from what is kept now.
        variants : mapping of name to settings
            What each changes.

        Returns
        -------
        Comparison

        Raises
        ------
        ScaleoutError
            Where a change is none, or the job fails.
        """
        before = self._before
        settings = {before: self.kept}
        for variant, change in variants.items():
            settings[variant] = {**self.kept, **change}
            if settings[variant] == self.kept:
                raise ScaleoutError(f"{variant!r} changes nothing: it is what is kept already.")
        how = {} if self._rounds is None else {"rounds": self._rounds}
        done = self._job(
            script="tune.py",
            ranks=processes(settings),
            threads=1,
            bind="none",
            echo=False,
            variants=json.dumps(settings),
            **how,
        )
        rows = done.records["metrics.runs"].iloc[0]
        found = Comparison(rows, metric="images/s, all time counted")
        if found.best != before:
            self.kept, self._before = settings[found.best], found.best
        self.steps[name] = found
        return found

    @property
    def gain(self) -> float:
        """How many times as fast the kept steps are together, if their gains multiply."""
        product = 1.0
        for found in self.steps.values():
            product *= 1.0 if found.best == found.baseline else found.ratio(found.best).middle
        return product

    def plot(self, guess: str | None = None) -> "Figure":
        """The steps as a waterfall, each with its interval.

        Parameters
        ----------
        guess : str, optional
            The step that you expected most of.
        """
        from .. import plots

        return plots.kept_steps(self.steps, guess)


def processes(settings: Mapping[str, Mapping[str, Any]]) -> int:
    """How many ranks a job of tune.py needs: so many for each number of threads, as that number is
    fixed when a rank starts.
    """
    most: dict[int, int] = {}
    for how in settings.values():
        ranks, threads = int(how["ranks"]), int(how["threads"])
        most[threads] = max(most.get(threads, 0), ranks)
    return sum(most.values())
