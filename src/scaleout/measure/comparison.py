"""What a comparison found: ratios with their intervals, a verdict a variant, what disturbed it."""

import functools
import html
import json
import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..errors import ScaleoutError
from ..intervals import LEVEL, ROUNDS, Paired, Ratio, paired, verdict
from ..paths import results, results_path, show
from ..words import count, rounded

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

__all__ = ["Comparison"]

Array = NDArray[np.float64]
WITHIN = 0.05
MULTIPLE = "The intervals of {} variants hold together, at {:.0f} % (Bonferroni)."


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
        self._columns = [(self.baseline, 0), (self.baseline, 1), *((name, 0) for name in names[1:])]
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
        return np.array([[at[(r, *column)] for column in self._columns] for r in rounds], float)

    @functools.cached_property
    def runs(self) -> "pd.DataFrame":
        """A row each run: round, place (in the order of all), variant, again (0, or 1 for the
        baseline's second run of a round), value, unit, run_id, utc. Only whole rounds count."""
        import pandas as pd

        return pd.DataFrame(self._rows)

    def ratio(self, variant: str) -> Ratio:
        """How many times as fast as the baseline: middle, low, high."""
        return self.found.ratios[self._known(variant)]

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
        for name, again in self._columns:
            own = self.runs[(self.runs.variant == name) & (self.runs.again == again)].value
            ratio = self.found.null if again else self.found.ratios.get(name)
            found = [ratio.middle, ratio.low, ratio.high] if ratio else [1.0, math.nan, math.nan]
            said = "" if name == self.baseline else self.verdict(name)
            said = f"the noise: {_percent(self.noise)}" if again else said
            line = [len(own), own.median(), own.min(), own.max(), *found, said]
            lines[f"{name}, again" if again else name] = line
        columns = ["runs", "median", "lowest", "highest", "ratio", "low", "high", "verdict"]
        return pd.DataFrame.from_dict(lines, orient="index", columns=columns)

    @property
    def records(self) -> "pd.DataFrame":
        """What the jobs themselves recorded: a row each, its `variant` that of the comparison."""
        from .. import records

        files = {path.parent.name: path for path in results_path().rglob("records.jsonl")}
        found = records.read(*(files[run] for run in self.runs.run_id if run in files))
        variants = self.runs[["run_id", "variant"]]
        return found.drop(columns="variant").merge(variants, on="run_id")

    def sentence(self, variant: str) -> str:
        """What was found of this variant, in a sentence."""
        ratio, said = self.ratio(variant), self.verdict(variant)
        if ratio.rounds < ROUNDS:
            return f"{variant}: unclear, after {count(ratio.rounds, 'round')}; it takes {ROUNDS}."
        times = f"{_times(ratio, ratio.middle)} times as fast as {self.baseline}"
        interval = f"{_times(ratio, ratio.low)} to {_times(ratio, ratio.high)}"
        if said == "no difference shown":
            return f"{variant}: no difference shown from {self.baseline} (within ±{_percent(ratio.reach)})."
        if said != "unclear":
            return f"{variant}: {said}, {times} ({interval})."
        if ratio.low > 1 or ratio.high < 1:
            return (
                f"{variant}: unclear. It is {times} ({interval}), "
                f"and the noise alone makes up to {_percent(self.noise)}."
            )
        return f"{variant}: unclear. It is {times}, but the interval holds 1 ({interval})."

    @property
    def notes(self) -> list[str]:
        """What the figures rest on and what speaks against them, a sentence each."""
        unit = f" {self.unit}" if self.unit else ""
        base = self.runs[self.runs.variant == self.baseline].value.median()
        said = [f"{count(self.rounds, 'round')}; {self.baseline} gives {rounded(base)}{unit}."]
        if math.isfinite(self.noise):
            said.append(
                f"The noise: two equal variants may differ by {_percent(self.noise)}; "
                "no smaller gain counts."
            )
        if len(self.variants) > 1:
            said.append(MULTIPLE.format(len(self.variants), 100 * LEVEL))
        null = self.found.null
        if self.rounds >= ROUNDS and not null.low <= 1 <= null.high:
            said.append(
                f"{self.baseline} differs from itself: its second run of a round is "
                f"{_times(null, null.middle)} times as fast as the first."
            )
        for round_, column, share in self.found.disturbed:
            way = "faster" if share > 0 else "slower"
            said.append(
                f"Round {round_ + 1} was disturbed: a run of {self._columns[column][0]} was "
                f"{_percent(abs(share))} {way} than its others."
            )
        left_out = self.rounds - min(ratio.rounds for ratio in self.found.ratios.values())
        if left_out:
            left = count(self.rounds - left_out, "round")
            said.append(f"That leaves {left} for the ratios.")
        if self.found.drifted:
            way = "faster" if self.drift > 0 else "slower"
            said.append(
                f"The machine became {_percent(abs(self.drift))} {way} over the runs; "
                "ratios are taken within a round, so they stand."
            )
        return said

    @property
    def summary(self) -> str:
        """A sentence each variant."""
        return " ".join(self.sentence(name) for name in self.variants)

    def __repr__(self) -> str:
        lines = [self.sentence(name) for name in self.variants] + self.notes
        return "\n".join([str(self._shown().to_string()), "", *lines])

    def _repr_html_(self) -> str:
        lines = [self.sentence(name) for name in self.variants] + self.notes
        return str(self._shown().to_html()) + "".join(
            f"<p>{html.escape(line)}</p>" for line in lines
        )

    def markdown(self) -> str:
        """The table and the sentences, for a report or a note."""
        shown = self._shown().reset_index(names="variant")
        rows = [list(shown.columns), ["---"] * len(shown.columns), *shown.to_numpy().tolist()]
        lines = ["| " + " | ".join(str(c).replace("|", "\\|") for c in row) + " |" for row in rows]
        said = [self.sentence(name) for name in self.variants] + self.notes
        return "\n".join([*lines, "", *(f"- {line}" for line in said)]) + "\n"

    def _shown(self) -> "pd.DataFrame":
        table = self.table
        for name in ("median", "lowest", "highest"):
            table[name] = table[name].map(rounded)
        for name in ("ratio", "low", "high"):
            table[name] = table[name].map(lambda x: "" if math.isnan(x) else f"{x:.3f}")
        return table

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
            disturbed=[(r, *self._columns[c]) for r, c, _ in self.found.disturbed],
            title=self.summary,
            axis=self.unit or self.metric,
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


def _times(ratio: Ratio, value: float) -> str:
    """With as many digits as the interval is worth."""
    return f"{value:.{2 if ratio.width > 0.005 else 4}f}"


def _percent(share: float) -> str:
    if not math.isfinite(share):
        return "any amount"
    return f"{100 * share:.{1 if share < 0.0995 else 0}f} %"
