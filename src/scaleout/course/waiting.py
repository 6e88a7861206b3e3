"""Where the ranks of a check's job stand: asked for while it runs, and read from its output; and the
end of a job whose ranks all wait for each other."""

import os
import re
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from ..jobs.job import Enough
from ..jobs.output import DONE
from ..words import count

PATIENCE_S = 10.0  # a job that takes longer is worth a line
STILL_S = 6.0  # a rank that is in one call for longer says so, if the call is the lab's own
TIMES = 3  # so often each rank must say so before the job is ended
DUMP = re.compile(r"(?:Current thread|Thread) 0x[0-9a-f]+.*\(most recent call first\):$")
# What a rank says in dumps/sitecustomize.py, and what that is worth.
FOR_EVER = 10**9
WAITS = "This rank waits."
SAYS = {WAITS: 1, "This rank goes on.": 0, DONE: FOR_EVER}
FRAME = re.compile(r'\s*File "([^"]+)", line (\d+)')


def variables(timeout_s: float) -> dict[str, str]:
    """What makes each rank of a job say where it stands, when it does not go on and once its limit is
    near."""
    dumps = str(Path(__file__).with_name("dumps"))
    return {
        "PYTHONPATH": os.pathsep.join(filter(None, [dumps, os.environ.get("PYTHONPATH")])),
        "CHECK_DUMP_S": f"{0.9 * timeout_s:g}",
        "CHECK_STILL_S": f"{STILL_S:g}",
    }


def in_script(text: str, script: Path) -> int | None:
    """The line of a script that a traceback's line names."""
    found = FRAME.match(text)
    same = found is not None and Path(found[1]).parts[-2:] == script.parts[-2:]
    return int(found[2]) if found and same else None


def standing(lines: Iterable[tuple[int | None, str]], script: Path) -> dict[int, int]:
    """The line of `script` at which each rank stood when it last said so."""
    found: dict[int, int] = {}
    asked: set[int] = set()  # ranks whose dump has not come to the script yet
    for rank, text in lines:
        if rank is None:
            continue
        if DUMP.match(text):
            asked.add(rank)
        elif rank in asked and (line := in_script(text, script)):
            found[rank] = line
            asked.discard(rank)
    return dict(sorted(found.items()))


@contextmanager
def progress(
    tell: Callable[[str], None] | None, ranks: int, script: Path
) -> Iterator[Callable[[str], None]]:
    """Tells every 10 s that a job still runs and, once they have said so, where its ranks stand."""
    waits = dict.fromkeys(range(ranks), 0)  # how often each rank has said so
    said: deque[tuple[int | None, str]] = deque(maxlen=2000)  # a job may say very much
    ended = threading.Event()
    told = False

    def take(text: str) -> None:
        if line := re.match(r"\[(\d+)\] (.*)", text):
            rank = int(line[1])
            said.append((rank, line[2]))
            if line[2] in SAYS and rank in waits:
                waits[rank] = waits[rank] + 1 if line[2] == WAITS else SAYS[line[2]]
                if ranks > 1 and TIMES <= min(waits.values()) < FOR_EVER:
                    raise Enough

    def look() -> None:
        nonlocal told
        start = time.monotonic()
        while tell and not ended.wait(PATIENCE_S):
            there = standing(list(said), script)
            where = ", ".join(f"rank {rank} in line {line}" for rank, line in there.items())
            spent = f"running {count(ranks, 'rank')} ... {time.monotonic() - start:.0f} s"
            told = True
            tell(f"{spent}; {where}" if where else spent)

    looking = threading.Thread(target=look, daemon=True)
    looking.start()
    try:
        yield take
    finally:
        ended.set()
        looking.join()
        if tell and told:
            tell("")
