"""What a job says: the pieces that mpirun forwards, put together to whole lines; and the traceback
that came first."""

import os
import re
import selectors
import subprocess
import time
from collections.abc import Iterator, Sequence

LINKS = (
    "During handling of the above",
    "The above exception was",
)  # between the tracebacks of a chain
MESSAGE_LINES = 8
FEWEST = 20  # lines at once, from which on it pays to look whether they are alike
HELD = 65536  # bytes of a line that is not whole yet
READ_BYTES = 2**20


def batches(
    mpirun: "subprocess.Popen[bytes]", run_id: str, end: float
) -> Iterator[list[tuple[int | None, str]]]:
    """Reads what a job says, until both pipes close.

    Hydra marks each piece it forwards, also in the middle of a line; the pieces of a rank are put
    together again here.
    """
    with selectors.DefaultSelector() as ready:
        for pipe in (mpirun.stdout, mpirun.stderr):
            assert pipe is not None
            ready.register(pipe, selectors.EVENT_READ, Pieces(run_id))
        while ready.get_map():
            for key, _ in ready.select(max(0.0, min(1.0, end - time.monotonic()))):
                data = os.read(key.fd, READ_BYTES)
                yield list(key.data.feed(data))
                if not data:
                    ready.unregister(key.fileobj)
            gone = ready.get_map() and mpirun.poll() is not None and not ready.select(0.2)
            if time.monotonic() >= end or gone:
                # out of time, or mpirun is gone and only a rank that it lost still holds the pipe
                break
        for key in list(ready.get_map().values()):
            yield list(key.data.feed(b""))


class Pieces:
    """Puts the marked pieces of one stream together to whole lines, a buffer for each rank."""

    def __init__(self, run_id: str) -> None:
        # with the id: no output can look like it by chance
        mark = rb"\x1e%b:(\d+)\x1f" % re.escape(run_id.encode())
        self.begin = b"\x1e%b:" % run_id.encode()
        self.mark = re.compile(mark)
        self.plain = re.compile(mark + rb"([^\x1e]+)")
        self.held = b""
        self.rank: int | None = None
        self.partial: dict[int | None, list[bytes]] = {}

    def feed(self, data: bytes) -> Iterator[tuple[int | None, str]]:
        """Yields the lines that `data` completes, many of one rank as one text; b"" says that no
        more will come, and yields the rest."""
        more, data = bool(data), self.held + data
        end = data.rfind(b"\n") + 1
        rest, self.held = data[end:], b""
        if more and len(rest) <= HELD:
            rest, self.held = b"", rest
        elif more and (cut := re.search(rb"\x1e[^\x1f\n]{0,60}\Z", rest)):  # a mark, not yet whole
            rest, self.held = rest[: cut.start()], rest[cut.start() :]
        if end:
            yield from self._whole(data[: end - 1])
        if rest:
            self._take(rest)
        if not more:
            yield from [(rank, self._text(rank)) for rank in list(self.partial)]

    def _whole(self, data: bytes) -> Iterator[tuple[int | None, str]]:
        """The lines of a text that ends where a line ends, its last sign left out."""
        if not self.partial and (block := self._block(data)):
            self.rank = None
            yield block
            return
        lines = data.split(b"\n")
        at = seen = 0
        while at < len(lines):
            if not self.partial and at >= seen and (alike := self._alike(lines, at)):
                seen = at + alike
                if block := self._block(b"\n".join(lines[at:seen])):
                    self.rank = None
                    yield block
                    at = seen
                    continue
            line, at = lines[at], at + 1
            if not self.partial and (alone := self.plain.fullmatch(line)):
                self.rank = None
                yield int(alone[1]), alone[2].decode("utf-8", "replace").rstrip("\r")
                continue
            self._take(line)
            yield self.rank, self._text(self.rank)
            self.rank = None  # without a mark, the next line is mpirun's own

    def _block(self, data: bytes) -> tuple[int | None, str] | None:
        """Many lines as one text, if all are one rank's: that costs a tenth of line by line."""
        first, ends = self.mark.match(data), data.count(b"\n")
        if not first or ends + 1 < FEWEST:
            return None
        mark = first[0]
        text = data.replace(b"\n" + mark, b"\n")
        if len(data) - len(text) != ends * len(mark):
            return None  # a line does not begin with it
        text = text[len(mark) :]
        if b"\x1e" in text:
            text = text.replace(mark, b"")  # a line may come in pieces
        if self.begin in text:
            return None  # another rank's
        said = text.decode("utf-8", "replace")
        return int(first[1]), re.sub(r"\r+$", "", said, flags=re.M) if "\r" in said else said

    def _alike(self, lines: list[bytes], at: int) -> int:
        """How many lines from there on begin as this one does, and go on as the same rank; 0 when
        they are too few for that to pay."""
        first, last = self.mark.match(lines[at]), at + FEWEST - 1
        if not first or last >= len(lines) or not lines[last].startswith(first[0]):
            return 0
        end, mark = at, first[0]
        while end < len(lines) and (line := lines[end]).startswith(mark):
            if line.rfind(b"\x1e") and line.count(self.begin) != line.count(mark):
                break
            end += 1
        return end - at if end - at >= FEWEST else 0

    def _take(self, data: bytes) -> None:
        first, *marked = self.mark.split(data)  # text, rank, text, rank, text ...
        for rank, text in [
            (self.rank, first),
            *zip(map(int, marked[::2]), marked[1::2], strict=True),
        ]:
            self.rank = rank
            if text:
                self.partial.setdefault(rank, []).append(text)

    def _text(self, rank: int | None) -> str:
        return b"".join(self.partial.pop(rank, [])).decode("utf-8", "replace").rstrip("\r")


# What each rank of a check's job says last: see course/dumps/sitecustomize.py.
DONE = "This rank is done."


def prefixed(rank: int | None, text: str) -> str:
    """A line with its rank before it: `[1] text`."""
    return text if rank is None else f"[{rank}] " + text.replace("\n", f"\n[{rank}] ")


def first_traceback(lines: Sequence[tuple[int | None, str]]) -> tuple[int | None, list[str]]:
    """The rank that failed first, and its own traceback without the frames of the launcher.

    Later tracebacks are echoes: ranks that lost their partner. (None, []) when nobody printed one.
    """
    for at, (rank, text) in enumerate(lines):
        if not text.startswith("Traceback (most recent call last)"):
            continue
        block = [t for r, t in lines[at:] if r == rank]
        ends = (
            i
            for i, line in enumerate(block)
            if line and not line.startswith((" ", "Traceback", *LINKS))
        )
        # A chain goes on below the first exception: a blank line, one of LINKS, a blank line, the
        # next traceback.
        end = next(
            (i for i in ends if not "".join(block[i + 2 : i + 3]).startswith(LINKS)), len(block)
        )
        return rank, [
            *_own_frames(block[: end + 1]),
            *_message(block[end : end + 1], block[end + 1 :]),
        ]
    return None, []


def _message(first: list[str], more: list[str]) -> list[str]:
    """The rest of an exception's message whose first line ends in a colon, as those of TensorFlow
    ("Graph execution error:") and MPI ("error stack:") do; without the stacks inside it."""
    if not first or not first[0].rstrip().endswith(":"):
        return []
    kept, code = [], False
    for line in more:
        if line.startswith(("Traceback", "Abort(", "Timeout (", *LINKS)):
            break
        frame = re.match(r'\s+File "', line) is not None
        if line.strip() and not frame and not code and not line.startswith("Detected at node"):
            kept.append(line)
        code = frame  # the line below a frame is its code
    return kept[:MESSAGE_LINES]


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
