"""Why a job failed, as far as its output tells."""

import re

from ..paths import show
from . import messages
from .job import Run
from .output import DONE, first_traceback

NATIVE_FRAME = re.compile(
    r"\[0x[0-9a-f]+\]$"
)  # of the backtrace that an MPI library prints of itself
SIGNALS = {
    "4": "a rank crashed in native code (signal 4), as TensorFlow may when refused memory",
    "6": "a rank gave up in native code (signal 6), as TensorFlow does when refused memory, MPI when called wrongly",
    "9": "a rank was killed (signal 9), as the system does when memory runs out and MPI when it ends with a "
    "message that nobody received",
    "11": "a rank crashed in native code (signal 11), as a wrong address does, and TensorFlow when refused memory",
}


def explain(job: Run) -> str:
    """Why the job failed, as far as its output tells: first rank, first traceback, exit status in
    words."""
    lines = [(r, text) for r, text in job.lines if text != DONE]
    rank, block = first_traceback(lines)
    if rank is None:  # sys.exit(3) and comm.Abort() leave no traceback, but MPI says who called
        at = next(
            (i for i, (r, text) in enumerate(lines) if r is not None and text.startswith("Abort(")),
            None,
        )
        if at is not None:
            rank = lines[at][0]
            own = [text for r, text in lines[:at] if r == rank and text.strip()]
            # its own last words
            block = [text for text in own if not NATIVE_FRAME.search(text)][-1:]
    banner = "\n".join(text for r, text in lines if r is None)
    killed = re.search(r"EXIT STRING: (.+) \(signal (\d+)\)", banner)
    how = f"exit status {job.status}"
    # A rank that ends by sys.exit("a sentence") leaves no traceback: that sentence came last.
    if rank is None and not killed and job.status in (1, 2):
        block = [text for r, text in lines if r is not None and text.strip()][-1:]
    if killed and not block:
        how = SIGNALS.get(
            killed[2], f"a rank was ended by signal {killed[2]} ({killed[1].lower()})"
        )
    elif job.status is not None and job.status < 0:
        how = f"mpirun itself was ended by signal {-job.status}"
    who = f"{job.name} failed" + ("" if rank is None else f" first on rank {rank}")
    said = [f"{who}: {how}, after {job.wall_s:.1f} s.", *block]
    if page := messages.section("\n".join(said), job.output):
        said.append(f"What it means: {page}")
    return "\n".join([*said, f"All it said: {show(job.folder / 'output.txt')}"])
