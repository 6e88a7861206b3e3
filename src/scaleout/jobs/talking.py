"""Whether the ranks of a job ever talked to each other. Ranks that never did are copies of one job.

Hydra, the launcher of our MPICH, counts the calls that ranks make to it: a rank that starts MPI,
itself or through Horovod or daal4py, makes some. What meets without MPI, as torch and JAX do, does so
at MASTER_PORT, where a connection can be seen while it lasts and for a minute after. Ranks that meet
at another port have sockets of their own: then nobody can know from outside.
Where another launcher starts the ranks, or ours starts them over ssh, a small process beside the
first and the last rank looks for the same, and for a library of MPI in place of the calls: `watch`.
Also the look at MASTER_PORT, for a job in Slurm: `python talking.py PORT` says what it has seen."""

import contextlib
import os
import re
import select
import signal
import sys
import time
from collections.abc import Iterable, Iterator

COUNT = "-profile"  # Hydra's option that makes it say how many calls it has seen
SEEN = re.compile(r"\[mpiexec@.*\] Number of PMI calls seen by the server: (\d+)")
RULE = "=" * 80  # what stands above and below that line
MET = "Connections at MASTER_PORT: "
LISTENING = "0A"  # a state of a socket in /proc/net/tcp
# What a watcher says of its rank, in the order in which one outdoes the other.
WATCHED = [f"scaleout looked whether a rank talks: {seen}" for seen in ("no", "maybe", "yes")]
NO, MAYBE, YES = range(3)
MPI = re.compile(rb"/\S*/lib(?:mpi|mpich)[\w-]*\.so\S*")
SHARED = re.compile(rb" /dev/shm/(?!sem\.)")  # memory by which an MPI without a library talks too
LOOK_S = 0.02  # between two looks at the least
LOOKS = 20  # so many times as long as a look takes is the pause after it
LATE_S = 1.0  # a look that comes so late may have come too late


def sentence(ranks: int) -> str:
    """Say of a job that its ranks never talked."""
    return (
        f"The {ranks} ranks never talked to each other: none of them started MPI, Horovod or a torch "
        f"process group, so this was {ranks} copies of one job, not one job on {ranks} ranks."
    )


def connections(port: str) -> int:
    """Count the connections at a port of this machine, also those that ended a minute ago."""
    ends = f":{int(port):04X}" if port.isdecimal() else "none"
    return sum(
        state != LISTENING and (here.endswith(ends) or there.endswith(ends))
        for here, there, state, _ in _sockets()
    )


def own_sockets(processes: Iterable[int], inherited: set[str]) -> bool:
    """Tell whether one of these processes listens at a port, or has a connection within this machine.

    A socket with the name of a file counts, too; what they have inherited from their launchers does
    not.
    """
    held = {file for file in files(processes) - inherited if file.startswith("socket:")}
    if not held:  # all sockets of a machine take milliseconds to list
        return False
    return any(f"socket:[{inode}]" in held for inode in _with_files()) or any(
        f"socket:[{inode}]" in held
        and (state == LISTENING or here.rpartition(":")[0] == there.rpartition(":")[0])
        for here, there, state, inode in _sockets()
    )


def files(pids: Iterable[int]) -> set[str]:
    """List what these processes have open."""
    found = set()
    for pid in pids:
        with contextlib.suppress(OSError):  # the process has ended meanwhile
            for file in os.scandir(f"/proc/{pid}/fd"):
                with contextlib.suppress(OSError):
                    found.add(os.readlink(file.path))
    return found


def _sockets() -> Iterator[tuple[str, str, str, str]]:
    """Yield both ends of each TCP socket of this machine, its state and its inode, as /proc has them."""
    for name in ("tcp", "tcp6"):
        with contextlib.suppress(OSError), open(f"/proc/net/{name}", encoding="ascii") as file:
            for line in file.readlines()[1:]:
                words = line.split()
                yield words[1], words[2], words[3], words[9]


def _with_files() -> list[str]:
    """List the inodes of this machine's Unix sockets that others can find by a name."""
    with contextlib.suppress(OSError), open("/proc/net/unix", errors="replace") as file:
        return [words[6] for words in map(str.split, file.readlines()[1:]) if len(words) > 7]
    return []


def watch(pid: int, port: str) -> None:
    """Say on standard error whether a rank, this process, talks, until that is certain or it ends."""
    from . import supervise  # only here: this file is run by its path, too

    inherited = files([os.getpid()])
    preloaded = {*MPI.findall(_maps(os.getpid()))}  # into whatever starts: it tells nothing
    os.closerange(3, os.sysconf("SC_OPEN_MAX"))
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)  # it ends with the rank, and takes a last look then
    try:
        ended = [os.pidfd_open(pid)]
    except ProcessLookupError:  # it has: what it did can be known by connections alone
        ended = []
    except OSError:  # this Linux is older than 5.3
        return
    told, pause, due, there = -1, 0.0, time.monotonic(), True
    while there and told < YES:
        there = bool(ended) and not select.select(ended, [], [], pause)[0]
        start = time.monotonic()
        processes = [pid, *supervise.below(pid)] if there else []
        seen = _seen(processes, port, inherited, preloaded)
        if start - due > LATE_S or (told < NO and not there):
            seen = max(seen, MAYBE)  # looked too late
        if seen > told:
            told = seen
            print(WATCHED[told], file=sys.stderr, flush=True)
        pause = max(LOOK_S, LOOKS * (time.monotonic() - start))
        due = time.monotonic() + pause


def _seen(processes: list[int], port: str, inherited: set[str], preloaded: set[bytes]) -> int:
    """Look once whether one of these processes has begun MPI, or has met another; none are left at last."""
    maps = b"".join(map(_maps, processes))
    if {*MPI.findall(maps)} - preloaded:
        return YES
    # Those at a port are there for a minute.
    sockets = [file for file in files(processes) - inherited if file.startswith("socket:")]
    if (sockets or not processes) and connections(port):
        return YES
    own = sockets and own_sockets(processes, inherited)
    return MAYBE if own or SHARED.search(maps) else NO


def _maps(pid: int) -> bytes:
    """Read which files a process has in its memory."""
    with contextlib.suppress(OSError), open(f"/proc/{pid}/maps", "rb") as file:
        return file.read()
    return b""


class Talk:
    """What was heard of the ranks' talk while a job ran, whose launcher counts their calls or not."""

    def __init__(self, counted: bool) -> None:
        self.counted = counted
        self.calls: int | None = None
        self.met: int | None = None
        self.by_own_sockets = False
        self.watched: int | None = None

    def takes(self, rank: int | None, text: str) -> bool:
        """Tell whether this line only tells of the talk, so that nobody is to see it."""
        if not self.counted:
            if text not in WATCHED:
                return False
            self.watched = max(WATCHED.index(text), self.watched or NO)
            return True
        if rank is not None:
            return False
        if counted := SEEN.fullmatch(text):
            self.calls = int(counted[1])
        elif text.startswith(MET):
            self.met = int(text.removeprefix(MET))
        return bool(counted) or text.startswith(MET) or text in ("", RULE)

    def verdict(self) -> bool | None:
        """Return whether ranks have talked; None when that is not certain."""
        if self.calls or self.met or self.watched == YES:
            return True
        if self.by_own_sockets or self.watched == MAYBE:
            return None
        return False if (self.calls, self.met) == (0, 0) or self.watched == NO else None


if __name__ == "__main__":
    print(f"{MET}{connections(sys.argv[1])}", flush=True)
