"""How far off guesses were: a learner's own, and those that most of a class were wrong about.

What is read has been handed in, or may have been edited: a line that is no guess is left out."""

import re
import statistics
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ..base import jsonlines
from ..base.errors import ScaleoutError
from ..base.paths import results_path, show
from ..base.words import markdown_table, plain, rounded
from ..course.came import KEPT
from ..course.masters import TOPIC

PAGE = "wrong.md"
PICTURE = "guesses.png"
TIMES = "times"  # the unit of ratios, of which 1 is "as fast as"
NEAR = 1.05  # what came nearer to 1 lies on neither side
FAR = 2.0  # times too high or too low: a wrong guess
LARGEST = 1e15
FARTHEST, MOST = 5, 10  # of a learner's guesses, and of a class's


class Guess(NamedTuple):
    """A guess and what came: two numbers or two words."""

    notebook: str
    name: str
    guess: float | str
    came: float | str
    unit: str

    @property
    def factor(self) -> float | None:
        """How many times what came the guess is; None of words, and where one is not above 0."""
        if isinstance(self.guess, str) or isinstance(self.came, str):
            return None
        return self.guess / self.came if self.guess > 0 and self.came > 0 else None

    @property
    def off(self) -> float | None:
        """The factor, or its inverse, whichever is not below 1."""
        return None if self.factor is None else max(self.factor, 1 / self.factor)

    @property
    def right_side(self) -> bool | None:
        """Whether a ratio lies on that side of 1 on which it came; None where it came near 1."""
        if self.unit != TIMES or self.factor is None:
            return None
        came, guess = float(self.came), float(self.guess)
        if max(came, 1 / came) < NEAR:
            return None
        return (guess - 1) * (came - 1) > 0

    @property
    def wrong(self) -> bool:
        """Whether it is another word, on the wrong side of 1, or off by more than a factor."""
        if self.off is not None:
            return self.off > FAR or self.right_side is False
        if isinstance(self.guess, str):
            return self.guess.casefold() != str(self.came).casefold()
        return self.guess != self.came

    def __str__(self) -> str:
        def said(value: float | str) -> str:
            return value if isinstance(value, str) else f"{rounded(value)} {self.unit}".strip()

        return (
            f"{self.notebook[:2]} {self.name}: you said {said(self.guess)}; {said(self.came)} came"
        )


def read(path: Path) -> tuple[list[Guess], str]:
    """Read what was kept, and say what is left out. Of a guess the first line counts."""
    lines, left_out = jsonlines.read(path, _no_guess)
    first: dict[tuple[str, str], Guess] = {}
    for line in lines:
        one = Guess(**{field: line[field] for field in Guess._fields})
        first.setdefault((one.notebook, one.name), one)
    return [*first.values()], left_out


def _no_guess(line: dict[str, Any]) -> str:
    """Say why a line is no guess; "" where it is one."""
    words = (line.get("notebook"), line.get("name"), line.get("unit"))
    values = line.get("guess"), line.get("came")
    if not all(isinstance(word, str) and len(word) <= 40 for word in words):
        return "a field is missing"
    if not re.fullmatch(TOPIC, words[0]) or not re.fullmatch(r"guess_[a-z0-9_]+", words[1]):
        return "it is of no notebook"
    numbers = [type(value) in (int, float) and -LARGEST < value < LARGEST for value in values]
    texts = [isinstance(value, str) and value == plain(value) for value in values]
    return "" if all(numbers) or all(texts) else "it has no number or word"


def own() -> list[Guess]:
    """Read one's own guesses, and say where there are none."""
    guesses, left_out = read(results_path() / KEPT)
    if left_out:
        print(f"{show(results_path() / KEPT)}{left_out}.")
    if not guesses:
        raise ScaleoutError(
            "No guess of yours is kept yet: open a notebook with  make lab , put a guess in the place "
            "of None, and run the cells until the answer is there."
        )
    return guesses


def in_words(guesses: Sequence[Guess]) -> str:
    """Say how many guesses there are, how far off, and which were the farthest."""
    said = [f"You made {count_of(len(guesses))}."]
    numbers = [one for one in guesses if one.off is not None]
    if numbers:
        middle = statistics.median(one.off or 1.0 for one in numbers)
        low = sum((one.factor or 1.0) < 1 for one in numbers)
        high = sum((one.factor or 1.0) > 1 for one in numbers)
        said.append(
            f"Numbers: half of {len(numbers)} were within a factor of {middle:.2g} of what came; "
            f"{high} were too high, {low} too low."
        )
    sides = [one.right_side for one in guesses if one.unit == TIMES and one.factor]
    told = [side for side in sides if side is not None]
    if told:
        near = len(sides) - len(told)
        said.append(
            f"Times as fast: {sum(told)} of {len(told)} lay on the right side of 1."
            + f" ({near} more came within 5 % of 1.)" * bool(near)
        )
    others = [one for one in guesses if one.off is None]
    if others:
        said.append(
            f"Words, zeros and signs: {sum(not one.wrong for one in others)} of {len(others)} right."
        )
    farthest = sorted(numbers, key=lambda one: -(one.off or 1.0))[:FARTHEST]
    if farthest and (farthest[0].off or 1.0) > 1:
        said += ["The farthest:", *(f"  {_far(one)}" for one in farthest)]
    return "\n".join(said)


def count_of(number: int) -> str:
    """Count guesses."""
    return "1 guess" if number == 1 else f"{number} guesses"


def _far(one: Guess) -> str:
    way = "high" if (one.factor or 1.0) > 1 else "low"
    return f"{one}: {rounded(one.off or 1.0)} times too {way}"


def wrong(people: Sequence[Iterable[Guess]]) -> str:
    """Show on a page in Markdown which guesses most of a class were wrong about: counts alone."""
    asked: dict[tuple[str, str], list[Guess]] = defaultdict(list)
    for guesses in people:
        for one in guesses:
            asked[one.notebook, one.name].append(one)
    order = sorted(asked, key=lambda key: (-_wrong_of(asked[key]), len(asked[key]), key))
    rows = [
        [notebook, name.removeprefix("guess_"), _wrong_of(own), len(own), *_middles(own)]
        for notebook, name in order[:MOST]
        if _wrong_of(own := asked[notebook, name])
    ]
    columns = ["lesson", "guess", "wrong", "guesses", "median guess", "median of what came", "unit"]
    people_ = f"{len(people)} {'person was' if len(people) == 1 else 'people were'}"
    return "\n".join([
        f"# What {people_} wrong about", "",
        f"Wrong is another word, the wrong side of 1, or more than {FAR:g} times too high or too low.",
        "What came differs from machine to machine, and each guess is judged by its own.", "",
        markdown_table(columns, rows) if rows else "Nobody was wrong.", "",
    ])  # fmt: skip


def _wrong_of(guesses: Iterable[Guess]) -> int:
    return sum(one.wrong for one in guesses)


def _middles(guesses: Sequence[Guess]) -> tuple[str, str, str]:
    """The medians of guesses and of what came, where these are numbers."""
    pairs = [
        (one.guess, one.came)
        for one in guesses
        if not isinstance(one.guess, str) and not isinstance(one.came, str)
    ]
    if not pairs:
        return "a word", "", ""
    said, came = (rounded(statistics.median(each)) for each in zip(*pairs, strict=True))
    return said, came, re.sub(r"[^\w %/.'-]", "?", guesses[0].unit)
