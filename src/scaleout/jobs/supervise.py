"""The parent of one job's mpirun. Also that process: `python parent.py ...`.

It inherits whatever the job leaves behind (a child subreaper, see prctl(2)), also a process with a
session of its own and an empty environment, by which nobody else would find it; when mpirun has
ended, or when only such processes are left, it ends them all. It ends the job too when whoever
started it dies; and mpirun ends with it. No rights are needed for that. The standard library alone:
it must start in milliseconds."""

import contextlib
import ctypes
import fcntl
import json
import os
import resource
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Mapping, Sequence

SUBREAPER, DEATH_SIGNAL = 36, 1  # PR_SET_CHILD_SUBREAPER, PR_SET_PDEATHSIG
PROXY = "hydra_pmi_proxy"  # Hydra's process on each machine, the parent of the ranks
LOOK_S = 1.0
PIPE_BYTES = 2**20  # for output that comes fast: fewer turns between who writes and who reads
OWN = ("PATH", "LANG", "LC_ALL", "LC_CTYPE", "SCALEOUT_RUN_ID")  # all it needs of the environment


def start(
    command: Sequence[str], environment: Mapping[str, str], grace_s: float
) -> "subprocess.Popen[bytes]":
    """Starts mpirun below a parent of its own, which passes on signals, and ends as it does."""
    given = os.memfd_create("environment")
    os.write(given, json.dumps(dict(environment)).encode())
    os.lseek(given, 0, os.SEEK_SET)
    heard, told = os.pipe()
    words = [sys.executable, "-I", "-S", __file__, str(told), str(given), str(grace_s), *command]
    try:
        parent = subprocess.Popen(
            words,
            env={name: environment[name] for name in OWN if name in environment},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            pass_fds=(told, given),
            # Ctrl-C in a terminal reaches us alone, and we end the job in order
            start_new_session=True,
        )
    except BaseException:
        os.close(heard)
        raise
    finally:
        os.close(told)
        os.close(given)
    with open(heard, "rb") as file:
        reason = file.read()
    if not reason:
        for pipe in (parent.stdout, parent.stderr):
            with contextlib.suppress(OSError):  # this user's pipes hold very much already
                fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, PIPE_BYTES)  # type: ignore[arg-type]
        return parent
    parent.communicate()
    raise OSError(int(reason), os.strerror(int(reason)))


def _below(pid: int) -> list[int]:
    """The ids of a process's children, their children, and so on."""
    children: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            with contextlib.suppress(OSError), open(f"/proc/{name}/stat", "rb") as file:
                parent = int(file.read().rpartition(b")")[2].split()[1])
                children.setdefault(parent, []).append(int(name))
    found = [pid]
    for one in found:
        found += children.get(one, [])
    return found[1:]


def _signal(pids: Iterable[int], *numbers: int) -> None:
    for pid in pids:
        for number in numbers:
            with contextlib.suppress(OSError):  # ended meanwhile, or another user's
                os.kill(pid, number)


def _wait_for(pid: int) -> int:
    """Waits for a child, and collects every other that ends meanwhile; returns its status."""
    while True:
        ended, status = os.waitpid(-1, 0)
        if ended == pid:
            return status


def _end_the_rest(grace_s: float) -> None:
    """Ends what mpirun has left behind."""
    begun, asked = time.monotonic(), False
    with contextlib.suppress(ChildProcessError):  # there is none any more
        while time.monotonic() < begun + 2 * grace_s:
            if os.waitpid(-1, os.WNOHANG)[0]:
                continue
            if time.monotonic() > begun + grace_s:
                _signal(_below(os.getpid()), signal.SIGKILL)
            elif not asked:
                _signal(_below(os.getpid()), signal.SIGTERM, signal.SIGCONT)
                asked = True
            time.sleep(0.02)


def _children(pid: int) -> list[int]:
    """The ids of a process's children that are alive."""
    with contextlib.suppress(OSError), open(f"/proc/{pid}/task/{pid}/children") as file:
        return [child for child in map(int, file.read().split()) if _about(child)[1] != "Z"]
    return []


def _about(pid: int) -> tuple[str, str]:
    """The name of a process, and its state: Z has ended, and was not collected."""
    with contextlib.suppress(OSError), open(f"/proc/{pid}/stat", errors="replace") as file:
        name, _, rest = file.read().partition("(")[2].rpartition(")")
        return name, rest.split()[0]
    return "", "Z"


class _Leftovers:
    """Ends what a job leaves behind while Hydra still waits for it.

    A proxy of Hydra's waits until nobody holds the output of a rank any more, and that may be a
    process which the rank has left. All ranks of a job have ended when each of them was a child of
    a proxy, and the proxies have no children any more."""

    def __init__(self, mpirun: int) -> None:
        self.mpirun = mpirun
        self.looks = 0  # at which there were no ranks, but something that they have left

    def look(self) -> None:
        proxies = _children(self.mpirun)
        left = [pid for pid in _children(os.getpid()) if pid != self.mpirun]
        if not proxies or any(_about(pid)[0] != PROXY for pid in proxies):
            return  # ssh, Slurm or another launcher: the ranks are elsewhere
        ranks = [rank for proxy in proxies for rank in _children(proxy)]
        self.looks = self.looks + 1 if left and not ranks else 0
        if self.looks >= 2:
            numbers = (signal.SIGTERM, signal.SIGCONT) if self.looks == 2 else (signal.SIGKILL,)
            for pid in left:
                _signal([pid, *_below(pid)], *numbers)


def _watch(mpirun: int, grace_s: float) -> None:
    """Looks after a job until whoever started it dies, and then ends it."""
    leftovers = _Leftovers(mpirun)
    while not select.select([0], [], [], LOOK_S)[0]:
        leftovers.look()
    for number in (signal.SIGINT, signal.SIGTERM):
        _signal([mpirun], number)
        time.sleep(grace_s)
    os.kill(os.getpid(), signal.SIGALRM)


def _main(told: int, given: int, grace_s: float, command: Sequence[str]) -> int:
    """Starts the command and waits for its end; returns its exit status."""
    prctl = ctypes.CDLL(None).prctl
    prctl(SUBREAPER, 1, 0, 0, 0)
    with open(given, encoding="ascii") as file:
        environment = json.load(file)
    try:
        mpirun = subprocess.Popen(
            command,
            env=environment,
            stdin=subprocess.DEVNULL,
            preexec_fn=lambda: prctl(DEATH_SIGNAL, signal.SIGTERM, 0, 0, 0),
        )
    except OSError as error:
        os.write(told, str(error.errno).encode())
        return 127

    def pass_on(number: int, frame: object) -> None:
        with contextlib.suppress(OSError):
            os.kill(mpirun.pid, number)

    def at_once(number: int, frame: object) -> None:  # before SIGKILL, which has no handler
        _signal(_below(os.getpid()), signal.SIGKILL)
        signal.setitimer(signal.ITIMER_REAL, 0.05)  # some may have been born since

    signal.signal(signal.SIGALRM, at_once)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, pass_on)
    os.close(told)
    nothing = os.open(os.devnull, os.O_WRONLY)
    for stream in (1, 2):  # the job's output ends when the job does
        os.dup2(nothing, stream)
    threading.Thread(target=_watch, args=(mpirun.pid, grace_s), daemon=True).start()
    status = os.waitstatus_to_exitcode(_wait_for(mpirun.pid))
    _end_the_rest(grace_s)
    return status


if __name__ == "__main__":
    status = _main(int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]), sys.argv[4:])
    if status < 0:  # ended by a signal, and so are we
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        with contextlib.suppress(OSError):  # SIGKILL has no handler
            signal.signal(-status, signal.SIG_DFL)
        os.kill(os.getpid(), -status)
    os._exit(status)
