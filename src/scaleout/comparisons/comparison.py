"""What a comparison found: ratios with their intervals, a verdict a variant, and the sentences that
they allow."""

import functools
import html
import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from msgspec import UNSET
from numpy.typing import NDArray

from ..base.errors import ScaleoutError
from ..base.paths import results, results_path, show
from ..base.words import count, markdown_table, percent, rounded
from ..measuring.asked import Comparing
from ..measuring.journal import description, read_rows
from ..measuring.row import Again, Compared
from .intervals import LEVEL, ROUNDS, Paired, Ratio, Verdict, between, paired, verdict

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


Array = NDArray[np.float64]
START = 10  # times the start of a job: of what takes less it is a large part
RUNS = ("round", "place", "variant", "again", "value", "unit", "run_id", "utc")
MOST_LISTED = 3  # machines that a sentence names one by one
FOUND = {"no difference shown": "not shown to differ"}  # behind "is" and "are"


@dataclass(frozen=True)
class Other:
    """A comparison as another machine gave it."""

    name: str  # of the machine
    date: str
    found: "Comparison"
    facts: Mapping[str, Mapping[str, float]]  # what else was found there, by variant


class Comparison:
    """Variants against a baseline that ran twice a round, as far as they were measured.

    Parameters
    ----------
    rows : iterable of Compared, or of mappings with its fields
        A row each run, in the order in which they ran: round, variant, again (0, or 1 for the
        baseline's second run of a round), value, and whatever else `measuring.row.Compared` holds
        where it is known. The first variant is the baseline. Of a round only a whole one counts.
    lower : bool
        Less is better.
    metric : str
        What `value` is called.
    folder : Path, optional
        Where it is kept.
    compared : int
        How many variants there were to choose from, where these are not all of them.
    others : sequence of Other
        The same comparison as other machines gave it: drawn below one's own, never mixed with it.

    Attributes
    ----------
    baseline : str
        The variant that the others are compared with: the first.
    variants : list of str
        The others.
    rounds : int
        How many whole rounds there are.
    unit : str
        Of `value`; "" where it has none.
    noise : float
        By how much two identical variants could differ here, as a share; no smaller gain counts.
    start_s : float
        Seconds that an empty job takes, where that is a large part of jobs compared by their
        seconds; else 0. Where it is most of them, "no difference shown" is no verdict.
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
        rows: Iterable[Compared | Mapping[str, object]],
        lower: bool = False,
        metric: str = "rate",
        folder: Path | None = None,
        compared: int = 0,
        others: Sequence[Other] = (),
    ) -> None:
        self.lower, self.metric, self.folder, self.others = lower, metric, folder, others
        kept = [row if isinstance(row, Compared) else Compared.of(row) for row in rows]
        names = list(dict.fromkeys(row.variant for row in kept))
        size = len(names) + 1
        runs = Counter(row.round for row in kept)
        self._rows = [row for row in kept if runs[row.round] == size]
        if len(names) < 2 or not self._rows:
            raise ScaleoutError("There is no whole round to compare: measure at least one.")
        self.baseline, self.variants = names[0], names[1:]
        self.rounds = len(self._rows) // size
        self.unit = kept[0].unit
        self.columns: list[tuple[str, Again]]
        self.columns = [(self.baseline, 0), (self.baseline, 1), *((name, 0) for name in names[1:])]
        self._compared = compared
        self.found = self.paired()
        shortest = min(row.value for row in self._rows)
        start_s = self._rows[0].start_s
        self.start_s = start_s if START * start_s > shortest else 0.0
        self._hidden = 2 * start_s > shortest
        self.noise, self.drift = self.found.noise, self.found.drift

    def paired(self, level: float = LEVEL) -> Paired:
        """Estimate all ratios, with intervals of another level.

        Parameters
        ----------
        level : float

        Returns
        -------
        Paired
        """
        values = self.speeds()
        return paired(
            values[:, :2],
            {name: values[:, column] for column, name in enumerate(self.variants, 2)},
            compared=self._compared,
            order=None if self._rows[0].place is UNSET else self._wide("place"),
            level=level,
        )

    def _wide(self, field: str) -> Array:
        """Arrange a field as (rounds, columns): the baseline, the baseline again, the variants."""
        at = {(row.round, row.variant, row.again): getattr(row, field) for row in self._rows}
        rounds = sorted({row.round for row in self._rows})
        wide = [[float(at[r, name, again]) for name, again in self.columns] for r in rounds]
        return np.array(wide, np.float64)

    def speeds(self) -> Array:
        """Arrange the values as (rounds, columns), of times their inverse: more is better."""
        return self._wide("value") ** (-1.0 if self.lower else 1.0)

    @functools.cached_property
    def runs(self) -> "pd.DataFrame":
        """A row each run: round, place (in the order of all), variant, again (0, or 1 for the
        baseline's second run of a round), value, unit, run_id, utc. Only whole rounds count."""
        import pandas as pd

        told = [name for name in RUNS if getattr(self._rows[0], name) is not UNSET]
        return pd.DataFrame([{name: getattr(row, name) for name in told} for row in self._rows])

    def ratio(self, variant: str) -> Ratio:
        """Return how many times as fast as the baseline a variant is.

        Parameters
        ----------
        variant : str

        Returns
        -------
        Ratio
            `middle`, `low` and `high` (the ends of its interval, see `intervals.paired`), and
            `rounds`, on how many it rests.

        Raises
        ------
        ScaleoutError
            There is no such variant.
        """
        return self.found.ratios[self._known(variant)]

    def between(self, variant: str, other: str) -> Ratio:
        """Return how many times as fast as another variant a variant is.

        Rounds in which one of the two was disturbed are left out, as long as three remain.

        Parameters
        ----------
        variant, other : str
            Neither is the baseline.

        Returns
        -------
        Ratio

        Raises
        ------
        ScaleoutError
            There is no such variant.
        """
        names = [name for name, _ in self.columns]
        first, second = (names.index(self._known(name)) for name in (variant, other))
        values = self.speeds()
        off = {r for r, c, _ in self.found.disturbed if c in (first, second)}
        clean = [r for r in range(self.rounds) if r not in off]
        kept = values[clean if len(clean) >= ROUNDS else slice(None)]
        return between(kept[:, first], kept[:, second])

    def verdict(self, variant: str) -> Verdict:
        """Judge a variant against the baseline.

        Parameters
        ----------
        variant : str

        Returns
        -------
        {"faster", "slower", "no difference shown", "unclear"}

        Raises
        ------
        ScaleoutError
            There is no such variant.
        """
        return self._word(self.ratio(variant))

    def _word(self, ratio: Ratio) -> Verdict:
        """Judge a ratio; of jobs that are mostly start, none can be shown to be equal."""
        word = verdict(ratio, self.noise)
        return "unclear" if self._hidden and word == "no difference shown" else word

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
            word: str = "" if name == self.baseline else self.verdict(name)
            word = f"the noise: {percent(self.noise)}" if again else word
            line = [len(own), own.median(), own.min(), own.max(), *found, word]
            lines[f"{name}, again" if again else name] = line
        columns = ["runs", "median", "lowest", "highest", "ratio", "low", "high", "verdict"]
        return pd.DataFrame.from_dict(lines, orient="index", columns=columns)

    @property
    def records(self) -> "pd.DataFrame":
        """What the jobs themselves recorded: a row each, its `variant` that of the comparison."""
        from ..kit import records

        files = {path.parent.name: path for path in results_path().rglob("records.jsonl")}
        variants = self.runs[self.runs.run_id.isin(files)][["run_id", "variant"]].drop_duplicates()
        none = results_path() / "records.jsonl"  # no file, and so no records
        found = records.read(*([files[run] for run in variants.run_id] or [none]))
        return found.drop(columns="variant").merge(variants, on="run_id")

    def sentence(self, variant: str, other: str = "") -> str:
        """Say in a sentence what was found of a variant beside the baseline, or beside another.

        Parameters
        ----------
        variant : str
        other : str
            Another variant; "" for the baseline.

        Returns
        -------
        str

        Raises
        ------
        ScaleoutError
            There is no such variant.
        """
        ratio = self.between(variant, other) if other else self.ratio(variant)
        word, first = self._word(ratio), other or self.baseline
        if ratio.rounds < ROUNDS:
            return f"{variant}: unclear after {count(ratio.rounds, 'round')}; it takes {ROUNDS}."
        times = f"{_times(ratio, ratio.middle)} times as fast as {first}"
        interval = f"{_times(ratio, ratio.low)} to {_times(ratio, ratio.high)}"
        if word == "no difference shown":
            reach = percent(ratio.reach)
            return f"{variant}: no difference from {first} is shown (within ±{reach})."
        if word != "unclear":
            return f"{variant}: {word}, {times} ({interval})."
        if self._hidden and verdict(ratio, self.noise) == "no difference shown":
            return f"{variant}: unclear, as most of each job's time is its start."
        if ratio.low > 1 or ratio.high < 1:
            return (
                f"{variant}: unclear. It is {times} ({interval}), "
                f"but the noise alone can make up to {percent(self.noise)}."
            )
        return f"{variant}: unclear. It is {times}, but the interval contains 1 ({interval})."

    def elsewhere(self, variant: str) -> dict[str, Ratio]:
        """Return how many times as fast as the baseline a variant is on each other machine.

        Parameters
        ----------
        variant : str

        Returns
        -------
        dict
            {machine: Ratio}, without those that lack the variant or compare it with another one.
        """
        return {
            other.name: other.found.ratio(variant)
            for other in self.others
            if other.found.baseline == self.baseline and variant in other.found.variants
        }

    def elsewhere_sentence(self, variant: str) -> str:
        """Say in a line how a variant did on the other machines.

        Parameters
        ----------
        variant : str

        Returns
        -------
        str
            "" where there are none.
        """
        ratios = self.elsewhere(variant)
        told = sorted(ratios, key=lambda name: ratios[name].middle)
        if len(told) > MOST_LISTED:
            low, high = (f"{ratios[name].middle:.2f}" for name in (told[0], told[-1]))
            return (
                f"Stored runs of {variant} on {len(told)} machines: {low} ({told[0]}) to {high} ({told[-1]}) "
                "times as fast."
            )
        each = [
            f"{ratios[name].middle:.2f} times as fast ({ratios[name].low:.2f} to {ratios[name].high:.2f}) "
            f"on {name}"
            for name in told
        ]
        return f"Stored runs of {variant}: {'; '.join(each)}." * bool(each)

    @property
    def finding(self) -> str:
        """The one thing to remember: of one or two variants what was found of each, of more the
        best one, and which of the others are what."""
        every = {name: self.verdict(name) for name in self.variants}
        if len(every) <= 2:
            return self.summary
        best = self.best
        others: dict[str, list[str]] = {}
        for name, word in every.items():
            if name != best:
                others.setdefault(FOUND.get(word, word), []).append(name)
        told = "; ".join(
            f"{_listed(names)} {'is' if len(names) == 1 else 'are'} {word}"
            for word, names in others.items()
        )
        if best == self.baseline and list(others) == ["slower"]:
            return f"{best} is faster than {_listed(others['slower'])}."
        if best == self.baseline:
            return f"None of {len(every)} variants is shown to be faster than {best}: {told}."
        return f"{self.sentence(best)} Against {self.baseline}, {told}."

    @property
    def notes(self) -> list[str]:
        """What the figures rest on and what speaks against them, a sentence each."""
        unit = f" {self.unit}" if self.unit else ""
        base = self.table["median"].iloc[0]
        notes = [f"{count(self.rounds, 'round')}; {self.baseline} gives {rounded(base)}{unit}."]
        if self.start_s:
            notes.append(
                f"An empty job takes {rounded(self.start_s)} s here: the start of a job is so large a part "
                "of these seconds that the commands themselves may differ by more than the ratios say. Let "
                "each do its work many times over, or print a time of its own for --metric."
            )
        if math.isfinite(self.noise):
            notes.append(
                f"The noise: two identical variants could differ by {percent(self.noise)}; "
                "no smaller gain counts."
            )
        if len(self.variants) > 1:
            notes.append(
                f"With {100 * LEVEL:.0f} % confidence, the intervals of all {len(self.variants)} "
                "variants contain their true ratios (Bonferroni)."
            )
        null = self.found.null
        if self.rounds >= ROUNDS and not null.low <= 1 <= null.high:
            notes.append(
                f"{self.baseline} differs from itself: its second run of a round is "
                f"{_times(null, null.middle)} times as fast as the first."
            )
        for round_, column, share in self.found.disturbed:
            way = "faster" if share > 0 else "slower"
            notes.append(
                f"Round {round_ + 1} was disturbed: a run of {self.columns[column][0]} was "
                f"{percent(abs(share))} {way} than its other runs."
            )
        notes += dict.fromkeys(row.remark for row in self._rows if row.remark)
        without = {row.variant: row.ignored for row in self._rows if row.ignored}
        notes += [f"{variant}: {text}." for variant, text in without.items()]
        never = {row.variant: row.copies for row in self._rows if row.copies}
        notes += [f"{variant}: {text}" for variant, text in never.items()]
        left_out = self.rounds - min(ratio.rounds for ratio in self.found.ratios.values())
        if left_out:
            left = count(self.rounds - left_out, "round")
            notes.append(f"That leaves {left} for the ratios.")
        if self.found.drifted:
            way = "faster" if self.drift > 0 else "slower"
            notes.append(
                f"The machine became {percent(abs(self.drift))} {way} over the runs; "
                "ratios are taken within a round, so they stand."
            )
        return notes

    @property
    def summary(self) -> str:
        """A sentence each variant."""
        return " ".join(map(self.sentence, self.variants))

    @property
    def _sentences(self) -> list[str]:
        return [*map(self.sentence, self.variants), *self.notes]

    def _shown(self) -> "pd.DataFrame":
        """Round the numbers of the table for those who read it."""
        table = self.table
        for name in ("median", "lowest", "highest"):
            table[name] = table[name].map(rounded)
        for name in ("ratio", "low", "high"):
            table[name] = table[name].map(lambda x: "" if math.isnan(x) else f"{x:.3f}")
        return table

    def __repr__(self) -> str:
        return "\n".join([self._shown().to_string(), "", *self._sentences])

    def _repr_html_(self) -> str:
        lines = "".join(f"<p>{html.escape(line)}</p>" for line in self._sentences)
        return f"{self._shown().to_html()}{lines}"

    def markdown(self) -> str:
        """Write the table and the sentences in Markdown, for a report or a note.

        Returns
        -------
        str
        """
        table = self._shown().reset_index(names="variant")
        lines = [markdown_table(list(table.columns), table.to_numpy().tolist()), ""]
        return "\n".join([*lines, *(f"- {line}" for line in self._sentences)]) + "\n"

    def plot(self, guess: float | None = None) -> "Figure":
        """Draw single runs, medians, and the intervals of the ratios beside the noise.

        Parameters
        ----------
        guess : float, optional
            How many times as fast you expected the last variant to be.

        Returns
        -------
        matplotlib.figure.Figure
        """
        from . import picture

        return picture.comparison(
            self.runs,
            self.table,
            noise=self.noise,
            disturbed=[(r, *self.columns[c]) for r, c, _ in self.found.disturbed],
            title=self.finding,
            values=self.summary if len(self.variants) > 2 else "",
            axis={"s": "seconds"}.get(self.unit, self.unit) or self.metric,
            guess=guess,
            elsewhere={name: self.elsewhere(name) for name in self.variants},
        )

    def plot_over_ranks(self, variants: str, efficiency: bool = False) -> "Figure":
        """Draw how many times as fast as the baseline it is over ranks, here and on the largest of
        the other machines.

        Parameters
        ----------
        variants : str
            A pattern that the names of the variants match whole; its group is the number of ranks,
            as in r"tuned, (\\d+) ranks?".
        efficiency : bool
            Draw the ratio by the number of ranks.

        Returns
        -------
        matplotlib.figure.Figure

        Raises
        ------
        ScaleoutError
            No variant has such a name.
        """
        from . import picture

        own = self._over_ranks(variants)
        if not own:
            raise ScaleoutError(f"No variant matches {variants!r}: {', '.join(self.variants)}.")
        curves = {"here": own}
        there = {other.name: other.found._over_ranks(variants) for other in self.others}
        if largest := max(there, key=lambda name: max(there[name], default=0), default=""):
            curves |= {largest: there[largest]} if there[largest] else {}
        last = [
            f"{curve[n].middle / (n if efficiency else 1):.2f} on {n} ranks, {name}"
            for name, curve in curves.items()
            for n in [max(curve)]
        ]
        what = "An efficiency of" if efficiency else "Times as fast:"
        return picture.over_ranks(curves, self.baseline, efficiency, f"{what} {'; '.join(last)}.")

    def _over_ranks(self, variants: str) -> dict[int, Ratio]:
        """Return the ratio at each number of ranks that the pattern's group gives."""
        named = {name: re.fullmatch(variants, name) for name in self.variants}
        return {int(at[1]): self.ratio(name) for name, at in named.items() if at}

    def write(self, above: str = "") -> list[Path]:
        """Write the figure and the table into the comparison's folder.

        Parameters
        ----------
        above : str
            Lines to stand above the table, such as a gate's.

        Returns
        -------
        list of Path
            comparison.png and comparison.md.
        """
        folder = self.folder or results("compare")
        picture, text = folder / "comparison.png", folder / "comparison.md"
        self.plot().savefig(picture)
        said = "".join(f"{line}\n\n" for line in above.splitlines())
        text.write_text(said + self.markdown(), encoding="utf-8")
        return [picture, text]

    @classmethod
    def read(cls, folder: Path | str) -> "Comparison":
        """Read a comparison that was measured before.

        Parameters
        ----------
        folder : Path or str
            Its folder in results/compare/.

        Returns
        -------
        Comparison

        Raises
        ------
        ScaleoutError
            There is no comparison in it, or no whole round. A damaged line is named and left out.
        """
        place = Path(folder)
        about = description(place / "compare.json", Comparing)
        rows, left_out = read_rows(place / "runs.jsonl", Compared)
        if about is None or not rows:
            raise ScaleoutError(
                f"There is no comparison in {show(place)}: give its folder in results/compare/."
            )
        if left_out:
            print(f"{show(place / 'runs.jsonl')}{left_out}.")
        return cls(rows, about.lower, about.metric, place)


def explain(
    result: Comparison,
    *,
    faster: str = "",
    slower: str = "",
    same: str = "",
    unclear: str = "",
    variant: str = "",
) -> None:
    """Print the sentence that applies to what was measured, and no other.

    A text may hold {variant}, {baseline}, {ratio}, {low}, {high}, {best} (the fastest that is shown
    to be faster than the baseline; else the baseline), {noise} and {within} (percent). Where a text
    is missing, what was found is said without a reason.

    Parameters
    ----------
    result : Comparison
    faster, slower, same, unclear : str
        For each verdict; `same` is for "no difference shown".
    variant : str
        Which; without it the best, or the last where none is faster.

    Raises
    ------
    ScaleoutError
        Where a text has a placeholder that is none, or there is no such variant.
    """
    best = result.best
    name = variant or (best if best != result.baseline else result.variants[-1])
    verdict, ratio = result.verdict(name), result.ratio(name)
    texts = {
        "faster": faster,
        "slower": slower,
        "no difference shown": same,
        "unclear": unclear,
    }
    words = {
        "variant": name,
        "baseline": result.baseline,
        "ratio": f"{ratio.middle:.2f}",
        "low": f"{ratio.low:.2f}",
        "high": f"{ratio.high:.2f}",
        "best": best,
        "noise": rounded(100 * result.noise),
        "within": rounded(100 * ratio.reach),
    }
    for text in texts.values():  # a slip shows at once, not when that verdict comes up
        try:
            text.format(**words)
        except (KeyError, IndexError, ValueError):
            known = ", ".join(f"{{{word}}}" for word in words)
            raise ScaleoutError(f"explain() fills in {known}; not all of {text!r}.") from None
    told = (
        texts[verdict].format(**words) if math.isfinite(ratio.high) else ""
    )  # else too few rounds
    print(told or result.sentence(name))
    if there := result.elsewhere_sentence(name):
        print(there)


def _listed(names: list[str]) -> str:
    """Put names behind one another; where one holds a comma, in quotes."""
    return ", ".join(f'"{name}"' if any("," in each for each in names) else name for name in names)


def _times(ratio: Ratio, value: float) -> str:
    """Write a ratio with as many digits as its interval is worth."""
    return f"{value:.{2 if ratio.width > 0.005 else 4}f}"
