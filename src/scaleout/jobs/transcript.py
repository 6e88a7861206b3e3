"""What a job says, as it comes: to its file, to its lines in memory, to whoever listens."""

from collections import deque
from collections.abc import Callable, Sequence
from typing import TextIO

from ..errors import ScaleoutError
from ..paths import show
from .job import Run
from .output import prefixed

__all__ = ["Transcript"]

# Bytes of memory for the first lines of a job, and as many for the last.
HEAD_BYTES = TAIL_BYTES = 32 * 2**20
LINE_BYTES = 150  # what Python needs for a line beside its text


class Transcript:
    """Takes the lines of one job; a context, at whose end `job.lines` is complete.

    Parameters
    ----------
    job : Run
        Its output.txt gets every line; its `lines` the first and the last.
    say : callable
        Takes each line with its rank before it.

    Raises
    ------
    ScaleoutError
        When the file cannot be written. What `say` raises is passed on as it is.
    """

    def __init__(self, job: Run, say: Callable[[str], None]) -> None:
        self.job, self.say = job, say
        self._file: TextIO
        self._room = HEAD_BYTES
        self._tail: deque[tuple[int | None, str]] = deque()
        self._tail_bytes = 0
        self._left_out = 0

    def __enter__(self) -> "Transcript":
        try:
            self._file = open(self.job.folder / "output.txt", "a", encoding="utf-8")
        except OSError as error:
            raise self._not_written(error) from None
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if self._left_out:
            path = show(self.job.folder / "output.txt")
            gap = f"... {self._left_out:,} lines are left out here; {path} has them all ..."
            self.job.lines.append((None, gap))
        self.job.lines.extend(self._tail)
        self._tail.clear()
        try:
            self._file.close()
        except OSError as error:
            if kind is None:  # else that error is the one to tell
                raise self._not_written(error) from None

    def add(self, lines: Sequence[tuple[int | None, str]]) -> None:
        """Takes lines as they came, (rank, text) each."""
        if not lines:
            return
        said = [prefixed(rank, text) for rank, text in lines]
        try:
            self._file.write("\n".join([*said, ""]))
            self._file.flush()  # so that all is there when this process is killed
        except OSError as error:
            raise self._not_written(error) from None
        for (rank, text), line in zip(lines, said, strict=True):
            self._remember(rank, text)
            self.say(line)

    def _remember(self, rank: int | None, text: str) -> None:
        size = len(text) + LINE_BYTES
        if not self._tail and size <= self._room:
            self._room -= size
            self.job.lines.append((rank, text))
            return
        self._tail.append((rank, text))
        self._tail_bytes += size
        while self._tail_bytes > TAIL_BYTES and len(self._tail) > 1:
            self._tail_bytes -= len(self._tail.popleft()[1]) + LINE_BYTES
            self._left_out += 1

    def _not_written(self, error: OSError) -> ScaleoutError:
        return ScaleoutError(
            f"{self.job.name} was ended because its output cannot be written ({error.strerror}): "
            "make room, or type  export SCALEOUT_RESULTS=FOLDER  to keep results elsewhere."
        )
