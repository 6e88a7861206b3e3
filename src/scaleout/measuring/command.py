"""A command to measure, as the words of a command line give it."""

import os
import re
import shlex
import shutil
from collections.abc import Sequence
from pathlib import Path

from ..base.errors import ScaleoutError
from ..base.paths import search_path

SHELL = re.compile(r"[|<>;&`]|\$[({\w]")  # what only a shell understands
BUILT_IN = {
    *("alias", "cd", "eval", "exec", "export", "for", "if", "set", "source", "time", "ulimit"),
    *("umask", "unset", "wait", "while", ".", "{", "("),
}
SCRIPT = re.compile(r"\S+\.py .*")
IN_FOLDER = ["env", "-C"]  # and the folder, before a command that runs in it
LAUNCHERS = ("mpirun", "mpiexec", "srun", "horovodrun")


def words(command: str | Sequence[str]) -> list[str]:
    """Split a command into its words, where it is given as one text."""
    try:
        return shlex.split(command) if isinstance(command, str) else list(map(str, command))
    except ValueError as error:
        raise ScaleoutError(
            f"{command!r} is no command ({error}): give it as a list of words."
        ) from None


def check(command: Sequence[str]) -> None:
    """Refuse a command that cannot be started."""
    if not command:
        raise ScaleoutError(
            "There is no command to measure: put it last, after --, as in  -n 2 -- python train.py"
        )
    program = command[0]
    if Path(program).name in LAUNCHERS:
        raise ScaleoutError(
            f"Leave {program} out: -n says on how many ranks the command is started."
        )
    if shutil.which(program, path=search_path()) is None:
        line = " ".join(command)
        if SHELL.search(line) or program in BUILT_IN:
            raise ScaleoutError(
                f"{shlex.quote(line)} is for a shell, and none is started here: type  sh -c "
                f"{shlex.quote(line)}"
            )
        if " " in program:
            raise ScaleoutError(
                f"{shlex.quote(program)} is taken for the name of a program: leave the quotes out and "
                f"type  {line}"
            )
        if re.fullmatch(r"[A-Za-z_]\w*=.*", program):
            raise ScaleoutError(
                f"{program} is a variable and no program: type  --env {program}  before the --"
            )
        raise ScaleoutError(
            f"There is no program {shlex.quote(program)} to start: check what follows the --"
        )
    quoted = next((word for word in command[1:] if SCRIPT.match(word)), "")
    if "python" in program and quoted and not Path(quoted).exists():
        raise ScaleoutError(
            f"{shlex.quote(quoted)} is taken for the name of a script: leave the quotes out and type  "
            f"{program} {quoted}"
        )
    script = next((word for word in command[1:] if not word.startswith("-")), "")
    if "python" in program and script.endswith(".py") and not Path(script).is_file():
        raise ScaleoutError(f"There is no script {script}: check what follows the --")


def script(command: Sequence[str]) -> str:
    """Name the file that a command runs; "" where it runs a module, or a program of the system."""
    if list(command[:2]) == IN_FOLDER:
        folder = Path(command[2])
        paths = (folder / word for word in command[3:])
        return script([str(path) if path.is_file() else path.name for path in paths])
    files = (word.endswith((".py", ".sh")) and Path(word).is_file() for word in command)
    at = next((number for number, is_one in enumerate(files) if is_one), 0)
    before = list(command[:at])
    if "-m" in before and before[before.index("-m") + 1 :] != ["mpi4py"]:
        return ""
    first = command[at] if command else ""
    return first if at or os.sep in first and Path(first).is_file() else ""


def left_behind(reason: str) -> str:
    """Say what makes a command fail that has worked before, most likely."""
    found = re.search(r"""exist\w*:? ['"]([^'"\n]+)""", reason)
    name = found[1] if found else "WHAT"
    return (
        "It has worked before, so its first run may have left something behind that is in its way "
        f"now: remove it before each run, with  --prepare {shlex.quote(f'rm -rf {shlex.quote(name)}')}"
    )
