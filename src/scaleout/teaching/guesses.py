"""What the people of a class guessed before they installed anything, on the pages of docs/preview/.

A page hands them in as one line, which people keep in guesses.txt. Of a class only counts are
shown."""

import contextlib
import re
import statistics
from collections.abc import Iterator, Sequence
from pathlib import Path

from ..base import jsonlines
from ..base.words import count, markdown_table, plain, rounded
from ..course.masters import TOPIC

FILE = "guesses.txt"
PAGE = "guesses.md"
LONGEST = 50_000  # letters; thirteen lines are far fewer
WORD = "scaleout-guesses"
GUESS = re.compile(
    r"([a-z0-9][a-z0-9-]{0,29})=(\d{1,12}(?:\.\d{1,12})?(?:e[+-]?\d{1,2})?)", re.ASCII
)
Guesses = dict[tuple[str, str], float]  # by lesson and question


def read(folder: Path, beside: bool = True) -> tuple[Guesses, list[str]]:
    """Read what was guessed, and say which lines are none.

    The file lies in a results folder or beside it, where what lies there is the same person's. Of
    two lines of a lesson the first counts: a guess that is made again is none.
    """
    found: Guesses = {}
    left_out = []
    for path in (*([folder.parent / FILE] if beside else []), folder / FILE):
        text = ""
        with contextlib.suppress(OSError, ValueError):
            text = jsonlines.text(path)[:LONGEST]
        for number, line in enumerate(text.splitlines(), 1):
            words = line.split()
            if words[:1] != [WORD]:
                continue
            own = dict(_line(words[1:]))
            if not own:
                left_out.append(f"{FILE}, line {number}: no guesses ({plain(line.strip())})")
            found = own | found
    return found, left_out


def _line(words: Sequence[str]) -> Iterator[tuple[tuple[str, str], float]]:
    """Yield the guesses of a line; none at all where a word of it is no guess."""
    topic, *said = words or [""]
    made = [GUESS.fullmatch(word) for word in said]
    if re.fullmatch(TOPIC, topic) and len(topic) <= 40:
        whole = [one for one in made if one and float(one[2]) > 0]
        if len(whole) == len(made):
            yield from (((topic, one[1]), float(one[2])) for one in whole)


def counted(people: Sequence[Guesses]) -> str:
    """Show on a page in Markdown how far the guesses of a class lie apart."""
    asked = sorted({question for guesses in people for question in guesses})
    rows = []
    for lesson, question in asked:
        values = [guesses[lesson, question] for guesses in people if (lesson, question) in guesses]
        ends = (min(values), statistics.median(values), max(values))
        rows.append([lesson, question, len(values), *map(rounded, ends)])
    columns = ["lesson", "question", "guesses", "lowest", "median", "highest"]
    people_ = f"{len(people)} {'person' if len(people) == 1 else 'people'}"
    return "\n".join([
        f"# The guesses of {people_}", "",
        f"{count(len(asked), 'question')}, answered before anything was installed.", "",
        markdown_table(columns, rows), "",
    ])  # fmt: skip
