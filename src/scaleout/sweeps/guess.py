"""Lines that look like a rate, and for each kind of them the pattern that finds it again."""

import re
import shlex
from collections.abc import Iterable, Mapping

NUMBER = r"[0-9][0-9.,]*(?:[eE][+-]?[0-9]+)?"
# "123.4 images/s", "12.3 it/s", "100 img/sec per CPU", after a word such as "speed "
AFTER = re.compile(
    rf"(?P<label>[A-Za-z][A-Za-z ]*?)?[^A-Za-z]*?(?<![0-9.,])(?P<number>{NUMBER})\s*"
    r"(?P<unit>[A-Za-z]+(?:/(?:second|sec|s)| per second)\b(?: per [A-Za-z]+)?)"
)
# "Total img/sec on 2 CPU(s): 24.6", "images per second = 7", "throughput: 99"
BEFORE = re.compile(
    rf"(?P<label>\b(?=[A-Za-z])[^:=|,]*(?:/s|per s|throughput)[^:=|,]*[:=]\s*)(?P<number>{NUMBER})",
    re.IGNORECASE,
)
BYTES = re.compile(r"[kKMGT]?i?[bB](?:ytes|its?)?/", re.ASCII)  # a download's rate, most likely
FIGURE = "([0-9]+(?:[.,e+]+[0-9]+)*)"
LONGEST = 500  # characters of a line that a person would read a rate in
EXAMPLE = (
    "'images/s: ([0-9.]+)'  with the words that your program prints before its rate, or after it."
)


def candidates(said: Iterable[str]) -> dict[str, str]:
    """The kinds of rates in what a job printed."""
    found: dict[str, str] = {}
    for line in (part for text in said for part in text.split("\r")):
        if len(line) > LONGEST:
            continue
        seen: set[int] = set()
        for match in BEFORE.finditer(line):
            seen.add(match.start("number"))
            found[_escaped(match["label"].rstrip()) + " *" + FIGURE] = line.strip()
        for match in AFTER.finditer(line):
            if match.start("number") not in seen:
                label = f"{match['label'].strip()}[^A-Za-z]*?(?<![0-9.,])" if match["label"] else ""
                found[f"{label}{FIGURE} *{_escaped(match['unit'])}"] = line.strip()
    rates = {pattern: line for pattern, line in found.items() if not BYTES.search(pattern)}
    return rates or found


def _escaped(words: str) -> str:
    """A pattern for these words, with any number in place of theirs."""
    return re.sub("[0-9]+", "[0-9]+", re.sub(r"([.^$*+?{}\[\]\\|()])", r"\\\1", words))


def quoted(pattern: str) -> str:
    """The pattern as a shell takes it."""
    return shlex.quote(pattern)


def question(found: Mapping[str, str]) -> str:
    """What to ask where there are several kinds."""
    lines = [f"    {line[:100]}\n        --metric {quoted(p)}" for p, line in found.items()]
    return (
        f"The command prints {len(found)} figures that look like a rate; choose one:\n"
        + "\n".join(lines)
    )
