"""The door for what attendees hand in: regular files of a stated size, each field of its type; what
is anything else is counted, said in a sentence, and left out."""

import json
import math
import os
import re
import stat
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from ..words import plain
from .masters import TOPIC

BYTES = 20_000_000  # of all files of an attendee: some ten thousand records
LINES = 100_000
TOPICS = 30
LARGEST = 1e15  # any number of a record
OF_A_CHECK = "CHECK_DUMP_S"  # what waiting.variables gives to the job of a check
STATES = ("passed", "not yet", "not started", "not judged")

Line = dict[str, Any]


class HandedIn:
    """What one attendee has handed in."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.records: list[Line] = []
        self.checks: dict[tuple[str, int], str] = {}
        self._bytes = self._lines = 0
        self._refused: Counter[str] = Counter()
        self._topics: set[str] = set()
        for topic in self._folders(folder):
            if not re.fullmatch(TOPIC, topic.name):
                continue  # such as class/ and tour/
            for line in self._read(topic / "checks.jsonl", _check):
                if self._known(topic.name):
                    self.checks[topic.name, line["todo"]] = line["state"]
            for run in self._folders(topic):
                if self._of_a_check(run / "run.json"):
                    continue  # small jobs, whose rates are nobody's measurement
                for line in self._read(run / "records.jsonl", _record):
                    if self._known(line["lab"]):
                        self.records.append(line)

    @property
    def left_out(self) -> str:
        """What was left out, in a sentence; "" when nothing was."""
        return ", ".join(f"{what} ({number:,})" for what, number in self._refused.items())

    def _folders(self, folder: Path) -> list[Path]:
        """The folders in a folder, without links."""
        try:
            with os.scandir(folder) as entries:
                names = [entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]
        except OSError:
            self._refused["folders that cannot be read"] += 1
            return []
        return [folder / name for name in sorted(names)]

    def _known(self, topic: str) -> bool:
        self._topics.add(topic)
        if len(self._topics) > TOPICS:
            self._topics.discard(topic)
            self._refused["lines of too many topics"] += 1
            return False
        return True

    def _read(self, path: Path, judge: Callable[[Any], Line | None]) -> Iterator[Line]:
        """The good lines of a file; what is no such file, or no such line, is counted."""
        every = self._text(path).splitlines()
        read = every[: LINES - self._lines]
        self._lines += len(read)
        if len(read) < len(every):
            self._refused[f"lines beyond the {LINES:,} that are read"] += len(every) - len(read)
        for said in read:
            try:
                line = judge(json.loads(said))
            except (ValueError, RecursionError):  # no JSON, a number too long, too deep
                line = None
            if line is not None:
                yield line
            elif said.strip():
                self._refused["lines that are no record of the workshop"] += 1

    def _of_a_check(self, path: Path) -> bool:
        """Whether a run.json says that `scaleout check` has started the job."""
        try:
            about = json.loads(self._text(path))
        except (ValueError, RecursionError):
            return False
        env = about.get("env") if isinstance(about, dict) else None
        return isinstance(env, dict) and OF_A_CHECK in env

    def _text(self, path: Path) -> str:
        """What a regular file holds; nothing when it is missing, a link, a pipe, or too large."""
        try:
            handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
        except FileNotFoundError:
            return ""
        except OSError:
            self._refused[f"{path.name} that cannot be read"] += 1
            return ""
        try:
            about = os.fstat(handle)
            if not stat.S_ISREG(about.st_mode):
                self._refused[f"{path.name} that is no regular file"] += 1
                return ""
            if about.st_size > BYTES - self._bytes:
                self._refused[f"{path.name} beyond the {BYTES // 1_000_000} MB that are read"] += 1
                return ""
            self._bytes += about.st_size
            with open(handle, "rb", closefd=False) as file:
                return file.read(about.st_size).decode("utf-8", "replace")
        except OSError:
            self._refused[f"{path.name} that cannot be read"] += 1
            return ""
        finally:
            os.close(handle)


def _number(value: Any, least: float, whole: bool) -> bool:
    """Whether a value is a number as a record has it: finite, in bounds, and whole where it must
    be."""
    if isinstance(value, bool) or not isinstance(value, int if whole else (int, float)):
        return False
    return least <= value <= LARGEST and (whole or math.isfinite(value))


def _check(line: Any) -> Line | None:
    if not isinstance(line, dict):
        return None
    good = _number(line.get("todo"), 1, whole=True) and line["todo"] < 100
    return line if good and line.get("state") in STATES else None


def _record(line: Any) -> Line | None:
    """A record's fields that a class's picture needs, each of its type; None when one is not."""
    if not isinstance(line, dict):
        return None
    texts = {name: line.get(name) for name in ("lab", "variant", "rate_unit", "cpu")}
    if not all(isinstance(value, str) for value in texts.values()):
        return None
    if not re.fullmatch(TOPIC, str(texts["lab"])) or len(str(texts["lab"])) > 40:
        return None
    numbers = {name: line.get(name) for name in ("ranks", "threads_per_rank", "cores")}
    optional = [value for name, value in numbers.items() if value is not None or name == "ranks"]
    if not all(_number(value, 1, whole=True) for value in optional):
        return None
    rate = line.get("rate")
    if rate is not None and not _number(rate, 0, whole=False):
        return None
    shown = {name: plain(str(value)) for name, value in texts.items()}
    return {**shown, **numbers, "rate": None if rate is None else float(rate)}
