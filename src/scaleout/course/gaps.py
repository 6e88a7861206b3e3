"""The gaps of a runme.py: where each TODO stands, whether it was touched, which is nearest to a
line."""

import warnings
from collections.abc import Iterable

from .cutting import TODO


def marks(text: str) -> dict[int, int]:
    """The line of each TODO's mark, by its number."""
    found = ((TODO.match(line), at) for at, line in enumerate(text.splitlines(), 1))
    return {int(mark[1]): at for mark, at in found if mark}


def touched(text: str, start: str, number: int) -> bool:
    """Whether anything between this TODO and the next differs from the lab as it was given out."""
    return _below(text, number) != _below(start, number)


def _below(text: str, number: int) -> list[str]:
    """The lines from the mark of a TODO to the next mark, without blank ones."""
    lines, inside = [], False
    for line in text.splitlines():
        if found := TODO.match(line):
            inside = int(found[1]) == number
        if inside and line.strip():
            lines.append(line.rstrip())
    return lines


def nearest(text: str, line: int, among: Iterable[int]) -> int | None:
    """The TODO that a failing line belongs to, as far as its place tells."""
    lines = {number: at for number, at in marks(text).items() if number in set(among)}
    above = [number for number, at in lines.items() if at <= line]
    if above:
        return max(above, key=lambda number: lines[number])
    return min(lines, key=lambda number: lines[number], default=None)


def removed(text: str, start: str) -> list[str]:
    """The marks that the lab was given out with and that are gone, as they stood there."""
    there = marks(text)
    lines = start.splitlines()
    return [lines[at - 1].strip() for number, at in marks(start).items() if number not in there]


def syntax_error(text: str) -> tuple[int, str] | None:
    """The line at which Python cannot read a text, and what it says; None when it can."""
    if "\0" in text:
        return text.count("\n", 0, text.index("\0")) + 1, "SyntaxError: a null byte"
    try:
        with warnings.catch_warnings(action="ignore"):
            compile(text, "runme.py", "exec", dont_inherit=True)
    except SyntaxError as error:
        return error.lineno or 1, f"{type(error).__name__}: {error.msg}"
    return None
