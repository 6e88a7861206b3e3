"""A command to measure, as the words of a command line give it."""

import shlex
import shutil
from collections.abc import Sequence
from pathlib import Path

from ..errors import ScaleoutError
from ..paths import search_path

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
        raise ScaleoutError(
            f"There is no program {shlex.quote(program)} to start: check what follows the --"
        )
    script = next((word for word in command[1:] if not word.startswith("-")), "")
    if "python" in program and script.endswith(".py") and not Path(script).is_file():
        raise ScaleoutError(f"There is no script {script}: check what follows the --")
