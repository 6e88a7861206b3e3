"""What a sweep has measured, kept as it goes: one JSON line a job, so that a killed sweep goes on
from there."""

import contextlib
import hashlib
import json
import math
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from .. import jsonlines, records
from ..errors import ScaleoutError
from ..locks import held
from ..paths import results, show
from .points import Point

FIRST, POINT, LAST = "default, first", "point", "default, last"
OTHERS_FIRST, OTHERS_LAST = "published, first", "published, last"
BEGINS, ENDS = (FIRST, OTHERS_FIRST), (LAST, OTHERS_LAST)
COPIES = "copies"  # the status of a job whose ranks never talked: its rate is that of one copy
RATED = ("ok", COPIES)
Key = tuple[str, Point, int]
Row = dict[str, Any]


def digest(this: Mapping[str, Any]) -> str:
    """A short name for a sweep: the same for the same command, settings, machine and text of its
    scripts."""
    return hashlib.sha256(json.dumps(this, sort_keys=True).encode()).hexdigest()[:8]


def point_of(row: Mapping[str, Any]) -> Point:
    """The point of a line."""
    return Point(row["ranks"], row["threads"], tuple(row["env"].items()))


def load(path: Path, say: Callable[[str], None] = lambda text: None) -> dict[Key, Row]:
    """The lines of a points.jsonl that count, in order.

    A later line of the same job replaces an earlier one, as after --retry. A default that was
    measured last is not the last any more once a point comes after it.
    """
    found: dict[Key, Row] = {}
    rows, left_out = jsonlines.read(path, _wrong)
    for row in rows:
        _put(found, (row["role"], point_of(row), row["repeat"]), row)
    if left_out:
        say(f"{show(path)}{left_out}.")
    return found


def _wrong(row: Row) -> str:
    """What is wrong with a line of a points.jsonl, in a few words."""
    env = row.get("env")
    known = isinstance(env, dict) and all(v is None or isinstance(v, str) for v in env.values())
    threads = row.get("threads")  # None in the default
    whole = (row.get("ranks"), 1 if threads is None else threads, row.get("cores", 1))
    if not known or not all(type(value) is int and value > 0 for value in whole):
        return "its setting is missing"
    repeat = row.get("repeat")
    if row.get("role") not in (POINT, *BEGINS, *ENDS) or type(repeat) is not int or repeat < 0:
        return "its place in the sweep is missing"
    numbers = [row.get("wall_s"), *([row.get("rate")] if row.get("status") in RATED else [])]
    if not all(isinstance(n, (int, float)) and math.isfinite(n) and n >= 0 for n in numbers):
        return "a figure is missing"
    texts = [row.get("status"), *(row.get(name, "") for name in ("unit", "reason", "cpu"))]
    texts += [row.get(name, "") for name in ("command", "metric", "utc", "run_id")]
    return "" if all(isinstance(text, str) for text in texts) else "a word is missing"


def description(folder: Path) -> dict[str, Any]:
    """What the sweep in a folder is; empty where nothing says so, or it is damaged."""
    return jsonlines.table(folder / "sweep.json")


def _put(found: dict[Key, Row], key: Key, row: Row) -> None:
    found.pop(key, None)
    if key[0] == POINT:
        for old in [old for old in found if old[0] in ENDS]:
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
    def open(self, this: Mapping[str, Any], say: Callable[[str], None]) -> Iterator[None]:
        """Reads what is there and holds the folder for this sweep alone."""
        with held(self.folder / ".lock") as mine:
            if not mine:
                raise ScaleoutError(
                    f"The sweep {self.name} is running already: "
                    "wait for it, or name this one with --name."
                )
            self.done = load(self.path, say)
            if not any(row["status"] == "ok" for row in self.done.values()):
                self._begin(this)
            else:
                self._compare(description(self.folder), this)
            yield

    def _begin(self, this: Mapping[str, Any]) -> None:
        """Says what this sweep is. Where every job failed so far, they are put aside: the command
        has been mended."""
        if self.done:
            kept = next(
                p for n in range(1, 10**6) if not (p := self.folder / f"failed-{n}.jsonl").exists()
            )
            self.path.rename(kept)
            self.done = {}
        partial = self.folder / "sweep.json.part"
        partial.write_text(json.dumps(this, indent=1) + "\n", encoding="utf-8")
        partial.rename(self.folder / "sweep.json")

    def _compare(self, old: Mapping[str, Any], new: Mapping[str, Any]) -> None:
        if not old:
            return
        differ = [name for name in new if name != "choices" and old.get(name) != new[name]]
        axes = old.get("choices")
        if not isinstance(axes, dict) or list(axes) != list(new["choices"]):
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
        whole = {
            "schema": 1,
            "role": role,
            "ranks": point.ranks,
            "threads": point.threads,
            "env": dict(point.env),
        }
        whole |= {"repeat": repeat, **row}
        records._append(self.path, json.dumps(whole))
        _put(self.done, key, whole)

    def failure(self, point: Point) -> Row | None:
        """A failed job of this point, if there is one."""
        return next(
            (row for (_, p, _), row in self.done.items() if p == point and row["status"] != "ok"),
            None,
        )

    def has(self, role: str) -> bool:
        """Whether any job of this role is kept."""
        return any(key[0] == role for key in self.done)


def scripts(words: list[str]) -> dict[str, str]:
    """{path: SHA-256} of the scripts that a command names, so that an edited one is not taken for
    the old one."""
    found = [w for w in words if w.endswith((".py", ".sh")) or os.sep in w and w == words[0]]
    return {w: hashlib.sha256(Path(w).read_bytes()).hexdigest() for w in found if Path(w).is_file()}
