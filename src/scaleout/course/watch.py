"""Checks again each time that runme.py is saved: a fault that can be seen without a job at once, the
rest as soon as its job has ended."""

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from . import checks, gaps
from .masters import read_text, starter

if TYPE_CHECKING:
    from .topic import Topic


LOOK_S = 0.3  # how often the file is looked at


def watch(
    lab: "Topic",
    number: int | None,
    say: Callable[[str], None],
    tell: Callable[[str], None] | None = None,
) -> bool:
    """Checks runme.py now and after each save, until Ctrl-C.

    A save ends the jobs of the check before it.
    """
    passed = False
    try:
        while True:
            while (seen := _stamp(lab)) is None:
                _pause()
            try:
                with _interrupted_by_a_save(lab, seen):
                    passed = _round(lab, number, say, tell)
            except _Saved:
                continue
            say(f"Waiting for {lab.script.name} to be saved; Ctrl-C ends this.\n")
            while _stamp(lab) == seen:
                _pause()
    except KeyboardInterrupt:
        return passed


def _round(
    lab: "Topic",
    number: int | None,
    say: Callable[[str], None],
    tell: Callable[[str], None] | None,
) -> bool:
    start = starter(lab.name)
    for mark in gaps.removed(read_text(lab.script), read_text(start)) if start.is_file() else []:
        say(f"This line is gone: {mark}  Put it back above your lines, so that a check finds them.")
    passed = True
    for result in checks.check(lab, number, tell):
        say(str(result))
        passed &= result.state == "passed"
    return passed


class _Saved(Exception):
    """The file was saved while its check ran."""


def _stamp(lab: "Topic") -> tuple[int, int] | None:
    """What changes when the file is saved; None while an editor puts the new one in its place."""
    try:
        about = os.stat(lab.script)
    except FileNotFoundError:
        return None
    return about.st_mtime_ns, about.st_size


def _pause() -> None:
    threading.Event().wait(LOOK_S)


@contextmanager
def _interrupted_by_a_save(lab: "Topic", seen: tuple[int, int]) -> Iterator[None]:
    """Interrupts what runs inside, as Ctrl-C would, once the file differs from `seen`."""
    ended, saved, lock = threading.Event(), threading.Event(), threading.Lock()
    main = threading.get_ident()

    def look() -> None:
        while not ended.wait(LOOK_S):
            if (now := _stamp(lab)) and now != seen:
                with lock:
                    if not ended.is_set():
                        saved.set()
                        signal.pthread_kill(main, signal.SIGINT)
                return

    threading.Thread(target=look, daemon=True).start()
    try:
        try:
            yield
        finally:
            with lock:
                ended.set()
    except KeyboardInterrupt:
        if saved.is_set():
            raise _Saved from None
        raise
