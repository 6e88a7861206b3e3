"""What a comparison found: ratios with their intervals, a verdict a variant."""

import functools
import json
import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..errors import ScaleoutError
from ..paths import results, results_path, show
from . import said
from .intervals import ROUNDS, Paired, Ratio, between, paired, verdict

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


Array = NDArray[np.float64]
WITHIN = 0.05


class Comparison:
    """Variants against a baseline that ran twice a round, as far as they were measured.

    Parameters
    ----------
    rows : iterable of mapping
        A row each run, in the order in which they ran: round, variant, again (0, or 1 for the
        baseline's second run of a round), value, and place, unit, run_id, utc where they are known.
        The first variant is the baseline. What follows the last whole round is left out.
    lower : bool
        Less is better.
    within : float
        "No difference shown" needs an interval within this share of the baseline.
    metric : str
        What `value` is called.
    folder : Path, optional
        Where it is kept.

    Attributes
    ----------
    baseline : str
        The variant that the others are compared with: the first.
    variants : list of str
        The others.
    noise : float
        By how much two equal variants may differ here, as a share; no smaller gain counts.
    drift : float
        How much faster the machine was at the end than at the start, as a share.
    columns : list of (variant, again)
        The runs of a round: the baseline, the baseline again (1), the variants.
    found : Paired
        What all of this comes from.

    Raises
    ------
    ScaleoutError
        There is no whole round.
    """

    def __init__(
        self,
        rows: Iterable[Mapping[str, Any]],
        lower: bool = False,
        within: float = WITHIN,
        metric: str = "rate",
        folder: Path | None = None,
    ) -> None:
        self.lower, self.within, self.metric, self.folder = lower, within, metric, folder
        kept = [dict(row) for row in rows]
        names = list(dict.fromkeys(row["variant"] for row in kept))
        size = len(names) + 1
        if len(names) < 2 or len(kept) < size:
            raise ScaleoutError("There is no whole round to compare: measure at least one.")
        self._rows = kept[: len(kept) // size * size]
        self.baseline, self.variants = names[0], names[1:]
        self.rounds = len(self._rows) // size
        self.unit = str(kept[0].get("unit", ""))
        self.columns = [(self.baseline, 0), (self.baseline, 1), *((name, 0) for name in names[1:])]
        values = self._wide("value") ** (-1.0 if lower else 1.0)
        self.found: Paired = paired(
            values[:, :2],
            {name: values[:, column] for column, name in enumerate(self.variants, 2)},
            order=self._wide("place") if "place" in kept[0] else None,
        )
        self.noise, self.drift = self.found.noise, self.found.drift

    def _wide(self, field: str) -> Array:
        """One field as (rounds, columns): the baseline, the baseline again, the variants."""
        at = {(row["round"], row["variant"], row["again"]): row[field] for row in self._rows}
        rounds = sorted({row["round"] for row in self._rows})
        return np.array([[at[(r, *column)] for column in self.columns] for r in rounds], float)

    @functools.cached_property
    def runs(self) -> "pd.DataFrame":
        """A row each run: round, place (in the order of all), variant, again (0, or 1 for the
        baseline's second run of a round), value, unit, run_id, utc. Only whole rounds count."""
        import pandas as pd

        return pd.DataFrame(self._rows)

    def ratio(self, variant: str) -> Ratio:
        """How many times as fast as the baseline: middle, low, high."""
        return self.found.ratios[self._known(variant)]

    def between(self, variant: str, other: str) -> Ratio:
        """How many times as fast as another variant: middle, low, high.

        Rounds in which one of the two was disturbed are left out, as long as three remain.

        Parameters
        ----------
        variant, other : str
        """
        names = [name for name, _ in self.columns]
        first, second = (names.index(self._known(name)) for name in (variant, other))
        values = self._wide("value") ** (-1.0 if self.lower else 1.0)
        off = {r for r, c, _ in self.found.disturbed if c in (first, second)}
        clean = [r for r in range(self.rounds) if r not in off]
        kept = values[clean if len(clean) >= ROUNDS else slice(None)]
        return between(kept[:, first], kept[:, second])

    def verdict(self, variant: str) -> str:
        """faster, slower, no difference shown, or unclear."""
        return verdict(self.ratio(variant), self.noise, self.within)

    def _known(self, variant: str) -> str:
        if variant not in self.found.ratios:
            raise ScaleoutError(
                f"There is no variant {variant!r} beside {self.baseline!r}: "
                f"type one of {', '.join(map(repr, self.variants))}."
            )
        return variant

    @property
    def best(self) -> str:
        """The fastest of the variants that are faster than the baseline; else the baseline."""
        faster = [name for name in self.variants if self.verdict(name) == "faster"]
        found: str = max(faster, key=lambda name: self.ratio(name).middle, default=self.baseline)
        return found

    @property
    def table(self) -> "pd.DataFrame":
        """A row each: the baseline, the baseline again, the variants; runs, median, lowest,
        highest, then ratio, low, high and verdict."""
        import pandas as pd

        lines = {}
        for name, again in self.columns:
            own = self.runs[(self.runs.variant == name) & (self.runs.again == again)].value
            ratio = self.found.null if again else self.found.ratios.get(name)
            found = [ratio.middle, ratio.low, ratio.high] if ratio else [1.0, math.nan, math.nan]
            word = "" if name == self.baseline else self.verdict(name)
            word = f"the noise: {said.percent(self.noise)}" if again else word
            line = [len(own), own.median(), own.min(), own.max(), *found, word]
            lines[f"{name}, again" if again else name] = line
        columns = ["runs", "median", "lowest", "highest", "ratio", "low", "high", "verdict"]
        return pd.DataFrame.from_dict(lines, orient="index", columns=columns)

    @property
    def records(self) -> "pd.DataFrame":
        """What the jobs themselves recorded: a row each, its `variant` that of the comparison."""
        from .. import records

        files = {path.parent.name: path for path in results_path().rglob("records.jsonl")}
        found = records.read(*(files[run] for run in self.runs.run_id if run in files))
        variants = self.runs[["run_id", "variant"]].drop_duplicates()
        return found.drop(columns="variant").merge(variants, on="run_id")

    def sentence(self, variant: str) -> str:
        """What was found of this variant, in a sentence."""
        return said.sentence(self, variant)

    @property
    def notes(self) -> list[str]:
        """What the figures rest on and what speaks against them, a sentence each."""
        return said.notes(self)

    @property
    def summary(self) -> str:
        """A sentence each variant."""
        return " ".join(self.sentence(name) for name in self.variants)

    def __repr__(self) -> str:
        return "\n".join([said.shown(self).to_string(), "", *said.sentences(self)])

    def _repr_html_(self) -> str:
        return said.as_html(self)

    def markdown(self) -> str:
        """The table and the sentences, for a report or a note."""
        return said.markdown(self)

    def plot(self, guess: float | None = None) -> "Figure":
        """Single runs, medians, and the intervals of the ratios beside the noise.

        Parameters
        ----------
        guess : float, optional
            How many times as fast you expected the last variant to be.
        """
        from .. import plots

        return plots.comparison(
            self.runs,
            self.table,
            noise=self.noise,
            disturbed=[(r, *self.columns[c]) for r, c, _ in self.found.disturbed],
            title=said.finding(self),
            values=self.summary,
            axis={"s": "seconds"}.get(self.unit, self.unit) or self.metric,
            guess=guess,
        )

    def write(self) -> list[Path]:
        """Writes the figure and the table into the comparison's folder; returns their paths."""
        folder = self.folder or results("compare")
        picture, text = folder / "comparison.png", folder / "comparison.md"
        self.plot().savefig(picture)
        text.write_text(self.markdown(), encoding="utf-8")
        return [picture, text]

    @classmethod
    def read(cls, folder: Path | str) -> "Comparison":
        """A comparison that was measured before: its folder in results/compare/."""
        place = Path(folder)
        try:
            about = json.loads((place / "compare.json").read_text(encoding="utf-8"))
            lines = (place / "runs.jsonl").read_text(encoding="utf-8").splitlines()
        except OSError:
            raise ScaleoutError(
                f"There is no comparison in {show(place)}: give its folder in results/compare/."
            ) from None
        rows = [json.loads(line) for line in lines]
        return cls(rows, about["lower"], about["within"], about["metric"], place)
