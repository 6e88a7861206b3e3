"""Numbers as programs print them: of a pattern that finds a part of one, the whole is read. What two
people would read differently is refused, and so is a number whose unit changes as it grows."""

import re

from ..base.errors import ScaleoutError

MARKS = ",_'’\u00a0\u202f\u2009"  # between thousands; the last three are narrow or fixed blanks
EXPONENT = r"(?:\.?[eEdD][-+]?[0-9]+)"  # Fortran writes D
WHOLE = re.compile(rf"(?:(?<![\w.)\]%+-])[-+\u2212])?\.?[0-9]+(?:[.{MARKS}][0-9]+)*{EXPONENT}?")
PLAIN = re.compile(rf"[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+){EXPONENT}?")
THOUSANDS = re.compile(
    rf"[-+]?[1-9][0-9]{{0,2}}(?P<mark>[{MARKS} ])[0-9]{{3}}(?:(?P=mark)[0-9]{{3}})*"
    rf"(?:\.[0-9]*)?{EXPONENT}?"
)
# What a number may be a part of: 12 345 (or two columns), 1:30.5, 0m1.234s, 0x1F4, 1.2 x 10^3.
MORE = re.compile(
    r"(?<![\w.,])[1-9][0-9]{0,2}(?: [0-9]{3})+(?![\w,])(?:\.[0-9]+)?(?!\w)"
    r"|(?<![\w.:])[0-9]+(?::[0-9]{2}(?![0-9]))+(?:\.[0-9]+)?"
    r"|(?<![\w.])[0-9]+[hm](?:[0-9][0-9.]*| [0-9.]+[ms]\b)"
    r"|(?<!\w)0x[0-9A-Fa-f]+"
    r"|[0-9.,]+ ?[x×*·] ?10(?:\^|\*\*|[⁰¹²³⁴-⁹⁻])\S*"
)
# Units that change as the number grows: 10.4k, 1.2 GB/s, 3.1kit/s, 950 ms.
UNIT = re.compile(
    r"(?<=[0-9.])[ \u00a0\u202f]?(?:"
    r"[kKMGT]i?(?:[bB](?:its?|ytes?|ps)?|it|Hz|(?i:flops?))(?![A-Za-z])"
    r"|[kKMGT](?i:tok|img|image|sample|iops|ops|read|writ|req|row|step|word|event|frame|item|rec)"
    r"|(?:[kKMGT]|ns|us|µs|μs|ms|min|h)(?![A-Za-z0-9=:]))"
)
# The pieces of a pattern: the start of a group, or one sign or class with what repeats it.
PIECE = re.compile(r"\(\?P<\w+>|\(\??|(?:\\.|\[\^?\]?(?:\\.|[^]\\])*\]|.)[*+?{]?", re.DOTALL)
FAR = 80  # characters beside what was found, in which the number may go on
SEVERAL_WAYS = (
    "which people read in more than one way: let the program print it as 1234.5 (if a comma is its "
    "point,  --env LC_ALL=C  may do); or, if the number ends before that, write the sign at its end "
    "into the pattern, such as  ([0-9.]+),"
)
CHANGES = (
    "whose unit may be another in the next line: let the program print plain numbers, such as 1234.5, "
    "or write the unit into the pattern, such as  ([0-9.]+) ms"
)


class NoFigure(ScaleoutError):
    """A job ended well but gave nothing to judge it by."""


def read(match: re.Match[str]) -> float:
    """Read the number that a pattern's group finds, or is a part of.

    What the pattern itself has right beside its parentheses, such as the comma of ",([0-9.]+)" or the
    unit of "([0-9.]+) ms", is no part of the number. NoFigure for what cannot be read.
    """
    line, group = match.string, _group(match)
    words = match[group].strip()
    start = match.start(group) + match[group].index(words)
    end = start + len(words)

    def around(pattern: re.Pattern[str]) -> list[re.Match[str]]:
        near = pattern.finditer(line, max(0, start - FAR), end + FAR)
        return [m for m in near if m.start() < end and start < m.end()]

    before, behind, unit = _beside(match.re.pattern, group)
    begins, ends = _is(before, line[:start][-1:]), _is(behind, line[end : end + 1])
    first, last = start, end
    for whole in around(WHOLE)[:1]:
        first = start if begins else min(start, whole.start())
        last = end if ends else max(end, whole.end())
    for more in around(MORE):
        if (more.start() < first and not begins) or (more.end() > last and not ends):
            raise _refused(words, line, more[0])
    text = line[first:last].replace("\u2212", "-").rstrip(".")
    scale = UNIT.match(line, last)
    if UNIT.search(text) or (scale and not _is(unit, scale[0].lstrip()[0])):
        raise _refused(words, line, line[first : scale.end() if scale else last], CHANGES)
    if (value := one_number(text)) is None:
        raise _refused(words, line, text)
    return value


def one_number(text: str) -> float | None:
    """Read a text that is one number, with or without marks between thousands; None for any other."""
    if THOUSANDS.fullmatch(text):
        text = re.sub(f"[{MARKS} ]", "", text)
    return float(re.sub("[dD]", "e", text)) if PLAIN.fullmatch(text) else None


def _group(match: re.Match[str]) -> int:
    """Number the group that has found something; 0, the whole match, where there is none."""
    return next((n for n, found in enumerate(match.groups(), 1) if found is not None), 0)


def _beside(pattern: str, group: int) -> tuple[str, str, str]:
    """Return the pieces of a pattern before a group, behind it, and behind it and a blank."""
    pieces, opened, count = PIECE.findall(pattern), [], 0
    for at, piece in enumerate(pieces):
        if piece[0] == "(":
            count += piece != "(?"
            opened.append((at, count if piece != "(?" else 0))
        elif piece[0] == ")" and opened:
            start, number = opened.pop()
            if number == group > 0:
                rest = [*pieces[at + 1 :], "", ""]
                blank = rest[0].rstrip("*+?") in (" ", "\\ ", "\\s")
                return pieces[start - 1] if start else "", rest[0], rest[blank]
    return "", "", ""


def _is(piece: str, sign: str) -> bool:
    """Tell whether a piece of a pattern is this sign, once, and no digit."""
    return piece in {sign, re.escape(sign)} - {"", ".", *"0123456789"}


def _refused(words: str, line: str, whole: str, why: str = SEVERAL_WAYS) -> NoFigure:
    """Say what was found and cannot be read, and what to type instead."""
    found = f"--metric finds {words!r} in the line {line.strip()[:160]!r}"
    if whole == words and re.search(r"[^-+0-9.,\s]|^$", words) and why == SEVERAL_WAYS:
        return NoFigure(
            f"{found}, and that is no number: put the number, and only that, in parentheses: "
            "([0-9.]+)"
        )
    return NoFigure(f"{found}, {'' if whole == words else f'a part of {whole!r}, '}{why}")
