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
STALE = {
