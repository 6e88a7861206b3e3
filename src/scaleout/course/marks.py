"""The marks of a lab: what is cut out of a master, where each TODO stands, and the lines that a
notebook quotes."""

import ast
import json
import re
import textwrap
from collections.abc import Callable, Iterable
from difflib import SequenceMatcher

from ..base.errors import ScaleoutError

TODO = re.compile(r"\s*# TODO (\d+): (\S.*)")
MARK = re.compile(r"\s*# (BEGIN SOLUTION|END SOLUTION|STARTER:.*)$")
LIKE_A_MARK = re.compile(r"#\s*(begin|end)\s*solution|#\s*starter\b", re.IGNORECASE)

# An example guess of a master; an attendee makes a guess of their own.
GUESS = re.compile(r"^(guess_\w+ = ).+?(  #.*)?$", re.MULTILINE)


def cut(
    text: str, where: str = "the master", keep: Callable[[int], bool] = lambda number: False
) -> str:
    """Make the lab's text from a master's.

    Each solution gives way to its STARTER lines, or to NotImplementedError.
    """
    out: list[str] = []
    asked: tuple[int, str] | None = None  # the TODO above, which waits for its solution
    asked_at = begun = 0
    inside: list[str] | None = None
    seen: set[int] = set()
    for at, line in enumerate(text.splitlines(keepends=True), 1):
        mark, place = line.strip(), f"{where}, line {at}"
        if mark == "# BEGIN SOLUTION":
            if inside is not None:
                raise ScaleoutError(f"{place}: a solution begins inside another; end the first.")
            if asked is None:
                raise ScaleoutError(
                    f"{place}: a solution without a number; put  # TODO N: what  before it."
                )
            inside, begun, indent = [], at, line[: line.index("#")]
        elif mark == "# END SOLUTION":
            if inside is None or asked is None:
                raise ScaleoutError(f"{place}: a solution ends that never began.")
            out += _region(inside, indent, *asked, keep(asked[0]))
            inside, asked = None, None
        elif LIKE_A_MARK.match(mark) and (inside is None or not mark.startswith("# STARTER:")):
            raise ScaleoutError(
                f"{place}: {mark!r} is no mark here; marks are  # BEGIN SOLUTION,  # END SOLUTION,  and  # STARTER: "
                "between them."
            )
        elif inside is not None:
            if TODO.match(line):
                raise ScaleoutError(f"{place}: a TODO inside a solution; end the solution first.")
            inside.append(line)
        else:
            out.append(line)
            if found := TODO.match(line):
                if int(found[1]) in seen:
                    raise ScaleoutError(f"{place}: TODO {found[1]} stands there twice.")
                if asked is not None:
                    raise ScaleoutError(
                        f"{where}, line {asked_at}: TODO {asked[0]} has no solution."
                    )
                asked, asked_at = (int(found[1]), found[2]), at
                seen.add(asked[0])
    if inside is not None:
        raise ScaleoutError(
            f"{where}, line {begun}: a solution begins and never ends; write  # END SOLUTION"
        )
    if asked is not None:
        raise ScaleoutError(f"{where}, line {asked_at}: TODO {asked[0]} has no solution.")
    return "".join(out)


def _region(lines: list[str], indent: str, number: int, what: str, keep: bool) -> list[str]:
    starters = [line for line in lines if line.strip().startswith("# STARTER:")]
    if keep:
        return [line for line in lines if line not in starters]
    if starters:
        return [re.sub(r"# STARTER: ?", "", line, count=1) for line in starters]
    text = json.dumps(f"TODO {number}: {what.split('  ')[0].rstrip('.')}", ensure_ascii=False)
    return [f"{indent}raise NotImplementedError({text})\n"]


def gaps(text: str) -> dict[int, tuple[str, str]]:
    """Find the solution of each TODO of a master, and what stands in its place in the lab."""
    found: dict[int, tuple[str, str]] = {}
    inside: list[str] | None = None
    for line in text.splitlines(keepends=True):
        mark = line.strip()
        if todo := TODO.match(line):
            asked = int(todo[1]), todo[2]
        elif mark == "# BEGIN SOLUTION":
            inside, indent = [], line[: line.index("#")]
        elif mark == "# END SOLUTION" and inside is not None:
            solved, given = (_region(inside, indent, *asked, keep) for keep in (True, False))
            found[asked[0]] = "".join(solved), "".join(given)
            inside = None
        elif inside is not None:
            inside.append(line)
    return found


def numbers(text: str) -> list[int]:
    """List the numbers of the TODOs in a text, in order."""
    return list(lines_of_todos(text))


def lines_of_todos(text: str) -> dict[int, int]:
    """Find the line of each TODO's mark, by its number."""
    found = ((TODO.match(line), at) for at, line in enumerate(text.splitlines(), 1))
    return {int(mark[1]): at for mark, at in found if mark}


def written(text: str, start: str) -> dict[int, int | None]:
    """Find the TODO of each line that differs from the untouched lab, by the line's number.

    It is the one below whose mark the line stands in the untouched lab, so it is known also where
    somebody has deleted the mark. What was only taken out counts with the line that now stands there.
    None is the TODO of what stands in place of several.
    """
    given, now = ([line.rstrip() for line in each.splitlines()] for each in (start, text))
    marks = lines_of_todos(start)
    found: dict[int, int | None] = {}
    for kind, i, end, j, until in SequenceMatcher(None, given, now, autojunk=False).get_opcodes():
        above = [number for number, at in marks.items() if at <= end]
        gone = [line for line in given[i:end] if line and not line.lstrip().startswith("#")]
        if kind != "equal" and above and (gone or any(now[j:until])):
            swallowed = [number for number in above if marks[number] > i]
            owner = max(above, key=lambda number: marks[number]) if len(swallowed) < 2 else None
            found |= dict.fromkeys(range(j + 1, max(until, j + 1) + 1), owner)
    return found


def nearest(text: str, line: int, among: Iterable[int]) -> int | None:
    """Find the TODO that a failing line belongs to, as far as its place tells."""
    lines = {number: at for number, at in lines_of_todos(text).items() if number in set(among)}
    above = [number for number, at in lines.items() if at <= line]
    if above:
        return max(above, key=lambda number: lines[number])
    return min(lines, key=lambda number: lines[number], default=None)


def quoted(text: str, what: int | str) -> str:
    """Quote the lines of a lab that a section is about."""
    lines = text.splitlines()
    if isinstance(what, int):
        first, last = _todo(lines, what)
    else:
        first, last = _statement(text, lines, what)
    kept = [line for line in lines[first:last] if not MARK.match(line)]
    return textwrap.dedent("\n".join(kept)).rstrip()


def _todo(lines: list[str], number: int) -> tuple[int, int]:
    """Find the lines from the mark of a TODO to the blank line after its code.

    They may also end where its solution does.
    """
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
