"""What a job says, as it comes: to its file, to its lines in memory, to whoever listens."""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import TextIO

from ..errors import ScaleoutError
from ..paths import show
from .job import Run
from .output import prefixed

# Bytes of memory for the first lines of a job, and as many for the last.
HEAD_BYTES = TAIL_BYTES = 32 * 2**20
LINE_BYTES = 150  # what Python needs for a line beside its text


class Transcript:
    """Takes the lines of one job; a context, at whose end `job.lines` is complete."""

    def __init__(self, job: Run, say: Callable[[str], None]) -> None:
        self.job, self.say = job, say
        self._file: TextIO
        self._room = HEAD_BYTES
        # Bytes, lines, and what came.
        self._tail: deque[tuple[int, int, Sequence[tuple[int | None, str]]]] = deque()
        self._tail_bytes = 0
        # Whoever only writes the lines somewhere takes them all at once.
        self._say_all: Callable[[str], None] | None = getattr(say, "all", None)
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
        for kept in self._tail:
            self.job.lines.extend(_one_by_one(kept[2]))
        self._tail.clear()
        try:
            self._file.close()
        except OSError as error:
            if kind is None:  # else that error is the one to tell
                raise self._not_written(error) from None

    def add(self, lines: Sequence[tuple[int | None, str]]) -> None:
        """Takes lines as they came, (rank, text) each, where a text may be several lines."""
        if not lines:
            return
        said = [prefixed(rank, text) for rank, text in lines]
        block = "\n".join([*said, ""])
        try:
            self._file.write(block)
            self._file.flush()  # so that all is there when this process is killed
        except OSError as error:
            raise self._not_written(error) from None
        self._remember(lines)
        if self._say_all:
            self._say_all(block)
            return
        for line in block[:-1].split("\n"):
            self.say(line)

    def _remember(self, lines: Sequence[tuple[int | None, str]]) -> None:
        """Keeps lines that came together, together, until there is no room for them."""
        count = sum(text.count("\n") + 1 for _, text in lines)
        size = sum(len(text) for _, text in lines) + LINE_BYTES * count
        if not self._tail and size <= self._room:
            self._room -= size
            self.job.lines.extend(_one_by_one(lines))
            return
        self._tail.append((size, count, lines))
        self._tail_bytes += size
        while self._tail_bytes > TAIL_BYTES and len(self._tail) > 1:
            gone, left_out, _ = self._tail.popleft()
            self._tail_bytes -= gone
            self._left_out += left_out

    def _not_written(self, error: OSError) -> ScaleoutError:
        return ScaleoutError(
            f"{self.job.name} was ended because its output cannot be written ({error.strerror}): "
            "make room, or type  export SCALEOUT_RESULTS=FOLDER  to keep results elsewhere."
        )


def _one_by_one(lines: Sequence[tuple[int | None, str]]) -> Iterator[tuple[int | None, str]]:
    for rank, text in lines:
        for line in text.split("\n"):
            yield rank, line
