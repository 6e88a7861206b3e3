"""Ranks that wait for one which has failed. MPI ends them, but only where each has begun MPI; what
has not would wait until the job's time is up."""

import contextlib
import time
from collections.abc import Sequence
from pathlib import Path

from ..base.stacks import DONE
from . import supervise
from .failures import BY_TORCH, LINKS, TRACEBACK
from .output import Line, Stderr

PATIENCE_S = 10.0  # what the other ranks get to end by themselves


def _alive(supervisor: int) -> set[int]:
    """List the ranks on this machine that live; none where another launcher than Hydra started them."""
    launched = map(supervise.ranks, supervise.children(supervisor))
    found = set()
    for pid in (pid for both in launched if both for pid in both[1]):
        with contextlib.suppress(OSError):
            given = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
            found |= {int(text[9:]) for text in given if text.startswith(b"PMI_RANK=")}
    return found


class FailedRanks:
    """Looks now and then whether a rank has gone with a traceback while others live."""

    def __init__(self, supervisor: int) -> None:
        self.supervisor = supervisor
        self.since: float | None = None  # when one was first seen to have gone so
        self._read = 0
        self._at: dict[
            int, str
        ] = {}  # where a rank's last words are: in a "traceback", at its "end"

    def look(self, lines: Sequence[Line]) -> None:
        """Take what was said since the last look."""
        for rank, text in lines[self._read :]:
            said = BY_TORCH.sub("", text, 1)
            # What came by standard output is no part of a traceback.
            if rank is not None and isinstance(text, Stderr) and said.strip() and said != DONE:
                self._take(rank, said)
        self._read = len(lines)
        ended = [rank for rank, at in self._at.items() if at == "end"]
        if self.since is None and ended:
            there = _alive(self.supervisor)
            if there and not there.issuperset(ended):
                self.since = time.monotonic()

    def waited_long(self) -> bool:
        """Tell whether the others have had their time since."""
        return self.since is not None and time.monotonic() - self.since > PATIENCE_S

    def _take(self, rank: int, text: str) -> None:
        if text.startswith((TRACEBACK, *LINKS)):
            self._at[rank] = "traceback"
        elif not text[0].isspace():  # the exception itself, or the words of a rank that goes on
            self._at[rank] = "end" if self._at.get(rank) == "traceback" else ""
