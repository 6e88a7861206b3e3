"""Say where a rank of a check's job stands, so that a check can name the line at which it waits."""

import atexit
import os
import sys
import threading
import traceback

FIRST_S, EVERY_S = 4.0, 2.0
DONE = "This rank is done."


def dump_every_few_seconds() -> None:
    """Print the main thread's stack every few seconds, also while it waits for a message.

    A last line says that the rank has ended. A thread looks, which needs Python's lock: what waits
    in a library gives it away. The handler of a signal would not need it, but may read of a stack
    what Python is just giving back to the system, and so crash the rank.
    """
    over = threading.Event()
    looks = threading.Thread(target=_dump, args=(over,), name="stacks", daemon=True)
    looks.start()
    atexit.register(_end, over, looks)


def _dump(over: threading.Event) -> None:
    main = threading.main_thread().ident
    assert main is not None
    wait_s = FIRST_S
    while not over.wait(wait_s):
        lines = ["Stack (most recent call first):"]
        for frame, line in traceback.walk_stack(sys._current_frames()[main]):
            code = frame.f_code
            lines.append(f'  File "{code.co_filename}", line {line} in {code.co_name}')
        _say(lines)
        wait_s = EVERY_S


def _end(over: threading.Event, looks: threading.Thread) -> None:
    over.set()
    looks.join()
    _say([DONE])


def _say(lines: list[str]) -> None:
    os.write(2, "".join(f"{line}\n" for line in lines).encode(errors="replace"))
