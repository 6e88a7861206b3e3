"""What a sweep has measured, kept as it goes: one JSON line a job, so that a killed sweep goes on from there."""

import contextlib
import fcntl
import hashlib
import json
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from .. import records
from ..errors import ScaleoutError
from ..paths import results, show
from .points import Point

__all__ = ["FIRST", "LAST", "POINT", "Journal", "Key", "digest", "load", "point_of", "scripts"]

FIRST, POINT, LAST = "default, first", "point", "default, last"
Key = tuple[str, Point, int]
Row = dict[str, Any]


def digest(about: Mapping[str, Any]) -> str:
    """A short name for a sweep: the same for the same command, settings, machine and text of its scripts."""
    return hashlib.sha256(json.dumps(about, sort_keys=True).encode()).hexdigest()[:8]


def point_of(row: Mapping[str, Any]) -> Point:
    """The point of a line."""
    return Point(row["ranks"], row["threads"], tuple(row["env"].items()))


def load(path: Path, say: Callable[[str], None] = lambda text: None) -> dict[Key, Row]:
    """The lines of a points.jsonl that count, in order: {(role, point, repeat): line}.

    A later line of the same job replaces an earlier one, as after --retry. A default that was measured last is not the
    last any more once a point comes after it. A damaged line is left out, and named to `say`.
    """
    found: dict[Key, Row] = {}
    text = path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""
    for number, line in enumerate(text.splitlines(), 1):
        try:
            row = json.loads(line)
            key = (row["role"], point_of(row), row["repeat"])
            row["status"], row["rate"], row["wall_s"]  # noqa: B018  (each must be there)
        except (ValueError, KeyError, TypeError, AttributeError):
            if line.strip():
                say(f"{show(path)}, line {number}, is not whole: left out.")
            continue
        _put(found, key, row)
    return found


def _put(found: dict[Key, Row], key: Key, row: Row) -> None:
    found.pop(key, None)
    if key[0] == POINT:
        for old in [old for old in found if old[0] == LAST]:
            del found[old]
    found[key] = row


class Journal:
    """The folder of one sweep: sweep.json says what it is, points.jsonl what was measured."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.folder = results("sweep", name)
        self.path = self.folder / "points.jsonl"
        self.done: dict[Key, Row] = {}

    @contextlib.contextmanager
    def open(self, about: Mapping[str, Any], say: Callable[[str], None]) -> Iterator[None]:
        """Reads what is there and holds the folder for this sweep alone; ScaleoutError when it is another's."""
        with open(self.folder / ".lock", "a") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)  # given back by the system, however this process ends
            except BlockingIOError:
                raise ScaleoutError(
                    f"The sweep {self.name} is running already: wait for it, or name this one with --name."
                ) from None
            except OSError:  # a file system without locks
                pass
            self.done = load(self.path, say)
            if not any(row["status"] == "ok" for row in self.done.values()):
                self._begin(about)
            else:
                self._compare(about)
            yield

    def _begin(self, about: Mapping[str, Any]) -> None:
        """Says what this sweep is. Where every job failed so far, they are put aside: the command has been mended."""
        if self.done:
            kept = next(p for n in range(1, 10**6) if not (p := self.folder / f"failed-{n}.jsonl").exists())
            self.path.rename(kept)
            self.done = {}
        partial = self.folder / "sweep.json.part"
        partial.write_text(json.dumps(about, indent=1) + "\n", encoding="utf-8")
        partial.rename(self.folder / "sweep.json")

    def _compare(self, about: Mapping[str, Any]) -> None:
        try:
            old = json.loads((self.folder / "sweep.json").read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return
        differ = [name for name in about if name != "choices" and old.get(name) != about[name]]
        if list(old.get("choices", about["choices"])) != list(about["choices"]):
            differ.append("axes")
        if differ:
            raise ScaleoutError(
                f"{show(self.folder)} holds a sweep with another {' and '.join(differ)}: "
                "name this one with --name, so that the two are not mixed."
            )

    def forget(self, which: Callable[[Key, Row], bool]) -> None:
        """Lets jobs be done again; their old lines stay in the file, and later ones count."""
        for key in [key for key, row in self.done.items() if which(key, row)]:
            del self.done[key]

    def add(self, key: Key, row: Row) -> None:
        """Keeps one job, on disk before anything else happens."""
        role, point, repeat = key
        whole = {"schema": 1, "role": role, "ranks": point.ranks, "threads": point.threads, "env": dict(point.env)}
        whole |= {"repeat": repeat, **row}
        records._append(self.path, json.dumps(whole))
        _put(self.done, key, whole)

    def failure(self, point: Point) -> Row | None:
        """A failed job of this point, if there is one."""
        return next((row for (_, p, _), row in self.done.items() if p == point and row["status"] != "ok"), None)

    def has(self, role: str) -> bool:
        """Whether any job of this role is kept."""
        return any(key[0] == role for key in self.done)


def scripts(words: list[str]) -> dict[str, str]:
    """{path: SHA-256} of the scripts that a command names, so that an edited one is not taken for the old one."""
    found = [w for w in words if w.endswith((".py", ".sh")) or os.sep in w and w == words[0]]
    return {w: hashlib.sha256(Path(w).read_bytes()).hexdigest() for w in found if Path(w).is_file()}
