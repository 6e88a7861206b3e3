"""The supervisor of one job: `python supervise.py OWNER SAVE_S GRACE_S COMMAND ...`.

It starts mpirun and inherits whatever the job leaves behind (a child subreaper, see prctl(2)), also a
process with a session of its own and an empty environment. When mpirun has ended, or when only such
processes are left, it ends them all; it ends the job too when its owner, who started it, dies. No
rights are needed for that. The standard library alone, without subprocess: it starts in
milliseconds."""

import contextlib
import os
import resource
import signal
import sys
import time
from collections.abc import Callable, Iterable

SAVE_S = 5.0  # what ranks get to save their state, after the first signal, SIGINT
GRACE_S = 2.0  # what a job gets to end by itself after each of the others
END_WITHIN_S = 15.0  # what a supervisor may take to end all that it has started
SUBREAPER, DEATH_SIGNAL = 36, 1  # PR_SET_CHILD_SUBREAPER, PR_SET_PDEATHSIG
PROXY = "hydra_pmi_proxy"  # Hydra's process on each machine, the parent of the ranks
LOOK_S = 0.5
NOT_STARTED = 127  # the exit status of what cannot be started, as a shell has it
END, STAND = signal.SIGTERM, signal.SIGUSR1  # what the owner asks for: the end; and before, where
HEARD = (signal.SIGINT, END, signal.SIGHUP, STAND, signal.SIGCHLD)


def command(*words: str) -> list[str]:
    """Build the command line that runs another one below a supervisor of its own."""
    own = [sys.executable, "-I", "-S", os.path.abspath(__file__)]
    return [*own, str(os.getpid()), str(SAVE_S), str(GRACE_S), *words]


def children(pid: int) -> list[int]:
    """List the ids of a process's children that live."""
    pids: list[int] = []
    with contextlib.suppress(OSError):
        for thread in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{thread}/children") as file:
                pids += map(int, file.read().split())
    return [child for child in pids if name_and_state(child)[1] != "Z"]


def descendants(pid: int) -> list[int]:
    """List the ids of a process's children, their children, and so on."""
    pids = children(pid)
    for child in pids:
        pids += children(child)  # the list grows while it is gone through
    return pids


def ranks(mpirun: int) -> tuple[list[int], list[int]] | None:
    """List Hydra's proxies on this machine and the ranks that live; None with another launcher."""
    proxies = children(mpirun)
    if not proxies or any(name_and_state(pid)[0] != PROXY for pid in proxies):
        return None
    return proxies, [rank for proxy in proxies for rank in children(proxy)]


def name_and_state(pid: int) -> tuple[str, str]:
    """Read the name of a process, and its state: Z has ended, and was not collected."""
    with contextlib.suppress(OSError), open(f"/proc/{pid}/stat", errors="replace") as file:
        name, _, rest = file.read().partition("(")[2].rpartition(")")
        return name, rest.split()[0]
    return "", "Z"


def has_ended(child: int, within_s: float = 0.0) -> bool:
    """Wait so long at most for the end of a child, and leave its exit status to who collects it.

    Popen's own poll() and wait() take a lock, and a Ctrl-C within them may leave it locked: no later
    wait would end.
    """
    end, pause_s = time.monotonic() + within_s, 0.0005
    with contextlib.suppress(ChildProcessError):  # it has, and was collected
        while not os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT):
            if time.monotonic() >= end:
                return False
            time.sleep(pause_s)
            pause_s = min(2 * pause_s, 0.02)
    return True


def catches(pid: int, number: int) -> bool:
    """Tell whether a process has a handler of its own for a signal."""
    with contextlib.suppress(OSError), open(f"/proc/{pid}/status", errors="replace") as file:
        caught = next(line.split()[1] for line in file if line.startswith("SigCgt:"))
        return bool(int(caught, 16) >> (number - 1) & 1)
    return False


def send(pids: Iterable[int], *numbers: int) -> None:
    """Send these signals to each process that is still there."""
    for pid in pids:
        for number in numbers:
            with contextlib.suppress(OSError):  # ended meanwhile, or another user's
                os.kill(pid, number)


class Supervisor:
    """Looks after one command, from its start to the end of all that it has started."""

    def __init__(self, owner: int, save_s: float, grace_s: float, words: list[str]) -> None:
        self.owner, self.save_s, self.grace_s = owner, save_s, grace_s
        self.status: int | None = None
        self.looks = 0  # at which no rank was left, but something that the ranks have left behind
        import ctypes  # here, because the owner imports this module too

        prctl = ctypes.CDLL(None).prctl
        prctl(SUBREAPER, 1, 0, 0, 0)
        signal.pthread_sigmask(signal.SIG_BLOCK, HEARD)
        self.mpirun = os.fork()
        if self.mpirun == 0:
            prctl(DEATH_SIGNAL, signal.SIGTERM, 0, 0, 0)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, HEARD)
            for number in (signal.SIGPIPE, signal.SIGXFSZ):  # which Python ignores
                signal.signal(number, signal.SIG_DFL)
            try:
                os.execvp(words[0], words)
            except OSError as error:
                print(
                    f"{words[0]} cannot be started: {error.strerror}", file=sys.stderr, flush=True
                )
                os._exit(NOT_STARTED)
        os.closerange(3, os.sysconf("SC_OPEN_MAX"))  # the ranks' own standard errors
        nothing = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):  # the job's output ends when the job does
            os.dup2(nothing, stream)

    def run(self) -> int:
        """Wait for the end of the command, end what it leaves, and return its exit status."""
        while self._collect() and self.status is None:
            heard = signal.sigtimedwait(HEARD, LOOK_S)
            if heard and heard.si_signo == STAND:
                self._tell()
            if (heard and heard.si_signo != signal.SIGCHLD) or os.getppid() != self.owner:
                break
            if not heard:
                self._end_leftovers()
        self._let_save()
        # Hydra hands SIGINT on to the ranks, and sends SIGKILL right behind SIGTERM.
        for number, patience_s in ((signal.SIGINT, self.save_s), (signal.SIGTERM, self.grace_s)):
            if self.status is None:
                send([self.mpirun], number)
                self._wait(lambda: self.status is not None, patience_s)
        send(
            descendants(os.getpid()), signal.SIGTERM, signal.SIGCONT
        )  # a stopped one must go on to act
        if not self._wait(lambda: False):
            self._wait(self._kill)
        return -signal.SIGKILL if self.status is None else self.status

    def _collect(self) -> bool:
        """Collect the children that have ended; return False once there is none any more."""
        with contextlib.suppress(ChildProcessError):
            while (ended := os.waitpid(-1, os.WNOHANG))[0]:
                if ended[0] == self.mpirun:
                    self.status = os.waitstatus_to_exitcode(ended[1])
            return True
        return False

    def _wait(self, done: Callable[[], object], patience_s: float | None = None) -> bool:
        """Wait until it is done or no child is left; return True for no child.

        Give up after `patience_s`, or after the time of grace where that is None.
        """
        end = time.monotonic() + (self.grace_s if patience_s is None else patience_s)
        while self._collect():
            if done() or time.monotonic() > end:
                return False
            signal.sigtimedwait([signal.SIGCHLD], 0.02)
        return True

    def _kill(self) -> bool:
        """Kill all that is left. `_wait` calls it at every look, as more may have started since."""
        send(descendants(os.getpid()), signal.SIGKILL)
        return False

    def _end_leftovers(self) -> None:
        """End what ranks have left behind while Hydra still waits for it.

        A proxy waits until nobody holds the output of a rank any more. That may be a process which
        the rank has left, and which is a child of ours by now."""
        launched = ranks(self.mpirun)
        left = [pid for pid in children(os.getpid()) if pid != self.mpirun]
        self.looks = self.looks + 1 if launched and left and not launched[1] else 0
        if self.looks > 1:
            all_left = [*left, *(pid for parent in left for pid in descendants(parent))]
            send(
                all_left,
                *([signal.SIGTERM, signal.SIGCONT] if self.looks == 2 else [signal.SIGKILL]),
            )

    def _let_save(self) -> None:
        """Let the ranks that take SIGTERM themselves save their state; the others get SIGINT."""
        launched = ranks(self.mpirun) if self.status is None else None
        there = launched[1] if launched else []
        if not any(catches(rank, signal.SIGTERM) for rank in there):
            return
        for rank in there:
            own = signal.SIGTERM if catches(rank, signal.SIGTERM) else signal.SIGINT
            send([rank], own, signal.SIGCONT)
        self._until_ended(there, self.save_s)

    def _until_ended(self, there: list[int], patience_s: float) -> None:
        end = time.monotonic() + patience_s
        while any(name_and_state(rank)[1] != "Z" for rank in there) and time.monotonic() < end:
            time.sleep(0.01)

    def _tell(self) -> None:
        """Make each rank say where it is, and end: at SIGABRT, Python prints its stack.

        Ranks that save their state at SIGTERM do so before. Hydra ends all ranks once one has failed,
        so its processes stand still meanwhile."""
        self._let_save()
        launched = ranks(self.mpirun)
        if launched is None:
            return
        proxies, there = launched
        workers = [pid for rank in there for pid in descendants(rank)]
        send(proxies, signal.SIGSTOP)
        for pid in (*there, *workers):
            with contextlib.suppress(OSError):  # a core file of each would be a bad surprise
                resource.prlimit(pid, resource.RLIMIT_CORE, (0, 0))
        send(there, signal.SIGABRT, signal.SIGCONT)
        self._until_ended(there, self.grace_s / 2)
        send(workers, signal.SIGABRT, signal.SIGCONT)  # whose words are not those of their rank
        send(proxies, signal.SIGCONT)
        self._wait(lambda: self.status is not None)


if __name__ == "__main__":
    patience = float(sys.argv[2]), float(sys.argv[3])
    status = Supervisor(int(sys.argv[1]), *patience, sys.argv[4:]).run()
    if status < 0:  # ended by a signal, and so are we
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        with contextlib.suppress(OSError):  # SIGKILL has no handler
            signal.signal(-status, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, HEARD)
        os.kill(os.getpid(), -status)
    os._exit(status)
