"""Any training command over ranks x threads x variables: which settings make it fast on this machine, and by how much.

    result = sweep.sweep("python train.py --batch 32", ranks=[1, 2], threads=[1, 2], metric="images/s: ([0-9.]+)")
    result.table, result.frame, result.drift

Every job is a fresh process. What was measured is kept line by line in results/sweep/NAME/points.jsonl, and the same
call goes on from there, repeating nothing.
"""

import argparse
import os
import random
import shlex
import shutil
import statistics
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import launch, machine, points
from .errors import ScaleoutError
from .journal import FIRST, LAST, POINT, Journal, digest, scripts
from .outcome import Result, duration, read
from .paths import show
from .points import Point
from .rates import Metric, NoFigure
from .search import ask, replay
from .site import Site

if TYPE_CHECKING:
    from tqdm import tqdm

__all__ = ["Result", "main", "read", "replay", "sweep"]

Say = Callable[[str], None]


def sweep(
    command: str | Sequence[str],
    *,
    ranks: int | Sequence[int] = (),
    threads: int | Sequence[int] = (),
    env: Mapping[str, str | int | Sequence[str | int | None]] | None = None,
    metric: str = "",
    reduce: str = "sum",
    skip: int = 0,
    lower: bool = False,
    repeat: int = 1,
    seed: int = 0,
    timeout: float = launch.TIMEOUT_S,
    search: int = 0,
    name: str = "",
    max_minutes: float = 60,
    site: Site | None = None,
    retry: bool = False,
    echo: Say | None = print,
) -> Result:
    """Measures `command` at every combination of ranks, threads (a rank) and variables, and with nothing set at all.

    metric, reduce, skip: where the figure comes from, see rates.Metric.  lower: it is a time, less is better.
    repeat: jobs a point; each round of the grid has its own order, drawn by `seed`.  timeout: seconds a job.
    search: at most so many points, chosen as it goes by what the ones before gave (search.ask); 0: the whole grid.
    name: of its folder in results/sweep/; by default made from all that decides what is measured.
    max_minutes: stops, keeping all, when the rest would take longer.  retry: tries failed points again.
    echo: takes each line of the report as it comes; None keeps quiet, and draws no progress bar.
    Raises ScaleoutError for what cannot be measured and launch.JobInterrupted; in each case what was measured is kept.
    """
    for flag, asked, least in (("--repeat", repeat, 1), ("--search", search, 0), ("--max-minutes", max_minutes, 0)):
        if not asked >= least:
            raise ScaleoutError(f"{flag} takes a number, {least} or more, not {asked}.")
    words = _command(command)
    site = site or Site()
    cores = site.cores or machine.usable_cores()
    choices = points.choices(ranks, threads, env or {}, cores)
    figure = Metric(metric, reduce, skip)
    about = {
        "command": words,
        "metric": asdict(figure) | {"lower": lower},
        "scripts": scripts(words),
        "machine": [machine.cpu_model(), cores],
        "site": asdict(site) | {"options": list(site.options)},
        "choices": {axis: sorted(map(str, values)) for axis, values in choices.items()},
    }
    journal = Journal(_name(name, words, about))
    say = echo or (lambda text: None)
    with journal.open(about, say):
        work = _Sweep(words, site, cores, figure, timeout, repeat, max_minutes, journal, say)
        if retry:
            journal.forget_failures()
        work.measure(choices, seed, search, -1.0 if lower else 1.0, quiet=echo is None)
        result = Result(list(journal.done.values()), lower, journal.folder)
        result.write(words, site)
    return result


def _command(command: str | Sequence[str]) -> list[str]:
    words = shlex.split(command) if isinstance(command, str) else [str(word) for word in command]
    if not words:
        raise ScaleoutError("There is no command to measure: put it last, after --, as in  -n 1,2 -- python train.py")
    if Path(words[0]).name in ("mpirun", "mpiexec", "srun", "horovodrun"):
        raise ScaleoutError(f"Leave {words[0]} out: a sweep starts the command with it, on each number of ranks.")
    path = os.pathsep.join([str(Path(sys.prefix) / "bin"), os.environ.get("PATH", os.defpath)])  # as a job has it
    if shutil.which(words[0], path=path) is None:
        raise ScaleoutError(f"There is no program {words[0]} to start: check the command after the --")
    script = next((word for word in words[1:] if not word.startswith("-")), "")
    if words[0].startswith("python") and script.endswith(".py") and not Path(script).is_file():
        raise ScaleoutError(f"There is no script {script}: check the path after the --")
    return words


def _name(name: str, words: Sequence[str], about: Mapping[str, Any]) -> str:
    """The folder's name: the one that was asked for, or the script's and a digest of all that decides the figures."""
    if name:
        if not name.replace("-", "").replace("_", "").replace(".", "").isalnum() or name.startswith("."):
            raise ScaleoutError(f"--name takes letters, digits, - and _, such as --name resnet50; not {name!r}.")
        return name
    stem = Path(next((word for word in words if word.endswith((".py", ".sh"))), words[0])).stem
    return f"{''.join(c if c.isalnum() or c in '-_' else '-' for c in stem)}-{digest(about)}"


@dataclass
class _Sweep:
    """The jobs of one sweep, one after another."""

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
    bar: "tqdm[Any] | None" = None

    def measure(self, choices: points.Choices, seed: int, search: int, sign: float, quiet: bool) -> None:
        """The default, the grid (or as much of it as a search asks for), the default again."""
        grid, default, rounds = points.grid(choices, self.cores), points.default(choices), range(self.repeat)
        plan = [(POINT, point, r) for r, point in self._rounds(list(grid.values()), seed)]
        if search:
            plan = plan[: min(search, len(grid)) * self.repeat]
        elif any(key not in self.journal.done for key in plan):
            self.journal.forget(LAST)  # more points come after it
        first = [(FIRST, default, r) for r in rounds if not self.journal.has(POINT)]
        last = [(LAST, default, r) for r in rounds]
        self._begin(list(grid.values()), [*first, *plan, *last], quiet)
        try:
            self._each(first)
            if search:
                ask(choices, search, seed, lambda place: self._worth(grid[place], sign))
            else:
                self._each(plan)
            self._each(last)
        except KeyboardInterrupt:
            raise launch.JobInterrupted(
                f"Interrupted: {self.count} of {self.total} jobs are kept; the same line goes on from there."
            ) from None
        finally:
            if self.bar is not None:
                self.bar.close()

    def _rounds(self, grid: list[Point], seed: int) -> Iterator[tuple[int, Point]]:
        """The whole grid, once a repeat, each time in an order of its own: a machine that slows down hits all alike."""
        draw = random.Random(seed)
        for repeat in range(self.repeat):
            yield from ((repeat, point) for point in draw.sample(grid, len(grid)))

    def _begin(self, grid: list[Point], plan: list[Key], quiet: bool) -> None:
        from tqdm import tqdm

        beyond = sum(point.ranks * (point.threads or 1) > self.cores for point in grid)
        if beyond:
            self.say(
                f"{beyond} of {len(grid)} points have more threads in all than there are cores ({self.cores}): "
                "they show where it gets slow, and take longer."
            )
        known = {(point, r) for point in grid for r in range(self.repeat)}
        done = [(role, p, r) for role, p, r in self.journal.done if role != POINT or (p, r) in known]
        self.total = len(plan)
        self.count = min(len(done), self.total)
        self.say(f"{self.total} jobs: {self.total - 2 * self.repeat}")
