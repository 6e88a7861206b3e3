"""Say where a rank of a check's job stands, so that a check can name the line at which it waits."""

import atexit
import faulthandler
import os
import signal

FIRST_S, EVERY_S = 4.0, 2.0
DONE = "This rank is done."


def dump_every_few_seconds() -> None:
    """Print the main thread's stack every few seconds, also while it waits inside a library.

    A last line says that the rank has ended.
    """
    faulthandler.register(signal.SIGALRM, all_threads=False)
    signal.setitimer(signal.ITIMER_REAL, FIRST_S, EVERY_S)
    atexit.register(_end)


def _end() -> None:
    signal.setitimer(signal.ITIMER_REAL, 0)
    os.write(2, f"{DONE}\n".encode())
