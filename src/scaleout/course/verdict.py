"""What a check found, in the lab's own terms; and of a job that failed, at which TODO."""

import re
import textwrap
import time
import warnings
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, Self

from ..jobs import failures
from ..jobs.failures import BY_TORCH, FRAME, STACK, first_traceback, without_stacks
from ..jobs.job import Enough, JobError, JobTimeout, Run
from ..jobs.output import Line
from ..paths import show
from ..stacks import DONE
from ..words import count
from . import marks
from .masters import read_text, untouched

WIDTH = 64  # characters that a notebook shows beside an editor on a laptop
WAITS = (
    "most often a rank waits for a message that nobody sends, or makes a call that the others do "
    "not."
)


PATIENCE_S = 10.0  # a job that takes longer is worth a line
SAME = 2  # so often each rank must be found where it was before, until the job is ended
PACKAGE = Path(__file__).parents[1]


class Script(Protocol):
    """The lab whose script is checked."""

    name: str
    folder: Path
    script: Path
    solution: bool

    def other(self, script: str) -> Self: ...

    @property
    def run(self) -> Callable[..., Run]: ...


@dataclass(frozen=True)
class Result:
    """What a check found."""

    number: int
    state: str
    what: str

    def __str__(self) -> str:
        """On lines that fit beside an editor; what a job said is left as it is."""
        said, *more = self.what.split("\n")
        start = f"TODO {self.number}  {self.state:<11}  "
        first = textwrap.fill(said, WIDTH, initial_indent=start, subsequent_indent=" " * len(start),
                              break_long_words=False, break_on_hyphens=False)  # fmt: skip
        return "\n".join([first, *more])


class Judge:
    """Says what a failed job means for each TODO of a lab: at fault, not started, or hidden."""

    def __init__(self, lab: Script) -> None:
        self.script = lab.script
        self.text = read_text(lab.script)
        self.start = untouched(lab.name).get(lab.script.name)
        self.told: dict[str, int] = {}  # failures without a line, and the TODO that showed each

    def touched(self, number: int) -> bool:
        """Whether anything of this TODO has changed since the file was given out."""
        return self.start is None or marks.touched(self.text, self.start, number)

    def nearest(self, line: int) -> int | None:
        """The TODO that a line belongs to; one that nobody has touched is not blamed."""
        numbers = marks.numbers(self.text)
        return marks.nearest(self.text, line, [n for n in numbers if self.touched(n)] or numbers)

    def unreadable(self, number: int) -> Result | None:
        """What a text that Python cannot read means for a TODO; None when it can be read."""
        error = syntax_error(self.text) if self.script.suffix == ".py" else None
        if error is None:
            return None
        line, said = error
        file = self.script.name
        what = f"Python cannot read line {line} of {file}: {said}.\n    {self._code(line)}"
        return self._share(number, self.nearest(line), what, f"{file}, line {line}: {said}.")

    def failed(self, number: int, error: JobError) -> Result:
        """What a job that did not end well means for a TODO."""
        stopped = re.search(r"NotImplementedError: TODO (\d+):", error.run.output)
        if stopped:
            if int(stopped[1]) == number or not self.touched(number):
                return Result(number, "not started", "write it, then check again.")
            what = f"the job stops at TODO {stopped[1]}, which is not written yet."
            return Result(number, "not judged", what)
        if isinstance(error, JobTimeout):
            return self._waits(number, error)
        line = self._line(error)
        if line is None:
            return self._share(number, None, f"the job did not end well. {error}", str(error))
        what = f"the job failed in line {line} of {self.script.name}. {error}"
        brief = f"line {line} of {self.script.name} fails: {_last_words(error)}"
        return self._share(number, self.nearest(line), what, brief)

    def _share(self, number: int, guilty: int | None, what: str, brief: str) -> Result:
        """The whole story for the TODO at fault, a short one for those that it hides."""
        if guilty is None:
            told = self.told.setdefault(brief, number)
            said = what if told == number else f"the same job failed: see TODO {told}."
            return Result(number, "not judged", said)
        if guilty == number:
            return Result(number, "not yet", what)
        if not self.touched(number):
            return Result(number, "not started", "write it, then check again.")
        return Result(number, "not judged", f"first mend TODO {guilty}: {brief}")

    def _waits(self, number: int, error: JobTimeout) -> Result:
        there = standing(error.run.lines, self.script)
        where = [f"rank {rank} waits in line {n}: {self._code(n)}" for rank, n in there.items()]
        silent = sorted(set(range(error.run.ranks)) - set(there)) if there else []
        where += [f"rank {rank} did not say where it is" for rank in silent]
        said = f"the job came to no end in {error.run.wall_s:.0f} s: {WAITS}"
        all_of_it = f"All it said: {show(error.run.folder / 'output.txt')}"
        what = "\n    ".join([said, *where, all_of_it])
        found = Counter(filter(None, (self.nearest(line) for line in there.values())))
        if not found:
            return self._share(number, None, what, said)
        return self._share(number, found.most_common(1)[0][0], what, f"{'; '.join(where)}.")

    def _line(self, error: JobError) -> int | None:
        """The innermost line of runme.py at which the first rank failed, as far as it was told."""
        lines = error.run.lines
        rank, _ = first_traceback(lines)
        if rank is not None:
            said = [BY_TORCH.sub("", text, 1) for at, text in lines if at == rank]
            first = next(i for i, text in enumerate(said) if text.startswith("Traceback ("))
            frames = [in_script(text, self.script) for text in said[first:]]
            return next(filter(None, reversed(frames)), None)
        crashed = next((r for r, text in lines if text.startswith("Fatal Python error")), None)
        return None if crashed is None else standing(lines, self.script).get(crashed)

    def _code(self, line: int) -> str:
        return "".join(self.text.splitlines()[line - 1 : line]).strip()


def _last_words(error: JobError) -> str:
    """The exception's own line, and the last of its message where that only begins there."""
    _, block = first_traceback(without_stacks(error.run.lines))
    block = [text for text in block if text.strip()]
    said = [text for text in block if not text.startswith((" ", "Traceback"))]
    for text in said:
        if text.endswith(":") and text != block[-1]:
            return f"{text} {block[-1].strip()}"
    return said[-1] if said else "it crashed in native code."


def syntax_error(text: str) -> tuple[int, str] | None:
    """The line at which Python cannot read a text, and what it says; None when it can."""
    if "\0" in text:
        return text.count("\n", 0, text.index("\0")) + 1, "SyntaxError: a null byte"
    try:
        with warnings.catch_warnings(action="ignore"):
            compile(text, "runme.py", "exec", dont_inherit=True)
    except SyntaxError as error:
        return error.lineno or 1, f"{type(error).__name__}: {error.msg}"
    return None


def in_script(text: str, script: Path) -> int | None:
    """The line of a script that a traceback's line names."""
    found = FRAME.match(text)
    return int(found[2]) if found and _is(found[1], script) else None


def _is(file: str, script: Path) -> bool:
    return Path(file).parts[-2:] == script.parts[-2:]


def standing(lines: Iterable[Line], script: Path) -> dict[int, int]:
    """The line of `script` at which each rank stood when it last said so."""
    there = failures.standing(lines, lambda file: _is(file, script))
    return {rank: line for rank, (_, line) in there.items()}


class Watch:
    """Follow what the ranks of a check's job say of where they stand, and end a job that waits.

    A rank waits when its stack has been the same a few times, and the innermost call is the lab's
    own, or ours; a call inside another library may take its time.
    """

    def __init__(self, script: Path, ranks: int, tell: Callable[[str], None] | None = None) -> None:
        self.script, self.ranks, self.tell = script, ranks, tell
        self.begun = self.told = time.monotonic()
        self.stacks: dict[int, list[str]] = defaultdict(list)  # as far as each has come
        self.before: dict[int, list[str]] = {}
        self.same: dict[int, float] = {}  # how often each rank was found where it was before

    def take(self, text: str) -> None:
        """Take a line of the job; Enough when every rank waits or is done, and one waits."""
        line = re.match(r"\[(\d+)\] (.*)", text)
        if line and line[2] == DONE:
            self.same[int(line[1])] = float("inf")
        elif line and FRAME.match(line[2]):
            self.stacks[int(line[1])].append(line[2])
        elif line and STACK.match(line[2]):
            rank = int(line[1])
            stack, self.stacks[rank][:] = list(self.stacks[rank]), []
            waits = self._ours(stack) and stack == self.before.get(rank)
            self.same[rank] = self.same.get(rank, 0) + 1 if waits else 0
            self.before[rank] = stack
            if 1 < self.ranks == len(self.same) and SAME <= min(self.same.values()) < float("inf"):
                raise Enough
        if self.tell and time.monotonic() - self.told > PATIENCE_S:
            self._progress(self.tell)

    def _ours(self, stack: list[str]) -> bool:
        inner = FRAME.match(stack[0]) if stack else None
        place = Path(inner[1]).parent if inner else None
        return place is not None and (
            place.parts[-1:] == self.script.parent.parts[-1:] or place == PACKAGE
        )

    def _progress(self, tell: Callable[[str], None]) -> None:
        self.told = time.monotonic()
        frames = ((rank, in_script(t, self.script)) for rank, s in self.before.items() for t in s)
        lines = {rank: line for rank, line in reversed(list(frames)) if line}
        where = ", ".join(f"rank {rank} in line {line}" for rank, line in sorted(lines.items()))
        spent = f"running {count(self.ranks, 'rank')} ... {self.told - self.begun:.0f} s"
        tell(f"{spent}; {where}" if where else spent)

    def end(self) -> None:
        """Clear the line of progress."""
        if self.tell and self.told > self.begun:
            self.tell("")
