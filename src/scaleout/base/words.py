"""Numbers and names in words, as every table, figure and message writes them."""

import contextlib
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import date

VEIL = "***"
STEERING = re.compile("[\x1b\x9b\x9d\b]")  # signs with which what steers a terminal begins
# Colours and the like (CSI, ECMA-48), links and titles (OSC), sets of letters, and short ones.
STEERS = re.compile(
    "(?:\x1b\\[|\x9b)[0-?]*[ -/]*[@-~]"
    "|(?:\x1b\\]|\x9d)[^\x07\x1b\x9c]*(?:\x07|\x1b\\\\|\x9c)?"
    "|\x1b[ -/]+[0-~]|\x1b[0-Z\\\\^-~]"
)
SECRETS = {
    *("APIKEY", "AUTH", "CREDENTIAL", "CREDENTIALS", "KEY", "PASS", "PASSPHRASE", "PASSWD"),
    *("PASSWORD", "PAT", "SECRET", "SECRETS", "TOKEN", "TOKENS"),
}


def count(number: int, noun: str) -> str:
    """Write a number with its noun: 1 rank, 2 ranks, 0 ranks."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def number(text: str) -> int:
    """Read the whole number that a variable holds; 0 for whatever else somebody has put there."""
    try:
        return int(text) if text.isdecimal() else 0
    except ValueError:  # Python reads no number of thousands of digits
        return 0


def plain(text: str, longest: int = 60) -> str:
    """Make a name or a value such that it can be drawn, written and printed anywhere."""
    known = text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    return "".join(c if c.isprintable() else "?" for c in known)[:longest]


def rounded(value: float) -> str:
    """Write three significant digits, never as a power of ten: 0.0123, 24.6, 1,235.

    "-" for what is not a number, and no more than 12 digits after the point.
    """
    if math.isnan(value):
        return "-"
    if math.isinf(value):
        return f"{value:g}"
    digits = 2 - math.floor(math.log10(abs(value))) if value else 0
    return f"{value:,.{min(12, max(0, digits))}f}"


def percent(share: float) -> str:
    """Write a share in per cent, with one digit where it is small; "-" for what is not a number."""
    if math.isnan(share):
        return "-"
    if math.isinf(share):
        return "any amount"
    return f"{100 * share:.{1 if 0 < share < 0.0995 else 0}f} %"


def kibibytes(kib: int) -> str:
    """Write a size in KiB, or in MiB from 1024 on; "unknown" for 0."""
    if not kib:
        return "unknown"
    return f"{kib} KiB" if kib < 1024 else f"{kib / 1024:.3g} MiB"


def day(text: str) -> str:
    """Write a day as people do, 28 November 2026 for 2026-11-28; what is none stays as it is."""
    with contextlib.suppress(ValueError):
        when = date.fromisoformat(text)
        return f"{when.day} {when:%B %Y}"
    return text


def markdown_table(columns: Sequence[object], rows: Iterable[Sequence[object]]) -> str:
    """Write a table in Markdown, for a report or a note."""
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join(
        "| " + " | ".join(str(cell).replace("|", "\\|") for cell in line) + " |" for line in lines
    )


def listed(text: str) -> list[str]:
    """Split "A,B" into its values; or "A;B", where values hold commas of their own."""
    return text.rstrip(";").split(";") if ";" in text else text.split(",")


def secret(name: str) -> bool:
    """Tell whether a variable's name says that it holds a secret."""
    return not SECRETS.isdisjoint(re.split("[_0-9]+", name.upper()))


def veiled(variables: Mapping[str, str | None]) -> dict[str, str | None]:
    """Veil variables that people read: what looks like a secret by its name becomes "***"."""
    return {
        name: VEIL if value is not None and secret(name) else value
        for name, value in variables.items()
    }


def veiled_words(command: Sequence[str]) -> list[str]:
    """Veil the variables of a command line: --env API_TOKEN=abc becomes --env API_TOKEN=***."""
    found: list[str] = []
    for word in command:
        flag = "--env=" if word.startswith("--env=") else ""
        name, equals, _ = word.removeprefix(flag).partition("=")
        given = bool(flag) or found[-1:] == ["--env"]
        found.append(f"{flag}{name}={VEIL}" if given and equals and secret(name) else word)
    return found


def sentence(text: str) -> str:
    """Take out of a sentence the signs that would steer the terminal."""
    return "".join(c if c.isprintable() or c in "\n\t" else "?" for c in text)


def visible(line: str) -> str:
    """Return a line as a terminal shows it: without colours and links, and with what \\b overwrites
    gone."""
    if not STEERING.search(line):
        return line
    shown: list[str] = []
    begin = at = 0
    for sign in STEERS.sub("", line):
        if sign == "\b":
            at = max(begin, at - 1)
        elif sign == "\r":  # the next picture of a bar
            shown.append(sign)
            begin = at = len(shown)
        else:
            shown[at : at + 1] = [sign]
            at += 1
    return "".join(shown)


def sort_key(value: int | str | None) -> tuple[float, str]:
    """Return a key that sorts values naturally: what is unset, then numbers by size, then words."""
    if value is None or value == "unset":
        return -math.inf, ""
    try:
        return float(value), ""
    except ValueError:
        return math.inf, str(value)
