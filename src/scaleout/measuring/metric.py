"""The figure that a job is judged by: a field of its record, the seconds it took, or a number that
its ranks print."""

import math
import re
import shlex
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Protocol, TypeGuard, runtime_checkable

from ..base.errors import ScaleoutError
from ..base.words import visible
from .numbers import NoFigure, clash
from .numbers import read as read_number

if TYPE_CHECKING:
    import pandas as pd

Lines = Sequence[tuple[int | None, str]]
REDUCE: Mapping[str, Callable[[Sequence[float]], float]] = {
    "sum": sum,
    "mean": statistics.fmean,
    "max": max,
}
LAST_LINES = 5  # lines of output to show when they hold no figure
SAME = 1.01  # figures of ranks that differ by less may be one total, each with its own clock
UNTOLD = "?"  # the rank of every line, where the launcher tells nobody apart

# Lines that look like a rate:
NUMBER = r"[0-9]+(?:[.,][0-9]+)*(?:[eEdD][+-]?[0-9]+)?"
LETTER = r"[kKMGT](?=it/|\s*/|\s|$)"  # 1.2k tok/s, 3.1kit/s
SPREAD = r"(?:±|\+/?-)"  # 123.4 ± 2.3 images/s
# "123.4 images/s", "12.3 it/s", "100 img/sec per CPU", "9.5/s", after a word such as "speed "
AFTER = re.compile(
    rf"(?P<label>[A-Za-z][A-Za-z ]*?)?[^A-Za-z]*?(?<![0-9.,])(?<!±)(?<!± )(?<![+/]-)(?<![+/]- )"
    rf"(?P<number>{NUMBER})(?:\s?{LETTER})?(?P<spread>\s*{SPREAD}\s*[0-9.]+)?\s*"
    r"(?P<unit>[A-Za-z]+(?:/(?:second|sec|s)| per second)\b(?: per [A-Za-z]+)?"
    r"|/(?:second|sec|s)\b)(?!\s*[=:]\s*[0-9])"
)
# "Total img/sec on 2 CPU(s): 24.6", "images per second = 7", "throughput: 99"
BEFORE = re.compile(
    rf"(?P<label>\b(?=[A-Za-z])[^:=|,\t]*(?:/s|per[_ ]?s|throughput)[^:=|,\t]*[:=]\s*)"
    rf"(?P<number>{NUMBER})",
    re.IGNORECASE,
)
# In the label of such a line: the rate itself, and what follows is something else.
RATED = re.compile(r"[0-9]\s*[A-Za-z]*(?:/| per )s(?:ec(?:ond)?)?\b(?!\s*[=:])")
# A bar of tqdm writes the inverse, 1.20s/it, when there is less than one a second.
INVERSE = re.compile(r"(\[[0-9:?<]+, *)([0-9.]+)s/(\w+)(?=[],])")
# What one rank counts for itself, however many ranks share the work of it.
STEPS = re.compile(
    r"(?<![A-Za-z])(?:it(?:er(?:ation)?s?)?|steps?|batch(?:es)?)\s?(?:/|_?per_?| per )\s?s"
    r"|\bper\b (?!s)",
    re.IGNORECASE,
)
BYTES = re.compile(r"[kKMGT]?i?[bB](?:ytes|its?)?/", re.ASCII)  # a download's rate, most likely
# Of what is called so, less is better; and what it is of a rate.
LESS = re.compile(
    r"(?i)(?<![a-z])(?:loss(?:es)?|errors?|err|perplexity|ppl|r?mse|ma?pe|mae|nll|[wc]er|latency|time"
    r"|runtime|elapsed|seconds|took)(?![a-z])"
)
RATE = re.compile(r"(?i)/ ?s|per[_ ]s|throughput|rate|speed")
FIGURE = f"({NUMBER}[kKMGT]?)"
ENOUGH = 100  # figures of a rank, after which their unit is known
LONGEST = 500  # characters of a line that a person would read a rate in
EXAMPLE = (
    "wall_s  for the seconds that the job takes, or  --metric 'images/s: ([0-9.]+)'  with the words "
    "that your program prints before its rate, or after it."
)


@runtime_checkable
class Printed(Protocol):
    """A job that has printed lines, and may have written records."""

    lines: Lines
    talked: bool | None

    @property
    def records(self) -> "pd.DataFrame": ...


@dataclass(frozen=True)
class Figure:
    """What one job gave, and from which numbers of each rank."""

    value: float
    unit: str = ""
    ranks: Mapping[str, list[float]] = field(default_factory=dict)
    steps: bool = field(default=False, compare=False)  # it counts steps
    behind: tuple[str, ...] = field(default=(), compare=False)  # the words behind its numbers


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

    def read(self, found: object) -> Figure:
        """Read the figure of a run, a frame of records, or a number; NoFigure says what to type."""
        figure = self._read(found)
        if not (math.isfinite(figure.value) and figure.value > 0):
            raise NoFigure(f"The figure is {figure.value:g}, and a rate or a time is above 0.")
        return figure

    def settled(self, run: object) -> "Metric":
        """Take the one kind of line that looks like a rate, where a job wrote no record."""
        if self.what != "rate" or not isinstance(run, Printed) or not run.records.empty:
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
        """Ask what the figures of several ranks mean; "" where that is plain, or --reduce says it.

        Until it is answered, nothing can be said of the job.
        """
        if ranks < 2 or not self.pattern or self.reduce:
            return ""
        if self.lower:
            several = len(figure.ranks.get(UNTOLD, ())) > 1
            return (
                "This MPI does not say which rank has printed a line, so nobody can know the slowest: let "
                "one rank alone print its time, once, or add  --reduce mean  if all are about equal."
            ) * several
        each = [statistics.median(given) for given in figure.ranks.values()]
        if UNTOLD in figure.ranks:
            return (
                "This MPI does not say which rank has printed a line: add  --reduce sum  if each of "
                f"the {ranks} ranks prints a rate of its own,  --reduce mean  if each, or one alone, "
                "prints that of the whole job."
            )
        if len(each) == 1 and (figure.steps or STEPS.search(self.pattern)):
            return (
                "One rank alone prints that figure, and it counts what each of the ranks may do (steps, or "
                f"images per rank): look for a line with the total of all {ranks} ranks instead, or add  "
                "--reduce sum  if it is right as it stands."
            )
        if len(each) > 1 and max(each) <= SAME * min(each):
            return (
                f"The {len(each)} ranks print the same figure (within {100 * (SAME - 1):.0f} %): add  "
                "--reduce mean  if each prints the total of the job,  --reduce sum  if each prints a "
                "rate of its own, to be added up."
            )
        return ""

    def remark(self, figure: Figure) -> str:
        """Ask whether less is better, where the figure's name or unit says so and nobody else does."""
        called = LESS.search(self.what.removeprefix("metrics.").replace("_", " "))
        if self.lower or RATE.search(self.what) or not (called or figure.unit == "s"):
            return ""
        what = f"a figure called {called[0]!r}" if called else "a time"
        return f"Of {what} less is better, most likely: if so, add  --lower."

    def combine(self, ranks: Mapping[str, Sequence[float]], of: int) -> float:
        """Make one figure of those that each rank has printed."""
        each = [statistics.median(given) for given in ranks.values()]
        how = self.reduce or ("max" if self.lower else "sum")
        copies = of if UNTOLD in ranks and how == "sum" else 1
        return copies * REDUCE[how](each)

    def of_copies(self, ranks: Mapping[str, Sequence[float]]) -> float:
        """Take of ranks that never talked what one gives, never their sum."""
        return statistics.median(statistics.median(given) for given in ranks.values())

    def _read(self, found: object) -> Figure:
        if _is_number(found):
            return Figure(float(found))
        if self.what == "wall_s" and hasattr(found, "wall_s"):
            return Figure(float(found.wall_s), "s")
        if self.pattern and isinstance(found, Printed):
            return self._printed(found)
        frame: pd.DataFrame = getattr(found, "records", found)
        if not hasattr(frame, "columns"):
            raise NoFigure(
                f"The job returned {type(found).__name__}, and a comparison needs a run, a frame of "
                "records or a number: let it return what lab.run() gives."
            )
        if not frame.empty:
            return _recorded(frame, self.what)
        if isinstance(found, Printed):
            raise NoFigure(self._nothing(found.lines))
        raise NoFigure(
            "The job wrote no record: choose what it is judged by with metric=, "
            'such as "wall_s" for the seconds it took.'
        )

    def _printed(self, run: Printed) -> Figure:
        values: dict[str, list[float]] = {}
        unit, behind, steps = "", dict[str, None](), False
        parts = ((rank, part) for rank, text in _of_ranks(run.lines) for part in text.split("\r"))
        for rank, text in parts:
            line = _upright(text) if "/s" in self.pattern else text
            for match in re.finditer(self.pattern, line):
                found = read_number(match, units=len(values.get(rank, ())) < ENOUGH)
                values.setdefault(rank, []).append(found.value)
                unit = unit or found.unit
                behind |= {word: None for word in (found.unit, found.behind) if word}
                steps = steps or bool(STEPS.match(line[match.end() :].lstrip()))
        if not values:
            raise NoFigure(self._nothing(run.lines))
        if words := clash({"the job": behind}):
            raise NoFigure(words)
        copies = run.talked is False and not self.reduce
        value = self.of_copies(values) if copies else self.combine(values, getattr(run, "ranks", 1))
        return Figure(value, unit, values, steps, tuple(behind))

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
    for line in (part for text in said for part in _upright(text).split("\r")):
        if len(line) > LONGEST:
            continue
        here: dict[int, str] = {}  # by the place of the number
        for match in BEFORE.finditer(line):
            if not RATED.search(match["label"]):
                here[match.start("number")] = _escaped(match["label"].rstrip()) + r" *" + FIGURE
        for match in AFTER.finditer(line):
            label = f"{match['label'].strip()}[^A-Za-z]*?(?<![0-9.,])" if match["label"] else ""
            spread = rf"\s*{SPREAD}\s*[0-9.]+" if match["spread"] else ""
            unit = match["unit"].removeprefix("k") if "kit/" in match["unit"] else match["unit"]
            pattern = rf"{label}{FIGURE}{spread} *{_escaped(unit)}"
            here.setdefault(match.start("number"), pattern)
        for at, pattern in here.items():  # that finds what it was made from
            if any(match.start(1) == at for match in re.finditer(pattern, line)):
                found[pattern] = line.strip()
    rates = {pattern: line for pattern, line in found.items() if not BYTES.search(pattern)}
    return rates or found


def _upright(text: str) -> str:
    """Write a bar's seconds for each as a rate: 1.20s/it is 0.8333it/s."""
    return INVERSE.sub(
        lambda bar: f"{bar[1]}{1 / float(bar[2]):.4g}{bar[3]}/s" if float(bar[2]) else bar[0], text
    )


def _escaped(words: str) -> str:
    """Make a pattern for these words, with any number, blanks and quotes in place of theirs."""
    plain = re.sub(r"([.^$*+?{}\[\]\\|()])", r"\\\1", words)
    return re.sub("['\"]", ".", re.sub(r"\t| {2,}", r"\\s+", re.sub("[0-9]+", "[0-9]+", plain)))


def _of_ranks(lines: Lines) -> list[tuple[str, str]]:
    """List (rank, text) of what the ranks print, as a person sees it, mpirun's own lines left out.

    All are UNTOLD where mpirun does not tell them apart, as Open MPI's does not.
    """
    marked = [(str(rank), visible(text)) for rank, text in lines if rank is not None]
    return marked or [(UNTOLD, visible(text)) for _, text in lines]


def _is_number(value: object) -> TypeGuard[float]:
    """Tell a number from whether something is so, which is one for Python."""
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _recorded(frame: "pd.DataFrame", name: str) -> Figure:
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
        if frame[column].map(_is_number).all() and frame[column].notna().all()
    }
    short = name.removeprefix("metrics.")
    if short not in numbers:
        raise NoFigure(
            f"The record has no figure {name!r}: type one of {', '.join(sorted(numbers))}."
        )
    values = frame[numbers[short]].astype(float).tolist()
    return Figure(statistics.median(values), _unit(frame, short), {"record": values})


def _unit(frame: "pd.DataFrame", name: str) -> str:
    if name.endswith("_per_s"):
        return name.removesuffix("_per_s") + "/s"
    if name == "rate" and "rate_unit" in frame:
        return str(frame.rate_unit.iloc[0])
    return "s" if name.endswith("_s") else ""
