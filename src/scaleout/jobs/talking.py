"""Whether the ranks of a job ever talked to each other. Ranks that never did are copies of one job.

Hydra, the launcher of our MPICH, counts the calls that ranks make to it: a rank that starts MPI,
itself or through Horovod or daal4py, makes some. What meets without MPI, as torch and JAX do, does so
at MASTER_PORT, where a connection can be seen while it lasts and for a minute after. Ranks that meet
elsewhere have sockets with a port or a name of their own; as nobody can know from outside what these
are for, they count as talk. What is said for certain is only that ranks never talked.
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
TCP = ("tcp", "tcp6")  # files of /proc/net: each socket's two ends, its state, ..., its inode
LISTENING = "0A"
# What a watcher says of its rank; the second may follow upon the first.
WATCHED = [f"scaleout looked whether a rank talks: {seen}" for seen in ("no", "yes")]
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
        words[3] != LISTENING and (words[1].endswith(ends) or words[2].endswith(ends))
        for name in TCP
        for words in _sockets(name)
    )


def own_sockets(processes: Iterable[int], inherited: set[str]) -> bool:
    """Tell whether these processes have a socket with a port or a name, other than the inherited ones."""
    held = {file for file in files(processes) - inherited if file.startswith("socket:")}
    # All sockets of a machine take milliseconds to list.
    return bool(held) and any(f"socket:[{inode}]" in held for inode in _addressed())


def files(pids: Iterable[int]) -> set[str]:
    """List what these processes have open."""
    found = set()
    for pid in pids:
        with contextlib.suppress(OSError):  # the process has ended meanwhile
            for file in os.scandir(f"/proc/{pid}/fd"):
                with contextlib.suppress(OSError):
                    found.add(os.readlink(file.path))
    return found


def _addressed() -> Iterator[str]:
    """Yield the inodes of this machine's sockets that have a port or the name of a file."""
    yield from (words[9] for name in TCP for words in _sockets(name))
    yield from (words[6] for words in _sockets("unix") if len(words) > 7)


def _sockets(kind: str) -> list[list[str]]:
    """Read the sockets of a kind that this machine has, as /proc lists them."""
    with contextlib.suppress(OSError), open(f"/proc/net/{kind}", errors="replace") as file:
        return [line.split() for line in file.readlines()[1:]]
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
    told: bool | None = None
    pause, due, there = 0.0, time.monotonic(), True
    while there and not told:
        there = bool(ended) and not select.select(ended, [], [], pause)[0]
        start = time.monotonic()
        processes = [pid, *supervise.descendants(pid)] if there else []
        late = start - due > LATE_S or (told is None and not there)
        talks = late or _talks(processes, port, inherited, preloaded)
        if talks is not told:
            told = talks
            print(WATCHED[told], file=sys.stderr, flush=True)
        pause = max(LOOK_S, LOOKS * (time.monotonic() - start))
        due = time.monotonic() + pause


def _talks(processes: list[int], port: str, inherited: set[str], preloaded: set[bytes]) -> bool:
    """Look once whether these processes have begun MPI, or may have met others.

    Once the rank has ended, there are no processes, and only connections at the port can be seen.
    """
    if not processes:
        return connections(port) > 0
    maps = b"".join(map(_maps, processes))
    return bool(
        {*MPI.findall(maps)} - preloaded or SHARED.search(maps) or own_sockets(processes, inherited)
    )


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
        self.seen: bool | None = None  # by a watcher, or by who looks at the ranks' sockets

    def consume(self, rank: int | None, text: str) -> bool:
        """Tell whether this line only tells of the talk, so that nobody is to see it."""
        if not self.counted:
            if text not in WATCHED:
                return False
            self.seen = self.seen or text == WATCHED[True]
            return True
        if rank is not None:
            return False
        if counted := SEEN.fullmatch(text):
            self.calls = int(counted[1])
        elif text.startswith(MET):
            self.met = int(text.removeprefix(MET))
        return bool(counted) or text.startswith(MET) or text in ("", RULE)

    def verdict(self) -> bool | None:
        """Return False where ranks have certainly not talked; None where nobody has looked."""
        if self.calls or self.met or self.seen:
            return True
        return False if (self.calls, self.met) == (0, 0) or self.seen is False else None


if __name__ == "__main__":
    print(f"{MET}{connections(sys.argv[1])}", flush=True)
