"""Check again each time that one of a lab's scripts is saved."""

import os
import threading
from collections.abc import Callable, Sequence

from . import checks
from .verdict import Script

LOOK_S = 0.3  # how often the files are looked at


def watch(
    lab: Script,
    number: int | Sequence[int] | None,
    say: Callable[[str], None],
    tell: Callable[[str], None] | None = None,
) -> bool:
    """Checks the lab now and after each save of a script with TODOs, until Ctrl-C; whether all
    passed at last."""
    passed = False
    names = checks.scripts(lab)
    try:
        while True:
            while None in (seen := _stamps(lab, names)):
                _pause()
            passed = True
            for result in checks.check(lab, number, tell):
                say(str(result))
                passed &= result.state == "passed"
            say(f"Waiting for {' or '.join(names)} to be saved; Ctrl-C ends this.\n")
            while _stamps(lab, names) == seen:
                _pause()
    except KeyboardInterrupt:
        return passed


def _stamps(lab: Script, names: list[str]) -> list[tuple[int, int] | None]:
    """What changes when a file is saved; None while an editor puts the new one in its place."""
    stamps: list[tuple[int, int] | None] = []
    for name in names:
        try:
            about = os.stat(lab.folder / name)
        except FileNotFoundError:
            stamps.append(None)
        else:
            stamps.append((about.st_mtime_ns, about.st_size))
    return stamps


def _pause() -> None:
    threading.Event().wait(LOOK_S)
