"""The figure that a job is judged by: a field of its record, the seconds it took, or a number that
its ranks print."""

import math
import re
import shlex
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ..errors import ScaleoutError

Lines = Sequence[tuple[int | None, str]]
REDUCE: Mapping[str, Callable[[Sequence[float]], float]] = {
    "sum": sum,
    "mean": statistics.fmean,
    "max": max,
}
LAST_LINES = 5  # lines of output to show when they hold no figure
THOUSANDS = re.compile(r"[0-9]{1,3}(,[0-9]{3})+(\.[0-9]*)?")

# Lines that look like a rate:
NUMBER = r"[0-9][0-9.,]*(?:[eE][+-]?[0-9]+)?"
# "123.4 images/s", "12.3 it/s", "100 img/sec per CPU", after a word such as "speed "
AFTER = re.compile(
    rf"(?P<label>[A-Za-z][A-Za-z ]*?)?[^A-Za-z]*?(?<![0-9.,])(?P<number>{NUMBER})\s*"
    r"(?P<unit>[A-Za-z]+(?:/(?:second|sec|s)| per second)\b(?: per [A-Za-z]+)?)"
)
# "Total img/sec on 2 CPU(s): 24.6", "images per second = 7", "throughput: 99"
BEFORE = re.compile(
    rf"(?P<label>\b(?=[A-Za-z])[^:=|,]*(?:/s|per s|throughput)[^:=|,]*[:=]\s*)(?P<number>{NUMBER})",
    re.IGNORECASE,
)
BYTES = re.compile(r"[kKMGT]?i?[bB](?:ytes|its?)?/", re.ASCII)  # a download's rate, most likely
FIGURE = "([0-9]+(?:[.,e+]+[0-9]+)*)"
LONGEST = 500  # characters of a line that a person would read a rate in
EXAMPLE = (
    "wall_s  for the seconds that the job takes, or  --metric 'images/s: ([0-9.]+)'  with the words "
    "that your program prints before its rate, or after it."
)


class NoFigure(ScaleoutError):
    """A job ended well but gave nothing to judge it by."""


@dataclass(frozen=True)
class Figure:
    """What one job gave, and from which numbers of each rank."""

    value: float
    unit: str = ""
    ranks: Mapping[str, list[float]] = field(default_factory=dict)


@dataclass(frozen=True)
class Metric:
    """What a job is judged by: a field of its record, its seconds, or a pattern for its output."""

    what: str = "rate"  # of the record, or else the one line that looks like a rate
    lower: bool | None = None  # less is better; without it, where the name ends in _s
    reduce: str = ""  # of all ranks' printed figures; without it their sum, of times the largest

    def __post_init__(self) -> None:
        what = self.what or "rate"
        object.__setattr__(self, "what", what)
        if self.lower is None:
            time = what.endswith("_s") and not what.endswith("_per_s")
            object.__setattr__(self, "lower", time and self.named)
        if self.reduce not in ("", *REDUCE):
            raise ScaleoutError(f"--reduce takes {', '.join(REDUCE)}, not {self.reduce!r}.")
        if not self.named:
            try:
                re.compile(what)
            except (re.error, RecursionError, OverflowError) as error:
                raise ScaleoutError(
                    f"--metric {what!r} is no regular expression: {error}."
                ) from None

    @property
    def named(self) -> bool:
        """Whether it is the name of a field, and no pattern."""
        return self.what.replace(".", "_").isidentifier()

    @property
    def pattern(self) -> str:
        """What is looked for in the output; "" where the figure comes from elsewhere."""
        return "" if self.named else self.what

    def read(self, found: Any) -> Figure:
        """Read the figure of a run, a frame of records, or a number; NoFigure says what to type."""
        figure = self._read(found)
        if not (math.isfinite(figure.value) and figure.value > 0):
            raise NoFigure(f"The figure is {figure.value:g}, and a rate or a time is above 0.")
        return figure

    def settled(self, run: Any) -> "Metric":
        """Take the one kind of line that looks like a rate, where a job wrote no record."""
        if self.what != "rate" or not hasattr(run, "lines") or not run.records.empty:
            return self
        found = candidates(text for _, text in _of_ranks(run.lines))
        if len(found) > 1:
            lines = [
                f"    {line[:100]}\n        --metric {shlex.quote(p)}" for p, line in found.items()
            ]
            raise NoFigure(
                f"The command prints {len(found)} figures that look like a rate; choose one:\n"
                + "\n".join(lines)
            )
        return replace(self, what=next(iter(found), self.what))

    def doubt(self, figure: Figure, ranks: int) -> str:
        """Say what may be wrong with the figure of a job on several ranks; "" where nothing is."""
        if ranks < 2 or not self.pattern:
            return ""
        each = list(figure.ranks.values())
        if len(each) == 1 and re.search(r"\bper\b", self.pattern, re.IGNORECASE):
            return (
                "One rank alone prints that figure: is there a line with the total of all ranks to "
                "look for instead?"
            )
        equal = len(each) > 1 and all(one == each[0] for one in each)
        if equal and not self.reduce and not self.lower:
            return (
                f"The {len(each)} ranks print the same figure, and it is added up: if each prints "
                "the total of the job, add  --reduce mean  (else  --reduce sum)."
            )
        return ""

    def _read(self, found: Any) -> Figure:
        if isinstance(found, (int, float)):
            return Figure(float(found))
        if self.what == "wall_s" and hasattr(found, "wall_s"):
            return Figure(float(found.wall_s), "s")
        if self.pattern:
            return self._printed(found)
        frame = getattr(found, "records", found)
        if not hasattr(frame, "columns"):
            raise NoFigure(
                f"The job returned {type(found).__name__}, and a comparison needs a run, a frame of "
                "records or a number: let it return what lab.run() gives."
            )
        if not frame.empty:
            return _recorded(frame, self.what)
        if hasattr(found, "lines"):
            raise NoFigure(self._nothing(found.lines))
        raise NoFigure(
            "The job wrote no record: choose what it is judged by with metric=, "
            'such as "wall_s" for the seconds it took.'
        )

    def _printed(self, run: Any) -> Figure:
        values: dict[str, list[float]] = {}
        for rank, text in _of_ranks(run.lines):
            for match in re.finditer(self.pattern, text):
                words = next((group for group in match.groups() if group is not None), match[0])
                values.setdefault(rank, []).append(_number(words, text))
        if not values:
            raise NoFigure(self._nothing(run.lines))
        each = [statistics.median(given) for given in values.values()]
        if run.talked is False:  # of copies of one job, what one of them gives, never their sum
            return Figure(statistics.median(each), "", values)
        how = self.reduce or ("max" if self.lower else "sum")
        return Figure(REDUCE[how](each), "", values)

    def _nothing(self, lines: Lines) -> str:
        said = [text.strip() for _, text in _of_ranks(lines) if text.strip()]
        missing = (
            f"no line matches --metric {self.pattern!r}"
            if self.pattern
            else "the command writes no record"
        )
        last = "".join(f"\n    {text[:160]}" for text in said[-LAST_LINES:]) or "\n    (nothing)"
        found = list(candidates(said))
        typed = shlex.quote(found[-1]) if found else EXAMPLE
        return f"There is no figure: {missing}. Its last lines are:{last}\nType  --metric {typed}"


def candidates(said: Iterable[str]) -> dict[str, str]:
    """Find the kinds of rates in what a job printed: {pattern: line}."""
    found: dict[str, str] = {}
    for line in (part for text in said for part in text.split("\r")):
        if len(line) > LONGEST:
            continue
        seen: set[int] = set()
        for match in BEFORE.finditer(line):
            seen.add(match.start("number"))
            found[_escaped(match["label"].rstrip()) + " *" + FIGURE] = line.strip()
        for match in AFTER.finditer(line):
            if match.start("number") not in seen:
                label = f"{match['label'].strip()}[^A-Za-z]*?(?<![0-9.,])" if match["label"] else ""
                found[f"{label}{FIGURE} *{_escaped(match['unit'])}"] = line.strip()
    rates = {pattern: line for pattern, line in found.items() if not BYTES.search(pattern)}
    return rates or found


def _escaped(words: str) -> str:
    """Make a pattern for these words, with any number in place of theirs."""
    return re.sub("[0-9]+", "[0-9]+", re.sub(r"([.^$*+?{}\[\]\\|()])", r"\\\1", words))


def _number(words: str, line: str) -> float:
    plain = words.replace(",", "") if THOUSANDS.fullmatch(words.strip()) else words
    try:
        return float(plain)
    except ValueError:
        raise NoFigure(
            f"--metric finds {words!r} in the line {line.strip()!r}, and that is no number: put the "
            "number, and only that, in parentheses: ([0-9.]+)"
        ) from None


def _of_ranks(lines: Lines) -> list[tuple[str, str]]:
    """List (rank, text) of what the ranks print, mpirun's own lines left out.

    All are of one rank, "?", where mpirun does not tell them apart, as Open MPI's does not.
    """
    marked = [(str(rank), text) for rank, text in lines if rank is not None]
    return marked or [("?", text) for _, text in lines]


def _recorded(frame: Any, name: str) -> Figure:
    """Take the median of a field in the records of one job."""
    if {"lab", "variant"} <= set(frame.columns):
        kinds = frame[["lab", "variant"]].drop_duplicates()
        if len(kinds) > 1:
            raise NoFigure(
                f"The job writes records of {len(kinds)} kinds "
                f"({', '.join(kinds.variant.astype(str))}), and one figure is needed: let it do one "
                "of them, or choose another figure with metric."
            )
    if name == "rate" and "rate" in frame and frame.rate.isna().all():
        if frame.step_median_s.isna().any():
            raise NoFigure(
                "The record has neither a rate nor step times: choose a figure with metric."
            )
        steps = (1 / frame.step_median_s.astype(float)).tolist()
        return Figure(statistics.median(steps), "steps/s", {"record": steps})
    numbers = {
        str(column).removeprefix("metrics."): column
        for column in frame.columns
        if frame[column].map(lambda x: isinstance(x, (int, float))).all()
        and frame[column].notna().all()
    }
    short = name.removeprefix("metrics.")
    if short not in numbers:
        raise NoFigure(
            f"The record has no figure {name!r}: type one of {', '.join(sorted(numbers))}."
        )
    values = frame[numbers[short]].astype(float).tolist()
    return Figure(statistics.median(values), _unit(frame, short), {"record": values})


def _unit(frame: Any, name: str) -> str:
    if name.endswith("_per_s"):
        return name.removesuffix("_per_s") + "/s"
    if name == "rate" and "rate_unit" in frame:
        return str(frame.rate_unit.iloc[0])
    return "s" if name.endswith("_s") else ""
