"""What a comparison or a sweep has measured, kept line by line in a folder of its own, so that one
that was interrupted goes on from there."""

import contextlib
import hashlib
import json
import os
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..base import jsonlines
from ..base.errors import ScaleoutError
from ..base.jsonlines import Row
from ..base.locks import held
from ..base.paths import results, show
from ..base.words import secret

MOST_LETTERS = 60  # of a folder's name


class Journal:
    """The folder results/KIND/NAME: KIND.json says what is measured, a file of lines what was."""

    def __init__(self, kind: str, name: str, lines: str, wrong: Callable[[Row], str]) -> None:
        self.kind, self.name, self.wrong = kind, name, wrong
        self.folder = results(kind, name)
        self.path = self.folder / lines
        self.about = self.folder / f"{kind}.json"

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Hold the folder for this process alone; the system gives it back, whatever happens."""
        with held(self.folder / ".lock") as mine:
            if not mine:
                raise ScaleoutError(
                    f"The {self.kind} {self.name} is running already, in {show(self.folder)}: wait "
                    "for it, or give this one another name."
                )
            try:
                yield
            except OSError as error:
                if error.filename is None:  # a full disk does not say which one
                    error.filename = show(self.folder)
                raise

    def description(self) -> dict[str, Any]:
        """Read what is measured here; empty where nothing says so, or it is damaged."""
        return jsonlines.table(self.about)

    def rows(self) -> tuple[list[Row], str]:
        """Read the lines that count, and what to say of those that are left out."""
        return jsonlines.read(self.path, self.wrong)

    def begin(self, about: Mapping[str, Any], old: str) -> None:
        """Note what is measured from now on; put aside lines that are there as OLD-1.jsonl."""
        if self.path.exists():
            names = (self.folder / f"{old}-{number}.jsonl" for number in range(1, 10**6))
            self.path.rename(next(name for name in names if not name.exists()))
        mode = 0o600 if _holds_secret(about) else None
        jsonlines.write(self.about, json.dumps(about, indent=1) + "\n", mode)

    def keep_only(self, rows: Sequence[Row]) -> None:
        """Leave only these lines in the file."""
        text = "".join(json.dumps(row) + "\n" for row in rows)
        jsonlines.write(self.path, text, stat.S_IMODE(self.path.stat().st_mode))

    def add(self, row: Row) -> None:
        """Keep one job, on disk before the next begins."""
        if not self.path.exists():  # who may read what is measured here may read its lines
            self.path.touch(stat.S_IMODE(self.about.stat().st_mode))
        jsonlines.append(self.path, json.dumps(row))


def _holds_secret(about: object) -> bool:
    """Tell whether a variable in a description is a secret by its name."""
    if isinstance(about, Mapping):
        return any(secret(str(name)) or _holds_secret(inside) for name, inside in about.items())
    return isinstance(about, list) and any(map(_holds_secret, about))


def folder_name(name: str, stem: str, about: Mapping[str, Any]) -> str:
    """Return the name that was asked for, or make one from all that decides the figures."""
    if name:
        plain = name.replace("-", "").replace("_", "").replace(".", "")
        if not plain.isalnum() or name.startswith(".") or len(name) > MOST_LETTERS:
            raise ScaleoutError(
                f"A name has letters, digits, - and _, {MOST_LETTERS} at most, such as oneDNN-2; "
                f"not {name!r}."
            )
        return name
    digest = hashlib.sha256(json.dumps(about, sort_keys=True).encode()).hexdigest()[:8]
    short = "".join(c if c.isalnum() or c in "-_" else "-" for c in stem)[:40].strip("-")
    return f"{short or 'job'}-{digest}"


def scripts(words: Sequence[str]) -> dict[str, str]:
    """Digest the scripts that a command names, {path: SHA-256}: an edited one is another job."""
    named = [w for w in words if w.endswith((".py", ".sh")) or (os.sep in w and w == words[0])]
    return {w: hashlib.sha256(Path(w).read_bytes()).hexdigest() for w in named if Path(w).is_file()}
