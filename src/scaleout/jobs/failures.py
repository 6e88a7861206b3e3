"""Why a job failed and where its ranks stood, as far as its output tells."""

import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from itertools import islice, takewhile
from pathlib import Path

from ..base.errors import FULL, WHEN_FULL
from ..base.paths import show
from ..base.stacks import DONE
from ..base.words import visible
from . import messages
from .job import Run
from .output import Line, Stderr

LINKS = (
    "During handling of the above",
    "The above exception was",
)  # between the tracebacks of a chain
MESSAGE_LINES = 8
# Before where more is told, and what to do.
MEANS, ALL, DO = "What it means: ", "All it said: ", "What to do: "
POINTERS = (MEANS, ALL, DO)
MOST_PLACES = 8  # ranks whose place is told
# Of a rank that is in no line of its script: before it has said anything, and after.
OUTSIDE = "not begun its script, or had come to its end", "come to the end of its script"
FAILED = "failed, as its traceback says"
# Of a script that starts its own workers, as torch.multiprocessing.spawn and torchrun do.
OWN_WORKERS = re.compile(
    r"torch/multiprocessing/spawn\.py|\.spawn\.Process(?:Raised|Exited)Exception"
    r"|torch/distributed/(?:run|launcher/\w+)\.py|accelerate/launchers\.py"
)
BY_TORCH = re.compile(r"\[rank\d+\]: ?")  # what torch puts before each line of a traceback
TRACEBACK = "Traceback (most recent call last)"
RECENT = "(most recent call "  # in the line above any stack
# Of a traceback, the line that ends it: a name, and what the exception says of itself.
EXCEPTION = re.compile(r"(?!(?:DEBUG|INFO|WARNING|ERROR|CRITICAL):)[A-Za-z_][\w.<>]*(:|$)")
FATAL = "Fatal Python error: "  # faulthandler's, before the stack of a process that crashes
# What faulthandler and UCX say of a rank that crashes in native code.
CRASHED = re.compile(rf"{FATAL}|\[.*\] Caught signal \d+ ")
# Above a stack: of the thread that speaks for its rank, or of another.
STACK = re.compile(r"(Stack|Current thread|Thread)\b.*\(most recent call first\):$")
FRAME = re.compile(r'\s*File "([^"]+)", line (\d+)')
LAUNCHER = re.compile(r"<frozen runpy>|/mpi4py/(__main__|run)\.py")  # of no script
NATIVE_FRAME = re.compile(
    r"\[0x[0-9a-f]+\]$"
)  # of the backtrace that an MPI library prints of itself
# What C++ says when a thread outlives what holds it.
OUTLIVED = "terminate called without an active exception"
SIGNALS = {
    "4": "a rank crashed in native code (signal 4), as TensorFlow may when refused memory",
    "6": "a rank gave up in native code (signal 6), as TensorFlow does when refused memory, MPI when called wrongly",
    "9": "a rank was killed (signal 9), as the system does when memory runs out and MPI when it ends with a "
    "message that nobody received",
    "11": "a rank crashed in native code (signal 11), as a wrong address does, and TensorFlow when refused memory",
}


def explain(run: Run) -> str:
    """Say why the job failed: first rank, first traceback, exit status in words."""
    lines = without_stacks(run.lines)
    rank, block = first_traceback(lines)
    if rank is None:
        rank, block = _last_words(lines)
    banner = "\n".join(text for rank, text in lines if rank is None)
    killed = re.search(r"EXIT STRING: (.+) \(signal (\d+)\)", banner)
    how = f"exit status {run.status}"
    # A rank that ends by sys.exit("a sentence") leaves no traceback: that sentence came last, or
    # what it printed last has come after it.
    if rank is None and not killed and run.status in (1, 2):
        said = [text for r, text in lines if r is not None and text.strip()]
        errors = [text for text in said if isinstance(text, Stderr)]
        block = list(dict.fromkeys([*said[-1:], *errors[-1:]]))
    if not any(r is not None for r, _ in lines):  # no rank has begun: the launcher says why
        block = [text for _, text in lines if text.strip()][:3]
        if any(os.strerror(number) in banner for number in FULL):
            block.append(f"{DO}{WHEN_FULL}.")
    if killed and (not block or rank is None or _crashed(lines) == rank):
        how = SIGNALS.get(
            killed[2], f"a rank was ended by signal {killed[2]} ({killed[1].lower()})"
        )
        if killed[2] == "6" and OUTLIVED in run.output:
            how = (
                "a rank aborted while one of its threads still ran (signal 6), as a PyTorch job "
                "may at its very end"
            )
    elif run.status is not None and run.status < 0:
        how = f"mpirun itself was ended by signal {-run.status}"
    who = f"{run.name} failed" + ("" if rank is None else f" first on rank {rank}")
    waited = " The others waited for it, and were ended." if run.waited else ""
    told = [f"{who}: {how}, after {run.wall_s:.1f} s.{waited}", *block, *own_workers(run)]
    if page := messages.section("\n".join(told), run.output):
        told.append(f"{MEANS}{page}")
    return "\n".join([*told, f"{ALL}{show(run.folder / 'output.txt')}"])


def out_of_time(run: Run, limit_s: float) -> str:
    """Say that a job's time was up, what it waited for, and where its ranks stood."""
    lines = without_stacks(run.lines)
    stood = last_places(run.lines, lambda file: not _of_a_library(file))
    gone = [(rank, text) for rank, text in lines if rank not in stood]
    rank, block = first_traceback([line for line in gone if isinstance(line[1], Stderr)])
    kept = show(run.folder / "output.txt")
    end = f"{run.name} did not end within {limit_s:g} s and was ended"
    if rank is None:
        first = [
            f"{end}; give it longer with --timeout (timeout=). What it said so far is in {kept}."
        ]
    else:
        first = [f"{end}: rank {rank} had failed, and the others waited for it.", *block]
        first.append(f"{ALL}{kept}")
    return "\n".join([*first, *own_workers(run), *where_ranks_stood(run)])


def own_workers(run: Run) -> list[str]:
    """Say of a script that starts workers of its own on each of several ranks what to do."""
    if run.ranks < 2 or not OWN_WORKERS.search(run.output):
        return []
    return [f"{DO}the script starts workers of its own, on each rank once more: type  -n 1"]


def without_stacks(lines: Sequence[Line]) -> list[Line]:
    """Leave out what the ranks of a check's job say of where they stand."""
    kept: list[Line] = []
    inside: set[int | None] = set()  # the ranks that are in the middle of a stack
    for rank, text in lines:
        if text.startswith("Stack (most recent call first)"):
            inside.add(rank)
        elif rank not in inside or not text.startswith("  "):
            inside.discard(rank)
            if text != DONE:
                kept.append((rank, text))
    return kept


def _last_words(lines: Sequence[Line]) -> tuple[int | None, list[str]]:
    """Name the rank that ended without a traceback, by a crash or by comm.Abort(), and its words."""
    crashed = _crashed(lines)
    if crashed is not None:
        own = [text for rank, text in lines if rank == crashed]
        start = next((at for at, text in enumerate(own) if text.startswith("Current thread")), None)
        stack = [] if start is None else own[start + 1 :]
        end = next((at for at, text in enumerate(stack) if not FRAME.match(text)), len(stack))
        own_frames = [text for text in stack[:end] if not LAUNCHER.search(text)]
        return crashed, own_frames[:MESSAGE_LINES]
    for at, (rank, text) in enumerate(lines):
        if rank is not None and text.startswith("Abort("):
            before = [text for r, text in lines[:at] if r == rank and text.strip()]
            return rank, [text for text in before if not NATIVE_FRAME.search(text)][-1:]
    return None, []


def _crashed(lines: Iterable[Line]) -> int | None:
    return next((rank for rank, text in lines if rank is not None and CRASHED.match(text)), None)


def where_ranks_stood(run: Run) -> list[str]:
    """Say where each rank stood when the job's time was up, as far as Python told."""
    there = last_places(run.lines, lambda file: not _of_a_library(file))
    told = {rank: f"rank {rank} stood in {show(Path(file))}, line {line}"
            for rank, (file, line) in there.items()}  # fmt: skip
    # Python says nothing before a script begins, nor once it has come to its end.
    silent = (
        set(range(run.ranks)) - last_places(run.lines, lambda file: True).keys() if told else ()
    )
    begun = {rank for rank, _ in run.lines}
    failed = {rank for rank, text in run.lines if isinstance(text, Stderr) and TRACEBACK in text}
    told |= {
        rank: f"rank {rank} had {FAILED if rank in failed else OUTSIDE[rank in begun]}"
        for rank in silent
    }
    return [told[rank] for rank in sorted(told)][:MOST_PLACES]


def last_places(lines: Iterable[Line], wanted: Callable[[str], bool]) -> dict[int, tuple[str, int]]:
    """Find the file and the line at which each rank stood when it last said so.

    Of its stack, it is the innermost line in a file that is wanted.
    """
    found: dict[int, tuple[str, int]] = {}
    asked: set[int] = set()  # ranks whose own line has not come yet
    named: set[int] = set()  # ranks that have said which thread speaks for them
    crashes: Counter[int] = Counter()  # after a rank's own come those of processes that it started
    for rank, text in lines:
        if rank is None:
            continue
        if text.startswith(FATAL):
            crashes[rank] += 1
            named.discard(rank)
        if stack := STACK.match(text):
            asked.discard(rank)
            # Where the signal has met a thread that is not Python's, all are called alike, and the
            # main one comes last.
            alike = stack[1] == "Thread"
            if crashes[rank] < 2 and not (alike and (rank in named or not crashes[rank])):
                asked.add(rank)
                named |= set() if alike else {rank}
        elif rank in asked and (frame := FRAME.match(text)) and wanted(frame[1]):
            found[rank] = frame[1], int(frame[2])
            asked.discard(rank)
    return dict(sorted(found.items()))


def _of_a_library(file: str) -> bool:
    return (
        "site-packages" in file
        or file.startswith("<")
        or "__autograph_generated" in file
        or re.search(r"/python3\.\d+/", file) is not None
    )


def first_traceback(lines: Sequence[Line]) -> tuple[int | None, list[str]]:
    """Find the rank that failed first, and its own traceback without the frames of the launcher.

    It is looked for in what came by standard error: what a rank prints meanwhile may stand between
    two lines of it. Only where there is none it is looked for in all lines. Later tracebacks are
    echoes: ranks that lost their partner. One that was cut, as that of a rank killed while it
    prints is, counts only where none is whole. (None, []) when nobody printed one.
    """
    errors = [line for line in lines if isinstance(line[1], Stderr)]
    found = _first_traceback(errors)
    return found if found[1] else _first_traceback(lines)


def _first_traceback(lines: Sequence[Line]) -> tuple[int | None, list[str]]:
    cut = None
    for at, (rank, text) in enumerate(lines):
        if not BY_TORCH.sub("", visible(text), 1).startswith(TRACEBACK):
            continue
        own = [BY_TORCH.sub("", visible(t), 1) for r, t in lines[at:] if r == rank]
        end = next((i for i in range(len(own)) if _ends(own, i)), None)
        if end is not None:
            block = [line for line in own[:end] if _of_a_traceback(line)]
            return rank, [*_own_frames(block), own[end], *_message(own[end], own[end + 1 :])]
        cut = cut or (rank, _own_frames([*takewhile(_of_a_traceback, own)]))
    return cut or (None, [])


def _ends(own: Sequence[str], at: int) -> bool:
    """Tell whether a line is the exception at the end of a traceback.

    A chain goes on below the first one: a blank line, one of LINKS, a blank line, the next
    traceback. And a line below which frames go on is what another thread said meanwhile.
    """
    if not EXCEPTION.match(own[at]) or "".join(own[at + 2 : at + 3]).startswith(LINKS):
        return False
    more = islice(own, at + 1, None)
    below = next((line for line in more if RECENT in line or line.startswith('  File "')), RECENT)
    return RECENT in below


def _of_a_traceback(line: str) -> bool:
    """Tell a line of a traceback or of a chain from what a rank printed meanwhile."""
    return (
        not line or line.startswith((" ", "Traceback", *LINKS)) or EXCEPTION.match(line) is not None
    )


def _message(first: str, more: list[str]) -> list[str]:
    """Take the rest of an exception's message whose first line ends in a colon.

    Those of TensorFlow ("Graph execution error:") and MPI ("error stack:") do. The stacks inside it
    are left out.
    """
    if not first.rstrip().endswith(":"):
        return []
    kept, code = [], False
    for line in more:
        if line.startswith(("Traceback", "Abort(", "Stack (", *LINKS)):
            break
        frame = re.match(r'\s+File "', line) is not None
        if line.strip() and not frame and not code and not line.startswith("Detected at node"):
            kept.append(line)
        code = frame  # the line below a frame is its code
    return kept[:MESSAGE_LINES]


def _own_frames(block: list[str]) -> list[str]:
    """Leave out the frames of runpy and mpi4py, which say nothing about the script."""
    kept, skipping = [], False
    for line in block:
        if line.startswith("  File "):
            skipping = LAUNCHER.search(line) is not None
        elif not line.startswith("    "):
            skipping = False
        if not skipping:
            kept.append(line)
    return kept
