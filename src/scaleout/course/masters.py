"""What the masters make: labs, notebooks and untouched labs; and a fresh lab for one that was edited."""

import hashlib
import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ..errors import ScaleoutError
from ..paths import home, show, topic
from .cutting import GUESS, cut, numbers

TOPIC = r"[0-9]{2}_[a-z0-9_]+"  # leaves out an attendee's own notebooks, such as Jupyter's 00_welcome-Copy1
STARTERS = Path("src/scaleout/course/starters")  # in the workshop: the untouched labs


def _cut_notebook(text: str, where: str) -> str:
    """The attendee's notebook for a master: solutions cut, guesses left open, outputs and execution
    counts removed."""
    try:
        book = json.loads(text)
    except ValueError as error:
        raise ScaleoutError(f"{where} is no notebook: {error}.") from None
    for at, cell in enumerate(book["cells"], 1):
        if cell["cell_type"] == "code":
            source = cut("".join(cell["source"]), f"{where}, cell {at}")
            source = GUESS.sub(r"\1None\2", source)
            cell |= {
                "source": source.splitlines(keepends=True),
                "outputs": [],
                "execution_count": None,
            }
            cell["metadata"].pop("execution", None)
    book["metadata"]["scaleout"] = {"start": _fingerprint(book)}
    return json.dumps(book, indent=1, ensure_ascii=False) + "\n"


def _fingerprint(book: dict[str, Any]) -> str:
    """Of what the cells say, however an editor has stored them."""
    return hashlib.sha256(
        "\0".join("".join(cell["source"]) for cell in book["cells"]).encode()
    ).hexdigest()


def generated() -> Iterator[tuple[Path, str]]:
    """Every file that the masters make, with its text: labs, notebooks, untouched labs."""
    root = home()
    if not (root / "solutions").is_dir():
        raise ScaleoutError(
            "There are no masters here: solutions/ is missing, as in a copy that was given to a class."
        )
    for book in sorted((root / "solutions").glob("*.ipynb")):
        yield root / "notebooks" / book.name, _cut_notebook(read_text(book), show(book))
    for master in sorted((root / "solutions").glob("*/runme.py")):
        folder = root / "labs" / master.parent.name
        text = cut(read_text(master), show(master)).replace(
            f"solutions/{folder.name}/", f"labs/{folder.name}/"
        )
        yield folder / "runme.py", text
        yield root / STARTERS / f"{folder.name}.py", text
        kinds = ("*.py", "*.jsonl", "more/*.*")  # scripts, records, what is there for the curious
        others = {file for kind in kinds for file in master.parent.glob(kind)}
        for other in sorted({master.with_name("checks.py"), *others} - {master}):
            text = read_text(other).replace(f"solutions/{folder.name}/", f"labs/{folder.name}/")
            if numbers(text):  # a second script with gaps
                text = cut(text, show(other))
                yield root / STARTERS / f"{folder.name}-{other.name}", text
            yield folder / other.relative_to(master.parent), text


def starter(name: str, script: str = "runme.py") -> Path:
    """The untouched lab: the workshop's own copy, else the one that came with the package."""
    file = f"{name}.py" if script in ("runme.py", f"{name}.py") else f"{name}-{script}"
    own = home() / STARTERS / file
    return own if own.is_file() else Path(__file__).parent / "starters" / own.name


def read_text(path: Path) -> str:
    """A master's or a lab's text; ScaleoutError names the file that cannot be read."""
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ScaleoutError(
            f"{show(path)} cannot be read: {getattr(error, 'strerror', None) or error}."
        ) from None


def generate(only_check: bool = False) -> list[str]:
    """Writes labs/, notebooks/ and the starters from solutions/.

    A runme.py or a notebook that somebody has edited is copied beside itself first. What has no
    master (any more) is named, never removed: it may be somebody's own.
    """
    wanted, root = dict(generated()), home()
    books = [f for f in root.glob("notebooks/*.ipynb") if re.fullmatch(TOPIC, f.stem)]
    extra = {*books, *root.glob("labs/*/checks.py"), *root.glob(f"{STARTERS}/*.py")} - set(wanted)
    differ = [f for f, text in wanted.items() if not f.exists() or f.read_bytes() != text.encode()]
    if only_check:
        return [show(f) for f in [*differ, *sorted(extra)]]
    # Found before anything is written: it is the old starter that tells.
    own = {f for f in differ if f.exists() and not _untouched(f)}
    for path in differ:
        path.parent.mkdir(parents=True, exist_ok=True)
        if path in own:
            print(f"Kept: {show(_copy(path))}")
        path.write_text(wanted[path], encoding="utf-8")
    for path in sorted(extra):
        print(f"{show(path)} has no master: remove it, or give it another name if it is yours.")
    return [show(f) for f in differ]


def _untouched(path: Path) -> bool:
    """Whether a file is as it was made: nobody's work is in it."""
    if path.suffix == ".ipynb":
        try:
            book = json.loads(path.read_bytes())
            written = book["metadata"]["scaleout"]["start"] != _fingerprint(book)
            return not written and not any(cell.get("outputs") for cell in book["cells"])
        except (ValueError, LookupError, TypeError):
            return False
    start = starter(path.parent.name, path.name)
    if not start.exists():
        return path.name != "runme.py"  # a script without gaps
    return start.read_bytes() == path.read_bytes()


def _copy(path: Path) -> Path:
    """Keeps a file under a name beside it that is still free."""
    count = 1
    while (kept := path.with_name(f"{path.stem}.kept-{count}{path.suffix}")).exists():
        count += 1
    shutil.copy2(path, kept)
    return kept


def reset(name: str) -> str:
    """Puts a fresh runme.py in the lab's folder, and each other script of it that has gaps; the old
    ones are kept beside them. Returns what was done, in words."""
    name = topic(name)
    if not starter(name).exists():
        raise ScaleoutError(
            f"{show(starter(name))} is missing, so there is nothing to reset to: fetch the workshop "
            "again."
        )
    folder = home() / "labs" / name
    others = starter(name).parent.glob(f"{name}-*.py")
    fresh = {folder / "runme.py": starter(name)} | {
        folder / start.name.removeprefix(f"{name}-"): start for start in sorted(others)
    }
    return " ".join(_fresh(script, start) for script, start in fresh.items())


def _fresh(script: Path, start: Path) -> str:
    kept = (
        f" The old one is {show(_copy(script))}."
        if script.exists() and not _untouched(script)
        else ""
    )
    shutil.copyfile(start, script)
    return f"{show(script)} is as new.{kept}"
