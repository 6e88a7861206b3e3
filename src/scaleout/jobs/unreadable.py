"""A script that Python cannot read: told once, before each of its ranks would."""

import os
import re
import shutil
import subprocess
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path

from ..base.errors import ScaleoutError
from ..base.paths import search_path, show

MPI4PY = ["-m", "mpi4py"]  # which runs what stands behind it, and ends all ranks when one fails
SWITCHES = re.compile(r"-[uOBIEsSqvbdP]+")  # of Python, none of which takes a value
COMPILE = "import sys; compile(open(sys.argv[1], 'rb').read(), sys.argv[1], 'exec')"
ASK_S = 20.0
CONFLICT = re.compile(
    rb"^<{7}(?: [^\n]*)?\r?\n(?:[^\n]*\n)*?={7}\r?\n(?:[^\n]*\n)*?>{7}(?: [^\n]*)?$", re.M
)


class Unreadable(ScaleoutError):
    """A script with a syntax error; Python's own exit status is 1, too."""

    status = 1


def refuse(command: Sequence[str]) -> None:
    """Refuse the command of a rank whose script Python cannot read, and show the line."""
    path = script(command)
    try:
        error = path and syntax_error(path.read_bytes(), str(path))
    except OSError:
        return  # the job itself says why
    if path and error and not _read_by_another(command[0], path):
        where = f"line {error.lineno} of {show(path)}" if error.lineno else show(path)
        what = f"Python cannot read {where}: {type(error).__name__}: {error.msg.rstrip('.?')}."
        if told := conflict(path.read_bytes()):
            what = f"In {show(path)} {told}."
        raise Unreadable("\n".join([f"{what} No rank was started.", *_code(error)]))


def script(command: Sequence[str]) -> Path | None:
    """Find the file that a rank's Python is to run; None where that is not known."""
    words = list(command[1:])
    while words and SWITCHES.fullmatch(words[0]):
        words.pop(0)
    if words[:2] == MPI4PY:
        words = words[2:]
    if not Path(command[0]).name.startswith("python") or not words:
        return None
    if words[0] == "-m" and len(words) > 1 and words[1].strip("."):
        parts = Path(*words[1].split("."))
        places = [parts.with_suffix(".py"), parts / "__main__.py"]
    else:
        places = [Path(words[0])]
    return next((path for path in places if path.suffix == ".py" and path.is_file()), None)


def syntax_error(text: bytes, name: str) -> SyntaxError | None:
    """Return what Python says of a text that it cannot read; None when it can."""
    if (at := text.find(b"\0")) >= 0:  # of which Python 3.11 names no line
        return SyntaxError("a null byte", (name, text.count(b"\n", 0, at) + 1, None, None))
    try:
        with warnings.catch_warnings(action="ignore"):
            compile(text, name, "exec", dont_inherit=True)
    except SyntaxError as error:
        return error
    except (ValueError, MemoryError, RecursionError):
        pass  # which the job itself will say
    return None


def conflict(text: bytes) -> str:
    """Say in which lines git has left two versions, of which a person is to choose; "" if in none."""
    if not (found := CONFLICT.search(text)):
        return ""
    first = text.count(b"\n", 0, found.start()) + 1
    last = first + found[0].count(b"\n")
    return (
        f"git has left two versions in lines {first} to {last}: keep one of them, and delete the other "
        "and the lines with <<<<<<<, ======= and >>>>>>>"
    )


def _code(error: SyntaxError) -> list[str]:
    """Show the line, and below it the place at which Python gave up."""
    text = (error.text or "").rstrip()
    line = text.lstrip()
    at = (error.offset or 0) - 1 - (len(text) - len(line))
    return [f"    {part}" for part in (line, f"{' ' * at}^" if at >= 0 else "") if part.strip()]


def _read_by_another(python: str, path: Path) -> bool:
    """Tell whether this Python is not ours, and reads what ours cannot, or cannot be asked."""
    found = shutil.which(python, path=search_path())
    if found and os.path.realpath(found) == os.path.realpath(sys.executable):
        return False
    try:
        asked = [found or python, "-I", "-c", COMPILE, str(path)]
        done = subprocess.run(asked, capture_output=True, timeout=ASK_S, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return True
    return done.returncode == 0
