"""What a job says: the pieces that mpirun forwards, put together to whole lines; to its file, to its
lines in memory, to whoever listens."""

import os
import re
import selectors
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from io import FileIO
from pathlib import Path
from typing import TextIO

from ..base.errors import FULL, WHEN_FULL, ScaleoutError
from . import supervise

Line = tuple[int | None, str]  # a rank, None where mpirun itself speaks, and what it said
HELD = 65536  # bytes of a line that is not whole yet
READ_BYTES = 2**20
DRAWN_S = 1.0  # between two looks at a bar that grows


class Stderr(str):
    """What came by standard error; a plain `str` came by standard output, or nobody knows."""

    __slots__ = ()


def prefixed(rank: int | None, text: str) -> str:
    """Put the rank before a line: `[1] text`."""
    return text if rank is None else f"[{rank}] {text}"


def mark(run_id: str) -> str:
    """Make the mark that Hydra puts before each piece of output: %r is the rank."""
    return f"\x1e{run_id}:%r\x1f"


class Pieces:
    """Puts the marked pieces of one stream together to whole lines, a buffer for each rank. In a
    stream of one rank's own, `rank`, nothing is marked. `kind` is the type of its lines."""

    def __init__(self, run_id: str, rank: int | None = None, kind: type[str] = str) -> None:
        # with the id: no output can look like it by chance
        self.mark = re.compile(rb"\x1e%b:(\d+)\x1f" % re.escape(run_id.encode()))
        self.held = b""
        self.own, self.rank, self.kind = rank, rank, kind
        self.partial: dict[int | None, list[bytes]] = {}
        self.look_at = 0.0  # 0: no bar has begun

    def feed(self, data: bytes) -> Iterator[Line]:
        """Yield the lines that `data` completes.

        b"" says that no more will come, and yields the rest.
        """
        more, data = bool(data), self.held + data
        *lines, self.held = data.split(b"\n")
        for line in lines:
            self._take(line)
            yield self.rank, self._text(self.rank)
            self.rank = self.own  # without a mark, the next line of a shared stream is mpirun's
        if len(self.held) > HELD:
            self._take_held()
        if not more:
            self._take(self.held)
            self.held = b""
            yield from [(rank, self._text(rank)) for rank in list(self.partial)]

    def drawn(self) -> Iterator[Line]:
        """Yield, once in a while, what bars have drawn on a line that has no end yet.

        A bar begins each of its pictures with a carriage return. The last one may not be whole, and a
        line that comes to its end within a second is left whole.
        """
        now = time.monotonic()
        if b"\r" in self.held:
            self._take_held()
        begun = [rank for rank, own in self.partial.items() if any(b"\r" in text for text in own)]
        if begun and self.look_at <= now:
            for rank in begun if self.look_at else ():
                pictures, _, last = b"".join(self.partial[rank]).rpartition(b"\r")
                if last and pictures.strip(b"\r"):  # else the line may end here
                    self.partial[rank] = [pictures.lstrip(b"\r")]
                    yield rank, self._text(rank)
                    self.partial[rank] = [last]
            self.look_at = now + DRAWN_S
        elif not begun:
            self.look_at = 0.0

    def _take_held(self) -> None:
        """Take what is held, but a mark that is not whole yet."""
        cut = re.search(rb"\x1e[^\x1f\n]{0,60}\Z", self.held)
        at = cut.start() if cut else len(self.held)
        held, self.held = self.held[:at], self.held[at:]
        self._take(held)

    def _take(self, data: bytes) -> None:
        first, *marked = self.mark.split(data)  # text, rank, text, rank, text ...
        ranks = [self.rank, *map(int, marked[::2])]
        for self.rank, text in zip(ranks, [first, *marked[1::2]], strict=True):
            if text:
                self.partial.setdefault(self.rank, []).append(text)

    def _text(self, rank: int | None) -> str:
        text = b"".join(self.partial.pop(rank, [])).decode("utf-8", "replace")
        return self.kind(text.rstrip("\r"))


def read(
    job: "subprocess.Popen[bytes]", run_id: str, end: float, errors: Sequence[FileIO] = ()
) -> Iterator[list[Line]]:
    """Yield the lines of a job as they come, once a second at least.

    It ends when all pipes close or the job's time is up. `errors` are the pipes of each rank's own
    standard error.
    """
    with selectors.DefaultSelector() as ready:
        for pipe, kind in ((job.stdout, str), (job.stderr, Stderr)):
            assert pipe is not None
            ready.register(pipe, selectors.EVENT_READ, Pieces(run_id, kind=kind))
        for rank, own in enumerate(errors):
            ready.register(own, selectors.EVENT_READ, Pieces(run_id, rank, Stderr))
        while ready.get_map():
            events = ready.select(max(0.0, min(1.0, end - time.monotonic())))
            for key, _ in events:
                data = os.read(key.fd, READ_BYTES)
                yield list(key.data.feed(data))
                if not data:
                    ready.unregister(key.fileobj)
            yield [line for key in ready.get_map().values() for line in key.data.drawn()]
            gone = ready.get_map() and supervise.has_ended(job.pid) and not ready.select(0.2)
            if time.monotonic() >= end or gone:
                # out of time, or mpirun is gone and only what it has lost still holds the pipe
                break
        for key in list(ready.get_map().values()):
            yield list(key.data.feed(b""))


class Transcript:
    """Takes the lines of one job; a context that keeps them in a file."""

    def __init__(
        self, name: str, folder: Path, lines: list[Line], say: Callable[[str], None]
    ) -> None:
        self.name, self.path, self.lines, self.say = name, folder / "output.txt", lines, say
        self._file: TextIO

    def __enter__(self) -> "Transcript":
        try:
            self._file = open(self.path, "a", encoding="utf-8")
        except OSError as error:
            raise self._not_written(error) from None
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            self._file.close()
        except OSError as error:
            if kind is None:  # else that error is the one to tell
                raise self._not_written(error) from None

    def add(self, lines: Iterable[Line], *, quietly: bool = False) -> None:
        """Take lines as they came; those taken `quietly` are kept, and not shown."""
        lines = list(lines)
        if not lines:
            return
        texts = [prefixed(*line) for line in lines]
        try:
            self._file.write("\n".join([*texts, ""]))
            self._file.flush()  # so that all is there when this process is killed
        except OSError as error:
            raise self._not_written(error) from None
        self.lines.extend(lines)
        for text in [] if quietly else texts:
            self.say(text)

    def _not_written(self, error: OSError) -> ScaleoutError:
        fix = "make room, or type  export SCALEOUT_RESULTS=FOLDER  to keep results elsewhere"
        return ScaleoutError(
            f"{self.name} was ended because its output cannot be written ({error.strerror}): "
            f"{WHEN_FULL if error.errno in FULL else fix}."
        )
