"""What a notebook quotes of a lab."""

import pytest

from scaleout import ScaleoutError
from scaleout.course.quote import lines_of, show_code

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
    assert lines_of(LAB, what) == seen


@pytest.mark.parametrize(
    ("what", "said"), [(9, "no TODO 9"), ("nowhere", "no line with 'nowhere'")]
)
def test_what_is_not_there_is_said(what: int | str, said: str) -> None:
    with pytest.raises(ScaleoutError, match=said):
        lines_of(LAB, what)


def test_it_is_highlighted() -> None:
    assert "highlight" in show_code(LAB, "def area")._repr_html_()
