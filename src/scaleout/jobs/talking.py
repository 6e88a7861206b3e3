"""Whether the ranks of a job ever talked to each other. Ranks that never did are copies of one job.

Two things tell. Hydra, the launcher of MPICH, counts the calls that ranks make to it: a rank that
starts MPI, itself or through Horovod or daal4py, makes some. No calls mean that no rank did. What
talks without MPI (torch's and Horovod's Gloo) does so over TCP, so a thread looks now and then
whether a rank holds a socket for it. Silence is said only when both are certain of it."""

import contextlib
import functools
import os
import re
import subprocess
import threading
import time
from collections.abc import Iterable

COUNT = "-profile"  # Hydra's option that makes it say how many calls it has seen
SEEN = re.compile(r"\[mpiexec@.*\] Number of PMI calls seen by the server: (\d+)")
RULE = "=" * 80  # what stands above and below that line
SHARE, LEAST_S, MOST_S = 0.05, 0.02, 1.0  # a group that lasts 5 % of the time so far is seen
LISTENING, CLOSED = "0A", "06"  # states of a socket in /proc/net/tcp; closed: for less than 60 s
LOOPBACK = "7F"  # how the addresses 127.x end there


def options(mpirun: str, ranks: int, elsewhere: bool = False) -> list[str]:
    """What to tell Hydra so that its calls are counted; nothing where that would tell nothing."""
    return [COUNT] if ranks > 1 and not elsewhere and _counts(mpirun) else []


@functools.cache
def _counts(mpirun: str) -> bool:
    """Whether this Hydra can count: not each one was built to."""
    line = [mpirun, COUNT, "-launcher", "fork", "-n", "1", "true"]
    try:
        done = subprocess.run(
            line, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=10
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0 and SEEN.search(done.stdout) is not None


def sentence(ranks: int) -> str:
    """What to say of a job whose ranks never talked."""
    return (
        f"The {ranks} ranks never talked to each other: none of them started MPI, Horovod or a torch "
        f"process group, so this was {ranks} copies of one job, not one job on {ranks} ranks."
    )


class Watch:
    """Looks at one job on this machine while it runs."""

    def __init__(self, counted: bool, port: str = "") -> None:
        self.counted, self.port = counted, port
        self._calls: int | None = None
        self._looks = 0
        self._met = False
        self._over = threading.Event()
        self._thread: threading.Thread | None = None

    def begin(self, parent: int) -> None:
        """Starts to look at the mpirun that this process has started."""
        if self.counted:
            self._thread = threading.Thread(target=self._watch, args=(parent,), daemon=True)
            self._thread.start()

    def takes(self, rank: int | None, text: str) -> bool:
        """Whether this line is only Hydra's count, which nobody asked to see."""
        if not self.counted or rank is not None:
            return False
        if found := SEEN.fullmatch(text):
            self._calls = int(found[1])
        return found is not None or text in ("", RULE)

    def end(self) -> bool | None:
        """True when ranks have talked, False when it is certain that they have not, else None."""
        self._over.set()
        if self._thread:
            self._thread.join()
        if self._calls or self._met or (self.port and _met_at(self.port)):
            return True
        return False if self._calls == 0 and self._looks else None

    def _watch(self, parent: int) -> None:
        began = time.monotonic()
        while not self._met and not self._over.wait(
            min(MOST_S, max(LEAST_S, SHARE * (time.monotonic() - began)))
        ):
            proxies = _children(mpirun := _children([parent])[:1])
            ranks = _children(proxies)
            self._looks += bool(ranks)
            while more := [pid for pid in _children(ranks) if pid not in ranks]:
                ranks += more
            # Hydra leaves its own sockets open in each rank.
            mine = _sockets(ranks) - _sockets([*mpirun, *proxies])
            self._met = bool(mine) and not mine.isdisjoint(_talking(ranks[0]))


def _children(pids: Iterable[int]) -> list[int]:
    found: list[int] = []
    for pid in pids:
        with contextlib.suppress(OSError), open(f"/proc/{pid}/task/{pid}/children") as file:
            found += map(int, file.read().split())
    return found


def _sockets(pids: Iterable[int]) -> set[str]:
    """The inodes of the sockets that these processes hold."""
    found = set()
    for pid in pids:
        with contextlib.suppress(OSError):  # it has ended meanwhile
            for entry in os.scandir(f"/proc/{pid}/fd"):
                with contextlib.suppress(OSError):
                    found.add(os.readlink(entry.path))
    return {name[8:-1] for name in found if name.startswith("socket:[")}


def _tcp(pid: int | str) -> list[list[str]]:
    """The TCP sockets of this process's machine, as the fields of /proc/net/tcp."""
    found = []
    for name in ("tcp", "tcp6"):
        with contextlib.suppress(OSError), open(f"/proc/{pid}/net/{name}") as file:
            found += [line.split() for line in file.readlines()[1:]]
    return found


def _talking(pid: int) -> set[str]:
    """The inodes of TCP sockets that wait for others, or are connected on this machine."""
    found = set()
    for _, here, there, state, *rest in _tcp(pid):
        ours, theirs = here.rpartition(":")[0], there.rpartition(":")[0]
        if state == LISTENING or ours == theirs or ours.endswith(LOOPBACK):
            found.add(rest[5])
    return found


def _met_at(port: str) -> bool:
    """Whether anybody was connected at this port of this machine in the last minute."""
    end = f":{int(port):04X}"
    return any(state == CLOSED and end in (a[-5:], b[-5:]) for _, a, b, state, *_ in _tcp("self"))
