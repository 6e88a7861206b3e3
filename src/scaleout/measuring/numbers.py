"""Numbers as programs print them: of a pattern that finds a part of one, the whole is read, or refused
where two people would read it differently."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from ..base.errors import ScaleoutError

MARKS = ",_'’\u00a0\u202f\u2009"  # between thousands; the last three are narrow or fixed blanks
EXPONENT = r"(?:\.?[eEdD][-+]?[0-9]+)"  # Fortran writes D
WHOLE = re.compile(rf"(?:(?<![\w.)\]%+-])[-+\u2212])?\.?[0-9]+(?:[.{MARKS}][0-9]+)*{EXPONENT}?")
PLAIN = re.compile(rf"[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+){EXPONENT}?")
THOUSANDS = re.compile(
    rf"[-+]?[1-9][0-9]{{0,2}}(?P<mark>[{MARKS} ])[0-9]{{3}}(?:(?P=mark)[0-9]{{3}})*"
    rf"(?:\.[0-9]*)?{EXPONENT}?"
)
# What holds a number and is none: 1:30.5, 0m1.234s, 0x1F4, 1.2 x 10^3.
ODD = re.compile(
    r"(?<![\w.:])[0-9]+(?::[0-9]{2}(?![0-9]))+(?:\.[0-9]+)?"
    r"|(?<![\w.])[0-9]+[hm](?:[0-9][0-9.]*| [0-9.]+[ms]\b)"
    r"|(?<!\w)0x[0-9A-Fa-f]+"
    r"|[0-9.,]+ ?[x×*·] ?10(?:\^|\*\*|[⁰¹²³⁴-⁹⁻])\S*"
)
# Units before which k, M, G and T stand: kit/s, GB/s, Mbits/sec, GFLOPS, ktok/s, kIOPS.
UNITS = (
    r"(?:(?:[bB](?:its?|ytes?|ps)?|it|(?i:flops?)|Hz)(?![A-Za-z])"
    r"|(?i:tok|img|image|sample|iops|ops|read|writ|req|row|step|word|event|quer|frame|item|rec))"
)
# What multiplies the number before it: 10.4k, 1.2 GB/s, 3.1kit/s, 12.5 ms.
SCALE = re.compile(
    r"[ \u00a0\u202f]?(?:(?P<si>[kKMGT])"
    rf"(?:(?P<binary>i)?(?={UNITS})|(?![A-Za-z0-9=:]))"
    r"|(?P<time>ns|us|µs|μs|ms|s|min|h)(?![A-Za-z0-9=:]))"
)
THOUSAND = {"k": 1, "K": 1, "M": 2, "G": 3, "T": 4}
SECONDS = {
    **{"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ms": 1e-3},
    **{"s": 1.0, "min": 60.0, "h": 3600.0},
}
# A number of two or three parts with plain blanks between them, or two columns.
BLANKS = re.compile(r"(?<![\w.,])[1-9][0-9]{0,2}(?: [0-9]{3})+(?![\w,])(?:\.[0-9]+)?(?!\w)")
FAR = 80  # characters beside what was found, in which the number may go on


class NoFigure(ScaleoutError):
    """A job ended well but gave nothing to judge it by."""


@dataclass(frozen=True)
class Number:
    """What a pattern has found in a line, read."""

    value: float
    unit: str = ""  # "s" where the line, and not the pattern, says what time it is
    blank: str = ""  # the words that may be one number with plain blanks


def read(match: re.Match[str]) -> Number:
    """Read the number that a pattern's group finds, or is a part of.

    What the pattern itself names beside its group, such as the comma of ",([0-9.]+)" or the unit of
    "([0-9.]+) ms", is no part of the number. NoFigure for what cannot be read.
    """
    line, group = match.string, _group(match)
    start, end = match.span(group)
    start += len(line[start:end]) - len(line[start:end].lstrip())
    end -= len(line[start:end]) - len(line[start:end].rstrip())
    words = line[start:end]

    def fixed(first: int, last: int, others: Iterable[str]) -> bool:
        """Tell whether the pattern would not find this with any of the others in that place."""
        lines = (f"{line[:first]}{other}{line[last:]}" for other in others)
        found = (m.span(group) for text in lines for m in match.re.finditer(text))
        return match.span(group) not in found

    def named(at: int) -> bool:
        return fixed(at, at + 1, "\0")

    def ends(at: int) -> bool:
        return not line[at].isdigit() and named(at)

    near = max(0, start - FAR), end + FAR
    whole = next(
        (m for m in WHOLE.finditer(line, *near) if m.start() < end and start < m.end()), None
    )
    if whole is None:
        raise _refused(words, line, words)
    before, behind = range(start - 1, whole.start() - 1, -1), range(end, whole.end())
    first = next((at + 1 for at in before if ends(at)), min(start, whole.start()))
    last = next((at for at in behind if ends(at)), max(end, whole.end()))
    for odd in ODD.finditer(line, *near):
        beside = [at for at in (first - 1, last) if odd.start() <= at < odd.end()]
        if beside and odd.start() <= start and not any(map(named, beside)):
            raise NoFigure(
                f"--metric finds {words!r} in the line {line.strip()[:160]!r}, a part of {odd[0]!r}, "
                "which is no plain number: let the program print it as 1234.5 (a time in seconds)"
            )
    text = line[first:last].replace("\u2212", "-").rstrip(".")
    times, unit = 1.0, ""
    if scale := SCALE.match(line, last):
        kind, letters = ("time", SECONDS) if scale["time"] else ("si", ("", *THOUSAND))
        if not fixed(*scale.span(kind), {"\0", *letters} - {scale[kind]}):
            times, unit = _scaled(scale)
    elif scale := re.search("[kKMGT]$", text):  # inside of the group
        times, text = 1000.0 ** THOUSAND[scale[0]], text[:-1].rstrip()
    value = one_number(text)
    if value is None:
        raise _refused(words, line, text)
    parts = next((m for m in BLANKS.finditer(line, *near) if m.start() <= first < m.end()), None)
    blank = ""
    if parts and " " not in words:
        beside = [at for at in (first - 1, last) if parts.start() <= at < parts.end()]
        blank = "" if any(map(named, beside)) else parts[0]
    return Number(times * value, unit, blank)


def one_number(text: str) -> float | None:
    """Read a text that is one number, with or without marks between thousands; None for any other."""
    if THOUSANDS.fullmatch(text):
        text = re.sub(f"[{MARKS} ]", "", text)
    return float(re.sub("[dD]", "e", text)) if PLAIN.fullmatch(text) else None


def _group(match: re.Match[str]) -> int:
    """Number the group that has found something; 0, the whole match, where there is none."""
    return next((n for n, found in enumerate(match.groups(), 1) if found is not None), 0)


def _scaled(scale: re.Match[str]) -> tuple[float, str]:
    """Say by how much the letters behind a number multiply it, and in what it is then."""
    if scale["time"]:
        return SECONDS[scale["time"]], "s"
    return float((1024 if scale["binary"] else 1000) ** THOUSAND[scale["si"]]), ""


def _refused(words: str, line: str, whole: str) -> NoFigure:
    """Say what was found and cannot be read, and what to type instead."""
    found = f"--metric finds {words!r} in the line {line.strip()[:160]!r}"
    if whole == words and re.search(r"[^-+0-9.,\s]|^$", words):
        return NoFigure(
            f"{found}, and that is no number: put the number, and only that, in parentheses: "
            "([0-9.]+)"
        )
    return NoFigure(
        f"{found}, a part of {whole!r}, which people read in more than one way: let the program "
        "print it as 1234.5 (if a comma is its point,  --env LC_ALL=C  may do); or, if the number "
        "ends before that, write the sign at its end into the pattern, such as  ([0-9.]+),"
    )
