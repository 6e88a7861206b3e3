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
from ..base.paths import home, results_path, show
from ..base.words import markdown_table, plain, rounded
from ..course import came
from ..course.masters import TOPIC

FILE = came.KEPT
PAGE = "wrong.md"
PICTURE = "guesses.png"
TIMES = "times"  # the unit of ratios, of which 1 is "as fast as"
NEAR = 1.05  # what came nearer to 1 lies on neither side
FAR = 2.0  # times too high or too low: a wrong guess
LARGEST = 1e15
TINY = 1e-4  # less is written as a power of ten
QUESTION = re.compile(r"\*\*Predict:?\*\*:? *(.+?\?)")  # of a notebook, before a guess
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
        guess, came = (
            value
            if isinstance(value, str)
            else f"{value:.2g}" if 0 < abs(value) < TINY else rounded(value)
            for value in (self.guess, self.came)
        )  # fmt: skip
        unit = f" ({self.unit})" * bool(self.unit)
        return f"{self.notebook[:2]} {self.name}: you said {guess}, and {came} came{unit}"


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
    words: list[Any] = [line.get(field) for field in ("notebook", "name", "unit")]
    values: list[Any] = [line.get("guess"), line.get("came")]
    if not all(isinstance(word, str) and len(word) <= 40 for word in words):
        return "a field is missing"
    if not re.fullmatch(TOPIC, words[0]) or not re.fullmatch(r"guess_[a-z0-9_]+", words[1]):
        return "it is of no notebook"
    numbers = [type(value) in (int, float) and -LARGEST < value < LARGEST for value in values]
    texts = [isinstance(value, str) and value == plain(value) for value in values]
    return "" if all(numbers) or all(texts) else "it has no number or word"


def own() -> list[Guess]:
    """Read one's own guesses, and say where there are none."""
    guesses, left_out = read(results_path() / FILE)
    if left_out:
        print(f"{show(results_path() / FILE)}{left_out}.")
    if not guesses:
        raise ScaleoutError(
            "No guess of yours is kept yet: open a notebook with  make lab , put a guess in the place "
            "of None, and run the cells until the answer is there."
        )
    return guesses


def in_words(guesses: Sequence[Guess]) -> str:
    """Say how many guesses there are, how far off, and which were the farthest."""
    said = [f"You made {len(guesses)} guess{'es' * (len(guesses) > 1)}."]
    factors = [(one.factor, one) for one in guesses if one.factor]
    far = sorted(((max(f, 1 / f), f > 1, one) for f, one in factors), key=lambda way: -way[0])
    if far:
        middle = statistics.median(off for off, *_ in far)
        high = sum(too_high for _, too_high, _ in far)
        low = sum(factor < 1 for factor, _ in factors)
        said.append(
            f"Numbers: half of {len(far)} were within a factor of {middle:.2g} of what came; "
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
    others = [one for one in guesses if not one.factor]
    if others:
        right = sum(not one.wrong for one in others)
        said.append(f"Words, and numbers around 0: {right} of {len(others)} right.")
    if far and far[0][0] > 1:
        said.append("The farthest:")
        said += [
            f"  {one}: {rounded(off)} times too {'high' if too_high else 'low'}"
            for off, too_high, one in far[:FARTHEST]
        ]
    return "\n".join(said)


def wrong(people: Sequence[Iterable[Guess]]) -> str:
    """Show on a page in Markdown which guesses most of a class were wrong about: counts alone."""
    asked: dict[tuple[str, str], list[Guess]] = defaultdict(list)
    for guesses in people:
        for one in guesses:
            asked[one.notebook, one.name].append(one)
    order = sorted(asked, key=lambda key: (-_wrong_of(asked[key]), len(asked[key]), key))
    most = [key for key in order[:MOST] if _wrong_of(asked[key])]
    rows = [
        [notebook, name, _wrong_of(asked[notebook, name]), len(asked[notebook, name])]
        + _middles(asked[notebook, name])
        for notebook, name in most
    ]
    texts = {notebook: questions(notebook) for notebook, _ in most}
    said = [
        f"- {notebook[:2]} {name}: {texts[notebook][name]}"
        for notebook, name in most
        if name in texts[notebook]
    ]
    columns = ["lesson", "guess", "wrong", "guesses", "median guess", "median of what came", "unit"]
    people_ = f"{len(people)} {'person was' if len(people) == 1 else 'people were'}"
    return "\n".join([
        f"# What {people_} wrong about", "",
        f"Wrong is another word, the wrong side of 1, or more than {FAR:g} times too high or too low.",
        "What came differs from machine to machine, and each guess is judged by its own.", "",
        markdown_table(columns, rows) if rows else "Nobody was wrong.", "",
        *([*said, ""] if said else []),
    ])  # fmt: skip


def questions(notebook: str) -> dict[str, str]:
    """Read from a notebook of the course what it asks before each guess."""
    found: dict[str, str] = {}
    asked = ""
    book = jsonlines.table(home() / "notebooks" / f"{notebook}.ipynb")
    for cell in book.get("cells", []):
        text = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            asked = [asked, *QUESTION.findall(text)][-1]
        for name in re.findall(r"^(guess_\w+) = ", text, re.MULTILINE):
            if asked:
                found[name] = asked[0].upper() + asked[1:]
            asked = ""
    return found


def _wrong_of(guesses: Iterable[Guess]) -> int:
    return sum(one.wrong for one in guesses)


def _middles(guesses: Sequence[Guess]) -> list[object]:
    """The medians of guesses and of what came, where these are numbers."""
    pairs = [
        (one.guess, one.came)
        for one in guesses
        if not isinstance(one.guess, str) and not isinstance(one.came, str)
    ]
    if not pairs:
        return ["a word", "", ""]
    said, middle = (rounded(statistics.median(each)) for each in zip(*pairs, strict=True))
    return [said, middle, re.sub(r"[^\w %/.'-]", "?", guesses[0].unit)]
