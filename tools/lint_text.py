"""Check what people read: labs, notebooks and pages (a part of make lint).

Each rule is a function that takes a file and yields what is wrong with it, a sentence each. The
notebooks are the masters in solutions/, from which the others are made."""

import ast
import json
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import outputs

ROOT = Path(__file__).resolve().parent.parent
OWN = re.compile(outputs.NAME)  # what editors and Jupyter leave beside a file is called otherwise
BOOKS = sorted(p for p in (ROOT / "solutions").glob("*.ipynb") if OWN.fullmatch(p.name))
SCRIPTS = sorted(p for p in (ROOT / "solutions").glob("*/*.py") if OWN.fullmatch(p.name))
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").glob("*.md"))]
Cells = list[dict[str, Any]]
Problems = Iterator[str]

WIDTH, CELL_LINES, BOOK_KIB = 79, 15, 1024
SAME = "nbval-check-output"
SUMMARY = "## What you take with you"
TALKS = re.compile(r"(comm|hvd)\.[A-Za-z_]+\(|MPI\.COMM_WORLD$|distributed=True")


# Scripts of a lesson


def width(path: Path) -> Problems:
    """A lab stands beside its notebook: 79 columns."""
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if len(line) > WIDTH:
            yield f"line {number} has {len(line)} columns, {WIDTH} are the most"


def started(path: Path) -> Problems:
    """The docstring of a script gives the command that starts this very file, and how long it takes."""
    text = path.read_text(encoding="utf-8")
    if 'if __name__ == "__main__":' not in text:
        return
    docstring = ast.get_docstring(ast.parse(text), clean=False) or ""
    how = r"^    (?:mpirun -n \d+ .*?python -m mpi4py|scaleout run) (\S+\.py)"
    if set(re.findall(how, docstring, re.M)) != {str(path.relative_to(ROOT))}:
        yield "its docstring has no command that starts this file, or one that starts another"
    if not re.search(r"seconds?\b|minutes?\b|takes\s+as long as", docstring):
        yield "its docstring does not say how long it takes"


def asserts(path: Path) -> Problems:
    """An assert may hold what was computed, never what somebody has typed."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Assert):
            names = {name.id for name in ast.walk(node.test) if isinstance(name, ast.Name)}
            if names and not names - {"args", "min", "max", "len"}:
                yield f"line {node.lineno}: wrong input is a sentence, not an assert"


def distributed(path: Path) -> Problems:
    """Each line of a runme.py that talks to other ranks says why, in a comment above it or above
    the lines that talk before it."""
    if path.name != "runme.py":
        return
    text = path.read_text(encoding="utf-8")
    lines = text.splitlines()
    statements = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.stmt)]
    for number, line in enumerate(lines, 1):
        if line.strip().startswith("#") or not TALKS.search(line):
            continue
        first = max(s.lineno for s in statements if s.lineno <= number <= (s.end_lineno or 0)) - 1
        while first > 0 and re.match(rf" *#|.*{TALKS.pattern}", lines[first - 1]):
            first -= 1
        if not any("# Distributed: " in near for near in lines[first:number]):
            yield f"line {number} talks to other ranks without  # Distributed: why"


# Notebooks


def cells(path: Path, kind: str) -> Cells:
    """The cells of a notebook of one kind, their source as one text."""
    book = json.loads(path.read_text(encoding="utf-8"))
    found = [cell for cell in book["cells"] if cell["cell_type"] == kind]
    return [{**cell, "source": "".join(cell["source"])} for cell in found]


def prose(path: Path) -> str:
    return "\n\n".join(cell["source"] for cell in cells(path, "markdown"))


def has_run(code: list[dict[str, Any]]) -> bool:
    """Whether anything is stored but what is the same everywhere."""
    return any(cell["outputs"] for cell in code if SAME not in cell["metadata"].get("tags", []))


def run_whole(path: Path) -> Problems:
    """The stored outputs are those of one run from top to bottom without an error, or there are none
    yet but those that are the same everywhere; cells that went out since leave gaps in its numbers."""
    code = cells(path, "code")
    if not has_run(code):
        return
    numbers = [cell["execution_count"] for cell in code]
    if None in numbers or numbers != sorted(set(numbers)) or numbers[0] != 1:
        yield "it was not run from the first cell to the last"
    for number, cell in enumerate(code, 1):
        if any(output["output_type"] == "error" for output in cell["outputs"]):
            yield f"cell [{number}] ends in an error"


# Known to be stale: what they use of these modules of the package, or these scripts of their own, has
# changed since they were run. What is stale no longer is an error until it is taken off.
STALE: dict[str, str] = {}


def belongs(path: Path) -> Problems:
    """What is stored is what a run of this very code gave, whole and unedited."""
    book = json.loads(path.read_text(encoding="utf-8"))
    stale = list(outputs.stale(book, path.with_suffix("")))
    for name in STALE.get(path.stem, "").split():
        script = name.endswith(".py")
        known = (
            outputs.CHANGED.format(f"{path.stem}/{name}") if script else outputs.USED.format(name)
        )
        if known in stale:
            stale.remove(known)
        else:
            yield f"{name} no longer makes it stale: take that off the list STALE"
    yield from stale
    yield from outputs.missing(book)
    yield from outputs.edited(book)


def size(path: Path) -> Problems:
    """Short cells, as much text as code, and a file that a browser loads at once."""
    code, texts = cells(path, "code"), cells(path, "markdown")
    if path.stat().st_size > BOOK_KIB * 1024:
        yield f"it has more than {BOOK_KIB} KiB"
    if len(texts) < len(code):
        yield f"{len(texts)} text cells for {len(code)} code cells"
    for number, cell in enumerate(code, 1):
        if len(cell["source"].splitlines()) > CELL_LINES:
            yield f"cell [{number}] has more than {CELL_LINES} lines"


def launches(path: Path) -> Problems:
    """Jobs are started by `lab.run`, whose failure turns the notebook red; no path is one
    machine's."""
    for number, cell in enumerate(cells(path, "code"), 1):
        if re.search(r"^\s*!|%%(bash|sh)\b|%sx", cell["source"], re.M):
            yield f"cell [{number}] starts a shell"
    text = path.read_text(encoding="utf-8")
    for found in re.findall(r"(?<![\w.])/(?:root|work|farm|home|tmp|Users)/\S{0,40}", text):
        yield f"a path of one machine: {found}"


def further(path: Path) -> Problems:
    """Code below the heading Further has the tag `further`, no other has it, and no tour runs it."""
    level = number = 0  # of the heading Further that a cell stands below, 0 for none
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        if cell["cell_type"] == "markdown":
            text = re.sub(r"```.*?```", "", "".join(cell["source"]), flags=re.S)
            for marks, title in re.findall(r"^(#+) (.+)$", text, re.M):
                if title == "Further" or len(marks) <= level:
                    level = len(marks) if title == "Further" else 0
        elif cell["cell_type"] == "code":
            number, tags = number + 1, cell["metadata"].get("tags", [])
            if ("further" in tags) != (level > 0):
                where = "below the heading Further" if level else "not below a heading Further"
                yield f"cell [{number}] is {where}: its tags are {tags}"
            if {"further", "tour"} <= set(tags):
                yield f"cell [{number}] is tagged further, which no tour runs, and tour"


SHOWN = re.compile(
    r"^((plots|scaling)\.\w+|[\w.]*figures\.\w+|\w+\.plot|print|pd\.DataFrame|\w+\.assign)$"
)


def guesses(path: Path) -> Problems:
    """Each guess comes back in a picture, a table or a sentence."""
    open_guesses: dict[str, bool] = {}
    for cell in cells(path, "code"):
        source = cell["source"]
        open_guesses |= dict.fromkeys(re.findall(r"^(guess_\w+) = ", source, re.M), True)
        plain = "" if source.startswith("%%") else re.sub(r"^%.*$", "", source, flags=re.M)
        for node in ast.walk(ast.parse(plain)):
            if isinstance(node, ast.Call) and SHOWN.match(ast.unparse(node.func)):
                names = {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}
                open_guesses |= dict.fromkeys(names & open_guesses.keys(), False)
    if not open_guesses:
        yield "it asks for no guess"
    yield from (f"{name} never comes back" for name, is_open in open_guesses.items() if is_open)


def teaching(path: Path) -> Problems:
    """docs/teaching.md says what to expect of each guess, and what to discuss."""
    page = (ROOT / "docs/teaching.md").read_text(encoding="utf-8")
    section = re.search(rf"^## {path.stem[:2]} .*?(?=^## |\Z)", page, re.M | re.S)
    source = "\n".join(cell["source"] for cell in cells(path, "code"))
    parts = ("**Discuss.**", "**Those who are done early**", "**The open exercise**")
    for wanted in (*parts, *dict.fromkeys(re.findall(r"^(guess_\w+) = ", source, re.M))):
        if not section or wanted not in section[0]:
            yield f"docs/teaching.md says nothing of {wanted}"


def questions(path: Path) -> Problems:
    """Two to four questions; of at least three answers one is right, and each has its reason."""
    asking = [c for c in cells(path, "markdown") if "Choose an answer, then" in c["source"]]
    if len(asking) != 1:
        yield f"{len(asking)} cells with questions, not one"
        return
    text = asking[0]["source"].split(SUMMARY)[0]
    parts = re.split(r"^\*\*(.+\?.*)\*\*$", text, flags=re.M)[1:]
    if not 2 <= len(parts) // 2 <= 4:
        yield f"{len(parts) // 2} questions, not 2 to 4"
    answer = re.compile(r"<details><summary>(.+?)</summary>\s*(.+?)</details>", re.S)
    for asked, below in zip(parts[::2], parts[1::2], strict=True):
        reasons = [reason for _, reason in answer.findall(below)]
        if len(reasons) < 3 or sum(reason.startswith("Right") for reason in reasons) != 1:
            yield f"{asked!r} needs three answers or more, one of them right"
        if any(reason.startswith("Yes") or len(reason.split()) < 3 for reason in reasons):
            yield f"{asked!r} has an answer without a reason, or one that begins with Yes"


def ending(path: Path) -> Problems:
    """It ends with three lines to take along, and a link to the next notebook."""
    last = prose(path).partition(SUMMARY)[2].split("\n## ")[0]
    if len(re.findall(r"^- .+$", last, re.M)) != 3:
        yield f"no three lines under {SUMMARY!r}"
    following = [book.name for book in BOOKS if book.name > path.name][:1]
    linked = re.findall(r"\]\((\d\d_\w+\.ipynb)\)", cells(path, "markdown")[-1]["source"])
    if linked != following:
        yield f"its last cell links to {linked}, and the next notebook is {following}"


def pictures(path: Path) -> Problems:
    """Each stored picture has words that stand in for it."""
    for number, cell in enumerate(cells(path, "code"), 1):
        for output in cell["outputs"]:
            if "image/png" in output.get("data", {}):
                alt = output["metadata"].get("image/png", {}).get("alt", "")
                if len(alt.split()) < 5 or "<" in alt:
                    yield f"cell [{number}] has a picture without words: {alt!r}"


def simple(path: Path) -> Problems:
    """What is simple for us may not be so for a reader."""
    found = re.findall(r"\b(?:simply|just|obviously|of course)\b", prose(path), re.I)
    yield from (f"leave out {word!r}" for word in found)


# Known to be noisier than that, and to say nothing of it. This list may only get shorter: what says
# so, or is quiet after another run, is an error until it is taken off.
NOISY: set[str] = set()


def noisy(path: Path) -> Problems:
    """Where two identical jobs could differ by more than 10 %, a text says by how much."""
    noise = _noise(path)
    quiet = noise <= outputs.MOST_NOISE or re.search(_words(noise), prose(path), re.I)
    if path.stem in NOISY:
        if quiet:
            yield "it is no longer noisy, or it says so: take it off the list NOISY"
    elif not quiet:
        yield (
            f"no text says that two identical jobs could differ by {100 * noise:.0f} %: run it "
            f"again (make masters ARGS={path.stem[:2]}), or say it in these words"
        )


def _noise(path: Path) -> float:
    """By how much two identical jobs of a notebook's run could differ, as a share."""
    about = json.loads(path.read_text(encoding="utf-8"))["metadata"].get("scaleout", {})
    return float(about.get("null_pair", 0.0))


def _words(noise: float) -> str:
    """What a text says of such a noise, in whole per cent; its lines may break anywhere."""
    said = f"two identical jobs could differ by {100 * noise:.0f} %"
    return said.replace(" ", r"\s+")


# Figures in a text that nobody has measured: settings, sizes, formulas, aims, what a question gives.
GIVEN = {
    "00": "95 %, 100 times",
    "01": "3000.7, 25.6, 22.9",
    "02": "370 MB",
    "03": "95 %, 1 MiB, 4 MiB, 8 MiB, 16 MiB, 140 MB, 5 ms, 20 ms, 0.45",
    "04": "6 dB, 40 dB, 153 MiB",
    "05": "0.85, 1.7 times, 2 times, 0.9, 1.8",
    "06": "1 ms, 10 Gb/s",
    "07": "8 seconds, 2 seconds, 4 MiB, 95 %, 5 Gb/s, 10 Gb/s, 100 Gb/s, 100 MB, 2,046 times, "
    "182 images/s, 0.9, 0.6, 16 MiB, 0.1 s, 0.8 ns, 20 microseconds, 4 ms, "
    "1.8 MB, 1.5 ms",
    "08": "0.0, 0.00000006, 10 %, 0.01",
    "09": "900 MiB, 1 ms, 3.5 ms, 10 Gb/s, 1.28, 86,400 seconds, 25 MB",
    "10": "0 ms, 20 ms, 5 %, 2 ms, 50 MB/s, 1 GB/s, 42 GB, 1.28, 5 ms, 40 ms",
    "11": "2 KiB, 1 MiB, 4 MiB, 10 MiB",
    "12": "2 times, 0.1, 0.9, 0.02, 1.3, 3.15, 40 %, 1.9 times, 1.67 times, 0.81, 0.80, 0.01, 2.8, 0.016, "
    "0.020, 0.022, 0.82, 0.88, 3.57 times, 3.08 times, 0.004, 0.018, 0.010, 0.005, 0.024, 0.99, 1.06, 1.27, 1.36",
}
UNIT = (
    r"\s?%|\s(?:per cent|percentage points?|points?|times|dB|CPUs|[\w-]+/s|[kKMGT]i?B|"
    r"[mun]?s|h|seconds?|minutes?|milliseconds?|microseconds?)"
)
FIGURE = re.compile(rf"(?<![\w.,`-])(?:\d[\d,]*(?:\.\d+)?(?:{UNIT})|\d+\.\d+)(?![\w/]|\.\d)")
SOURCE = re.compile(r"\[[A-Z]{2,}\d*\]")
APART = r"```.*?```|^\*\*How long[^\n]*|^(?:Choose an answer|## Read on).*?(?=^#|\Z)"


def measured(path: Path) -> Problems:
    """No text holds what a machine has measured, unless it names its source: cells print it. The
    noise of the stored run may stand there."""
    apart = f"(?i:{_words(_noise(path))})|{APART}"
    given = re.split(r", (?=\d)", GIVEN.get(path.stem[:2], ""))
    for cell in cells(path, "markdown"):
        for line in re.sub(apart, "", cell["source"], flags=re.S | re.M).splitlines():
            for figure in [] if SOURCE.search(line) else FIGURE.findall(line):
                if figure not in given:
                    yield f"{figure!r} in a text: let a cell print it, or name its source"


def stamps() -> Problems:
    """All stored outputs of a notebook name the machine that they come from, if there are any but those
    that are the same everywhere; in a release there are no gaps."""
    stamp = re.compile(r"^Run on (.+, \d+ cores?), .+, \d+ [A-Z][a-z]+ \d{4}\.$", re.M)
    for path in BOOKS:
        code = cells(path, "code")
        stored = [output for cell in code for output in cell["outputs"]]
        text = "\n".join("".join(output.get("text", "")) for output in stored)
        machines = set(stamp.findall(text))
        if has_run(code) and len(machines) != 1:
            yield f"{path.stem} names {len(machines)} machines, not one"
    if "## [Unreleased]" not in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"):
        for path in BOOKS:
            if any(cell["execution_count"] is None for cell in cells(path, "code")):
                yield f"{path.stem} has cells without a run, and a release shows every one"


# Pages and links


def links(path: Path) -> Problems:
    """What a notebook or a page links to is there, and its pictures have words."""
    text = prose(path) if path.suffix == ".ipynb" else path.read_text(encoding="utf-8")
    text = re.sub(r"```.*?```", "", text, flags=re.S)
    for pair in re.findall(r"\]\(([^)\s]+)\)|(?:src|href)=\"([^\"]+)\"", text):
        link = (pair[0] or pair[1]).split("#")[0]
        if link and not re.match(r"[a-z]+:", link) and not (path.parent / link).exists():
            yield f"there is no {link}"
    for alt in re.findall(r"!\[(.*?)\]\(", text):
        if len(alt.split()) < 5:
            yield f"a picture without words: {alt!r}"


def elsewhere(path: Path) -> Problems:
    """Each row that another machine measured is of today's code."""
    for number, text in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        row = json.loads(text)
        if row["code"] != outputs.code(path.parent, row["scripts"]):
            yield (
                f"line {number}, {row['comparison']}, is of older code: "
                f"make elsewhere ARGS={path.parent.name[:2]}"
            )
            return


def folders() -> Problems:
    """The same two digits and topic name everywhere."""
    names = {book.stem for book in BOOKS}
    for room in ("notebooks", "labs", "solutions"):
        here = [
            path
            for path in (ROOT / room).iterdir()
            if re.fullmatch(r"[01]\w+(\.ipynb)?", path.name)
        ]
        seen = {path.stem for path in here}
        if seen != names:
            yield f"{room} has other topics: {sorted(seen ^ names)}"


# What README and its pictures say of the masters


def minutes(path: Path) -> Problems:
    """README's row and the notebook's head give the minutes that the stored run took, rounded."""
    about = json.loads(path.read_text(encoding="utf-8"))["metadata"].get("scaleout", {})
    if "minutes" not in about:
        return
    took = max(1, round(about["minutes"]))
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    head = re.search(r"^\*\*How long\.\*\*.*", cells(path, "markdown")[0]["source"], re.M)
    row = re.search(rf"^\| .*\(notebooks/{path.name}\).* \| (\d+) \| (\d+) \|$", readme, re.M)
    said = re.search(r"\btook (\d+) minutes?\b", head[0] if head else "")
    places = (("README.md", row and row[2]), ("its head", said and said[1]))
    for where, given in places:
        if given != str(took):
            yield f"{where} gives {given or 'no'} machine minutes, and the stored run took {took}"


SHOWS = "shows"  # the text chunk of a PNG in which make pictures writes what it shows, as JSON
DESK = ("notebooks/00_welcome.ipynb", "labs/00_welcome/runme.py")
ANEW = "type  make pictures"


def shown(path: Path) -> Any:
    """What a PNG says that it shows; None where it says nothing."""
    raw, at = path.read_bytes() if path.exists() else b"", 8
    while at < len(raw):
        length, kind = int.from_bytes(raw[at : at + 4]), raw[at + 4 : at + 8]
        name, _, text = raw[at + 8 : at + 8 + length].partition(b"\0")
        if kind == b"tEXt" and name == SHOWS.encode():
            return json.loads(text)
        at += 12 + length
    return None


def headline(path: Path) -> str:
    """The sentence of a notebook's tour, as it is stored; empty where none is."""
    for cell in cells(path, "code"):
        if "headline" in cell["metadata"].get("tags", []):
            stored = (output.get("data", {}).get("text/plain") for output in cell["outputs"])
            return "".join(str(ast.literal_eval("".join(text))) for text in stored if text)
    return ""


def parts(path: Path) -> list[str]:
    """The cells of a notebook, or the lines of a script, in their order."""
    text = path.read_text(encoding="utf-8")
    if path.suffix != ".ipynb":
        return text.splitlines()
    return ["".join(cell["source"]) for cell in json.loads(text)["cells"]]


def masters() -> list[Path]:
    return sorted(p for p in (ROOT / "solutions").glob("*.ipynb") if OWN.fullmatch(p.name))


def tour_picture() -> Problems:
    """docs/tour.png shows each topic's sentence as its master stores it."""
    then = shown(ROOT / "docs/tour.png")
    now = {path.stem: headline(path) for path in masters()}
    if not then:
        yield f"docs/tour.png does not say what it shows: {ANEW}"
        return
    for topic in sorted(then.keys() | now.keys()):
        if then.get(topic) != now.get(topic):
            yield f"docs/tour.png shows of {topic} what its master does not store: {ANEW}"


def tour_machine() -> Problems:
    """The sentence above README's picture of the tour names the machines of all stored runs."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    about = re.search(
        r"on two cores of an ([\w ]+),\s([A-Z][a-z]+ \d{4}):\n\n!\[.*tour\.png", readme
    )
    for path in masters():
        book = json.loads(path.read_text(encoding="utf-8"))
        stamp = book["metadata"].get("scaleout", {}).get("stamp", "never run")
        names = about[1].split(" or an ") if about else []
        if not any(
            re.match(rf"Run on {name}\b.*, 2 cores,.* {about[2]}\.$", stamp.replace("(R)", ""))
            for name in names
        ):
            yield f"README.md names another machine above tour.png than {path.stem}: {stamp}"


def desk_picture() -> Problems:
    """docs/desk.png shows how the first notebook and its lab begin today."""
    then = shown(ROOT / "docs/desk.png") or {}
    for name in DESK:
        seen = then.get(name, [])
        if not seen or seen != parts(ROOT / name)[: len(seen)]:
            yield f"docs/desk.png shows another beginning of {name}: {ANEW}"


RULES: list[tuple[list[Path], list[Callable[[Path], Problems]]]] = [
    (SCRIPTS, [width, started, asserts, distributed]),
    (BOOKS, [run_whole, belongs, size, launches, further, guesses, teaching]),
    (BOOKS, [questions, ending, pictures]),
    (BOOKS, [simple, noisy, measured, minutes, links]),
    (PAGES, [links]),
    (sorted((ROOT / "solutions").glob("*/elsewhere.jsonl")), [elsewhere]),
]


def main() -> int:
    found = [*stamps(), *folders(), *tour_picture(), *tour_machine(), *desk_picture()]
    for paths, rules in RULES:
        for path in paths:
            for rule in rules:
                found += [f"{path.relative_to(ROOT)}: {problem}" for problem in rule(path)]
    print("\n".join(found), end="\n" if found else "")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
