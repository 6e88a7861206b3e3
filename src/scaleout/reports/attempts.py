"""What was measured before and besides of the programs that a report is about."""

import math
import shlex
from collections import Counter
from collections.abc import Collection, Sequence
from pathlib import Path

from msgspec.structs import replace

from ..base.errors import ScaleoutError
from ..comparisons.intervals import ROUNDS
from .evidence import Left, Measured, started
from .reading import comparison


def attempts(
    found: Sequence[Measured], shown: Collection[Path], every: Sequence[Path]
) -> tuple[list[Measured], list[Left], int]:
    """Add what was measured before and besides of the same programs, to the end.

    Also return what of it is not on the page, and how many comparisons are of other programs.
    """
    own = {program for one in found for program in _programs(one)}
    first: dict[frozenset[str], float] = {}  # when each pair of variants was first measured
    before: dict[str, int] = {}  # by the names of folders
    left, others = [], 0
    for path in dict.fromkeys(path.resolve() for path in every):
        name, number = path.parent.name, 0
        for aside in sorted(path.parent.glob("before-*.json")):
            if old := _measured_in(aside, aside.with_suffix(".jsonl")):
                number += _whole_rounds(old[0]) >= ROUNDS
                _note(first, *old)
        now = _measured_in(path, path.parent / "runs.jsonl")
        if now:
            _note(first, *now)
        if path in shown:
            before[name] = number
        elif now and not own.isdisjoint(_programs(now[0])):
            left.append(Left(name=name, tried=now[0].tried, before=number))
        else:
            others += 1
    each = [one if one.swept else replace(
        one,
        before=before.get(one.name, 0),
        earlier=min((first[pair] for pair in _pairs(one) if pair in first), default=None),
    ) for one in found]  # fmt: skip
    return each, left, others


def _note(first: dict[frozenset[str], float], one: Measured, began: float) -> None:
    for pair in _pairs(one) if began < math.inf else ():
        first[pair] = min(began, first.get(pair, math.inf))


def _measured_in(about: Path, lines: Path) -> tuple[Measured, float] | None:
    """Read a comparison for what was compared in it, and when it began."""
    try:
        one = comparison(about, lines, {}, {})
    except (ScaleoutError, LookupError, ValueError):
        return None
    if one is None or not one.rows:
        return None
    return one, min((t for row in one.rows if not math.isnan(t := started(row))), default=math.inf)


def _programs(one: Measured) -> set[str]:
    """Name what is run in a comparison: the texts of its scripts, or else its words."""
    return {setting.text or shlex.join(setting.words) for setting in one.variants.values()}


def _pairs(one: Measured) -> set[frozenset[str]]:
    """Write each variant with its baseline, by all that they were given."""
    first, *others = (
        repr((
            one.metric, s.text, s.modules, s.ranks, s.threads, sorted(s.env.items(), key=repr),
            [word for word in s.words if word != s.script],
        ))
        for s in one.variants.values()
    )  # fmt: skip
    return {frozenset([first, other]) for other in others}


def _whole_rounds(one: Measured) -> int:
    runs = Counter(row.round for row in one.rows)
    return sum(number == len(one.variants) + 1 for number in runs.values())
