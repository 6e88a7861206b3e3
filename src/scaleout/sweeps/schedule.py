"""The jobs of a sweep, one after another: in which order, and how long still."""

import random
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .. import words
from ..jobs.job import JobInterrupted
from ..paths import show
from . import points
from .attempt import said_of
from .conditions import Settle
from .estimate import check_length, duration, how_long
from .journal import (
    ENDS,
    FIRST,
    LAST,
    OTHERS_FIRST,
    OTHERS_LAST,
    POINT,
    Journal,
    Key,
)
from .points import Point
from .search import ask
from .work import Work


@dataclass
class Schedule:
    """One sweep at work."""

    work: Work
    repeat: int
    max_minutes: float
    total: int = 0
    count: int = 0
    told: bool = False
    bar: Any = None

    @property
    def journal(self) -> Journal:
        """Of the work."""
        return self.work.journal

    def say(self, text: str) -> None:
        """As the work says it."""
        self.work.say(text)

    def measure(
        self,
        choices: points.Choices,
        seed: int,
        search: int,
        lower: bool,
        others: Point | None,
        quiet: bool,
        settle: Settle = dict,
    ) -> None:
        """Measures the default, the grid (or as much of it as a search asks for), the default
        again.
        """
        from tqdm import tqdm

        self.work.settle_as_before()
        grid = points.grid(choices, self.work.cores, settle)
        default = points.default(choices, points.programs(choices, self.work.words))
        rounds, done = range(self.repeat), self.journal.done
        beside = [(FIRST, LAST, default)]
        if others:
            beside.append((OTHERS_FIRST, OTHERS_LAST, others))
        first = [
            key
            for r in rounds
            for begin, _, point in beside
            if (key := (begin, point, r)) in done or not self.journal.has(POINT)
        ]
        plan = list(self._shuffled(list(grid.values()), seed))[
            : min(search or len(grid), len(grid)) * self.repeat
        ]
        if not search and any(key not in done and not self.journal.failure(key[1]) for key in plan):
            self.journal.forget(lambda key, row: key[0] in ENDS)  # more points come after it
        last = [(end, point, r) for r in rounds for _, end, point in beside]
        of_this = [
            role
            for role, p, r in done
            if (search or r < self.repeat) and (role != POINT or p in grid.values())
        ]
        self.total = len(first) + len(plan) + len(last)
        self.count = min(len(of_this), self.total)
        self._announce(list(grid.values()))
        self.bar = tqdm(
            total=self.total, initial=self.count, unit="job", smoothing=0, disable=quiet or None
        )
        try:
            self._each(first)
            if search:
                self._search(choices, grid, search, seed, lower, settle)
                self.total = self.bar.total = self.count + len(last)
            else:
                self._each(plan)
            self._each(last)
        except KeyboardInterrupt:
            raise JobInterrupted(
                f"Interrupted: {self.count} of {self.total} jobs are kept; the same line goes on "
                "from there."
            ) from None
        finally:
            self.bar.close()

    def _shuffled(self, grid: list[Point], seed: int) -> Iterator[Key]:
        """The whole grid, once a repeat, each time in an order of its own: a machine that slows
        down hits all alike."""
        draw = random.Random(seed)
        for repeat in range(self.repeat):
            yield from ((POINT, point, repeat) for point in draw.sample(grid, len(grid)))

    def _announce(self, grid: list[Point]) -> None:
        beyond = sum(point.ranks * (point.threads or 1) > self.work.cores for point in grid)
        if beyond:
            self.say(
                f"{beyond} of {len(grid)} points ask for more threads in all than the {self.work.cores} "
                "cores here."
            )
        if self.count:
            self.say(
                f"{self.count} of {self.total} jobs were measured before, in "
                f"{show(self.journal.folder)}."
            )
            self._estimate()

    def _estimate(self) -> None:
        """Says how long the rest will take, by the jobs so far; ScaleoutError when that is more
        than was allowed."""
        self.told = True
        if rest := self.total - self.count:
            self.say(how_long(rest, self._job_s()))
            check_length(rest * self._job_s(), self.max_minutes)

    def _job_s(self) -> float:
        return float(statistics.median(row["wall_s"] for row in self.journal.done.values()))

    def _each(self, keys: Sequence[Key]) -> None:
        for key in keys:
            if key not in self.journal.done:
                self._once(key)

    def _search(
        self,
        choices: points.Choices,
        grid: Mapping[tuple[points.Value, ...], Point],
        trials: int,
        seed: int,
        lower: bool,
        settle: Settle,
    ) -> None:
        def measure(place: tuple[points.Value, ...], times: int) -> float | None:
            key = (POINT, grid[place], times)
            if key not in self.journal.done:
                self._once(key, not times, lower)
            return None if self.journal.failure(key[1]) else float(self.journal.done[key]["rate"])

        found = ask(choices, trials, self.repeat, seed, self.work.cores, measure, lower, settle)
        spared = len(found) * self.repeat - sum(map(len, found.values()))
        if spared > 0 and all(found.values()):
            self.say(
                f"{words.count(spared, 'job')} left out: only what may be the best was measured "
                "again."
            )

    def _once(self, key: Key, early: bool = False, lower: bool = False) -> None:
        """One job, kept before the next begins. Of a point that has failed, the other repeats are
        left out. Where `early`, it may end as hopeless."""
        role, point, _ = key
        if self.journal.failure(point):
            self.count += 1
            self.bar.total -= 1
            return
        self.bar.set_postfix_str(_called(role, point))
        row = self.work.at_rest(point, early, lower)
        self.journal.add(key, row)
        self.count += 1
        with self.bar.external_write_mode():
            said = said_of(row)
            left = (
                f"   ({duration((self.total - self.count) * self._job_s())} left)"
                if self.bar.disable
                else ""
            )
            where = f"{self.count:>{len(str(self.total))}}/{self.total}"
            self.say(f"{where}  {_called(role, point)}: {said.rstrip()}{left}")
            self.work.remark(point, row)
        self.bar.update()
        self.work.look(row)
        if not self.told:
            self._estimate()


def _called(role: str, point: Point) -> str:
    if role == POINT:
        return str(point)
    return "the default" if role in (FIRST, LAST) else "the published setting"
