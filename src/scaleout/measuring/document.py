"""One document for a program to read: what `compare --json` and `sweep --json` write."""

import math
import subprocess
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta

from .. import machine
from ..base import jsonlines
from ..base.words import veiled_words
from .kind import Kind

VERSIONS = (
    "scaleout",
    "tensorflow",
    "tensorflow-cpu",
    "torch",
    "horovod",
    "mpi4py",
    "numpy",
    "scikit-learn",
)


def about(text: str) -> Meta:
    """Describe a field for those who read the schema."""
    return Meta(description=text)


class Stamp(msgspec.Struct, frozen=True, kw_only=True):
    """Where and when it was measured, with which versions."""

    utc: str
    machine: Kind
    versions: dict[str, str]
    commit: Annotated[str, about("of the current folder's repository; empty where there is none")]

    @classmethod
    def here(cls) -> "Stamp":
        """Return that of this machine, now."""
        return cls(
            utc=datetime.now(UTC).isoformat(timespec="seconds"),
            machine=Kind.here(),
            versions=machine.versions(VERSIONS),
            commit=_commit(),
        )


class Document(msgspec.Struct, frozen=True, kw_only=True):
    """What every document has."""

    schema: int = 1
    argv: Annotated[list[str], about("the command line as it was typed, secrets veiled")]
    folder: Annotated[str, about("with all that was measured")]
    metric: Annotated[str, about("what a run is judged by")]
    lower: Annotated[bool, about("less is better")]
    unit: str
    stamp: Stamp


def argv(typed: Sequence[str]) -> list[str]:
    """Return a command line without its secrets."""
    return veiled_words(typed)


def write(document: Document, where: str) -> None:
    """Write a document to a file, or to standard output where that is called "-"."""
    text = msgspec.json.format(msgspec.json.encode(document), indent=1) + b"\n"
    if where == "-":
        print(text.decode(), end="", flush=True)
    else:
        jsonlines.write(Path(where), text)


def number(value: float) -> float | None:
    """Return a number as JSON knows it: None for what is none, or infinite."""
    return value if math.isfinite(value) else None


def _commit() -> str:
    try:
        done = subprocess.run(
            ["git", "rev-parse", "HEAD"], capture_output=True, text=True, check=False
        )
    except OSError:
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
