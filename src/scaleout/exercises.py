"""Exercises: masters in, labs and notebooks out; check, hint, reset."""

import hashlib
import importlib.util
import json
import re
import shutil
import sys
import textwrap
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .errors import ScaleoutError
from .output import first_traceback
from .paths import home, results, show, topic

if TYPE_CHECKING:
    from .launch import JobError, Lab

__all__ = ["Result", "check", "cut", "generate", "generated", "hint", "numbers", "reset", "todo"]

TOPIC = r"\d\d_[a-z0-9_]+"  # leaves out an attendee's own notebooks, such as Jupyter's 00_welcome-Copy1
TODO = re.compile(r"\s*# TODO (\d+): (\S.*)")
LIKE_A_MARK = re.compile(r"#\s*(begin|end)\s*solution|#\s*starter\b", re.IGNORECASE)
PRISTINE = ".runme.start.py"  # what `reset` gives back, kept beside the file that an attendee edits
WIDTH = 64  # characters that a notebook shows beside an editor on a laptop
CHECK_TIMEOUT_S = 120.0  # a lab that waits for ever is told so while its author still waits for the check


def todo(number: int, hints: Sequence[str]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Marks a function of checks.py as the check of one TODO. It takes `job`, which runs the attendee's runme.py, and
    raises AssertionError in the lab's own terms; `hints` go from vague to plain."""

    def mark(function: Callable[..., None]) -> Callable[..., None]:
        function.todo, function.hints = number, list(hints)  # type: ignore[attr-defined]
        return function

    return mark


def cut(text: str, where: str = "the master", keep: Callable[[int], bool] = lambda number: False) -> str:
    """The lab's text for a master's: each solution gives way to its STARTER lines, or to NotImplementedError.

    keep: the numbers whose solution stays (without its marks). ScaleoutError names file and line of a wrong mark.
    """
    out: list[str] = []
    asked: tuple[int, str] | None = None  # the TODO above, which waits for its solution
    asked_at = begun = 0
    inside: list[str] | None = None
    seen: set[int] = set()
    for at, line in enumerate(text.splitlines(keepends=True), 1):
        mark, place = line.strip(), f"{where}, line {at}"
        if mark == "# BEGIN SOLUTION":
            if inside is not None:
                raise ScaleoutError(f"{place}: a solution begins inside another; end the first.")
            if asked is None:
                raise ScaleoutError(f"{place}: a solution without a number; put  # TODO N: what  before it.")
            inside, begun, indent = [], at, line[: line.index("#")]
        elif mark == "# END SOLUTION":
            if inside is None or asked is None:
                raise ScaleoutError(f"{place}: a solution ends that never began.")
            out += _region(inside, indent, *asked, keep(asked[0]))
            inside, asked = None, None
        elif LIKE_A_MARK.match(mark) and (inside is None or not mark.startswith("# STARTER:")):
            raise ScaleoutError(
                f"{place}: {mark!r} is no mark here; marks are  # BEGIN SOLUTION,  # END SOLUTION,  and  # STARTER: "
                "between them."
            )
        elif inside is not None:
            if TODO.match(line):
                raise ScaleoutError(f"{place}: a TODO inside a solution; end the solution first.")
            inside.append(line)
        else:
            out.append(line)
            if found := TODO.match(line):
                if int(found[1]) in seen:
                    raise ScaleoutError(f"{place}: TODO {found[1]} stands there twice.")
                if asked is not None:
                    raise ScaleoutError(f"{where}, line {asked_at}: TODO {asked[0]} has no solution.")
                asked, asked_at = (int(found[1]), found[2]), at
                seen.add(asked[0])
    if inside is not None:
        raise ScaleoutError(f"{where}, line {begun}: a solution begins and never ends; write  # END SOLUTION")
    if asked is not None:
        raise ScaleoutError(f"{where}, line {asked_at}: TODO {asked[0]} has no solution.")
    return "".join(out)


def _region(lines: list[str], indent: str, number: int, what: str, keep: bool) -> list[str]:
    starters = [line for line in lines if line.strip().startswith("# STARTER:")]
    if keep:
        return [line for line in lines if line not in starters]
    if starters:
        return [re.sub(r"# STARTER: ?", "", line, count=1) for line in starters]
    text = json.dumps(f"TODO {number}: {what.split('  ')[0].rstrip('.')}", ensure_ascii=False)
    return [f"{indent}raise NotImplementedError({text})\n"]


def numbers(text: str) -> list[int]:
    """The numbers of the TODOs in a text, in order."""
    return [int(found[1]) for found in map(TODO.match, text.splitlines()) if found]


def _cut_notebook(text: str, where: str) -> str:
    """The attendee's notebook for a master: solutions cut, outputs and execution counts removed."""
    try:
        book = json.loads(text)
    except ValueError as error:
        raise ScaleoutError(f"{where} is no notebook: {error}.") from None
    for at, cell in enumerate(book["cells"], 1):
        if cell["cell_type"] == "code":
            source = cut("".join(cell["source"]), f"{where}, cell {at}")
            cell |= {"source": source.splitlines(keepends=True), "outputs": [], "execution_count": None}
            cell["metadata"].pop("execution", None)
    book["metadata"]["scaleout"] = {"start": _fingerprint(book)}
    return json.dumps(book, indent=1, ensure_ascii=False) + "\n"


def _fingerprint(book: dict[str, Any]) -> str:
    """Of what the cells say, however an editor has stored them."""
    return hashlib.sha256("\0".join("".join(cell["source"]) for cell in book["cells"]).encode()).hexdigest()


def generated() -> Iterator[tuple[Path, str]]:
    """Every file of labs/ and notebooks/ that the masters make, with its text."""
    root = home()
    if not (root / "solutions").is_dir():
        raise ScaleoutError("There are no masters here: solutions/ is missing, as in a copy that was given to a class.")
    for book in sorted((root / "solutions").glob("*.ipynb")):
        yield root / "notebooks" / book.name, _cut_notebook(_read(book), show(book))
    for master in sorted((root / "solutions").glob("*/runme.py")):
        folder = root / "labs" / master.parent.name
        text = cut(_read(master), show(master)).replace(f"solutions/{folder.name}/", f"labs/{folder.name}/")
        yield folder / "runme.py", text
        yield folder / PRISTINE, text
        others = {file for kind in ("*.py", "*.jsonl") for file in master.parent.glob(kind)}  # scripts and records
        for other in sorted({master.with_name("checks.py"), *others} - {master}):
            yield folder / other.name, _read(other).replace(f"solutions/{folder.name}/", f"labs/{folder.name}/")


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ScaleoutError(f"{show(path)} cannot be read: {getattr(error, 'strerror', None) or error}.") from None


def generate(only_check: bool = False) -> list[str]:
    """Writes labs/ and notebooks/ from solutions/; returns the files that differed, as a person types them.

    A runme.py or a notebook that somebody has edited is copied beside itself first. What has no master (any more) is
    named, never removed: it may be somebody's own. only_check: writes nothing.
    """
    wanted, root = dict(generated()), home()
    books = [f for f in root.glob("notebooks/*.ipynb") if re.fullmatch(TOPIC, f.stem)]
    extra = {*books, *root.glob("labs/*/checks.py"), *root.glob(f"labs/*/{PRISTINE}")} - set(wanted)
    differ = [f for f, text in wanted.items() if not f.exists() or f.read_bytes() != text.encode()]
    if only_check:
        return [show(f) for f in [*differ, *sorted(extra)]]
    for path in differ:
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.exists() and not _untouched(path):
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
    start = path.with_name(PRISTINE)
    return path.name != "runme.py" or (start.exists() and start.read_bytes() == path.read_bytes())


def _copy(path: Path) -> Path:
    """Keeps a file under a name beside it that is still free."""
    count = 1
    while (kept := path.with_name(f"{path.stem}.kept-{count}{path.suffix}")).exists():
        count += 1
    return shutil.copy2(path, kept)


def reset(name: str) -> str:
    """Puts a fresh runme.py in the lab's folder; the old one is kept beside it. Returns what was done, in words."""
    folder = home() / "labs" / topic(name)
    script, start = folder / "runme.py", folder / PRISTINE
    if not start.exists():
        raise ScaleoutError(f"{show(start)} is missing, so there is nothing to reset to: fetch the workshop again.")
    kept = f" The old one is {show(_copy(script))}." if script.exists() and not _untouched(script) else ""
    shutil.copyfile(start, script)
    return f"{show(script)} is as new.{kept}"


@dataclass(frozen=True)
class Result:
    """What a check found. state: "passed", "not yet" or "not started"."""

    number: int
    state: str
    what: str

    def __str__(self) -> str:
        """On lines that fit beside an editor; what a job said is left as it is."""
        said, *more = self.what.split("\n")
        start = f"TODO {self.number}  {self.state:<11}  "
        first = textwrap.fill(said, WIDTH, initial_indent=start, subsequent_indent=" " * len(start),
                              break_long_words=False, break_on_hyphens=False)  # fmt: skip
        return "\n".join([first, *more])


def _checks(lab: "Lab", number: int | None = None) -> list[Callable[..., None]]:
    path = lab.folder / "checks.py"
    if not path.is_file():
        raise ScaleoutError(f"{show(path)} is missing: fetch the workshop again.")
    spec = importlib.util.spec_from_file_location(f"checks_{lab.name}", path)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    writes, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    try:
        spec.loader.exec_module(module)
    finally:
        sys.dont_write_bytecode = writes
    found = sorted((f for f in vars(module).values() if hasattr(f, "todo")), key=lambda f: f.todo)
    chosen = [f for f in found if number in (None, f.todo)]
    if not chosen:
        there = ", ".join(str(f.todo) for f in found) or "none"
        raise ScaleoutError(f"{lab.name} has no TODO {number}; it has {there}.")
    return chosen


def check(lab: "Lab", number: int | None = None) -> Iterator[Result]:
    """Runs the lab's checks, or one of them, and yields what each found. Equal jobs are run once.

    What a lab's checks found is kept in results/, for history.progress.
    """
    from . import history

    for result in _check(lab, number):
        if not lab.solution:
            history.keep_state(lab.name, result.number, result.state)
        yield result


def _check(lab: "Lab", number: int | None) -> Iterator[Result]:
    from .launch import JobError

    runs: dict[str, Any] = {}
    told: dict[str, int] = {}  # failures that were shown already, and at which TODO

    def job(**how: Any) -> Any:
        key = repr(sorted(how.items()))
        if key not in runs:
            try:
                runs[key] = lab.run(**{"timeout": CHECK_TIMEOUT_S, "echo": False, **how})
            except JobError as error:
                runs[key] = error
        if isinstance(runs[key], JobError):
            raise runs[key]
        return runs[key]

    for function in _checks(lab, number):
        n = function.todo  # type: ignore[attr-defined]
        try:
            function(job)
        except AssertionError as failed:
            state = "not yet" if _touched(lab, n) else "not started"
            yield Result(n, state, str(failed) or (function.__doc__ or "").strip())
        except JobError as failed:
            same = "\n".join(first_traceback(failed.run.lines)[1]) or str(id(failed))
            yield _unfinished(n, failed, _touched(lab, n), told.setdefault(same, n))
        except ScaleoutError:
            raise
        except Exception as failed:  # the check found less than it looks for, or something else
            what = f"the job left no complete record ({type(failed).__name__}: {failed})."
            yield Result(n, "not yet", f"{what} Run it with  scaleout run {lab.name}  to see what it says.")
        else:
            yield Result(n, "passed", (function.__doc__ or "").strip().splitlines()[0])


def _touched(lab: "Lab", number: int) -> bool:
    """Whether anything has changed between this TODO and the next since the file was given out."""
    start = lab.folder / PRISTINE
    return not start.exists() or _below(_read(lab.script), number) != _below(_read(start), number)


def _below(text: str, number: int) -> list[str]:
    """The lines from the mark of a TODO to the next mark, without blank ones."""
    lines, inside = [], False
    for line in text.splitlines():
        if found := TODO.match(line):
            inside = int(found[1]) == number
        if inside and line.strip():
            lines.append(line.rstrip())
    return lines


def _unfinished(number: int, failed: "JobError", touched: bool, told: int) -> Result:
    """What a job that failed says about one TODO: it stopped there, or at another, or for another reason.

    told: the TODO at which this failure was shown.
    """
    from .launch import JobTimeout

    stopped = re.search(r"NotImplementedError: TODO (\d+):", failed.run.output)
    if stopped is None:
        what = f"the job did not end well. {failed}"
        if isinstance(failed, JobTimeout):
            what = (
                "the job came to no end: most often a rank waits for a message that nobody sends, or makes "
                f"a call that the others do not. {failed}"
            )
        return Result(number, "not yet", what if told == number else f"the same job failed: see TODO {told}.")
    if int(stopped[1]) == number or not touched:
        return Result(number, "not started", "write it, then check again.")
    return Result(number, "not yet", f"the job stops at TODO {stopped[1]}, which is not written yet.")


def hint(lab: "Lab", number: int) -> str:
    """The next hint for a TODO, one more each time it is asked; after the last, the last again."""
    (function,) = _checks(lab, number)
    hints: list[str] = function.hints  # type: ignore[attr-defined]
    path = results(lab.name) / "hints.json"
    try:
        given = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        given = {}
    count = min(given.get(str(number), 0) + 1, len(hints))
    path.write_text(json.dumps(given | {str(number): count}), encoding="utf-8")
    return f"Hint {count} of {len(hints)}: {hints[count - 1]}"
