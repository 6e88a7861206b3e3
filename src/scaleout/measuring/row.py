"""A measured row: one job, what it was asked, where and when it ran, and the figure that it gave.

All that measures jobs keeps its rows in these types, and hands them on whole: a fact that a row
holds is there wherever the row goes.
"""

import re
import sys
from collections.abc import Mapping
from typing import Annotated, Literal, Self

import msgspec
from msgspec import UNSET, Meta, UnsetType

from ..base.errors import ScaleoutError

MOST = sys.float_info.max  # anything above is infinite
Count = Annotated[int, Meta(ge=0)]
Some = Annotated[int, Meta(ge=1)]
Positive = Annotated[float, Meta(gt=0, le=MOST)]
Share = Annotated[float, Meta(ge=0, le=MOST)]
Again = Literal[0, 1]  # 1: the baseline's second run of a round
Role = Literal["default, first", "point", "default, last"]

FIRST: Role = "default, first"
POINT: Role = "point"
LAST: Role = "default, last"
OK = "ok"
COPIES = "copies"  # the status of a job whose ranks never talked: its figure is that of one copy
RATED = (OK, COPIES)
WAS = {"rate": "value", "repeat": "round", "doubt": "remark"}  # fields of older files, and today's
MISSING = re.compile(r"missing required field `(\w+)`")
WRONG = re.compile(r"`\$\.(\w+)")


class Row(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What is known of a job and its figure.

    A field that nobody has told has its default, and is not written.
    """

    round: Count = 0  # a sweep's repeat
    unit: str = ""  # of the figure
    values: dict[str, list[float]] = {}  # the figures that each rank gave
    metric: str = ""  # the pattern that they were read by
    reduce: str = ""  # how they were put together; "" as the metric does
    remark: str = ""  # how the figure was read, where that may be otherwise than it was meant
    copies: str = ""  # that its ranks never talked, in a sentence
    ranks: Some = 1
    threads: Some | None = None  # of a rank; None where the job chose
    env: dict[str, str | None] = {}  # None: taken away
    seed: str | None = None
    command: str = ""  # mpirun's line
    run_id: str = ""
    utc: str = ""
    wall_s: Share | None = None
    start_s: Share = 0.0  # of an empty job, where jobs are short and judged by their seconds
    others: Share = 0.0  # of the CPUs' time, taken by other programs meanwhile
    cpu: str = ""
    cores: Count = 0  # that a job may fill; 0 where nobody knows
    versions: dict[str, str] = {}
    commit: str = ""
    files: dict[str, str] = {}  # digests of what its script imports and reads, by their names
    quick: bool = False  # measured in the short form

    @classmethod
    def of(cls, line: Mapping[str, object]) -> Self:
        """Make a row of a line as JSON gives it back; `ScaleoutError` says what is wrong with it."""
        today = {WAS.get(name, name): _plain(value) for name, value in line.items()}
        try:
            return msgspec.convert(today, cls)
        except msgspec.ValidationError as error:
            raise ScaleoutError(f"A row is damaged: {_in_words(str(error))}.") from None


class Compared(Row, frozen=True, kw_only=True, omit_defaults=True):
    """A run of a comparison."""

    variant: str
    round: Count
    again: Again
    value: Positive
    place: Count | UnsetType = UNSET  # in the order of all


class Swept(Row, frozen=True, kw_only=True, omit_defaults=True):
    """A job of a sweep."""

    role: Role
    round: Count
    ranks: Some
    threads: Some | None
    env: dict[str, str | None]
    status: str
    reason: str = ""  # why there is no figure
    value: Share | None = None
    wall_s: Share

    def __post_init__(self) -> None:
        if self.status in RATED and self.value is None:
            raise ValueError("missing required field `value`")

    def compared(self, variant: str, place: int, seed: str | None) -> Compared:
        """Return the same row as a run of a comparison: each repeat is a round."""
        assert self.value is not None
        told = {name: getattr(self, name) for name in Row.__struct_fields__}
        again: Again = 1 if self.role == LAST else 0
        where = {"variant": variant, "again": again, "place": place, "seed": seed}
        return Compared(**{**told, **where, "value": self.value})


def wrong(line: Mapping[str, object], kind: type[Row]) -> str:
    """Say what is wrong with a line, in a few words; "" where it is a whole row."""
    try:
        kind.of(line)
    except ScaleoutError as error:
        return str(error).removeprefix("A row is damaged: ").rstrip(".")
    return ""


def _plain(value: object) -> object:
    """Return a number of NumPy's as one of Python's."""
    return value.item() if hasattr(value, "item") else value


def _in_words(error: str) -> str:
    if missing := MISSING.search(error):
        return f"its {missing[1]} is missing"
    found = WRONG.search(error)
    return f"its {found[1]} is another kind, or out of range" if found else "it is no row"
