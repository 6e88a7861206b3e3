"""What a report rests on, as one value that a page can carry: runs, commands and settings."""

import math
import re
import shlex
from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from ..measuring.row import MOST, Compared, Count, Row, Share, Some
from .private import anonymous as anonymous

SCHEMA = 2
CLOCK_S = 2.0  # a row tells whole seconds
LESS = {  # words in the name of a figure of which less is better
    *("loss", "losses", "error", "errors", "err", "perplexity", "ppl", "nll", "rmse", "mse", "mae"),
    *("mape", "wer", "cer", "fid", "alarm", "alarms", "miss", "misses", "missed"),
}
MORE = {  # and of which more is
    *("accuracy", "acc", "dice", "iou", "auc", "f1", "precision", "recall", "bleu", "psnr", "ssim"),
}


Finite = Annotated[float, Meta(ge=-MOST, le=MOST)]


class Setting(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One command, with all that it was given."""

    words: list[str] = []
    env: dict[str, str | None] = {}  # None: taken away
    ranks: Some = 1
    threads: Some = 1  # of a rank
    placed: dict[str, str] = {}  # nodes and bind, where they were asked for
    script: str = ""  # the file that is run
    text: str = ""  # the key of its text
    command: str = ""  # mpirun's line, as it ran
    work: dict[str, Share] = {}  # what a job of it did, by its records, in the median
    typed: list[str] = []  # the line that measured its accuracy
    files: dict[str, str] = {}  # digests of what it imports and reads, where all its runs agree
    unlike: list[str] = []  # files that were not the same in all its runs
    modules: dict[str, str] = {}  # the keys of the texts of what it imports, by their names
    profile: list[dict[str, Share]] = []  # of each rank, the seconds of each part, in the median


class Tested(Compared, frozen=True, kw_only=True, omit_defaults=True):
    """A run that tells how good a training is."""

    value: Finite
    round: Count = 0
    again: Literal[0, 1] = 0
    beside: dict[str, Finite] = {}  # further figures of the same test, by their names
    worst: dict[str, Finite] = {}  # the cases with the lowest figures, by their names
    trained_on: list[int | str] = []  # the cases that the training could see
    tested_on: list[int | str] = []


class Runs(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Runs of several commands that are judged by one figure."""

    metric: str
    lower: bool = False
    reduce: str = ""
    machine: tuple[str, Count] = ("", 0)
    typed: list[str] = []  # the command line; [] for a call in Python
    variants: dict[str, Setting]
    rows: Sequence[Compared]


class Measured(Runs, frozen=True, kw_only=True, omit_defaults=True):
    """A comparison, or a sweep: each of its repeats is a round, the default its baseline."""

    swept: bool = False
    claim: bool = False  # whether it is what a story claims
    guess: Annotated[float, Meta(gt=0, le=MOST)] | None = None
    guessed: str = ""
    seeds: list[str] = []  # of a sweep over SEED
    limits: dict[str, float] = {}  # of the machine, then
    name: str = ""  # of its folder
    rounds: Count = 0  # at most, as asked; 0 where nobody knows
    least: Count = 0
    work: str = ""  # NAME=A,B: judged by what B of it takes more than A
    behind_s: Finite = 0.0  # by which the clock was behind what was measured before
    before: Count = 0  # how often it was measured before, to the end
    earlier: Finite | None = None  # when its variants were first measured, under whatever name

    @property
    def line(self) -> str:
        """What measures it again, within a sentence."""
        call = f"the same call of {'sweep' if self.swept else 'compare'}()"
        return shlex.join(self.typed) if self.typed else call

    @property
    def began(self) -> float:
        """When its first run ended, by a clock that never goes back."""
        times = (t for row in self.rows if not math.isnan(t := when(row.utc)))
        return min(times, default=-math.inf) + self.behind_s

    @property
    def late(self) -> bool:
        """Whether its guess was written down after the first run of what it is about."""
        starts = [start for row in self.rows if not math.isnan(start := started(row))]
        starts += [] if self.earlier is None else [self.earlier]
        first = min(starts, default=math.inf)
        return self.guess is not None and not when(self.guessed) <= first + CLOCK_S

    @property
    def tried(self) -> int:
        """How many variants there were to choose from."""
        return len(self.variants) - 1


class Test(Runs, frozen=True, kw_only=True, omit_defaults=True):
    """The accuracy of commands, each with several seeds."""

    rows: Sequence[Tested]
    seeds: list[str]
    recorded: bool = False  # by records, whose own names its variants have
    own: bool = False  # the runs of the claim itself


class Machine(msgspec.Struct, frozen=True, kw_only=True):
    """The machine of the first comparison."""

    cpu: str
    cores: Count
    about: list[tuple[str, str]]


class Left(msgspec.Struct, frozen=True, kw_only=True):
    """A comparison of the same programs that is not on the page."""

    name: str
    tried: Count  # variants
    before: Count  # how often it was measured before, to the end


class Evidence(msgspec.Struct, frozen=True, kw_only=True):
    """All that a report rests on."""

    schema: int = SCHEMA
    scaleout: str
    machine: Machine
    versions: dict[str, str] = {}
    comparisons: Annotated[list[Measured], Meta(min_length=1)]
    accuracy: Test | None = None
    texts: dict[str, str] = {}
    notes: str = ""
    left: list[Left] = []  # what its folder holds of the same programs besides
    others: Count = 0  # comparisons of other programs in it
    drawn: str = ""  # a digest of what draws and judges


def less_is_better(name: str) -> bool:
    """Tell by a figure's name whether less of it is better, as of a loss."""
    return not LESS.isdisjoint(re.split("[^a-z]+", name.lower()))


def more_is_better(name: str) -> bool:
    """Tell by a figure's name whether more of it is better, whatever was asked for."""
    return not MORE.isdisjoint(re.split("[^a-z0-9]+", name.lower()))


def when(utc: str) -> float:
    """Return the seconds of a time in UTC; not a number where it is none."""
    try:
        return datetime.fromisoformat(utc).timestamp()
    except (ValueError, OverflowError):
        return math.nan


def started(row: Row) -> float:
    """Return when a run began: its row is written at its end."""
    return when(row.utc) - (row.wall_s or 0.0)
