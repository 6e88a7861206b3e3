"""Where the TODOs of a lab stand, which one a line belongs to, and what a notebook quotes."""

import json

import pytest

from scaleout.course import marks, masters
from scaleout.jobs.unreadable import syntax_error

TEXT = """\
import os
# TODO 2: that.
that = 1

    # TODO 1: this.  (1 line)
    this = 2
end()
"""


@pytest.mark.parametrize(
    ("line", "among", "todo"),
    [(1, [1, 2], 2), (2, [1, 2], 2), (3, [1, 2], 2), (5, [1, 2], 1), (7, [1, 2], 1),
     (7, [2], 2), (3, [1], 1), (3, [], None), (3, [9], None)],
)  # fmt: skip
def test_a_line_belongs_to_the_mark_above_it_else_to_the_next(
    line: int, among: list[int], todo: int | None
) -> None:
    assert marks.nearest(TEXT, line, among) == todo


GIVEN = """\
import os
# TODO 1: this.
this = 0

between()
# TODO 2: that.
raise NotImplementedError
end()
"""


@pytest.mark.parametrize(
    ("change", "todos"),
    [
        ([], {}),
        ([("this = 0", "this = 1")], {3: 1}),
        ([("this = 0", "this = 1  ")], {3: 1}),
        ([("this = 0\n", "a = 1\n\nthis = a\n")], {3: 1, 4: 1, 5: 1}),
        ([("\n\nbetween", "\nbetween")], {}),
        ([("# TODO 2: that.\n", "")], {}),
        ([("# TODO 2: that.\nraise NotImplementedError", "that = 2")], {6: 2}),
        ([("# TODO 1: this.\n", ""), ("this = 0", "this = 1"), ("# TODO 2: that.\n", "")], {2: 1}),
        ([("raise NotImplementedError\n", "")], {7: 2}),
        ([("this = 0", "this = 1"), ("raise NotImplementedError", "that = 2")], {3: 1, 7: 2}),
        ([("import os", "import sys")], {}),
        ([("end()", "end(1)")], {8: 2}),
        ([(GIVEN, "all = 1\nof_it = 2\n")], {1: None, 2: None}),
    ],
)
def test_what_somebody_has_written_belongs_to_the_todo_above_it_as_it_was_given_out(
    change: list[tuple[str, str]], todos: dict[int, int | None]
) -> None:
    text = GIVEN
    for old, new in change:
        assert old in text
        text = text.replace(old, new)
    assert marks.written(text, GIVEN) == todos


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("x = 1\ny = (2,\n", 2, "'(' was never closed"),
        ("if x:\npass\n", 2, "IndentationError"),
        ("if x:\n        y = 1\n\tz = 2\n", 3, "TabError"),
        ("x = 1\ny = '\0'\n", 2, "null byte"),
    ],
)
def test_what_python_cannot_read_is_named_with_its_line(text: str, line: int, words: str) -> None:
    error = syntax_error(text.encode(), "runme.py")
    assert error and error.lineno == line and words in repr(error)


LAB = '''"""A lab."""

import math


def area(first: int) -> float:
    """The area."""
    return math.pi * first


def main() -> None:
    # TODO 1: who am I?  (1 line)
    # BEGIN SOLUTION
    rank = 3
    # STARTER: rank = 0
    # END SOLUTION
    print(rank)

    # TODO 2: add up.  (1 line)
    total = rank

    # Distributed: one report
    if rank == 0:
        print(total)
'''


@pytest.mark.parametrize(
    ("what", "seen"),
    [
        (1, "# TODO 1: who am I?  (1 line)\nrank = 3"),
        (2, "# TODO 2: add up.  (1 line)\ntotal = rank"),
        (
            "def area",
            'def area(first: int) -> float:\n    """The area."""\n    return math.pi * first',
        ),
        ("if rank == 0", "# Distributed: one report\nif rank == 0:\n    print(total)"),
        ("print(rank)", "print(rank)"),
    ],
)
def test_the_lines_that_a_section_is_about(what: int | str, seen: str) -> None:
    assert marks.quoted(LAB, what) == seen


def test_an_attendee_makes_a_guess_of_their_own() -> None:
    source = "guess_us = 10  # your guess, such as 5\nguess_all = (1, 2)\nmeasured = guess_us"
    cell = {"cell_type": "code", "source": [source], "outputs": [], "metadata": {}}
    made = json.loads(masters._cut_notebook(json.dumps({"cells": [cell], "metadata": {}}), "x"))
    assert "".join(made["cells"][0]["source"]) == (
        "guess_us = None  # your guess, such as 5\nguess_all = None\nmeasured = guess_us"
    )
