"""What the masters make: labs and notebooks; and a fresh lab for one that was edited."""

import hashlib
import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

from ..base import jsonlines
from ..base.errors import ScaleoutError
from ..base.paths import course_files, home, read_text, results, show, topic
from . import came, pieces
from .marks import GUESS, cut, numbers

TOPIC = r"[0-9]{2}_[a-z0-9_]+"  # leaves out an attendee's own notebooks, such as Jupyter's 00_welcome-Copy1
SCRIPTS = ("*.py", "*.sh")  # in which TODOs may stand
# In a class copy, which has no masters: the labs as they were given out.
STARTS = Path("class-copy/starts")


def _cut_notebook(text: str, where: str) -> str:
    """Make the attendee's notebook from a master.

    Solutions are cut, cells tagged `solution` left out, guesses left open, outputs and execution
    counts removed.
    """
    try:
        book = json.loads(text)
    except ValueError as error:
        raise ScaleoutError(f"{where} is no notebook: {error}.") from None
    ours = "solution"  # what shows the answer, such as the page that the solution has handed in
    cells = [cell for cell in book["cells"] if ours not in cell["metadata"].get("tags", [])]
    book["cells"] = cells
    for at, cell in enumerate(cells, 1):
        if cell["cell_type"] == "code":
            source = cut("".join(cell["source"]), f"{where}, cell {at}")
            source = GUESS.sub(r"\1None\2", source)
            cell |= {
                "source": source.splitlines(keepends=True),
                "outputs": [],
                "execution_count": None,
            }
            cell["metadata"].pop("execution", None)
    book.get("metadata", {}).pop("scaleout", None)  # which run the master's outputs come from
    return json.dumps(book, indent=1, ensure_ascii=False) + "\n"


def _cut_lab(master: Path, name: str) -> str:
    """Make the lab's text from a topic's file: solutions cut, and commands that start the lab."""
    text = read_text(master).replace(f"solutions/{name}/", f"labs/{name}/")
    return cut(text, show(master)) if numbers(text) or master.name == "runme.py" else text


def generated() -> Iterator[tuple[Path, str]]:
    """Yield every file that the masters make, with its text: labs and notebooks."""
    root = home()
    if not (root / "solutions").is_dir():
        raise ScaleoutError(
            "There are no masters here: solutions/ is missing, as in a copy that was given to a class."
        )
    for book in course_files(root / "solutions", "*.ipynb"):
        yield root / "notebooks" / book.name, _cut_notebook(read_text(book), show(book))
    for master in sorted((root / "solutions").glob("*/runme.py")):
        here = master.parent
        # scripts, records, what a notebook runs and nobody fills, what is there for the curious
        kinds = (*SCRIPTS, "*.jsonl", "side/*", "more/*")
        for file in sorted({here / "checks.py", *course_files(here, *kinds)}):
            yield root / "labs" / file.relative_to(here.parent), _cut_lab(file, here.name)
        if (here / pieces.WRONG).is_file():
            scripts = {path.name: read_text(path) for path in course_files(here, *SCRIPTS)}
            made = pieces.made(here.name, scripts, read_text(here / pieces.WRONG))
            yield root / "labs" / here.name / pieces.FILE, made
        if (here / came.MASTER).is_file():
            made = came.made(read_text(here / came.MASTER))
            yield root / "labs" / here.name / came.FILE, made


def untouched(name: str) -> dict[str, str]:
    """Return the scripts of a topic that have gaps, as they were given out.

    There are none where there is no such topic.
    """
    for folder, given in ((home() / STARTS / name, True), (home() / "solutions" / name, False)):
        if (folder / "runme.py").is_file():
            others = [p for p in course_files(folder, *SCRIPTS) if p.name != "runme.py"]
            scripts = {
                path.name: read_text(path) if given else _cut_lab(path, name)
                for path in (folder / "runme.py", *others)
            }
            return {f: text for f, text in scripts.items() if f == "runme.py" or numbers(text)}
    return {}


def generate(only_check: bool = False) -> list[str]:
    """Write labs/ and notebooks/ from solutions/.

    A runme.py or a notebook that somebody has edited is copied beside itself first. What has no
    master (any more) is named, never removed: it may be somebody's own.
    """
    wanted, root = dict(generated()), home()
    books = [f for f in root.glob("notebooks/*.ipynb") if re.fullmatch(TOPIC, f.stem)]
    extra = {*books, *root.glob("labs/*/checks.py")} - set(wanted)
    differ = [f for f, text in wanted.items() if not f.exists() or f.read_bytes() != text.encode()]
    if only_check:
        return [show(f) for f in [*differ, *sorted(extra)]]
    written = results() / "exercises.json"  # what was written last, of each file
    last, unsaved = jsonlines.table(written), _differs_from_git(root)
    for path in differ:
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.exists() and (path.suffix == ".ipynb" or path.name in untouched(path.parent.name)):
            name = str(path.relative_to(root))
            if (unsaved is None or name in unsaved) and last.get(name) != _digest(
                path.read_bytes()
            ):
                print(f"Kept: {show(_copy(path))}")
        path.write_text(wanted[path], encoding="utf-8")
    now = {str(path.relative_to(root)): _digest(text.encode()) for path, text in wanted.items()}
    written.write_text(json.dumps(now), encoding="utf-8")
    for path in sorted(extra):
        print(f"{show(path)} has no master: remove it, or give it another name if it is yours.")
    return [show(f) for f in differ]


def _digest(text: bytes) -> str:
    return hashlib.sha256(text).hexdigest()


def _differs_from_git(root: Path) -> set[str] | None:
    """List labs and notebooks that git does not hold as they are; None where there is no git."""
    git = ["git", "-C", str(root), "ls-files", "-z", "--modified", "--others", "labs", "notebooks"]
    try:
        listed = subprocess.run(git, capture_output=True, text=True, timeout=60, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return set(listed.stdout.split("\0"))


def _copy(path: Path) -> Path:
    """Keep a file under a name beside it that is still free."""
    count = 1
    while (kept := path.with_name(f"{path.stem}.kept-{count}{path.suffix}")).exists():
        count += 1
    shutil.copy2(path, kept)
    return kept


def reset(name: str) -> str:
    """Put a fresh runme.py in the lab's folder, and each other script of it that has gaps.

    The old ones are kept beside them. Returns what was done, in words.
    """
    name = topic(name)
    scripts = untouched(name)
    if not scripts:
        raise ScaleoutError(
            f"{STARTS / name} is missing, so there is nothing to reset to: fetch the workshop again."
        )
    said = []
    for script, text in scripts.items():
        path = home() / "labs" / name / script
        edited = path.exists() and path.read_bytes() != text.encode()
        kept = f" The old one is {show(_copy(path))}." if edited else ""
        path.write_text(text, encoding="utf-8")
        said.append(f"{show(path)} is as new.{kept}")
    return " ".join(said)
