"""What a job says: the pieces that mpirun forwards, put together to whole lines; and the traceback that came first."""

import os
import re
import selectors
import subprocess
import time
from collections.abc import Iterator, Sequence

__all__ = ["Pieces", "first_traceback", "lines", "prefixed"]

LINKS = ("During handling of the above", "The above exception was")  # between the tracebacks of a chain


def lines(mpirun: "subprocess.Popen[bytes]", run_id: str, end: float) -> Iterator[tuple[int | None, str]]:
    """Yields (rank, line) as whole lines arrive, until both pipes close or the time `end` has come.

    Hydra marks each piece it forwards, also in the middle of a line; the pieces of a rank are put together again here.
    """
    with selectors.DefaultSelector() as ready:
        for pipe in (mpirun.stdout, mpirun.stderr):
            assert pipe is not None
            ready.register(pipe, selectors.EVENT_READ, Pieces(run_id))
        while ready.get_map():
            for key, _ in ready.select(max(0.0, min(1.0, end - time.monotonic()))):
                data = os.read(key.fd, 65536)
                yield from key.data.feed(data)
                if not data:
                    ready.unregister(key.fileobj)
            gone = ready.get_map() and mpirun.poll() is not None and not ready.select(0.2)
            if time.monotonic() >= end or gone:
                break  # out of time, or mpirun is gone and only a rank that it lost still holds the pipe
        for key in list(ready.get_map().values()):
            yield from key.data.feed(b"")


class Pieces:
    """Puts the marked pieces of one stream together to whole lines, a buffer for each rank."""

    def __init__(self, run_id: str) -> None:
        self.mark = re.compile(rb"\x1e%b:(\d+)\x1f" % run_id.encode())  # the id: no output can look like it by chance
        self.held = b""
        self.rank: int | None = None
        self.partial: dict[int | None, list[bytes]] = {}

    def feed(self, data: bytes) -> Iterator[tuple[int | None, str]]:
        """Yields the lines that `data` completes; b"" says that no more will come, and yields the rest."""
        more, data = bool(data), self.held + data
        cut = re.search(rb"\x1e[^\x1f\n]{0,40}\Z", data) if more else None  # a mark whose end is still to come
        at = cut.start() if cut else len(data)
        self.held = data[at:]
        *whole, rest = data[:at].split(b"\n")
        for line in whole:
            self._take(line)
            yield self.rank, self._text(self.rank)
            self.rank = None  # without a mark, the next line is mpirun's own
        self._take(rest)
        if not more:
            yield from [(rank, self._text(rank)) for rank in list(self.partial)]

    def _take(self, data: bytes) -> None:
        first, *marked = self.mark.split(data)  # text, rank, text, rank, text ...
        for rank, text in [(self.rank, first), *zip(map(int, marked[::2]), marked[1::2], strict=True)]:
            self.rank = rank
            if text:
                self.partial.setdefault(rank, []).append(text)

    def _text(self, rank: int | None) -> str:
        return b"".join(self.partial.pop(rank, [])).decode("utf-8", "replace").rstrip("\r")


def prefixed(rank: int | None, text: str) -> str:
    """A line with its rank before it: `[1] text`; mpirun's own as it is."""
    return text if rank is None else f"[{rank}] {text}"


def first_traceback(lines: Sequence[tuple[int | None, str]]) -> tuple[int | None, list[str]]:
    """The rank that failed first, and its own traceback without the frames of the launcher.

    Later tracebacks are echoes: ranks that lost their partner. (None, []) when nobody printed one.
    """
    for at, (rank, text) in enumerate(lines):
        if not text.startswith("Traceback (most recent call last)"):
            continue
        block = [t for r, t in lines[at:] if r == rank]
        ends = (i for i, line in enumerate(block) if line and not line.startswith((" ", "Traceback", *LINKS)))
        # A chain goes on below the first exception: a blank line, one of LINKS, a blank line, the next traceback.
        end = next((i for i in ends if not "".join(block[i + 2 : i + 3]).startswith(LINKS)), len(block))
        return rank, _own_frames(block[: end + 1])
    return None, []


def _own_frames(block: list[str]) -> list[str]:
    """The traceback without the frames of runpy and mpi4py, which say nothing about the script."""
    kept, skipping = [], False
    for line in block:
        if line.startswith("  File "):
            skipping = re.search(r"<frozen runpy>|/mpi4py/(__main__|run)\.py", line) is not None
        elif not line.startswith("    "):
            skipping = False
        if not skipping:
            kept.append(line)
    return kept
