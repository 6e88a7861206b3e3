"""What came for each guess: kept with the guess in results/guesses.jsonl, for who asks how far off
they were.

Of a guess the first counts, and one that is made after the answer was shown is none."""

import codecs
import contextlib
import io
import json
import math
import os
import tomllib
import warnings
from collections.abc import Mapping
from datetime import UTC, datetime
from numbers import Real
from pathlib import Path
from types import CodeType
from typing import Any, Protocol

import msgspec

from ..base import jsonlines
from ..base.paths import home, results, results_path
from ..base.words import plain

MASTER = "came.toml"  # of a lesson's masters
FILE = ".came.json"  # of its lab, hidden from who has not guessed yet
KEPT = "guesses.jsonl"


class Asked(msgspec.Struct):
    """What came for a guess: an expression in the notebook's names, and its unit, "" of a word."""

    came: str
    unit: str


class Shell(Protocol):
    """What is needed of IPython's."""

    user_ns: dict[str, Any]
    events: Any


class Ended(Protocol):
    """A cell that was run."""

    success: bool


def made(text: str) -> str:
    """Make the lab's file from the master's: expressions are turned by 13 letters."""
    asked = msgspec.convert(tomllib.loads(text), dict[str, Asked])
    turned = {name: Asked(_turned(one.came), one.unit) for name, one in asked.items()}
    return msgspec.json.format(msgspec.json.encode(turned), indent=1).decode() + "\n"


def read(path: Path) -> dict[str, Asked]:
    """Read a lab's file; nothing where there is none, or it is damaged."""
    with contextlib.suppress(OSError, msgspec.MsgspecError, UnicodeDecodeError):
        turned = msgspec.json.decode(path.read_bytes(), type=dict[str, Asked])
        return {name: Asked(_turned(one.came), one.unit) for name, one in turned.items()}
    return {}


class Came:
    """Looks after each cell whether a guess has got its answer; IPython calls it.

    notebook: its topic. asked: of each guess. names: those of the notebook, as they are now.
    """

    def __init__(self, notebook: str, asked: Mapping[str, Asked], names: dict[str, Any]) -> None:
        self.notebook, self.names = notebook, names
        lines, _ = jsonlines.read(results_path() / KEPT, lambda line: "")
        known = {line.get("name") for line in lines if line.get("notebook") == notebook}
        self.open: dict[str, tuple[CodeType, str]] = {
            name: (compile(f"({one.came}\n)", name, "eval"), one.unit)
            for name, one in asked.items()
            if name not in known
        }
        self.first: dict[str, object] = {}

    def look(self, ended: Ended) -> None:
        """Keep the guesses that this cell has answered. No cell ever hears of it."""
        if ended.success:
            with contextlib.suppress(Exception, KeyboardInterrupt):
                self._keep()

    def _keep(self) -> None:
        for name in [name for name in self.open if name in self.names]:
            if self.names[name] is not None:
                self.first.setdefault(name, self.names[name])
            expression, unit = self.open[name]
            came = self._value(expression)
            if came is None:
                continue
            del self.open[name]
            guess = self.first.get(name)
            said = _plain(guess) if isinstance(came, float) else _word(guess)
            if guess is not None and type(said) is type(came):
                now = datetime.now(UTC).isoformat(timespec="seconds")
                row: dict[str, object] = {"utc": now, "notebook": self.notebook, "name": name}
                row |= {"guess": said, "came": came, "unit": unit}
                jsonlines.append(results() / KEPT, json.dumps(row))

    def _value(self, expression: CodeType) -> float | str | None:
        """What an expression gives by now; None where that is nothing yet."""
        unseen = io.StringIO()
        with (
            contextlib.suppress(Exception),
            contextlib.redirect_stdout(unseen),
            contextlib.redirect_stderr(unseen),
            warnings.catch_warnings(action="ignore"),
        ):
            return _plain(eval(expression, self.names))
        return None


def begin(shell: Shell) -> None:
    """Keep guesses and what came from now on, in the notebook that a Jupyter server has opened.

    The example guesses of a solution are nobody's.
    """
    book = Path(os.environ["JPY_SESSION_NAME"])
    asked = {} if book.parent.name == "solutions" else read(home() / "labs" / book.stem / FILE)
    if asked:
        shell.events.register("post_run_cell", Came(book.stem, asked, shell.user_ns).look)


def _plain(value: object) -> float | str | None:
    """Make a number or a word of a value; None of what is no number, and of nothing."""
    if value is None or (isinstance(value, Real) and not isinstance(value, bool)):
        return float(value) if value is not None and math.isfinite(value) else None
    return _word(value) or None


def _word(value: object) -> str:
    return plain(" ".join(str(value).split()))


def _turned(text: str) -> str:
    return codecs.encode(text, "rot13")
