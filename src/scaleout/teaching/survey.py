"""What the people of a class answered in survey.md: ten questions before and after, five on the
course. Only counts leave this module, and the words of the last question."""

import contextlib
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from ..base import jsonlines
from ..base.words import count, markdown_table, plain

PAGE = "survey.md"
LONGEST = 50_000  # letters; nobody writes more
CONCEPTS = {
    1: ("what mpirun starts", "c"),
    2: ("a gain within the noise", "b"),
    3: ("a variable set too late", "c"),
    4: ("what a rank of a ring sends", "a"),
    5: ("unequal weights at the start", "b"),
    6: ("the rate for a large batch", "c"),
    7: ("one rank tests alone", "a"),
    8: ("what cannot be divided", "b"),
    9: ("what bf16 is", "c"),
    10: ("input beside compute", "a"),
}
COURSE = {11: "pace", 12: "guesses", 13: "checks and hints", 14: "use for one's own training"}
WORDS = 15
SECTION = re.compile(r"^## (\d{1,2})\. (.*?)(?=^#|\Z)", re.M | re.S)
LINE = re.compile(r"^(before|after|answer|words):[ \t]*(.*)$", re.M)


def read(folder: Path, beside: bool = True) -> dict[tuple[int, str], str]:
    """Read what was answered: {(question, "before"): "b"}.

    The page lies in a results folder or beside it, where what lies there is the same person's.
    """
    text = ""
    for path in (*([folder.parent / PAGE] if beside else []), folder / PAGE):
        with contextlib.suppress(OSError, ValueError):
            text = jsonlines.text(path)[:LONGEST]
    return {
        (int(number), name): plain(said.strip(), 300)
        for number, section in SECTION.findall(text)
        for name, said in LINE.findall(section)
        if said.strip()
    }


def counted(pages: Sequence[dict[tuple[int, str], str]]) -> str:
    """Count the answers on a page in Markdown.

    It says who was right before and after, of those who answered both times, and what they say of
    the course.
    """
    rows = []
    right = Counter[str]()
    asked = 0
    for number, (about, answer) in CONCEPTS.items():
        both = [
            (page[number, "before"].lower(), page[number, "after"].lower())
            for page in pages
            if (number, "before") in page and (number, "after") in page
        ]
        before, after = (sum(pair[n] == answer for pair in both) for n in (0, 1))
        rows.append([f"{number} {about}", len(both), before, after])
        right.update(before=before, after=after)
        asked += len(both)
    marks = []
    for number, about in COURSE.items():
        given = Counter(page.get((number, "answer"), "") for page in pages)
        marks.append([f"{number} {about}", *(given[str(mark)] for mark in range(1, 6))])
    words = [page[WORDS, "words"] for page in pages if (WORDS, "words") in page]
    found = "Nobody answered a question both before and after."
    if asked:
        share = {name: f"{100 * right[name] / asked:.0f} %" for name in ("before", "after")}
        found = f"Right before: {share['before']} of the answers; after: {share['after']}."
    return "\n".join([
        f"# The answers on {count(len(pages), 'page')}", "",
        found, "",
        markdown_table(["question", "answered twice", "right before", "right after"], rows), "",
        markdown_table(["on the course", *range(1, 6)], marks), "",
        *(f"    {said}" for said in words), "",
    ])  # fmt: skip
