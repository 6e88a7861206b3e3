"""What an attendee's runme.py is checked by: a function for each TODO, its hints, and the
verdicts."""

import codecs
import importlib.util
import json
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from ..base import jsonlines
from ..base.errors import ScaleoutError
from ..base.paths import results, show, side
from ..base.settings import STACKS, quick
from ..jobs.job import JobError, Run
from . import history
from .verdict import WIDTH, Judge, Script, Verdict
from .watch import Watch

# A lab that waits for ever is told so while its author still waits for the check.
CHECK_TIMEOUT_S = 120.0
# With SCALEOUT_QUICK=1: what equal jobs ended in, of a lab whose files are as they were then.
_ENDED: dict[tuple[str | bytes, ...], dict[str, Run | JobError]] = {}
VEIL = "rot13: "  # before a hint whose letters are each 13 places on
# What a check meets where a job wrote no record, or one that lacks something.
INCOMPLETE = (LookupError, AttributeError, TypeError, ValueError, FileNotFoundError)


def todo(
    number: int, hints: Sequence[str], script: str = "runme.py", needs: str = ""
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Mark a function of checks.py as the check of one TODO.

    The function takes `job`, which runs the attendee's script, and raises AssertionError in the
    lab's own terms.

    Parameters
    ----------
    number : int
        Of the TODO.
    hints : sequence of str
        From vague to plain.
    script : str
        The lab's script in which the TODO stands.
    needs : str
        A side environment whose Python runs it, such as "torch" for `make torch`; where that one is
        missing, nothing is judged.

    Returns
    -------
    callable
        A decorator, which returns the function itself.
    """

    def mark(function: Callable[..., None]) -> Callable[..., None]:
        function.todo, function.hints = number, list(hints)  # type: ignore[attr-defined]
        function.script, function.needs = script, needs  # type: ignore[attr-defined]
        return function

    return mark


def _checks(lab: Script, number: int | Sequence[int] | None = None) -> list[Callable[..., None]]:
    wanted = [number] if isinstance(number, int) else number
    found = (f for f in vars(_module(lab)).values() if hasattr(f, "todo"))
    every = sorted(found, key=lambda f: f.todo)
    known = [f.todo for f in every]
    if not known:
        raise ScaleoutError(
            f"{lab.name} has no TODO that could be checked: fetch the workshop again."
        )
    if lost := [n for n in wanted or () if n not in known]:
        there = ", ".join(map(str, known))
        raise ScaleoutError(f"{lab.name} has no TODO {lost[0]}; it has {there}.")
    return [f for f in every if wanted is None or f.todo in wanted]


def _module(lab: Script) -> ModuleType:
    """Load the lab's checks.py, anew and without a trace in its folder."""
    path = lab.folder / "checks.py"
    if not path.is_file():
        raise ScaleoutError(f"{show(path)} is missing: fetch the workshop again.")
    spec = importlib.util.spec_from_file_location(f"checks_{lab.name}", path)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    writes, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        raise ScaleoutError(
            f"{show(path)} cannot be loaded ({type(error).__name__}: {error}): fetch the workshop "
            "again."
        ) from None
    finally:
        sys.dont_write_bytecode = writes
    return module


def check(
    lab: Script,
    number: int | Sequence[int] | None = None,
    tell: Callable[[str], None] | None = None,
) -> Iterator[Verdict]:
    """Run the lab's checks, or one of them, and yield what each found.

    Equal jobs are run once; with SCALEOUT_QUICK=1 also those of earlier calls, as long as the lab's
    files stay the same.

    What a lab's checks found is kept in results/, for history.passed.
    """
    for result in _check(lab, number, tell):
        if not lab.solution:
            history.keep_state(lab.name, result.number, result.state)
        yield result


def _check(
    lab: Script, number: int | Sequence[int] | None, tell: Callable[[str], None] | None
) -> Iterator[Verdict]:
    scripts: dict[tuple[str, str], tuple[Judge, Callable[..., Run]]] = {}
    for function in _checks(lab, number):
        n: int = function.todo  # type: ignore[attr-defined]
        script, needs = function.script, function.needs  # type: ignore[attr-defined]
        if needs and not side(needs):
            yield Verdict(n, "not judged", f"{script} needs  make {needs}  first: type that.")
            continue
        if (script, needs) not in scripts:
            there = lab if script == "runme.py" else _other(lab, script)
            scripts[script, needs] = Judge(there), _jobs(there, tell, needs)
        judge, job = scripts[script, needs]
        if unreadable := judge.unreadable(n):
            yield unreadable
            continue
        try:
            function(job)
        except AssertionError as failed:
            state = "not yet" if judge.touched(n) else "not started"
            yield Verdict(n, state, str(failed) or (function.__doc__ or "").strip())
        except JobError as failed:
            yield judge.failed(n, failed)
        except INCOMPLETE as failed:
            if not _met_by_the_check(failed, lab.folder / "checks.py"):
                raise
            what = f"the job left no complete record ({type(failed).__name__}: {failed})."
            do = f"Run it with  scaleout run {lab.name}  to see what it says."
            yield Verdict(n, "not yet", f"{what} {do}")
        else:
            yield Verdict(n, "passed", (function.__doc__ or "").strip().splitlines()[0])


def _other(lab: Script, script: str) -> Script:
    """Return the lab with another of its scripts, which must be there."""
    if not (lab.folder / script).is_file():
        missing = show(lab.folder / script)
        raise ScaleoutError(f"{missing} is missing: type  scaleout reset {lab.name}  for it.")
    return lab.other(script)


def _jobs(lab: Script, tell: Callable[[str], None] | None, needs: str = "") -> Callable[..., Run]:
    """Return what runs the jobs of a lab's checks: each once, a failure kept like a success."""
    ended: dict[str, Run | JobError] = {}
    if quick():
        files = [path.read_bytes() for path in sorted(lab.folder.glob("*.py")) if path.is_file()]
        ended = _ENDED.setdefault((str(lab.script), needs, *files), {})
    folder = side(needs) if needs else None
    own = {"python": show(folder / "bin" / "python")} if folder else {}

    def job(**how: Any) -> Run:
        key = repr(sorted(how.items()))
        if key not in ended:
            how = {"timeout": CHECK_TIMEOUT_S, **own, **how}
            env = {STACKS: "1", **(how.pop("env", None) or {})}
            watch = Watch(lab.script, how.get("ranks", 1), tell)
            try:
                ended[key] = lab.run(**how, env=env, echo=watch.take)
            except JobError as error:
                ended[key] = error
            finally:
                watch.end()
        end = ended[key]
        if isinstance(end, JobError):
            raise end
        return end

    return job


def _met_by_the_check(error: Exception, checks: Path) -> bool:
    """Tell whether a check met the error in what it looked at; else it comes from our own code."""
    files = [Path(frame.filename) for frame in traceback.extract_tb(error.__traceback__)]
    package = Path(__file__).parents[1]
    last = max((at for at, file in enumerate(files) if file == checks), default=None)
    return last is not None and not any(package in file.parents for file in files[last:])


def overwritten(text: str) -> None:
    """Print a line that the next one takes the place of; "" clears it."""
    print("\r" + text[: WIDTH - 1].ljust(WIDTH), end="" if text else "\r", flush=True)


def hint(lab: Script, number: int) -> str:
    """Return the next hint for a TODO, one more each time; after the last, the last again."""
    (function,) = _checks(lab, number)
    hints: list[str] = function.hints  # type: ignore[attr-defined]
    if not hints:
        raise ScaleoutError(f"TODO {number} of {lab.name} has no hints.")
    path = results(lab.name) / "hints.json"
    given = {todo: n for todo, n in jsonlines.table(path).items() if type(n) is int and n > 0}
    count = min(given.get(str(number), 0) + 1, len(hints))
    jsonlines.write(path, json.dumps(given | {str(number): count}))
    text = hints[count - 1]
    plain = codecs.decode(text.removeprefix(VEIL), "rot13") if text.startswith(VEIL) else text
    return f"Hint {count} of {len(hints)}: {plain}"


def veiled(text: str) -> str:
    """Veil a hint for a class: nobody reads it in passing, and `hint` shows it."""
    return VEIL + codecs.encode(text, "rot13")
