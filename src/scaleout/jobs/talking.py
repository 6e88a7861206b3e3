"""Whether the ranks of a job ever talked to each other. Ranks that never did are copies of one job.

Two things tell. Hydra, the launcher of MPICH, counts the calls that ranks make to it: a rank that
starts MPI, itself or through Horovod or daal4py, makes some. What meets without MPI, as torch and
JAX do, does so at MASTER_PORT, where a connection can be seen while it lasts and for a minute after.
Ranks that meet at another port have sockets of their own: then nobody can know from outside.
Also the look at MASTER_PORT, for a job in Slurm: `python talking.py PORT` says what it has seen."""

import contextlib
import os
import re
import sys
from collections.abc import Iterable, Iterator

COUNT = "-profile"  # Hydra's option that makes it say how many calls it has seen
SEEN = re.compile(r"\[mpiexec@.*\] Number of PMI calls seen by the server: (\d+)")
RULE = "=" * 80  # what stands above and below that line
MET = "Connections at MASTER_PORT: "
LISTENING = "0A"  # a state of a socket in /proc/net/tcp


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


def own_sockets(processes: Iterable[int], launchers: Iterable[int]) -> bool:
    """Tell whether one of these processes listens at a port, or has a connection within this machine.

    What their launchers hold too, they have only inherited.
    """
    held = _files(processes) - _files(launchers)
    return any(
        f"socket:[{inode}]" in held
        and (state == LISTENING or here.rpartition(":")[0] == there.rpartition(":")[0])
        for here, there, state, inode in _sockets()
    )


def _files(pids: Iterable[int]) -> set[str]:
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


class Talk:
    """What was heard of the ranks' talk while a job ran."""

    def __init__(self) -> None:
        self.calls: int | None = None
        self.met: int | None = None
        self.by_own_sockets = False

    def takes(self, rank: int | None, text: str) -> bool:
        """Tell whether this line only tells of the talk, so that nobody is to see it."""
        if rank is not None:
            return False
        if counted := SEEN.fullmatch(text):
            self.calls = int(counted[1])
        elif text.startswith(MET):
            self.met = int(text.removeprefix(MET))
        return bool(counted) or text.startswith(MET) or text in ("", RULE)

    def verdict(self) -> bool | None:
        """Return whether ranks have talked; None when that is not certain."""
        if self.calls or self.met:
            return True
        if self.by_own_sockets:
            return None
        return False if self.calls == 0 and self.met == 0 else None


if __name__ == "__main__":
    print(f"{MET}{connections(sys.argv[1])}", flush=True)
