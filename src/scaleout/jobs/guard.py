"""Cancels a job in Slurm whose owner dies, also by a SIGKILL. Also the process that does:
`python -m scaleout.jobs.guard RUN_ID`."""

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Iterator

from ..errors import ScaleoutError
from . import slurm_commands
from .job import JobInterrupted

END_S = 5.0  # for the guard to end when there is nothing to do
LOOKS, LOOK_S = 10, 1.0  # a submission that was cut off may still come through


@contextlib.contextmanager
def guarded(run_id: str) -> Iterator[None]:
    """Has a job cancelled that is not known to be over when the block ends."""
    # Started inside a job, it must not be taken for a part of that one and ended with it.
    environment = {k: v for k, v in os.environ.items() if k != "SCALEOUT_RUN_ID"}
    watcher = subprocess.Popen(
        [sys.executable, "-m", "scaleout.jobs.guard", run_id],
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    assert watcher.stdin is not None
    over = False
    try:
        yield
        over = True
    except ScaleoutError:
        over = True
        raise
    except JobInterrupted as stop:
        over = stop.over
        raise
    finally:
        with contextlib.suppress(OSError):  # somebody has ended it
            if over:
                watcher.stdin.write(b"done")
            watcher.stdin.close()
        if over:
            with contextlib.suppress(subprocess.TimeoutExpired):
                watcher.wait(END_S)


def _cancel(run_id: str) -> None:
    for _ in range(LOOKS):
        if slurm_commands.withdraw(run_id):
            return
        time.sleep(LOOK_S)


if __name__ == "__main__" and sys.stdin.buffer.read() != b"done":
    _cancel(sys.argv[1])
