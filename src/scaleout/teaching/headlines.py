"""What a class found of the lessons' headline comparisons, as rows of the same form as a lesson's own.

What attendees hand in is read without trust: what is no whole comparison of that name is left out,
with a sentence.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec

from ..base.errors import ScaleoutError
from ..base.paths import home
from ..base.words import plain
from ..comparisons import elsewhere
from ..comparisons.comparison import Comparison
from ..comparisons.elsewhere import Headline, Kind
from ..comparisons.intervals import ROUNDS
from ..measuring.asked import Comparing
from ..measuring.journal import description, read_rows
from ..measuring.row import Compared

FILE = "headlines.jsonl"


class OfClass(Headline, frozen=True, kw_only=True, omit_defaults=True):
    """A variant of a headline comparison, as an attendee measured it."""

    attendee: str


class Found(msgspec.Struct, frozen=True):
    """A headline comparison of an attendee, and the machine that it is of."""

    name: str
    comparison: Comparison
    machine: Kind
    date: str

    def rows(self, attendee: str) -> Iterator[OfClass]:
        """Yield a row a variant, the baseline's first."""
        for row in elsewhere.headlines(self.comparison, self.name):
            # that was made for this machine and today
            own = {"machine": self.machine, "date": self.date, "versions": {}}
            yield OfClass(**{**msgspec.structs.asdict(row), **own, "attendee": attendee})


class Known(msgspec.Struct, frozen=True):
    """What every comparison of a headline's name has."""

    baseline: str
    lower: bool


def known() -> dict[str, Known]:
    """Read which headline comparisons the lessons know, by name; none outside of a workshop."""
    try:
        labs = home() / "labs"
    except ScaleoutError:
        return {}
    return {
        row.comparison: Known(row.baseline, row.lower)
        for path in sorted(labs.glob(f"*/{elsewhere.FILE}"))
        for row in elsewhere.read(path)[0]
    }


def read(folder: Path, names: Mapping[str, Known]) -> tuple[list[Found], list[str]]:
    """Read the headline comparisons of a results folder, and what to say of what is left out."""
    found, left_out = [], []
    for name, headline in names.items():
        try:
            one, damaged = _read(folder / "compare" / name, headline)
        except ScaleoutError as error:
            one, damaged = None, f": {error}"
        if one:
            found.append(one)
        if damaged:
            left_out.append(f"compare/{name}{damaged}")
    return found, left_out


def _read(place: Path, headline: Known) -> tuple[Found | None, str]:
    """Read one comparison, and what to say of its lines; ScaleoutError says why it does not count."""
    about = description(place / "compare.json", Comparing)
    lines, damaged = read_rows(place / "runs.jsonl", Compared)
    if about is None or not lines:
        return None, damaged and f"/runs.jsonl{plain(damaged, 200)}"
    rows = [
        msgspec.structs.replace(row, variant=plain(row.variant), unit=plain(row.unit))
        for row in lines
    ]
    if (rows[0].variant, about.lower) != (headline.baseline, headline.lower):
        raise ScaleoutError("it is another comparison of that name; left out.")
    if any(row.quick for row in rows):
        raise ScaleoutError("it was measured in the short form (SCALEOUT_QUICK); left out.")
    cpu, cores = about.machine
    cpu, cores = plain(rows[0].cpu or cpu), rows[0].cores or cores
    if not cpu or cores < 1:
        raise ScaleoutError("it does not say which machine it is of; left out.")
    try:
        comparison = Comparison(rows, about.lower)
    except (LookupError, ValueError, ArithmeticError):  # rounds that do not hold the same runs
        raise ScaleoutError("its rounds are not whole; left out.") from None
    if comparison.rounds < ROUNDS:
        raise ScaleoutError(f"it has fewer than {ROUNDS} whole rounds; left out.")
    day = min(row.utc for row in rows)[:10]
    machine = about.kind or Kind(cpu=cpu, isa="", cores=cores)  # older files tell no more
    machine = msgspec.structs.replace(machine, cpu=cpu, isa=plain(machine.isa), cores=cores)
    return Found(place.name, comparison, machine, plain(day)), damaged and (
        f"/runs.jsonl{plain(damaged, 200)}"
    )
