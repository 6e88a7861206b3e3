"""Signals that reach us while a job runs: most end it in order, as Ctrl-C does; those by which a
scheduler warns a training go to the ranks that listen for them."""

import contextlib
import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from types import FrameType

from ..jobs import supervise

AS_CTRL_C = signal.SIGTERM, signal.SIGHUP  # nohup ignores the second
WARNINGS = signal.SIGUSR1, signal.SIGUSR2  # such as  #SBATCH --signal=B:USR1@60  asks for
OTHERS = signal.SIGALRM, signal.SIGXCPU, signal.SIGPWR  # which would end us without a word


@contextlib.contextmanager
def like_ctrl_c() -> Iterator[None]:
    """Take each signal that would end this process as Ctrl-C, unless somebody else takes it."""
    with _taken(AS_CTRL_C, signal.default_int_handler), _taken((*WARNINGS, *OTHERS), _interrupt):
        yield


@contextlib.contextmanager
def handed_on(ranks: Callable[[], Iterable[int]]) -> Iterator[None]:
    """Send warnings to these ranks, as long as one of them has a handler; else they are Ctrl-C."""

    def hand_on(number: int, frame: FrameType | None) -> None:
        if heard := _hearing(ranks(), number):
            supervise.send(heard, number)
        else:
            _interrupt(number, frame)

    with _taken(WARNINGS, hand_on, _interrupt):
        yield


def _hearing(pids: Iterable[int], number: int) -> list[int]:
    """List the processes with a handler for a signal, or in place of one that has none its children.

    What such a process has forked has its handler too, and is left out.
    """
    found: list[int] = []
    for pid in pids:
        hears = supervise.catches(pid, number)
        found += [pid] if hears else _hearing(supervise.children(pid), number)
    return found


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt(signal.Signals(number).name)


@contextlib.contextmanager
def _taken(
    numbers: Iterable[int],
    handler: Callable[[int, FrameType | None], object],
    instead_of: object = signal.SIG_DFL,
) -> Iterator[None]:
    """Take signals with a handler in place of another one; a thread beside the main one takes none."""
    before = {}
    if threading.current_thread() is threading.main_thread():
        for number in numbers:
            if signal.getsignal(number) == instead_of:
                before[number] = signal.signal(number, handler)
    try:
        yield
    finally:
        for number, old in before.items():
            signal.signal(number, old)
