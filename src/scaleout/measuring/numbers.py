"""Numbers as programs print them: of a pattern that finds a part of one, the whole is read, or refused
where two people would read it differently."""

import itertools
import re
from collections.abc import Callable, Iterable, Mapping
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
# Units before which k, M, G, T and P stand: kit/s, GB/s, Mbits/sec, GFLOPS, ktok/s, kIOPS, MLUPS.
UNITS = (
    r"(?:(?:[bB](?:its?|ytes?|ps)?|it|(?i:flops?|lups|teps)|[rp]ps|Hz)(?![A-Za-z])"
    r"|(?i:tok|img|image|sample|iops|ops|read|writ|req|row|step|word|event|quer|frame|item|rec"
    r"|cell|elem|point|pixel|particle|atom|edge|packet|pkt|op(?![a-z])))"
)
# The words for times, and the seconds of one.
TIMES = {
    1e-9: "ns nsec nsecs nanosecond nanoseconds",
    1e-6: "us µs μs usec usecs µsec μsec microsecond microseconds",
    1e-3: "ms msec msecs millisecond milliseconds",
    1.0: "s sec secs second seconds",
    60.0: "min mins minute minutes",
    3600.0: "h hr hrs hour hours",
    86400.0: "day days",
}
SECONDS = {word: seconds for seconds, words in TIMES.items() for word in words.split()}
TIME = "|".join(sorted(SECONDS, key=len, reverse=True))
BLANK = "[ \\t\u00a0\u202f]"
# What multiplies the number before it: 10.4k, 1.2 GB/s, 3.1kit/s, 12.5 ms; not the ns of 12.3 ns/day.
SCALE = re.compile(
    rf"(?:{BLANK}?(?P<si>[kKMGTP])(?:(?P<binary>i)?(?={UNITS})|(?![A-Za-z0-9=:]))"
    rf"|{BLANK}*(?P<time>{TIME})(?![A-Za-z0-9=:]|(?:/| per )(?:{TIME}|d)(?![A-Za-z])))"
)
PREFIXES = "kKMGTP"
ANY = "~"
THOUSAND = {"k": 1, "K": 1, "M": 2, "G": 3, "T": 4, "P": 5}
# The words behind a number: images/s, kcells per second, %. Before = or : they belong to the next one.
WORDS = "[A-Za-zµμ%°]+"
BEHIND = re.compile(rf"(?P<gap>{BLANK}*)(?P<words>{WORDS}(?:(?:/| per ){WORDS})*)(?![\w/]*\s*[=:])")
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
    behind: str = ""  # the words behind it, which nothing has scaled: images/s, see `_behind`


def read(match: re.Match[str], units: bool = True) -> Number:
    """Read the number that a pattern's group finds, or is a part of.

    What the pattern itself names beside its group, such as the comma of ",([0-9.]+)" or the unit of
    "([0-9.]+) ms", is no part of the number. NoFigure for what cannot be read. What stands behind it
    is looked for where `units` are asked for.
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
    times, unit, after = 1.0, "", last
    if scale := SCALE.match(line, last):
        kind, own = ("time", scale["time"]) if scale["time"] else ("si", scale["si"])
        # no other that begins alike: a pattern with "ms" finds msec, too
        unlike = [word for word in SECONDS if not (word.startswith(own) or own.startswith(word))]
        others = unlike if kind == "time" else [one for one in ("", *THOUSAND) if one != own]
        if not fixed(*scale.span(kind), ["\0", *others]):
            times, unit = _scaled(scale)
            after = scale.end()
    elif scale := re.search("[kKMGT]$", text):  # inside of the group
        times, text = 1000.0 ** THOUSAND[scale[0]], text[:-1].rstrip()
    value = one_number(text)
    if value is None:
        raise _refused(words, line, text)
    parts = next((m for m in BLANKS.finditer(line, *near) if m.start() <= first < m.end()), None)
    if parts and " " not in words:
        beside = [at for at in (first - 1, last) if parts.start() <= at < parts.end()]
        if not any(map(named, beside)):
            raise NoFigure(
                f"--metric finds {words!r} in the line {line.strip()[:160]!r}, a part of {parts[0]!r}: "
                "if that is one number, put all of it in parentheses, such as  ([0-9 ]+[0-9.]*);  if it "
                "is two, write the blank between them into the pattern, outside of the parentheses"
            )
    behind_it = _behind(line, after, fixed) if units and not unit else ""
    return Number(times * value, unit, behind_it)


def _behind(line: str, at: int, fixed: Callable[[int, int, Iterable[str]], bool]) -> str:
    """Return the words that stand behind a number; "" where the pattern itself spells them.

    ANY stands before words for which the pattern has a place, such as \\S+, but does not spell them.
    """
    if not (found := BEHIND.match(line, at)):
        return ""
    text = found["words"]
    known = re.match(f"[{PREFIXES}]?i?{UNITS}", text) or "/" in text or text in SECONDS
    if len(found["gap"]) > 1 and not known:  # the next column
        return ""
    if not fixed(*found.span("words"), [""]):
        return text
    return "" if fixed(*found.span("words"), ["k" + text, text[1:]]) else ANY + text


def clash(told: Mapping[str, Iterable[str]]) -> str:
    """Say which words behind the numbers of two runs, by what they ran, are of two units; "" for none.

    What is scaled already is seconds, "s".
    """
    all_ = [(name, word) for name, words in told.items() for word in words]
    for (name, word), (other, theirs) in itertools.combinations(all_, 2):
        plain, other_plain = word.lstrip(ANY), theirs.lstrip(ANY)
        if (one := _unit(plain)) == (two := _unit(other_plain)):
            continue
        spelled = ANY not in word + theirs and name != other
        strangers = spelled and not _units(told[name]) & _units(told[other])
        if strangers or _alike(one, two):
            where = (f" in {name}", f" in {other}") if name != other else ("", "")
            return (
                f"Behind the number stands {plain!r}{where[0]}, and {other_plain!r}{where[1]}, so the "
                "figures cannot be compared: let all print the same unit (timeit:  -u msec).  If the two "
                r"mean the same, give what stands there a place in the pattern, as in  ([0-9.]+) \S+"
            )
    return ""


def _units(words: Iterable[str]) -> set[str]:
    return {_unit(word.lstrip(ANY)) for word in words}


def _unit(words: str) -> str:
    """Write a unit in one way: images per second and image/sec are image/s."""
    one, *per = words.replace(" per ", "/").split("/")
    times = [f"{SECONDS[word]:g} s" if word in SECONDS else word for word in per]
    return "/".join([one[:-1] if len(one) > 1 and one.endswith("s") else one, *times])


def _alike(one: str, other: str) -> bool:
    """Tell whether two units differ by what multiplies them alone: kcells/s, Mcells/s, cells/min."""
    bare = [{unit, unit[1:]} if unit[0] in "kKMGTPmunµμ" else {unit} for unit in (one, other)]
    (first, *per), (second, *over) = one.split("/"), other.split("/")
    return bool(bare[0] & bare[1] - {""}) or (first == second and bool(per) and bool(over))


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
