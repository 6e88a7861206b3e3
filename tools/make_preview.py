"""Write docs/preview/: a page a notebook, on which one guesses before anything is installed.

    python tools/make_preview.py [--check]       (make preview writes them, make lint checks them)

A page asks up to three predictions of its notebook (tools/preview_questions.py), and after each
guess shows what was measured on each kind of machine that the lesson's elsewhere.jsonl knows.
Nothing else is a source: each figure carries the hash of the rows that it comes from. A question
that has no row is named, and left out. With --check nothing is written: where a page is another
one, this ends with a sentence and an exit status of 1."""

import ast
import hashlib
import json
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

import headlines
import jinja2
import make_machines
from preview_questions import QUESTIONS, Question

from scaleout.base.words import count, day, percent, rounded
from scaleout.comparisons import elsewhere
from scaleout.comparisons.comparison import Other
from scaleout.comparisons.elsewhere import Headline, Kind
from scaleout.comparisons.intervals import Verdict
from scaleout.plots import look

ROOT = Path(__file__).resolve().parents[1]
FOLDER = "docs/preview"
ANEW = "make preview"
TEMPLATE = Path(__file__).with_name("preview.html")
WRONG = 0.005  # a share of wrong sums that is told
OPPOSITE = {"faster": "slower", "slower": "faster"}


class Line(NamedTuple):
    """What one kind of machine gave, as it is shown."""

    machine: str
    compared: str
    date: str
    ratio: str
    low: str
    high: str
    noise: str
    hash: str


def hashed(rows: Sequence[Headline]) -> str:
    """The hash of a figure's rows: all of a comparison, on one machine and day."""
    text = "\n".join(sorted(map(elsewhere.line, rows)))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def answers(
    question: Question, rows: Sequence[Headline], kinds: dict[str, Kind]
) -> Iterator[tuple[str, Other, str, list[Headline]]]:
    """Yield for each kind of machine its comparison, the variant, and the rows of both."""
    for machine, kind in kinds.items():
        for name in question.comparison:
            own = [row for row in rows if row.comparison == name and kind.same(row.machine)]
            for other in elsewhere.others(own):
                newest = {row.variant: row for row in own if row.date == other.date}
                fit = [v for v in other.found.variants if re.fullmatch(question.variant, v)]
                if fit:
                    yield machine, other, fit[-1], [*newest.values()]
                    break
            else:
                continue
            break


def _line(machine: str, other: Other, variant: str, hash_: str, question: Question) -> Line:
    ratio, found = other.found.ratio(variant), other.found
    values = [ratio.middle, ratio.low, ratio.high]
    names = [variant, found.baseline]
    if question.inverse:
        values = [1 / values[0], 1 / values[2], 1 / values[1]]
        names.reverse() if question.unit == "times as fast" else None
    compared = " against ".join(names)
    date, noise = day(other.date), percent(found.noise)
    return Line(machine, compared, date, *map(rounded, values), noise, hash_)


def finding(question: Question, verdicts: dict[str, Verdict | Literal["wrong"]]) -> str:
    """What was found, in one sentence: which machines say what."""
    said: dict[str, list[str]] = {}
    for machine, verdict in verdicts.items():
        word = OPPOSITE.get(verdict, verdict) if question.inverse else verdict
        said.setdefault(word, []).append(machine)
    parts = {
        "faster": f"faster than {question.than}",
        "slower": f"slower than {question.than}",
        "no difference shown": f"not shown to differ from {question.than}",
    }
    clear = [f"{parts[word]} on {_listed(said[word])}" for word in parts if word in said]
    told = [f"{question.who} {', and '.join(clear)}"] if clear else []
    if "wrong" in said:
        told.append(f"on {_listed(said['wrong'])}, the sums are wrong, so their rate is no gain")
    if "unclear" in said:
        whether = "" if clear else f" whether {_asked(question)}"
        told.append(f"on {_listed(said['unclear'])}, this measurement does not decide{whether}")
    sentence = "; ".join(told)
    return f"{sentence[0].upper() if not clear else sentence[0]}{sentence[1:]}."


def _faster(question: Question, verdicts: Iterable[str]) -> bool:
    """Whether every machine says so."""
    return {*verdicts} == {"slower" if question.inverse else "faster"}


def _asked(question: Question) -> str:
    who = question.who if question.who[1:2].isupper() else _lower(question.who)
    return f"{who} faster or slower than {question.than}"


def _lower(text: str) -> str:
    """A beginning that is no name, in small letters."""
    first = text.split()[0]
    return text[0].lower() + text[1:] if first in ("The", "All", "Training", "Tensor") else text


def _listed(names: Sequence[str]) -> str:
    return " and on ".join(names)


def asked(
    question: Question, rows: Sequence[Headline], kinds: dict[str, Kind], topic: str, root: Path
) -> dict[str, Any] | None:
    """All that a page shows of a question; None where no machine has an answer."""
    lines, wrong, name = [], [], ""
    verdicts: dict[str, Verdict | Literal["wrong"]] = {}
    for machine, other, variant, own in answers(question, rows, kinds):
        hash_, name = hashed(own), own[0].comparison
        lines.append(_line(machine, other, variant, hash_, question))
        verdicts[machine] = other.found.verdict(variant)
        share = other.facts.get(variant, {}).get("wrong_sums", 0.0)
        if share > WRONG:  # a wrong sum is not called fast
            verdicts[machine] = "wrong"
            wrong.append((hash_, machine, percent(share)))
    if not lines:
        return None
    title, code = quoted(root, topic, name, question)
    return {
        **question._asdict(),
        "finding": finding(question, verdicts),
        "why": question.faster if _faster(question, verdicts.values()) else "",
        "lines": lines,
        "machines": " or ".join(line.machine for line in lines),
        "wrong": wrong,
        "caption": f"Measured on {count(len(lines), 'kind')} of machine.",
        "code_title": title,
        "code": code,
    }


def quoted(root: Path, topic: str, name: str, question: Question) -> tuple[str, str]:
    """The lines that made a comparison: the notebook's cell of its name, or what measures it."""
    for source in _cells(root, topic):
        named = rf'name="{re.escape(name)}"|elsewhere\("{re.escape(name)}"\)'
        if not question.function and re.search(named, source):
            kept = [line for line in source.splitlines() if not line.startswith("guess_")]
            return "The notebook's cell that measures it", "\n".join(kept)
    function = question.function or headlines.LESSONS[topic[:2]].__name__
    text = (root / "tools/headlines.py").read_text(encoding="utf-8")
    node = next(n for n in ast.parse(text).body if getattr(n, "name", "") == function)
    lines = (ast.get_source_segment(text, node) or "").splitlines()[1:]
    first, last = question.lines
    begin = next((at for at, line in enumerate(lines) if first and first in line), 0)
    end = next((at + 1 for at, line in enumerate(lines) if last and last in line), len(lines))
    code = "\n".join(line.removeprefix("    ") for line in lines[begin:end])
    return "The lines of tools/headlines.py that measured it", code


def _cells(root: Path, topic: str) -> list[str]:
    """The sources of a notebook's cells of code, the text of its first cell before them."""
    book = root / "solutions" / f"{topic}.ipynb"
    if not book.is_file():
        return []
    cells = json.loads(book.read_text(encoding="utf-8"))["cells"]
    return ["".join(c["source"]) for c in cells if c["cell_type"] == "code"]


def title(root: Path, topic: str) -> str:
    """The heading of a lesson's notebook."""
    book = root / "solutions" / f"{topic}.ipynb"
    if book.is_file():
        first = json.loads(book.read_text(encoding="utf-8"))["cells"][0]["source"]
        if found := re.search(r"^# (.+)$", "".join(first), re.M):
            return found[1]
    return topic


def pages(root: Path = ROOT) -> tuple[dict[str, str], list[str]]:
    """The pages by their file's name, and what to say of questions without a row."""
    files = sorted(root.glob(f"solutions/*/{elsewhere.FILE}"))
    lessons = {path.parent.name: elsewhere.read(path)[0] for path in files}
    kinds = make_machines.named_kinds([row for rows in lessons.values() for row in rows])
    environment = jinja2.Environment(
        autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=jinja2.StrictUndefined
    )
    template = environment.from_string(TEMPLATE.read_text(encoding="utf-8"))
    colours = {name: getattr(look, name) for name in ("DARK", "MIDDLE", "LIGHT", "PALE", "INK")}
    written: dict[str, str] = {}
    index, missing = [], []
    for topic, rows in lessons.items():
        questions = []
        for question in QUESTIONS.get(topic[:2], []):
            if one := asked(question, rows, kinds, topic, root):
                questions.append(one)
            else:
                names = ", ".join(question.comparison)
                missing.append(f"{topic}: no row answers {question.key!r} ({names}); left out.")
        said = title(root, topic)
        written[f"{topic}.html"] = template.render(
            topic=topic, title=said, questions=questions, counted=_counted(len(questions)),
            look=colours, lessons=[],
        )  # fmt: skip
        index.append((topic, said, _predictions(len(questions))))
    written["index.html"] = template.render(
        topic="", title="Guess first", questions=[], look=colours, lessons=index
    )
    return {name: _tidy(text) for name, text in written.items()}, missing


def _predictions(number: int) -> str:
    return f"{number or 'no'} prediction{'' if number == 1 else 's'}"


def _counted(number: int) -> str:
    """How many predictions a page has, of three that it may have."""
    words = {1: "one prediction", 2: "two predictions", 3: "three predictions"}
    if not number:
        return "No machine has been measured for this page yet."
    if number < 3:
        return (
            f"Here is {words[number]} of this notebook, as the stored comparisons answer no more "
            "of them."
        ).replace("Here is two", "Here are two")
    return f"Here are {words[number]} of this notebook."


def _tidy(text: str) -> str:
    lines = (line.rstrip() for line in text.splitlines())
    return "\n".join(line for line in lines if line) + "\n"


def main(root: Path = ROOT, only_check: bool = False) -> int:
    """Write the pages, or check them; return 1 where one is out of date."""
    written, missing = pages(root)
    folder = root / FOLDER
    if only_check:
        known = {path.name: path.read_text(encoding="utf-8") for path in folder.glob("*.html")}
        other = sorted(name for name in {*known, *written} if known.get(name) != written.get(name))
        if other:
            print(f"{FOLDER}/{other[0]} is not what the lessons' rows give: type\n  {ANEW}")
        return 1 if other else 0
    folder.mkdir(parents=True, exist_ok=True)
    for path in folder.glob("*.html"):
        if path.name not in written:
            path.unlink()
    for name, text in written.items():
        (folder / name).write_text(text, encoding="utf-8")
    largest = max(len(text.encode()) for text in written.values())
    print("\n".join([*missing, f"{len(written)} pages in {FOLDER}, {largest >> 10} KiB at most."]))
    return 0


if __name__ == "__main__":
    sys.exit(main(only_check=sys.argv[1:] == ["--check"]))
