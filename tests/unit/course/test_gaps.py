"""Where the TODOs of a runme.py stand, and which one a line belongs to."""

import pytest

from scaleout.course import gaps

TEXT = """\
import os
# TODO 2: that.
that = 1

    # TODO 1: this.  (1 line)
    this = 2
end()
"""


def test_marks_are_known_by_number_and_line() -> None:
    assert gaps.marks(TEXT) == {2: 2, 1: 5}


@pytest.mark.parametrize(
    ("line", "among", "todo"),
    [(1, [1, 2], 2), (2, [1, 2], 2), (3, [1, 2], 2), (5, [1, 2], 1), (7, [1, 2], 1),
     (7, [2], 2), (3, [1], 1), (3, [], None), (3, [9], None)],
)  # fmt: skip
def test_a_line_belongs_to_the_mark_above_it_else_to_the_next(
    line: int, among: list[int], todo: int | None
) -> None:
    assert gaps.nearest(TEXT, line, among) == todo


def test_blank_lines_touch_nothing_and_a_line_of_code_touches_its_own_todo() -> None:
    assert not gaps.touched(TEXT.replace("that = 1", "that = 1  \n"), TEXT, 2)
    changed = TEXT.replace("this = 2", "this = 3")
    assert gaps.touched(changed, TEXT, 1) and not gaps.touched(changed, TEXT, 2)


def test_a_mark_that_is_gone_is_named_as_it_stood() -> None:
    assert gaps.removed(TEXT, TEXT) == []
    assert gaps.removed("this = 2\n# TODO 2: my words.\n", TEXT) == ["# TODO 1: this.  (1 line)"]


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
    found = gaps.syntax_error(text)
    assert found and found[0] == line and words in found[1]


def test_a_text_that_python_can_read_is_well() -> None:
    assert gaps.syntax_error(TEXT.replace("    ", "")) is None
