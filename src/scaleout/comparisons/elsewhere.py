"""What a lesson's headline comparisons gave on other machines, kept beside it: a row a variant and
machine, with the values of every round.

Ratios, intervals and noise are computed when they are shown, as one's own are.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta

from .. import machine
from ..base import jsonlines
from ..base.paths import show
from ..measuring.kind import Kind as Kind
from ..measuring.kind import names
from ..measuring.row import Compared, Positive
from .comparison import Comparison, Other
from .intervals import ROUNDS

FILE = "elsewhere.jsonl"
PACKAGES = (
    *("numpy", "tensorflow", "tensorflow-cpu", "horovod", "torch"),
    *("daal4py", "scikit-learn", "scikit-learn-intelex", "mpi4py", "mpich"),
)


class Headline(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A variant of a headline comparison on a machine."""

    schema: int
    comparison: str
    variant: str
    baseline: str
    values: Annotated[list[Positive], Meta(min_length=1)]  # a round each
    again: list[Positive] = []  # the baseline's second run of each round
    unit: str = ""
    lower: bool = False  # less is better
    facts: dict[str, float] = {}  # what else was found of it, such as the share of wrong sums
    machine: Kind
    versions: dict[str, str] = {}
    date: str
    scripts: list[str] = []  # what ran, beside the lesson
    code: str = ""  # the hash of these, and of what they use


def headlines(
    found: Comparison,
    name: str,
    code: str = "",
    scripts: Iterable[str] = (),
    facts: Mapping[str, Mapping[str, float]] | None = None,
) -> list[Headline]:
    """Make the rows of a comparison that this machine has just measured, the baseline's first."""
    here, today = Kind.here(), datetime.now(UTC).date().isoformat()
    versions = machine.versions(PACKAGES)
    runs = found.runs.sort_values("round")

    def values(variant: str, again: int = 0) -> list[float]:
        own = runs[(runs.variant == variant) & (runs.again == again)].value
        return [float(f"{value:.5g}") for value in own]

    return [
        Headline(
            schema=1,
            comparison=name,
            variant=variant,
            baseline=found.baseline,
            values=values(variant),
            again=values(variant, 1) if variant == found.baseline else [],
            unit=found.unit,
            lower=found.lower,
            facts=dict((facts or {}).get(variant, {})),
            machine=here,
            versions=versions,
            date=today,
            scripts=[*scripts],
            code=code,
        )
        for variant in [found.baseline, *found.variants]
    ]


def read(path: Path) -> tuple[list[Headline], str]:
    """Read the rows of a file, and what to say of lines that are none."""
    lines, left_out = jsonlines.read(path, _wrong)
    return [msgspec.convert(line, Headline) for line in lines], left_out


def line(row: Headline) -> str:
    """Write a row as a line of a file."""
    return msgspec.json.encode(row).decode()


def kept(path: Path, *comparisons: str) -> list[Other]:
    """Read a comparison as each machine gave it last; of several, the last that a machine has.

    Of a damaged line it is said that it is none.
    """
    rows, left_out = read(path)
    if left_out:
        print(f"{show(path)}{left_out}.")
    found: dict[str, Other] = {}
    for name in comparisons:
        found |= {one.name: one for one in others(row for row in rows if row.comparison == name)}
    return [*found.values()]


def others(rows: Iterable[Headline]) -> Iterator[Other]:
    """Yield a comparison for each kind of machine, of its last day."""
    kinds: list[tuple[Kind, list[Headline]]] = []
    for row in rows:
        own = next((own for kind, own in kinds if kind.same(row.machine)), None)
        if own is None:
            kinds.append((row.machine, [row]))
        else:
            own.append(row)
    called = names([kind for kind, _ in kinds])
    for name, (_, own) in zip(called, kinds, strict=True):
        last = max(row.date for row in own)
        newest = {row.variant: row for row in own if row.date == last}
        if found := _comparison(list(newest.values())):
            facts = {variant: row.facts for variant, row in newest.items()}
            yield Other(name, last, found, facts)


def _comparison(rows: list[Headline]) -> Comparison | None:
    """Put one machine's rows together; None where they are no whole comparison."""
    first = next((row for row in rows if row.variant == row.baseline), None)
    if first is None:
        return None
    columns: dict[tuple[str, int], list[float]] = defaultdict(list)
    columns[first.variant, 0], columns[first.variant, 1] = first.values, first.again
    columns |= {(row.variant, 0): row.values for row in rows if row is not first}
    rounds = min(map(len, columns.values()))
    if rounds < ROUNDS or len(columns) <= 2:
        return None
    runs = [
        Compared.of(
            {
                "variant": variant,
                "again": again,
                "round": number,
                "value": values[number],
                "unit": first.unit,
            }
        )
        for number in range(rounds)
        for (variant, again), values in columns.items()
    ]
    return Comparison(runs, first.lower)


def _wrong(line: Mapping[str, object]) -> str:
    """Say what is wrong with a line; "" where it is a row."""
    try:
        msgspec.convert(line, Headline)
    except msgspec.ValidationError as error:
        return str(error)
    return ""
