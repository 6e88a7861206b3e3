"""What a comparison or a sweep has measured, kept line by line in a folder of its own, so that one
that was interrupted goes on from there."""

import contextlib
import functools
import hashlib
import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Generic, TypeVar

import msgspec

from ..base import jsonlines
from ..base.errors import ScaleoutError
from ..base.locks import held
from ..base.paths import results, show
from ..base.words import secret
from .row import Row, wrong

MOST_LETTERS = 60  # of a folder's name
About = TypeVar("About", bound=msgspec.Struct)
Kind = TypeVar("Kind", bound=Row)


class Journal(Generic[About, Kind]):
    """The folder results/KIND/NAME: KIND.json says what is measured, a file of lines what was."""

    def __init__(
        self, kind: str, name: str, lines: str, about: type[About], row: type[Kind]
    ) -> None:
        self.kind, self.name, self._about, self._row = kind, name, about, row
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

    def description(self) -> About | None:
        """Read what is measured here; None where nothing says so, or it is damaged."""
        return description(self.about, self._about)

    def rows(self) -> tuple[list[Kind], str]:
        """Read the lines that count, and what to say of those that are left out."""
        return read_rows(self.path, self._row)

    def begin(self, about: About, old: str) -> None:
        """Note what is measured from now on; put aside what was before, as OLD-1.jsonl and .json."""
        if self.path.exists():
            names = (self.folder / f"{old}-{number}.jsonl" for number in range(1, 10**6))
            aside = next(name for name in names if not name.exists())
            self.path.rename(aside)
            if self.about.exists():
                self.about.rename(aside.with_suffix(".json"))
        self.note(about)

    def note(self, about: About) -> None:
        """Write what is measured here; its owner's alone where that holds a secret."""
        mode = 0o600 if _holds_secret(msgspec.to_builtins(about)) else None
        text = msgspec.json.format(msgspec.json.encode(about), indent=1)
        jsonlines.write(self.about, text + b"\n", mode)

    def keep_only(self, rows: Sequence[Kind]) -> None:
        """Leave only these lines in the file."""
        text = b"".join(msgspec.json.encode(row) + b"\n" for row in rows)
        jsonlines.write(self.path, text, stat.S_IMODE(self.path.stat().st_mode))

    def add(self, row: Kind) -> None:
        """Keep one job, on disk before the next begins."""
        if not self.path.exists():  # who may read what is measured here may read its lines
            self.path.touch(stat.S_IMODE(self.about.stat().st_mode))
        jsonlines.append(self.path, msgspec.json.encode(row).decode())


def description(path: Path, kind: type[About]) -> About | None:
    """Read what a folder says that it measures; None where it is missing or damaged."""
    try:
        return msgspec.convert(jsonlines.table(path), kind)
    except msgspec.ValidationError:
        return None


def read_rows(path: Path, kind: type[Kind]) -> tuple[list[Kind], str]:
    """Read the lines of a file that are such rows, and what to say of those that are left out."""
    lines, left_out = jsonlines.read(path, functools.partial(wrong, kind=kind))
    return [kind.of(line) for line in lines], left_out


def _holds_secret(about: object) -> bool:
    """Tell whether a variable in a description is a secret by its name."""
    if isinstance(about, Mapping):
        return any(secret(str(name)) or _holds_secret(inside) for name, inside in about.items())
    return isinstance(about, list) and any(map(_holds_secret, about))


def folder_name(name: str, stem: str, about: msgspec.Struct) -> str:
    """Return the name that was asked for, or make one from all that decides the figures."""
    if name:
        plain = name.replace("-", "").replace("_", "").replace(".", "")
        if not plain.isalnum() or name.startswith(".") or len(name) > MOST_LETTERS:
            raise ScaleoutError(
                f"A name has letters, digits, - and _, {MOST_LETTERS} at most, such as oneDNN-2; "
                f"not {name!r}."
            )
        return name
    digest = hashlib.sha256(msgspec.json.encode(about, order="sorted")).hexdigest()[:8]
    short = "".join(c if c.isalnum() or c in "-_" else "-" for c in stem)[:40].strip("-")
    return f"{short or 'job'}-{digest}"


def scripts(words: Sequence[str]) -> dict[str, str]:
    """Digest the scripts that a command names, {path: SHA-256}: an edited one is another job."""
    named = [w for w in words if w.endswith((".py", ".sh")) or (os.sep in w and w == words[0])]
    return {w: hashlib.sha256(Path(w).read_bytes()).hexdigest() for w in named if Path(w).is_file()}
