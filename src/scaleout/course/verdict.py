"""What a check found, in the lab's own terms; and of a job that failed, at which TODO."""

import re
import textwrap
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, Self

from ..base.paths import read_text, show
from ..jobs import failures
from ..jobs.failures import BY_TORCH, FRAME, first_traceback, without_stacks
from ..jobs.job import JobError, JobTimeout, Run
from ..jobs.unreadable import conflict, syntax_error
from . import marks
from .masters import untouched

WIDTH = 64  # characters that a notebook shows beside an editor on a laptop
WAITS = (
    "most often a rank waits for a message that nobody sends, or makes a call that the others do "
    "not."
)


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
class Verdict:
    """What a check found."""

    number: int
    state: str
    what: str

    def __str__(self) -> str:
        """Wrap the verdict to lines that fit beside an editor; what a job said is left as it is."""
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
        self.written = {} if self.start is None else marks.written(self.text, self.start)
        self.told: dict[str, int] = {}  # failures without a line, and the TODO that showed each

    def touched(self, number: int) -> bool:
        """Tell whether anything of this TODO has changed since the file was given out."""
        return self.start is None or not {number, None}.isdisjoint(self.written.values())

    def guilty(self, line: int) -> int | None:
        """Find the TODO that a line belongs to; one that nobody has touched is not blamed.

        A line that was given out as it is may fail because a TODO was skipped: that one comes first.
        """
        if own := self.written.get(line):
            return own
        numbers = marks.numbers(self.start or self.text)
        done = [n for n in numbers if self.touched(n)]
        if skipped := [n for n in numbers if done and n < max(done) and n not in done]:
            return min(skipped)
        return marks.nearest(self.text, line, done or numbers)

    def unreadable(self, number: int) -> Verdict | None:
        """Judge a TODO in a text that Python cannot read; None when it can be read."""
        file = self.script.name
        error = syntax_error(self.text.encode(), file) if self.script.suffix == ".py" else None
        if error is None:
            return None
        line, said = error.lineno or 1, f"{type(error).__name__}: {error.msg}"
        if told := conflict(self.text.encode()):
            return self._share(number, self.guilty(line), *[f"in {file}, {told}."] * 2)
        what = f"Python cannot read line {line} of {file}: {said}.\n    {self._code(line)}"
        return self._share(number, self.guilty(line), what, f"{file}, line {line}: {said}.")

    def failed(self, number: int, error: JobError) -> Verdict:
        """Judge a TODO by a job that did not end well."""
        stopped = re.search(r"NotImplementedError: TODO (\d+):", error.run.output)
        if stopped:
            if int(stopped[1]) == number or not self.touched(number):
                return Verdict(number, "not started", "write it, then check again.")
            what = f"the job stops at TODO {stopped[1]}, which is not written yet."
            return Verdict(number, "not judged", what)
        if isinstance(error, JobTimeout):
            return self._waits(number, error)
        line = self._line(error)
        if line is None:
            return self._share(number, None, f"the job did not end well. {error}", str(error))
        what = f"the job failed in line {line} of {self.script.name}. {error}"
        brief = f"line {line} of {self.script.name} fails: {_exception(error)}"
        return self._share(number, self.guilty(line), what, brief)

    def _share(self, number: int, guilty: int | None, what: str, brief: str) -> Verdict:
        """Tell the whole story for the TODO at fault, a short one for those that it hides."""
        if guilty is None:
            told = self.told.setdefault(brief, number)
            said = what if told == number else f"the same job failed: see TODO {told}."
            return Verdict(number, "not judged", said)
        if guilty == number and (self.touched(number) or not self.written):
            return Verdict(number, "not yet", what)
        if not self.touched(number):
            return Verdict(number, "not started", "write it, then check again.")
        if not self.touched(guilty):
            what = f"TODO {guilty} is still open: write it first. Without it {brief}"
            return Verdict(number, "not judged", what)
        return Verdict(number, "not judged", f"first mend TODO {guilty}: {brief}")

    def _waits(self, number: int, error: JobTimeout) -> Verdict:
        there = self._standing(error)
        where = [f"rank {rank} waits in line {n}: {self._code(n)}" for rank, n in there.items()]
        silent = sorted(set(range(error.run.ranks)) - set(there)) if there else []
        where += [f"rank {rank} did not say where it is" for rank in silent]
        said = f"the job came to no end in {error.run.wall_s:.0f} s: {WAITS}"
        all_of_it = f"All it said: {show(error.run.folder / 'output.txt')}"
        what = "\n    ".join([said, *where, all_of_it])
        own = [self.written.get(line) for line in there.values()]
        found = Counter(filter(None, own if any(own) else map(self.guilty, there.values())))
        if not found:
            return self._share(number, None, what, said)
        return self._share(number, found.most_common(1)[0][0], what, f"{'; '.join(where)}.")

    def _line(self, error: JobError) -> int | None:
        """Find the innermost line of runme.py at which the first rank failed, where it is known."""
        lines = error.run.lines
        rank, _ = first_traceback(lines)
        if rank is not None:
            said = [BY_TORCH.sub("", text, 1) for at, text in lines if at == rank]
            first = next(i for i, text in enumerate(said) if text.startswith("Traceback ("))
            frames = [in_script(text, self.script) for text in said[first:]]
            return next(filter(None, reversed(frames)), None)
        crashed = next((r for r, text in lines if text.startswith("Fatal Python error")), None)
        return None if crashed is None else self._standing(error).get(crashed)

    def _standing(self, error: JobError) -> dict[int, int]:
        """Find the line of the script at which each rank stood when it last said so."""
        there = failures.last_places(error.run.lines, lambda file: _is(file, self.script))
        return {rank: line for rank, (_, line) in there.items()}

    def _code(self, line: int) -> str:
        return "".join(self.text.splitlines()[line - 1 : line]).strip()


def _exception(error: JobError) -> str:
    """Quote the exception's own line, and the last of its message where that only begins there."""
    _, block = first_traceback(without_stacks(error.run.lines))
    block = [text for text in block if text.strip()]
    said = [text for text in block if not text.startswith((" ", "Traceback"))]
    for text in said:
        if text.endswith(":") and text != block[-1]:
            return f"{text} {block[-1].strip()}"
    return said[-1] if said else "it crashed in native code."


def in_script(text: str, script: Path) -> int | None:
    """Read the line of a script that a traceback's line names; None where it names another file."""
    found = FRAME.match(text)
    return int(found[2]) if found and _is(found[1], script) else None


def _is(file: str, script: Path) -> bool:
    return Path(file).parts[-2:] == script.parts[-2:]
