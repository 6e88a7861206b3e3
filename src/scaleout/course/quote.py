"""A few lines of a lab, as a notebook shows them: taken from the file itself, so that they cannot drift."""

import ast
import re
import textwrap
from typing import TYPE_CHECKING

from ..errors import ScaleoutError

if TYPE_CHECKING:
    from IPython.display import Code


MARK = re.compile(r"\s*# (BEGIN SOLUTION|END SOLUTION|STARTER:.*)$")
TODO = re.compile(r"\s*# TODO (\d+):")


def lines_of(text: str, what: int | str) -> str:
    """The lines of a lab that a section is about."""
    lines = text.splitlines()
    if isinstance(what, int):
        first, last = _todo(lines, what)
    else:
        first, last = _statement(text, lines, what)
    kept = [line for line in lines[first:last] if not MARK.match(line)]
    return textwrap.dedent("\n".join(kept)).rstrip()


def _todo(lines: list[str], number: int) -> tuple[int, int]:
    """From the mark of a TODO to the blank line after its code, or to the end of its solution."""
    first = next(
        (at for at, line in enumerate(lines) if (m := TODO.match(line)) and int(m[1]) == number),
        None,
    )
    if first is None:
        raise ScaleoutError(f"This lab has no TODO {number}.")
    seen_code = False
    for at in range(first + 1, len(lines)):
        line = lines[at].strip()
        if line == "# END SOLUTION":
            return first, at
        if seen_code and (not line or TODO.match(lines[at])):
            return first, at
        seen_code = seen_code or bool(line and not line.startswith("#"))
    return first, len(lines)


def _statement(text: str, lines: list[str], wanted: str) -> tuple[int, int]:
    at = next((at for at, line in enumerate(lines, 1) if wanted in line), None)
    if at is None:
        raise ScaleoutError(f"This lab has no line with {wanted!r}.")
    around = [
        node
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.stmt) and node.lineno <= at <= (node.end_lineno or at)
    ]
    inner = max(around, key=lambda node: node.lineno, default=None)
    if inner is None:
        return at - 1, at
    first = inner.lineno - 1
    while first > 0 and lines[first - 1].strip().startswith("# Distributed"):
        first -= 1
    return first, inner.end_lineno or at


def show_code(text: str, what: int | str) -> "Code":
    """The lines of `lines_of`, highlighted, as the last line of a notebook's cell displays them."""
    from IPython.display import Code

    return Code(lines_of(text, what), language="python")
