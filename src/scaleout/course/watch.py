"""Check again each time that the script is saved."""

import os
import threading
from collections.abc import Callable, Sequence

from . import checks
from .verdict import Script

LOOK_S = 0.3  # how often the file is looked at


def watch(
    lab: Script,
    number: int | Sequence[int] | None,
    say: Callable[[str], None],
    tell: Callable[[str], None] | None = None,
) -> bool:
    """Checks the script now and after each save, until Ctrl-C; whether all passed at last."""
    passed = False
    try:
        while True:
            while (seen := _stamp(lab)) is None:
                _pause()
            passed = True
            for result in checks.check(lab, number, tell):
                say(str(result))
                passed &= result.state == "passed"
            say(f"Waiting for {lab.script.name} to be saved; Ctrl-C ends this.\n")
            while _stamp(lab) == seen:
                _pause()
    except KeyboardInterrupt:
        return passed


def _stamp(lab: Script) -> tuple[int, int] | None:
    """What changes when the file is saved; None while an editor puts the new one in its place."""
    try:
        about = os.stat(lab.script)
    except FileNotFoundError:
        return None
    return about.st_mtime_ns, about.st_size


def _pause() -> None:
    threading.Event().wait(LOOK_S)
