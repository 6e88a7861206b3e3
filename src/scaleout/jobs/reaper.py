"""Ends a job and everything it started. Also run as a guard: `python reaper.py RUN_ID` watches over
one job.

mpirun's children may have sessions and groups of their own (Hydra gives every rank one), so ending
mpirun's group is not enough. Every process of a job inherits SCALEOUT_RUN_ID, and that is how what
is left is found. The standard library alone: the guard must start in milliseconds."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable

GRACE_S = 2.0  # what a process gets to end by itself after each signal
AT_ONCE = signal.SIGALRM  # the parent of mpirun (parent.py) then ends all that is below it


def processes(run_id: str) -> list[int]:
    """The ids of this user's live processes that carry the run id in their environment, this
    process left out."""
    found: list[int] = []
    seen = {os.getpid()}
    # Looked through again until nothing is new: a process may have had a child and ended, while we
    # looked at others.
    while new := {int(name) for name in os.listdir("/proc") if name.isdigit()} - seen:
        found += [pid for pid in sorted(new) if _carries(pid, run_id)]
        seen |= new
    return found


def _carries(pid: int, run_id: str) -> bool:
    """Whether a live process carries the run id. One that has ended but was not yet collected shows
    nothing."""
    try:
        variables = _variables(pid)
        # in the middle of its exec, a process shows no environment yet
        while not variables and _is_young(pid):
            time.sleep(0.002)
            variables = _variables(pid)
        return f"SCALEOUT_RUN_ID={run_id}".encode() in variables.split(b"\0")
    except OSError:  # ended meanwhile, or somebody else's
        return False


def _variables(pid: int) -> bytes:
    with open(f"/proc/{pid}/environ", "rb") as file:
        return file.read()


def _is_young(pid: int) -> bool:
    """Whether this is a live process, no thread of the kernel, that was born less than a second
    ago."""
    with open(f"/proc/{pid}/stat", "rb") as file:
        state, *fields = (
            file.read().rpartition(b")")[2].split()
        )  # from the third on, as proc(5) counts them
    kernel = int(fields[5]) & 0x200000
    born_s = int(fields[18]) / os.sysconf("SC_CLK_TCK")  # counted since the machine started
    return (
        not kernel
        and state not in (b"Z", b"X")
        and time.clock_gettime(time.CLOCK_BOOTTIME) - born_s < 1
    )


def _signal(pids: list[int], *numbers: int) -> list[int]:
    """Sends these signals to each process that is still there; returns the ids as they came."""
    for pid in pids:
        for number in numbers:
            try:
                os.kill(pid, number)
            except OSError:  # ended meanwhile
                break
    return pids


def _ended(alive: Callable[[], object], seconds: float) -> bool:
    """True as soon as alive() says no, False when it still says yes after so many seconds."""
    end = time.monotonic() + seconds
    while alive():
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


def end(run_id: str, mpirun: int | None = None) -> None:
    """Ends the job: SIGINT, SIGTERM, SIGKILL to mpirun, which passes them on, then the same for all
    that is left.

    Each signal is given GRACE_S seconds, so that this takes at most about 10 s, and no time when
    nothing is left.
    """
    if mpirun is not None:
        for number in (signal.SIGINT, signal.SIGTERM, AT_ONCE, signal.SIGKILL):
            if _carries(mpirun, run_id):
                _signal([mpirun], number)
                _ended(lambda: _carries(mpirun, run_id), GRACE_S)
    _signal(
        processes(run_id), signal.SIGTERM, signal.SIGCONT
    )  # a stopped process acts on it only once it goes on
    if not _ended(lambda: processes(run_id), GRACE_S):
        _signal(processes(run_id), AT_ONCE)
        _ended(lambda: processes(run_id), GRACE_S / 4)
        # At every look, because some may have been born since the last.
        _ended(lambda: _signal(processes(run_id), signal.SIGKILL), GRACE_S)
    tidy()


def tidy(folder: str = "/tmp", proxy: bytes = b"hydra_pmi_proxy") -> None:
    """Removes the maps of the machine that MPICH's launcher leaves in /tmp when a job is aborted.

    None that may be in use: while a proxy of this user's is alive, they are left for a later call.
    """
    maps = [
        e for e in os.scandir(folder) if e.name.startswith("hydra_hwloc_xmlfile_") and _is_old(e)
    ]
    if maps and not any(
        _name(pid).startswith(proxy[:15]) for pid in os.listdir("/proc") if pid.isdigit()
    ):
        for entry in maps:
            with contextlib.suppress(OSError):
                os.unlink(entry.path)


def _is_old(entry: "os.DirEntry[str]") -> bool:
    """Whether a file is this user's and older than a second: a job that starts right now is left
    alone."""
    with contextlib.suppress(OSError):
        about = entry.stat(follow_symlinks=False)
        return about.st_uid == os.getuid() and time.time() - about.st_mtime > 1
    return False


def _name(pid: str) -> bytes:
    """What a process of this user is called; nothing for others' and for one that has ended."""
    with contextlib.suppress(OSError):
        if os.stat(f"/proc/{pid}").st_uid == os.getuid():
            with open(f"/proc/{pid}/comm", "rb") as file:
                return file.read()
    return b""


def guard(run_id: str) -> "subprocess.Popen[bytes]":
    """Starts a guard over one job, which ends it should this process die without saying b"done"."""
    # Started inside another job, it must not be taken for a part of that one and ended first.
    environment = {k: v for k, v in os.environ.items() if k != "SCALEOUT_RUN_ID"}
    return subprocess.Popen(
        [sys.executable, "-I", "-S", __file__, run_id],
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


if __name__ == "__main__" and sys.stdin.buffer.read() != b"done":
    end(sys.argv[1])
