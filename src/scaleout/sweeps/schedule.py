"""The jobs of a sweep, one after another: in which order, and how long still."""

import random
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from .. import settings
from ..clusters.site import Site
from ..errors import ScaleoutError
from ..jobs.job import JobInterrupted, Run
from ..paths import show
from . import points
from .attempt import attempt, said_of
from .estimate import check_length, duration, how_long
from .guess import quoted
from .journal import COPIES, FIRST, LAST, POINT, Journal, Key
from .points import Point
from .rates import Metric
from .search import ask

__all__ = ["Schedule"]

Say = Callable[[str], None]
HOPELESS = 3  # settings that fail, and none that works, before a sweep gives up


@dataclass
class Schedule:
    """One sweep at work.

    Attributes
    ----------
    words : list of str
        The command of a rank.
    site : Site
    cores : int
        Of this machine.
    figure : Metric
        Where the figure of a job comes from.
    timeout : float
        Seconds a job may take.
    repeat : int
        Jobs of each point.
    max_minutes : float
        A sweep that would take longer is refused.
    journal : Journal
    say : callable
        Takes each line that a person should read.
    total, count : int
        Jobs in all, and jobs done.
    told, warned, copied, restless : bool
        Whether it has said how long it will take, what may be wrong with the figures, that ranks
        never talked, and that others compute here too.
    bar : tqdm
    """

    words: list[str]
    site: Site
    cores: int
    figure: Metric
    timeout: float
    repeat: int
    max_minutes: float
    journal: Journal
    say: Say
    total: int = 0
    count: int = 0
    told: bool = False
    warned: bool = False
    copied: bool = False
    restless: bool = False
    bar: Any = None

    def measure(
        self, choices: points.Choices, seed: int, search: int, sign: float, quiet: bool
    ) -> None:
        """Measures the default, the grid (or as much of it as a search asks for), the default
        again.

        Parameters
        ----------
        choices : dict of axis to tuple of values
        seed : int
            Of the order of the points, and of the search.
        search : int
            How many points a search may try; 0 measures the whole grid.
        sign : float
            1 where more is better, -1 where less is.
        quiet : bool
            Without a progress bar.

        Raises
        ------
        JobInterrupted
            What was measured is kept.
        ScaleoutError
            The command does not work at all, or the rest would take too long.
        """
        from tqdm import tqdm

        self._settle_as_before()
        grid, default = points.grid(choices, self.cores), points.default(choices)
        rounds, done = range(self.repeat), self.journal.done
        first = [
            key
            for r in rounds
            if (key := (FIRST, default, r)) in done or not self.journal.has(POINT)
        ]
        plan = list(self._shuffled(list(grid.values()), seed))[
            : min(search or len(grid), len(grid)) * self.repeat
        ]
        if not search and any(key not in done and not self.journal.failure(key[1]) for key in plan):
            self.journal.forget(lambda key, row: key[0] == LAST)  # more points come after it
        last = [(LAST, default, r) for r in rounds]
        of_this = [
            role for role, p, r in done if r < self.repeat and (role != POINT or p in grid.values())
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
                ask(choices, search, seed, lambda place: self._worth(grid[place], sign))
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

    def _settle(self, run: Run) -> Metric:
        """Chooses what to judge all jobs by, where nobody said it, and tells."""
        before, self.figure = self.figure, self.figure.settled(run)
        if self.figure != before:
            self.say(f"Judged by what this finds:  --metric {quoted(self.figure.pattern)}")
        return self.figure

    def _settle_as_before(self) -> None:
        """A sweep that goes on judges by what it judged by before."""
        kept = {row.get("metric", "") for row in self.journal.done.values()} - {""}
        if not self.figure.pattern and len(kept) == 1:
            self.figure = replace(self.figure, pattern=kept.pop())

    def _shuffled(self, grid: list[Point], seed: int) -> Iterator[Key]:
        """The whole grid, once a repeat, each time in an order of its own: a machine that slows
        down hits all alike."""
        draw = random.Random(seed)
        for repeat in range(self.repeat):
            yield from ((POINT, point, repeat) for point in draw.sample(grid, len(grid)))

    def _announce(self, grid: list[Point]) -> None:
        beyond = sum(point.ranks * (point.threads or 1) > self.cores for point in grid)
        if beyond:
            self.say(
                f"{beyond} of {len(grid)} points ask for more threads in all than the {self.cores} "
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

    def _worth(self, point: Point, sign: float) -> float | None:
        """What a search goes by: the median of the point's jobs, more being better; None when one
        failed."""
        keys = [(POINT, point, r) for r in range(self.repeat)]
        self._each(keys)
        if self.journal.failure(point):
            return None
        return sign * float(statistics.median(self.journal.done[key]["rate"] for key in keys))

    def _once(self, key: Key) -> None:
        """One job, kept before the next begins. Of a point that has failed, the other repeats are
        left out."""
        role, point, _ = key
        if self.journal.failure(point):
            self.count += 1
            self.bar.total -= 1
            return
        self.bar.set_postfix_str(f"{'default' if role != POINT else point}")
        row = self._at_rest(point)
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
            self.say(f"{where}  {'the default' if role != POINT else point}: {said.rstrip()}{left}")
            if row["status"] == COPIES and not self.copied:
                self.copied = True
                self.say(row["reason"])
            if (
                not self.warned
                and row["status"] == "ok"
                and (doubt := self.figure.doubt(row["values"], point.ranks))
            ):
                self.warned = True
                self.say(doubt)
        self.bar.update()
        self._look(row)
        if not self.told:
            self._estimate()

    def _look(self, row: Mapping[str, Any]) -> None:
        """Stops a sweep whose command does not work at all."""
        failed = {
            point for (_, point, _), kept in self.journal.done.items() if kept["status"] != "ok"
        }
        if len(failed) >= HOPELESS and len(failed) == len(
            {point for _, point, _ in self.journal.done}
        ):
            raise ScaleoutError(
                f"The first {len(failed)} settings all failed ({row['reason']}): mend the command, "
                "then type the same "
                f"line. What they said is in {show(self.journal.folder / 'jobs')}."
            )

    def _at_rest(self, point: Point) -> dict[str, Any]:
        """The point's job; once more where others took a part of what it computed on."""
        row = self._job(point)
        if settings.quick() or not row["disturbed"]:
            return row
        self.say(f"Others took {row['disturbed']:.0%} of the CPUs' time from this job: once more.")
        again = self._job(point)
        if again["disturbed"] and not self.restless:
            self.restless = True
            self.say(
                "This machine is not at rest:  scaleout doctor  says more. What is measured beside "
                "others' work is kept, and less sure."
            )
        return again

    def _job(self, point: Point) -> dict[str, Any]:
        return attempt(
            point,
            self.words,
            self.figure,
            name=f"sweep/{self.journal.name}/jobs",
            site=self.site,
            cores=self.cores,
            timeout=self.timeout,
            settle=self._settle,
            strict=not any(row["status"] == "ok" for row in self.journal.done.values()),
        )
