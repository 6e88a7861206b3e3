"""Loaded by Python in each rank of a check's job: says where the rank stands when it does not go on,
when the job's limit is near, and when it crashes in native code, so that a check can name the line."""

import atexit
import faulthandler
import importlib.machinery
import importlib.util
import os
import sys
import threading
import time
from types import FrameType

LOOKS = 10  # so often a rank is found at one and the same place before it says so
TIMES = 3  # so often it says so


def _say(text: str) -> None:
    os.write(2, text.encode())  # in one piece, whatever the main thread is writing


def _stack() -> list[FrameType]:
    """The frames of the main thread, the innermost first."""
    frame = sys._current_frames().get(threading.main_thread().ident or 0)
    frames = []
    while frame:
        frames.append(frame)
        frame = frame.f_back
    return frames


def _in_the_lab(frame: FrameType) -> bool:
    folder = os.path.dirname(os.path.abspath(sys.argv[0]))
    return os.path.dirname(os.path.abspath(frame.f_code.co_filename)) == folder


def _variables(stack: list[FrameType]) -> list[tuple[str, int]]:
    """What a lab's variables hold: a loop comes back to the same call, but with another number."""
    lab = [frame for frame in stack if _in_the_lab(frame)]
    return [(name, id(value)) for frame in lab for name, value in list(frame.f_locals.items())]


def _watch(still_s: float) -> None:
    """Says so when the main thread has been in one call of the lab's own for so long, and when it
    goes on after all. A call inside a library may take its time."""
    calls: list[tuple[int, int]] = []
    held: list[tuple[str, int]] = []
    seen = 0
    while True:
        time.sleep(still_s / LOOKS)
        stack = _stack()
        before = calls, held
        calls = [(id(frame), frame.f_lasti) for frame in stack]
        same = bool(stack) and calls == before[0] and _in_the_lab(stack[0])
        held = _variables(stack) if same else []
        if not same or (seen and held != before[1]):
            if seen >= LOOKS:
                _say("This rank goes on.\n")
            seen = 0
            continue
        seen += 1
        if LOOKS <= seen < LOOKS + TIMES:
            where = [
                f'  File "{frame.f_code.co_filename}", line {frame.f_lineno} in '
                f"{frame.f_code.co_name}\n"
                for frame in stack
            ]
            _say("Thread 0x0 (most recent call first):\n" + "".join(where) + "This rank waits.\n")


faulthandler.enable()
if "CHECK_DUMP_S" in os.environ:
    # Once, and late: it looks at threads that go on working, which has ended jobs that were well.
    faulthandler.dump_traceback_later(float(os.environ["CHECK_DUMP_S"]))
if "CHECK_STILL_S" in os.environ:
    # Taken out, so that what a rank starts says nothing in the rank's name.
    still = float(os.environ.pop("CHECK_STILL_S"))
    threading.Thread(target=_watch, args=[still], daemon=True).start()
    atexit.register(_say, "This rank is done.\n")

# Whatever else would have been loaded under this name.
_elsewhere = [path for path in sys.path if path != os.path.dirname(__file__)]
_other = importlib.machinery.PathFinder.find_spec("sitecustomize", _elsewhere)
if _other and _other.loader:
    _other.loader.exec_module(importlib.util.module_from_spec(_other))
