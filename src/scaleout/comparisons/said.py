"""What a comparison found, in words: a sentence a variant, what speaks against it, the table as it
is read."""

import html
import math
from collections import Counter
from typing import TYPE_CHECKING

from ..words import count, markdown_table, rounded
from .intervals import LEVEL, ROUNDS, Ratio

if TYPE_CHECKING:
    import pandas as pd

    from .comparison import Comparison


MULTIPLE = "The intervals of {} variants hold together, at {:.0f} % (Bonferroni)."


def sentence(result: "Comparison", variant: str) -> str:
    """What was found of a variant, in a sentence."""
    ratio, said = result.ratio(variant), result.verdict(variant)
    if ratio.rounds < ROUNDS:
        return f"{variant}: unclear, after {count(ratio.rounds, 'round')}; it takes {ROUNDS}."
    times = f"{_times(ratio, ratio.middle)} times as fast as {result.baseline}"
    interval = f"{_times(ratio, ratio.low)} to {_times(ratio, ratio.high)}"
    if said == "no difference shown":
        return f"{variant}: no difference shown from {result.baseline} (within ±{percent(ratio.reach)})."
    if said != "unclear":
        return f"{variant}: {said}, {times} ({interval})."
    if ratio.low > 1 or ratio.high < 1:
        return (
            f"{variant}: unclear. It is {times} ({interval}), "
            f"and the noise alone makes up to {percent(result.noise)}."
        )
    return f"{variant}: unclear. It is {times}, but the interval holds 1 ({interval})."


def finding(result: "Comparison") -> str:
    """The one thing to remember: of one or two variants what was found of each, of more the best
    one, and how the others did.
    """
    every = {name: result.verdict(name) for name in result.variants}
    if len(every) <= 2:
        return result.summary
    best = result.best
    others = Counter(said for name, said in every.items() if name != best)
    counted = ", ".join(f"{number} {said}" for said, number in others.most_common())
    if best == result.baseline:
        return f"None of {len(every)} variants is shown to be faster than {best}: {counted}."
    return f"{sentence(result, best)} The others: {counted}."


def notes(result: "Comparison") -> list[str]:
    """What the figures rest on and what speaks against them, a sentence each."""
    unit = f" {result.unit}" if result.unit else ""
    base = result.runs[result.runs.variant == result.baseline].value.median()
    said = [f"{count(result.rounds, 'round')}; {result.baseline} gives {rounded(base)}{unit}."]
    if math.isfinite(result.noise):
        said.append(
            f"The noise: two equal variants may differ by {percent(result.noise)}; "
            "no smaller gain counts."
        )
    if len(result.variants) > 1:
        said.append(MULTIPLE.format(len(result.variants), 100 * LEVEL))
    null = result.found.null
    if result.rounds >= ROUNDS and not null.low <= 1 <= null.high:
        said.append(
            f"{result.baseline} differs from itself: its second run of a round is "
            f"{_times(null, null.middle)} times as fast as the first."
        )
    for round_, column, share in result.found.disturbed:
        way = "faster" if share > 0 else "slower"
        said.append(
            f"Round {round_ + 1} was disturbed: a run of {result.columns[column][0]} was "
            f"{percent(abs(share))} {way} than its others."
        )
    left_out = result.rounds - min(ratio.rounds for ratio in result.found.ratios.values())
    if left_out:
        left = count(result.rounds - left_out, "round")
        said.append(f"That leaves {left} for the ratios.")
    if result.found.drifted:
        way = "faster" if result.drift > 0 else "slower"
        said.append(
            f"The machine became {percent(abs(result.drift))} {way} over the runs; "
            "ratios are taken within a round, so they stand."
        )
    return said


def sentences(result: "Comparison") -> list[str]:
    """A sentence each variant, then the notes."""
    return [sentence(result, name) for name in result.variants] + notes(result)


def shown(result: "Comparison") -> "pd.DataFrame":
    """The comparison's table with its numbers as they are read."""
    table = result.table
    for name in ("median", "lowest", "highest"):
        table[name] = table[name].map(rounded)
    for name in ("ratio", "low", "high"):
        table[name] = table[name].map(lambda x: "" if math.isnan(x) else f"{x:.3f}")
    return table


def markdown(result: "Comparison") -> str:
    """The table and the sentences, for a report or a note."""
    table = shown(result).reset_index(names="variant")
    lines = [markdown_table(list(table.columns), table.to_numpy().tolist()), ""]
    return "\n".join([*lines, *(f"- {line}" for line in sentences(result))]) + "\n"


def as_html(result: "Comparison") -> str:
    """The table and the sentences, for a notebook."""
    lines = "".join(f"<p>{html.escape(line)}</p>" for line in sentences(result))
    return f"{shown(result).to_html()}{lines}"


def _times(ratio: Ratio, value: float) -> str:
    """With as many digits as the interval is worth."""
    return f"{value:.{2 if ratio.width > 0.005 else 4}f}"


def percent(share: float) -> str:
    """A share in per cent, with one digit where it is small."""
    if not math.isfinite(share):
        return "any amount"
    return f"{100 * share:.{1 if share < 0.0995 else 0}f} %"
