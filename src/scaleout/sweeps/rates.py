"""The figure that a job is judged by: from the record it writes, or by a pattern from what its
ranks print."""

import math
import re
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ..errors import ScaleoutError
from ..jobs.job import Run
from . import guess
from .matching import LIMIT_S, matches

Lines = Sequence[tuple[int | None, str]]
LAST = 5  # lines of output to show when they hold no figure
THOUSANDS = re.compile(r"[0-9]{1,3}(,[0-9]{3})+(\.[0-9]*)?")


class NoFigure(ScaleoutError):
    """A job ended well but gave nothing to judge it by. `run` holds what it said."""

    run: Run


@dataclass(frozen=True)
class Metric:
    """Where the figure of a job comes from."""

    pattern: str = ""
    reduce: str = "sum"
    skip: int = 0

    def __post_init__(self) -> None:
        if self.reduce not in ("sum", "mean"):
            raise ScaleoutError(f"--reduce takes sum or mean, not {self.reduce!r}.")
        if self.skip < 0:
            raise ScaleoutError(f"--skip takes a count, 0 or more, not {self.skip}.")
        try:
            re.compile(self.pattern)
        except (re.error, RecursionError, OverflowError) as error:
            raise ScaleoutError(
                f"--metric {self.pattern!r} is no regular expression: {error}."
            ) from None

    def read(self, run: Run) -> dict[str, Any]:
        """{"rate", "unit", "values": what each rank gave}; NoFigure says what was there instead and
        what to type."""
        try:
            return self._read(run)
        except NoFigure as error:
            error.run = run
            raise

    def _read(self, run: Run) -> dict[str, Any]:
        unit, values = ("", self.read_lines(run.lines)) if self.pattern else _recorded(run)
        if not values:
            raise NoFigure(self._nothing(run.lines))
        kept = {rank: given[self.skip :] for rank, given in values.items()}
        if not all(kept.values()):
            fewest = min(map(len, values.values()))
            raise NoFigure(
                f"--skip {self.skip} leaves nothing of the {fewest} figures that a rank gave: skip "
                "fewer."
            )
        each = [statistics.median(given) for given in kept.values()]
        # Of copies of one job, what one of them gives, never their sum.
        rate = statistics.median(each) if run.talked is False else self.of_ranks(each)
        if not math.isfinite(rate) or rate <= 0:
            raise NoFigure(f"The figure is {rate:g}, and a rate or a time is above 0.")
        return {"rate": rate, "unit": unit, "values": values}

    def settled(self, run: Run) -> "Metric":
        """This, with a pattern for the one kind of line in a job's output that looks like a rate.

        It is as it was where there is a pattern already, a record, or no such line.
        """
        if self.pattern or not run.records.empty:
            return self
        found = guess.candidates(text for _, text in _of_ranks(run.lines))
        if len(found) > 1:
            error = NoFigure(guess.question(found))
            error.run = run
            raise error
        return replace(self, pattern=next(iter(found), ""))

    def doubt(self, values: Mapping[str, Sequence[float]], ranks: int) -> str:
        """What may be wrong with the figures of a job."""
        if (
            self.pattern
            and ranks > 1
            and len(values) == 1
            and re.search(r"\bper\b", self.pattern, re.IGNORECASE)
        ):
            return (
                "One rank alone prints that figure: "
                "is there a line with the total of all ranks to look for instead?"
            )
        if (
            len(values) > 1
            and self.reduce == "sum"
            and re.search("total", self.pattern, re.IGNORECASE)
        ):
            return (
                f"{len(values)} ranks print that figure and it is summed: if each prints the "
                "total, "
                "add  --reduce mean"
            )
        return ""

    def of_ranks(self, each: Sequence[float]) -> float:
        """The figure of a job from one of each rank."""
        return sum(each) if self.reduce == "sum" else statistics.fmean(each)

    def read_lines(self, lines: Lines) -> dict[str, list[float]]:
        """What the pattern finds in each rank's lines; NoFigure where that is no number."""
        found: dict[str, list[float]] = {}
        said = _of_ranks(lines)
        try:
            matched = matches(self.pattern, [text for _, text in said], LIMIT_S)
        except TimeoutError as error:
            raise NoFigure(
                f"--metric {self.pattern!r} takes longer than {error} on what the job printed: it "
                "tries "
                "too many ways to match; leave out a + or * inside another one."
            ) from None
        for index, words in matched:
            rank, text = said[index]
            found.setdefault(rank, []).append(self._number(words, text))
        return found

    def _number(self, words: str, line: str) -> float:
        plain = words.replace(",", "") if THOUSANDS.fullmatch(words.strip()) else words
        try:
            return float(plain)
        except ValueError:
            raise NoFigure(
                f"--metric finds {words!r} in the line {line.strip()!r}, and that is no number: "
                "put the number, and "
                f"only that, in parentheses: ([0-9.]+)"
            ) from None

    def _nothing(self, lines: Lines) -> str:
        said = [text.strip() for _, text in _of_ranks(lines) if text.strip()]
        missing = (
            f"no line matches --metric {self.pattern!r}"
            if self.pattern
            else "the command writes no record"
        )
        last = "".join(f"\n    {text[:160]}" for text in said[-LAST:]) or "\n    (nothing)"
        typed = f"Type  --metric {_suggestion(said)}"
        return f"There is no figure: {missing}. Its last lines are:{last}\n{typed}"


def _of_ranks(lines: Lines) -> list[tuple[str, str]]:
    """(rank, text) of what the ranks print, mpirun's own lines left out.

    All are of one rank, "?", where mpirun does not tell them apart, as Open MPI's does not.
    """
    marked = [(str(rank), text) for rank, text in lines if rank is not None]
    return marked or [("?", text) for _, text in lines]


def _recorded(run: Run) -> tuple[str, dict[str, list[float]]]:
    """(unit, the rate of each record of the run), under "record"; empty when there is none."""
    frame = run.records
    if frame.empty:
        return "", {}
    if len(kinds := frame[["lab", "variant"]].drop_duplicates()) > 1:
        raise NoFigure(
            f"The command writes records of {len(kinds)} kinds "
            f"({', '.join(kinds.variant.astype(str))}), and one "
            "figure is needed: let it do one of them, or choose with --metric."
        )
    if frame.rate.notna().all():
        return str(frame.rate_unit.iloc[0]), {"record": frame.rate.astype(float).tolist()}
    if frame.step_median_s.notna().all():
        return "steps/s", {"record": (1 / frame.step_median_s.astype(float)).tolist()}
    raise NoFigure(
        "The record has neither a rate nor step times: choose a printed figure with --metric."
    )


def _suggestion(said: Sequence[str]) -> str:
    """A pattern for the last line that looks like a rate, quoted for a shell; else an example."""
    found = guess.candidates(said)
    return guess.quoted(list(found)[-1]) if found else guess.EXAMPLE
