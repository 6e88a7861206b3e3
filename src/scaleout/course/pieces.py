"""The lines of a gap among likely mistakes, to choose from and put in order: for those who have
never written such lines."""

import codecs
import difflib
import keyword
import random
import re
import textwrap
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Protocol

import msgspec

from ..base.errors import ScaleoutError
from ..base.paths import read_text, show
from .marks import gaps, lines_of_todos

FILE = ".pieces.json"  # hidden from who does not ask for it
WRONG = (
    "wrong_fills.toml"  # of a lesson's masters: what people write in each gap, and why it is wrong
)
MOST_WRONG = 4
BLANK = "____"
COMMENT = re.compile(r"\s*#(?!SBATCH )")  # a line of #SBATCH is a setting of the job


class Gap(msgspec.Struct):
    """What one may put into a gap. Pieces and faded lines are turned by 13 letters."""

    script: str
    starter: list[str]  # what stands there untouched
    pieces: list[str]  # right lines and wrong ones
    faded: list[str]  # the right lines, each without a name


class Lab(Protocol):
    """The lab whose gap is filled."""

    name: str
    folder: Path


def made(name: str, scripts: Mapping[str, str], wrong: str) -> str:
    """Make the pieces of a topic's gaps, from its masters and the likeliest wrong fills."""
    fills = tomllib.loads(wrong)
    found = {}
    for script, text in scripts.items():
        for number, (solution, starter) in gaps(text).items():
            right = code(solution)
            theirs = [code(row["fill"]) for row in fills.get(f"todo{number}", [])]
            pieces = [*right, *mistakes(right, theirs)]
            random.Random(f"{name} {number}").shuffle(pieces)
            blanks = [faded(line) for line in right]
            found[str(number)] = Gap(script, code(starter), _turned(pieces), _turned(blanks))
    ordered = {number: found[number] for number in sorted(found, key=int)}
    return msgspec.json.format(msgspec.json.encode(ordered), indent=1).decode() + "\n"


def code(text: str) -> list[str]:
    """List the lines of a text that do something, none deeper than it needs to be."""
    lines = textwrap.dedent(text.strip("\n")).splitlines()
    return [line for line in lines if line.strip() and not COMMENT.match(line)]


def mistakes(right: list[str], fills: list[list[str]]) -> list[str]:
    """Choose lines that make a fill wrong: the first of those that stand near each right line."""
    wrong: dict[str, str] = {}  # each beside the right line that it takes the place of
    known = {bare(line) for line in right}
    for fill in fills:
        new = [line for line in fill if bare(line) not in known]
        if len(new) == 1:
            place = difflib.get_close_matches(new[0], right, 1, 0) or right[:1]
            wrong.setdefault(new[0], place[0])
    first: dict[str, str] = {}
    for mistake, beside in wrong.items():
        first.setdefault(beside, mistake)
    return list(dict.fromkeys([*first.values(), *wrong]))[:MOST_WRONG]


def bare(line: str) -> str:
    """Leave out what a line says behind its code."""
    return line.split("  # ")[0]


def faded(line: str) -> str:
    """Leave out the longest name of a line, but not the one that it begins with; without names,
    the longest text in quotes."""
    texts = re.findall(r"""["']([^"']+)["']""", line)
    plain = re.sub(r"""["'][^"']*["']""", "", line)
    names = [
        name for name in re.findall(r"\b[A-Za-z_]\w*", plain)[1:] if not keyword.iskeyword(name)
    ]
    longest = max(names or texts, key=len, default="")
    if not longest:
        return line
    return re.sub(rf"\b{re.escape(longest)}\b(?!.*\b{re.escape(longest)}\b)", BLANK, line)


def shown(lab: Lab, number: int) -> str:
    """Show the pieces of a gap, numbered, and what to type."""
    gap = _gap(lab, number)
    lines = [f"{at:3}  {piece}" for at, piece in enumerate(_turned(gap.pieces), 1)]
    right = len(gap.faded)
    fill = "fills" if right == 1 else "fill"
    example = " ".join(str(at) for at in range(right, 0, -1))
    return "\n".join(
        [
            f"{right} of these lines {fill} TODO {number}, the others are likely mistakes:\n",
            *lines,
            "\nType the numbers of the right ones, in an order that works. They are put into "
            f"{gap.script} and checked:",
            f"  scaleout pieces {lab.name} {number}  {example}",
        ]
    )


def put(lab: Lab, number: int, order: list[int]) -> None:
    """Put pieces into the gap, in this order."""
    gap = _gap(lab, number)
    pieces = _turned(gap.pieces)
    if lost := [n for n in order if not 1 <= n <= len(pieces)]:
        raise ScaleoutError(f"There is no piece {lost[0]}: TODO {number} has 1 to {len(pieces)}.")
    if twice := [n for n in order if order.count(n) > 1]:
        raise ScaleoutError(f"Piece {twice[0]} stands there twice: each line is used once.")
    _fill(lab, number, gap, [pieces[n - 1] for n in order])


def fade(lab: Lab, number: int) -> str:
    """Put the right lines into the gap, each with a blank; say what to do."""
    gap = _gap(lab, number)
    _fill(lab, number, gap, _turned(gap.faded))
    return (
        f"{show(lab.folder / gap.script)} has the lines of TODO {number} now, each with a blank: "
        f"{BLANK}. Fill them there, then type  scaleout check {lab.name} {number}"
    )


def _fill(lab: Lab, number: int, gap: Gap, lines: list[str]) -> None:
    """Write lines into a gap in which nobody has written lines of their own."""
    path = lab.folder / gap.script
    text = read_text(path).splitlines(keepends=True)
    again = f"Type  scaleout reset {lab.name}  for a fresh lab; yours is kept beside it."
    at = lines_of_todos("".join(text)).get(number)
    if at is None:
        raise ScaleoutError(f"{show(path)} has no mark of TODO {number} any more. {again}")
    indent = text[at - 1][: text[at - 1].index("#")]
    while at < len(text) and COMMENT.match(text[at]):
        at += 1
    known = {line.strip() for line in (*gap.starter, *_turned(gap.pieces), *_turned(gap.faded))}
    end = at
    while end < len(text) and text[end].strip() in known:
        end += 1
    if end == at:
        raise ScaleoutError(f"In TODO {number} stand lines of your own. {again}")
    text[at:end] = [f"{indent}{line}\n" for line in lines]
    path.write_text("".join(text), encoding="utf-8")


def _gap(lab: Lab, number: int) -> Gap:
    """Read what one may put into a gap."""
    path = lab.folder / FILE
    try:
        every = msgspec.json.decode(read_text(path), type=dict[str, Gap])
    except msgspec.MsgspecError:
        raise ScaleoutError(f"{show(path)} is damaged: fetch the workshop again.") from None
    if str(number) not in every:
        raise ScaleoutError(f"{lab.name} has no TODO {number}; it has {', '.join(every)}.")
    return every[str(number)]


def _turned(lines: Iterable[str]) -> list[str]:
    """Turn letters by 13 places, there and back."""
    return [codecs.encode(line, "rot13") for line in lines]
