"""Whether the ranks of a job ever talked to each other. Ranks that never did are copies of one job.

Two things tell. Hydra, the launcher of MPICH, counts the calls that ranks make to it: a rank that
starts MPI, itself or through Horovod or daal4py, makes some. What meets without MPI, as torch and
JAX do, does so at MASTER_PORT, where a connection can be seen while it lasts and for a minute after.
Also that look, for a job in Slurm: `python talking.py PORT` says what it has seen."""

import contextlib
import re
import sys

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
    number = 0
    for name in ("tcp", "tcp6"):
        with contextlib.suppress(OSError), open(f"/proc/net/{name}", encoding="ascii") as file:
            for line in file.readlines()[1:]:
                _, here, there, state, *_ = line.split()
                number += state != LISTENING and (here.endswith(ends) or there.endswith(ends))
    return number


class Talk:
    """What was heard of the ranks' talk while a job ran."""

    def __init__(self) -> None:
        self.calls: int | None = None
        self.met: int | None = None

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
        return False if self.calls == 0 and self.met == 0 else None


if __name__ == "__main__":
    print(f"{MET}{connections(sys.argv[1])}", flush=True)
