"""A file that one process holds at a time. The system gives it back however its holder ends."""

import contextlib
import fcntl
import time
from collections.abc import Iterator
from pathlib import Path

LOOK_S = 0.2  # between two tries


@contextlib.contextmanager
def held(path: Path, wait_s: float = 0.0) -> Iterator[bool]:
    """Hold a lock file while the block runs; yield False where another keeps it for `wait_s`."""
    with open(path, "a") as file:
        yield _taken(file.fileno(), time.monotonic() + wait_s)


def _taken(file: int, until: float) -> bool:
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= until:
                return False
            time.sleep(LOOK_S)
        except OSError:
            return True
        else:
            return True
