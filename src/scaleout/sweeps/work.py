"""One job of a sweep after another: judged, repeated where others disturbed it, remarked upon."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from .. import settings
from ..errors import ScaleoutError
from ..jobs.job import Run
from ..jobs.site import Site
from ..paths import show
from . import race
from .attempt import attempt
from .early import Early
from .guess import quoted
from .journal import COPIES, POINT, Journal
from .points import Point
from .rates import Metric

HOPELESS = 3  # settings that fail, and none that works, before a sweep gives up


@dataclass
class Work:
    """What the jobs of a sweep have in common."""

    words: list[str]
    site: Site
    cores: int
    figure: Metric
    timeout: float
    journal: Journal
    say: Callable[[str], None]
    warned: bool = False
    copied: bool = False
    restless: bool = False

    def _settle(self, run: Run) -> Metric:
        """Chooses what to judge all jobs by, where nobody said it, and tells."""
        before, self.figure = self.figure, self.figure.settled(run)
        if self.figure != before:
            self.say(f"Judged by what this finds:  --metric {quoted(self.figure.pattern)}")
        return self.figure

    def settle_as_before(self) -> None:
        """A sweep that goes on judges by what it judged by before."""
        kept = {row.get("metric", "") for row in self.journal.done.values()} - {""}
        if not self.figure.pattern and len(kept) == 1:
            self.figure = replace(self.figure, pattern=kept.pop())

    def at_rest(self, point: Point, early: bool = False, lower: bool = False) -> dict[str, Any]:
        """The point's job; once more where others took a part of what it computed on."""
        row = self._job(point, self._early(point, lower) if early else None)
        if settings.quick() or not row["disturbed"]:
            return row
        self.say(f"Others took {row['disturbed']:.0%} of the CPUs' time from this job: once more.")
        again = self._job(point, self._early(point, lower) if early else None)
        if again["disturbed"] and not self.restless:
            self.restless = True
            self.say(
                "This machine is not at rest:  scaleout doctor  says more. What is measured beside "
                "others' work is kept, and less sure."
            )
        return again

    def remark(self, point: Point, row: Mapping[str, Any]) -> None:
        """Says once what may be wrong with the figures."""
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

    def look(self, row: Mapping[str, Any]) -> None:
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

    def _early(self, point: Point, lower: bool) -> Early | None:
        """What ends the job as soon as it is hopeless; None where that cannot be known: which ranks
        will print the figure is learned from the jobs before."""
        done = [(k, row) for k, row in self.journal.done.items() if row["status"] == "ok"]
        several = {len(row["values"]) < p.ranks for (_, p, _), row in done if p.ranks > 1}
        worth: dict[Point, list[float]] = {}
        for (role, p, _), row in done:
            if role == POINT:
                worth.setdefault(p, []).append((-1 if lower else 1) * math.log(row["rate"]))
        least = race.least(worth)
        known = point.ranks == 1 or len(several) == 1
        if least is None or not known or not self.figure.pattern or self.site.scheduler:
            return None
        voices = 1 if point.ranks == 1 or True in several else point.ranks
        return Early(self.figure, voices, least, lower)

    def _job(self, point: Point, early: Early | None) -> dict[str, Any]:
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
            early=early,
        )
