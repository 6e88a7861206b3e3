"""How sure the best point of a sweep is: the interval of its ratio to the default."""

from collections.abc import Iterable, Mapping
from typing import Any

from ..comparisons.intervals import LEVEL, ROUNDS, paired, verdict
from ..words import count
from .journal import BEGINS, FIRST, LAST


def sure(
    default: Iterable[Mapping[str, Any]],
    best: Iterable[Mapping[str, Any]],
    points: int,
    lower: bool = False,
    name: str = "the default",
) -> str:
    """A sentence on the ratio of the best to the default, or to another setting; "" with fewer
    than three repeats.
    """
    ends: dict[str, dict[int, Any]] = {FIRST: {}, LAST: {}}
    for row in default:
        ends[FIRST if row["role"] in BEGINS else LAST][row["repeat"]] = row["rate"]
    rates = {row["repeat"]: row["rate"] for row in best}
    repeats = sorted(set(rates) & set(ends[FIRST]) & set(ends[LAST]))
    each = [(ends[FIRST][r], ends[LAST][r], rates[r]) for r in repeats]
    if len(each) < ROUNDS or not all(rate for row in each for rate in row):
        return ""
    speeds = [[1 / rate if lower else rate for rate in row] for row in each]
    found = paired(
        [row[:2] for row in speeds], {"best": [row[2] for row in speeds]}, compared=points
    )
    ratio = found.ratios["best"]
    said = (
        f"The interval of that ratio ({100 * LEVEL:.0f} %, for the best of "
        f"{count(points, 'point')}): {ratio.low:.2f} to {ratio.high:.2f}"
    )
    if verdict(ratio, found.noise, 0.05) == "faster":
        return f"{said}."
    return (
        f"{said}; {name} alone varies by {100 * found.noise:.0f} %. That shows no gain: "
        " scaleout compare  says more of the two."
    )
