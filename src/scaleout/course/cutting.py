"""The marks of a master: what is cut out of its text, and what stands there instead."""

import json
import re
from collections.abc import Callable

from ..errors import ScaleoutError

TODO = re.compile(r"\s*# TODO (\d+): (\S.*)")

# An example guess of a master; an attendee makes a guess of their own.
GUESS = re.compile(r"^(guess_\w+ = ).+?(  #.*)?$", re.MULTILINE)

LIKE_A_MARK = re.compile(r"#\s*(begin|end)\s*solution|#\s*starter\b", re.IGNORECASE)


def cut(
    text: str, where: str = "the master", keep: Callable[[int], bool] = lambda number: False
) -> str:
    """The lab's text for a master's: each solution gives way to its STARTER lines, or to
    NotImplementedError.
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


def numbers(text: str) -> list[int]:
    """The numbers of the TODOs in a text, in order."""
    return [int(found[1]) for found in map(TODO.match, text.splitlines()) if found]
