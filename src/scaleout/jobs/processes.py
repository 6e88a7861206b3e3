"""A job's processes on this machine: mpirun started, its output collected, nothing left behind."""

import contextlib
import errno
import subprocess
import time
from collections.abc import Callable, Iterator

from ..errors import ScaleoutError
from . import reaper, talking
from . import supervise as parent
from .job import Run
from .output import batches
from .transcript import Transcript

FULL = (errno.EAGAIN, errno.ENOMEM, errno.EMFILE, errno.ENFILE)  # of the machine, no fault of ours


def stream(
    job: Run,
    command: list[str],
    environment: dict[str, str],
    timeout: float,
    say: Callable[[str], None],
) -> None:
    """Starts mpirun and a guard that outlives this process; collects lines until the end."""
    end = time.monotonic() + timeout
    with _starting("The guard of this job"):
        guard = reaper.guard(job.id)
    mpirun = None
    watch = talking.Watch(talking.COUNT in command[:4], environment.get("MASTER_PORT", ""))
    try:
        with Transcript(job, say) as transcript:
            mpirun = _start(command, environment)
            watch.begin(mpirun.pid)
            for batch in batches(mpirun, job.id, end):
                transcript.add([line for line in batch if not watch.takes(*line)])
        with contextlib.suppress(subprocess.TimeoutExpired):
            job.status = mpirun.wait(max(0.0, end - time.monotonic()))
    finally:
        try:
            _finish(job.id, mpirun)
            with contextlib.suppress(subprocess.TimeoutExpired):
                guard.communicate(b"done", timeout=reaper.GRACE_S)
        finally:
            # at a second Ctrl-C, the guard and the parent of mpirun now end the job in our place
            for watcher in (guard, mpirun):
                if watcher and watcher.stdin:
                    watcher.stdin.close()
            job.talked = watch.end()


def _start(command: list[str], environment: dict[str, str]) -> "subprocess.Popen[bytes]":
    with _starting(command[0]):
        return parent.start(command, environment, reaper.GRACE_S)


@contextlib.contextmanager
def _starting(what: str) -> Iterator[None]:
    """Says what could not be started, and what to do: by the reason that the system gives."""
    try:
        yield
    except OSError as error:
        fix = "type  make lab  to mend it, or correct the site file"
        if error.errno in FULL:
            fix = "this machine has no room for more now: end other jobs, or look at  ulimit -a"
        elif error.errno == errno.E2BIG:
            fix = "its arguments and variables are too long: put them into a file"
        raise ScaleoutError(f"{what} cannot be started ({error.strerror}): {fix}.") from None


def _finish(run_id: str, mpirun: "subprocess.Popen[bytes] | None") -> None:
    """Ends whatever is left of the job, and collects mpirun."""
    if mpirun is None:
        return reaper.end(run_id)
    for pipe in (mpirun.stdout, mpirun.stderr):
        if pipe:
            pipe.close()  # nobody reads it any more: mpirun need not wait for somebody
    reaper.end(run_id, mpirun.pid)
    with contextlib.suppress(subprocess.TimeoutExpired):
        mpirun.wait(reaper.GRACE_S)
