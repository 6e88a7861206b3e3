"""Follow where the ranks of a check's job stand, and end a job that only waits."""

import re
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

from ..base.stacks import DONE
from ..base.words import count
from ..jobs.failures import FRAME, STACK
from ..jobs.job import EndJob
from .verdict import in_script

PATIENCE_S = 10.0  # a job that takes longer is worth a line
SAME = 2  # so often each rank must be found where it was before, until the job is ended
# And so often the others, where a rank says nothing: what waits in a call that keeps Python's lock,
# as mpi4py's allreduce of Python objects does, cannot say where it stands.
SAME_BESIDE_SILENCE = 5
PACKAGE = Path(__file__).parents[1]


class Watch:
    """Follow what the ranks of a check's job say of where they stand, and end a job that waits.

    A rank waits when its stack has been the same a few times, and the innermost call is the lab's
    own, or ours; a call inside another library may take its time. One that has never said where it
    stands waits when all others have for longer.
    """

    def __init__(self, script: Path, ranks: int, tell: Callable[[str], None] | None = None) -> None:
        self.script, self.ranks, self.tell = script, ranks, tell
        self.begun = self.told = time.monotonic()
        self.stacks: dict[int, list[str]] = defaultdict(list)  # as far as each has come
        self.before: dict[int, list[str]] = {}
        self.same: dict[int, float] = {}  # how often each rank was found where it was before

    def take(self, text: str) -> None:
        """Take a line of the job; raise EndJob when every rank waits or is done, and one waits."""
        line = re.match(r"\[(\d+)\] (.*)", text)
        if line and line[2] == DONE:
            self.same[int(line[1])] = float("inf")
        elif line and FRAME.match(line[2]):
            self.stacks[int(line[1])].append(line[2])
        elif line and STACK.match(line[2]):
            rank = int(line[1])
            stack, self.stacks[rank][:] = list(self.stacks[rank]), []
            waits = self._ours(stack) and stack == self.before.get(rank)
            self.same[rank] = self.same.get(rank, 0) + 1 if waits else 0
            self.before[rank] = stack
            enough = SAME if self.ranks == len(self.same) else SAME_BESIDE_SILENCE
            if self.ranks > 1 and enough <= min(self.same.values()) < float("inf"):
                raise EndJob
        if self.tell and time.monotonic() - self.told > PATIENCE_S:
            self._progress(self.tell)

    def _ours(self, stack: list[str]) -> bool:
        inner = FRAME.match(stack[0]) if stack else None
        place = Path(inner[1]).parent if inner else None
        return place is not None and (
            place.parts[-1:] == self.script.parent.parts[-1:] or place.is_relative_to(PACKAGE)
        )

    def _progress(self, tell: Callable[[str], None]) -> None:
        self.told = time.monotonic()
        frames = ((rank, in_script(t, self.script)) for rank, s in self.before.items() for t in s)
        lines = {rank: line for rank, line in reversed(list(frames)) if line}
        where = ", ".join(f"rank {rank} in line {line}" for rank, line in sorted(lines.items()))
        spent = f"running {count(self.ranks, 'rank')} ... {self.told - self.begun:.0f} s"
        tell(f"{spent}; {where}" if where else spent)

    def end(self) -> None:
        """Clear the line of progress."""
        if self.tell and self.told > self.begun:
            self.tell("")
