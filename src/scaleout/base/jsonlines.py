"""Files read without trust: whatever one holds, it is left out or it is what it should be, and a
file that is none never makes anybody wait."""

import contextlib
import errno
import json
import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any

Row = dict[str, Any]


def read(path: Path, wrong: Callable[[Row], str]) -> tuple[list[Row], str]:
    """Read the lines of a file that are what they should be; also say which are left out."""
    found: list[Row] = []
    bad, first = 0, ""
    try:
        with _regular(path) as file:
            for number, text in enumerate(file, 1):
                if not text.strip():
                    continue
                line, why = _line(text, wrong)
                if not why:
                    found.append(line)
                    continue
                bad += 1
                first = first or f", line {number}: no record ({why}); left out"
    except FileNotFoundError:
        return [], ""
    except OSError as error:
        return [], f" cannot be read ({error.strerror}): left out"
    more = f", as are {bad - 1:,} more lines like it" if bad > 1 else ""
    return found, first + more


def append(path: Path, line: str) -> None:
    """Add one line in a single write, so that two jobs that share a file never cut each other's."""
    with open(path, "a+b") as file:
        whole = file.tell() == 0 or os.pread(file.fileno(), 1, file.tell() - 1) == b"\n"
        # after a line that somebody left half-written
        file.write(f"{'' if whole else chr(10)}{line}\n".encode())


def text(path: Path) -> str:
    """Read a file's text, without a mark that an editor put at its start."""
    with _regular(path) as file:
        return file.read().decode("utf-8-sig")


def write(path: Path, content: str | bytes, mode: int | None = None) -> None:
    """Write a file whole, or not at all, whoever else writes the same one meanwhile.

    It has the mode that is given from its first byte on.
    """
    partial = path.with_name(f"{path.name}.{os.urandom(4).hex()}.part")
    try:
        if mode is not None:
            partial.touch()
            partial.chmod(mode)
        partial.write_bytes(content.encode() if isinstance(content, str) else content)
        partial.rename(path)
    except BaseException:  # a full disk, or Ctrl-C
        partial.unlink(missing_ok=True)
        raise


def table(path: Path) -> Row:
    """Read the one JSON object in a file; empty where that is missing or damaged."""
    try:
        found = json.loads(text(path))
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


@contextlib.contextmanager
def _regular(path: Path) -> Iterator[IO[bytes]]:
    """Open the file, if it is one: a pipe would make us wait for ever."""
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise OSError(errno.EINVAL, "it is no regular file")
    with open(handle, "rb") as file:
        yield file


def _line(text: bytes, wrong: Callable[[Row], str]) -> tuple[Row, str]:
    try:
        line = json.loads(text.decode("utf-8-sig", "replace"))
    except (ValueError, RecursionError):
        return {}, "a whole line is missing"
    return (line, wrong(line)) if isinstance(line, dict) else ({}, "a whole line is missing")
