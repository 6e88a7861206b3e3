"""Ends a job of a search while it runs, once the figures that it prints are hopeless: even the best
of them lies below what the leader can be relied on to give."""

import math
import re
from dataclasses import dataclass, field

from ..jobs.job import Enough
from .rates import Lines, Metric, NoFigure

FEW = 10  # figures of each rank: that all of them are poor by chance happens once in a thousand
MOST = 20_000  # lines to look at: a job that says more runs to its end
RANK = re.compile(r"\[([0-9]+)\] (.*)")


@dataclass
class Early:
    """Takes a job's lines as they come."""

    figure: Metric
    voices: int
    least: float
    lower: bool
    hopeless: bool = False
    lines: list[tuple[int | None, str]] = field(default_factory=list)
    look_at: int = FEW

    def __call__(self, line: str) -> None:
        """Takes one line, marked with its rank."""
        found = RANK.fullmatch(line)
        if not found or self.look_at > MOST:
            return
        self.lines.append((int(found[1]), found[2]))
        if len(self.lines) < self.look_at:
            return
        self.look_at = 2 * len(self.lines)  # each look starts a process, so they grow rare
        if self._is_hopeless(self.lines):
            self.hopeless = True
            raise Enough

    def _is_hopeless(self, lines: Lines) -> bool:
        try:
            values = self.figure.read_lines(lines)
        except NoFigure:  # said when the job has ended
            return False
        kept = [given[self.figure.skip :] for given in values.values()]
        if len(kept) < self.voices or min(map(len, kept)) < FEW:
            return False
        best = self.figure.of_ranks([(min if self.lower else max)(given) for given in kept])
        return best > 0 and (-1 if self.lower else 1) * math.log(best) < self.least
