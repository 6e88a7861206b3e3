"""One job: its id, its folder, what it said, how it ended."""

import contextlib
import json
import os
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from numbers import Integral, Real
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import ScaleoutError
from ..paths import results
from ..words import veiled
from .output import prefixed

if TYPE_CHECKING:
    import pandas as pd


TIMEOUT_S = 600.0
MOST_RANKS, MOST_THREADS = 1_000_000, 100_000  # no machine has more
MOST_S = 366 * 86_400.0


class Enough(Exception):
    """Raised by what takes a job's output line by line: the job is ended as if its time were up."""


@dataclass
class Run:
    """One job, ended: what was asked, what it said, what it wrote.

    Attributes
    ----------
    id, name, folder
        Its id, which sorts by the time of its start; whose runs it is one of; where all is kept.
    command : str
        The mpirun line, to paste into a terminal.
    ranks, threads : int
        How many ranks, and threads of each.
    status : int or None
        Its exit status; None when it had to be ended.
    wall_s : float
        Seconds, start-up included.
    lines : list of (rank, text)
        What it said, in the order of arrival; rank is None where mpirun itself speaks. Of a job
        that says very much, the first and the last lines, and between them one that tells how many
        are left out; output.txt in its folder has them all.
    talked : bool or None
        Whether ranks have talked to each other; None where nobody can know, and for one rank.
    """

    id: str
    name: str
    command: str
    folder: Path
    ranks: int
    threads: int
    status: int | None = None
    wall_s: float = 0.0
    lines: list[tuple[int | None, str]] = field(default_factory=list, repr=False)
    talked: bool | None = None

    @property
    def output(self) -> str:
        """The lines, each with its rank before it: `[1] text`."""
        return "\n".join(prefixed(rank, text) for rank, text in self.lines)

    @property
    def records(self) -> "pd.DataFrame":
        """The records that the job wrote, a row each (records.read says which columns)."""
        from .. import records

        return records.read(self.folder / "records.jsonl")

    def __repr__(self) -> str:
        end = "ended well" if self.status == 0 else f"exit status {self.status}"
        return (
            f"Run {self.id}: {self.name}, {self.ranks} x {self.threads}, {self.wall_s:.1f} s, {end}"
        )


class JobError(ScaleoutError):
    """A job that did not end well."""

    def __init__(self, message: str, run: Run) -> None:
        super().__init__(message)
        self.run = run


class JobFailed(JobError):
    """The job ended with an exit status other than 0.

    Parameters
    ----------
    message : str
    run : Run
        What it left, kept as `run`.

    Attributes
    ----------
    status : int
        The job's exit status; 128 and the signal's number where a signal ended it.
    """

    def __init__(self, message: str, run: Run) -> None:
        super().__init__(message, run)
        status = run.status or 1
        # Negative: the signal that ended mpirun, which a shell counts from 128 on.
        self.status = status if status > 0 else 128 - status


class JobTimeout(JobError):
    """The job took longer than it was given, and was ended."""

    status = 124  # as of timeout(1)


class JobInterrupted(KeyboardInterrupt):
    """Somebody pressed Ctrl-C or the stop button; the job has been ended.

    Parameters
    ----------
    said : str
        The sentence that is shown.
    over : bool
        False when it was pressed again, so that somebody else ends the job just now.
    """

    def __init__(self, said: str = "", over: bool = True) -> None:
        super().__init__(said)
        self.over = over

    def _render_traceback_(self) -> list[str]:
        return [str(self)]


def new_run(name: str) -> tuple[str, Path]:
    """The id of a new run, and its folder in `results/`. Ids sort in the order of time."""
    run_id = f"{datetime.now(UTC):%Y%m%dT%H%M%S.%f}-{os.urandom(3).hex()}"
    return run_id, results(name, run_id)


def check_size(ranks: int, threads: int | None, timeout: float) -> None:
    """Refuses what can be no job."""
    counts = [ranks] if threads is None else [ranks, threads]
    if not all(isinstance(count, Integral) and count >= 1 for count in counts):  # NumPy's too
        asked = " and ".join(map(str, counts))
        raise ScaleoutError(
            f"A job needs at least 1 rank and 1 thread, in whole numbers; asked for {asked}."
        )
    if ranks > MOST_RANKS or (threads or 1) > MOST_THREADS:
        raise ScaleoutError(
            f"A job has at most {MOST_RANKS:,} ranks and {MOST_THREADS:,} threads a rank: take fewer."
        )
    if not isinstance(timeout, Real) or not 0 < timeout <= MOST_S:
        raise ScaleoutError(
            f"A job needs a time limit in seconds, above 0 and finite; asked for {timeout}."
        )


def check_command(script: Sequence[str], env: Mapping[str, str] | None) -> None:
    """Refuses what can be no command of a rank, and no variables."""
    words = [] if isinstance(script, str) else [str(word) for word in script]
    if not words or not words[0] or any("\0" in word for word in words):
        raise ScaleoutError(
            f'A command is a list of words, such as ["python", "train.py"], not {script!r}.'
        )
    if not isinstance(env or {}, Mapping):
        raise ScaleoutError(f'env takes variables, such as {{"MY_FLAG": "1"}}, not {env!r}.')


def keep(job: Run, script: Sequence[str], env: Mapping[str, str]) -> None:
    """Writes run.json, whole or not at all."""
    about = {
        "id": job.id,
        "name": job.name,
        "command": job.command,
        "ranks": job.ranks,
        "threads": job.threads,
    }
    about |= {"env": veiled(env), "status": job.status, "wall_s": round(job.wall_s, 3)}
    path = next((word for word in script if word.endswith(".py")), "")
    with contextlib.suppress(OSError):  # so that history.runs can say that it was edited
        about["script"] = f"{zlib.crc32(Path(path).read_bytes()):08x}"
    partial = job.folder / "run.json.part"
    partial.write_text(json.dumps(about, indent=1) + "\n", encoding="utf-8")
    partial.rename(job.folder / "run.json")
