"""The verb `sweep`: checks what was asked, measures it job after job, writes what came out."""

import os
import random
import shlex
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from .. import machine
from ..base import settings
from ..base.errors import ScaleoutError
from ..base.paths import show
from ..base.words import rounded
from ..jobs import failures
from ..jobs.job import TIMEOUT_S, Job, JobFailed, JobInterrupted, JobTimeout, Run
from ..launch import run as launch
from ..measuring import command as commands
from ..measuring import inputs
from ..measuring.asked import Judged, Sweeping
from ..measuring.journal import Journal, folder_name, scripts
from ..measuring.metric import Figure, Metric
from ..measuring.numbers import NoFigure
from ..measuring.row import COPIES, FIRST, LAST, OK, POINT, RATED, Swept
from ..site import Site
from . import files, points
from .points import Place, Point
from .result import Result
from .rows import Key, latest, point_of, put
from .search import check as check_search
from .search import search as search_points

Say = Callable[[str], None]
HOPELESS = 3  # settings that fail, and none that works, before a sweep gives up
LONG_S = 3600.0
STAT = Path("/proc/stat")


def sweep(
    command: str | Sequence[str],
    *,
    ranks: int | Sequence[int] = (),
    threads: int | Sequence[int] = (),
    env: points.Variables | None = None,
    metric: str = "rate",
    reduce: str = "",
    lower: bool | None = None,
    repeat: int = 1,
    search: int | None = None,
    timeout: float = TIMEOUT_S,
    name: str = "",
    site: Site | None = None,
    echo: Say | None = print,
    typed: Sequence[str] = (),
) -> Result:
    """Measure a command at every combination of ranks, threads and variables, and with nothing set.

    The same call again goes on from what was measured, and tries failed points once more.

    Parameters
    ----------
    command : str or sequence of str
        As one rank starts it; {NAME} in it is filled with the variable's value.
    ranks, threads : int or sequence of int
        To try; threads are a rank's.
    env : Mapping, optional
        {variable: values to try}; None among them leaves it unset. A name such as
        "HOROVOD_CYCLE_TIME if ranks=2" is tried only where the other axis has that value.
    metric, lower, reduce
        Where the figure comes from, see `measuring.metric.Metric`.
    repeat : int
        Jobs a point. With SCALEOUT_QUICK=1 one, at two points: with the first value of each axis
        and with the last. The default's only run then stands there twice.
    search : int, optional
        At most so many points, chosen as it goes by what the ones before gave; of these, the better
        half is measured again. Without it the whole grid.
    timeout : float
        Seconds a job.
    name : str
        Of its folder in results/sweep/; by default made from all that decides what is measured.
    site : Site, optional
        How this machine starts jobs.
    echo : callable, optional
        Takes each line of the report as it comes; None keeps quiet.
    typed : sequence of str
        The command line that asked for it, where one did: a report prints it.

    Returns
    -------
    Result

    Raises
    ------
    ScaleoutError
        For what cannot be measured.
    JobInterrupted
        Somebody pressed Ctrl-C. In each case what was measured is kept.
    """
    for flag, asked in (("--repeat", repeat), ("--search", 1 if search is None else search)):
        if type(asked) is not int or asked < 1:
            raise ScaleoutError(f"{flag} takes a number, 1 or more, not {asked}.")
    site = site or Site()
    cores = site.cores or machine.usable_cores()
    words = commands.words(command)
    choices, only = points.choices(ranks, threads, env or {})
    for count in choices.get("ranks", (1,)):  # refused now, and not after hours
        Job.asked(["python"], name="", ranks=int(count or 1), site=site, timeout=timeout)
    repeat = 1 if settings.quick() else repeat
    if not words:
        commands.check(words)
    points.check_holes(words, choices)
    kept = points.programs(choices, words)
    starts = [{k: None if v is None else str(v)} for k in kept for v in choices[k]]
    for program in starts or [{}]:
        commands.check([*points.filled(words[:1], program), *words[1:]])
    if search is not None:
        check_search()
    measure = Metric(metric, lower, reduce)
    about = Sweeping(
        command=words,
        metric=Judged(what=measure.what, lower=measure.lower is True, reduce=measure.reduce),
        scripts=scripts(words),
        machine=(machine.cpu_model(), cores),
        site={k: list(v) if isinstance(v, tuple) else v for k, v in asdict(site).items()},
        grid={axis: sorted(map(str, values)) for axis, values in choices.items()},
        only={axis: list(where) for axis, where in only.items()},
    )
    stem = Path(next((word for word in words if word.endswith((".py", ".sh"))), words[0])).stem
    journal = Journal("sweep", folder_name(name, stem, about), "points.jsonl", Sweeping, Swept)
    about = msgspec.structs.replace(about, typed=list(typed))
    say = echo or (lambda text: None)
    with journal.held():
        done = _measured_before(journal, about, measure, say)
        work = _Work(words, measure, site, cores, timeout, journal, done, say, repeat)
        work.measure(choices, only, search)
        result = Result(done.values(), measure.lower is True, journal.folder)
        files.write(result, words, site)
    return result


class Unclear(ScaleoutError):
    """Nobody can say what the figures mean before a person has."""


def _measured_before(
    journal: Journal[Sweeping, Swept], about: Sweeping, metric: Metric, say: Say
) -> dict[Key, Swept]:
    """Read what was measured of this sweep, without what failed: that is tried once more."""
    rows, left_out = journal.rows()
    if left_out:
        say(f"{show(journal.path)}{left_out}.")
    done = latest(rows)
    old = journal.description()
    if not any(row.status == OK for row in done.values()):
        limits = (old.limits if old else {}) or machine.speed_limits()
        journal.begin(msgspec.structs.replace(about, limits=limits), "failed")  # mended by now
        return {}
    if old is not None:
        about = msgspec.structs.replace(about, limits=old.limits)
        as_typed = msgspec.structs.replace(old.metric, reduce=about.metric.reduce)
        same = msgspec.structs.replace(old, metric=as_typed, typed=about.typed)
        names = Sweeping.__struct_fields__
        if differ := [key for key in names if getattr(same, key) != getattr(about, key)]:
            raise ScaleoutError(
                f"{show(journal.folder)} holds a sweep with another {' and '.join(differ)}: name this "
                "one with --name, so that the two are not mixed."
            )
    kept = {key: row for key, row in done.items() if row.status in (OK, COPIES)}
    read = {key: _read_again(row, metric) for key, row in kept.items()}
    journal.note(about)
    if read != kept:
        journal.keep_only(list(read.values()))
    return read


def _read_again(row: Swept, metric: Metric) -> Swept:
    """Put together anew what the ranks of a job have printed, where --reduce has another answer now."""
    if row.reduce == metric.reduce or not (row.metric and row.values):
        return row
    figure = Figure(row.value or 0.0, row.unit, row.values)
    judged = replace(metric, what=row.metric)
    if row.copies and not metric.reduce:
        value, status = judged.of_copies(row.values), COPIES
    else:
        if question := judged.doubt(figure, row.ranks):
            raise Unclear(f"{point_of(row)}: {question}")
        value, status = judged.combine(row.values, row.ranks), OK
    reason = row.copies if status == COPIES else ""
    return msgspec.structs.replace(
        row, value=value, status=status, reason=reason, reduce=metric.reduce
    )


@dataclass
class _Work:
    """One sweep at work: what its jobs have in common, and what they gave so far."""

    words: list[str]
    metric: Metric
    site: Site
    cores: int
    timeout: float
    journal: Journal[Sweeping, Swept]
    done: dict[Key, Swept]
    say: Say
    repeat: int
    total: int = 0
    count: int = 0
    told: bool = False
    remarks: set[str] = field(default_factory=set)

    def measure(self, choices: points.Choices, only: points.Only, trials: int | None) -> None:
        """Measure the default, the grid (or what a search takes of it), the default again."""
        patterns = {row.metric for row in self.done.values()} - {""}
        if self.metric.what == "rate" and len(patterns) == 1:  # as it was judged before
            self.metric = replace(self.metric, what=patterns.pop())
        grid = points.grid(choices, self.cores, only)
        grid = points.ends(grid) if settings.quick() else grid
        default = points.default(choices, points.programs(choices, self.words))
        rounds = range(self.repeat)
        first = [(FIRST, default, r) for r in rounds]
        last = [(LAST, default, r) for r in rounds]
        plan = list(self._shuffled(list(grid.values())))[
            : min(trials or len(grid), len(grid)) * self.repeat
        ]
        if not trials and any(key not in self.done for key in plan):
            for key in [key for key in self.done if key[0] == LAST]:
                del self.done[key]  # more points come after it
        self.total = len(first) + len(plan) + len(last)
        of_this = [r for _, _, r in self.done if trials or r < self.repeat]
        self.count = min(len(of_this), self.total)
        self._announce(list(grid.values()))
        try:
            self._each(first)
            if trials:
                self._search(grid, trials)
                self.total = self.count + len(last)
            else:
                self._each(plan)
            once = self.done.get((FIRST, default, 0))
            if settings.quick() and once and last[0] not in self.done:
                self._keep(msgspec.structs.replace(once, role=LAST))
            self._each(last)
        except KeyboardInterrupt:
            raise JobInterrupted(
                f"Interrupted: {self.count} of {self.total} jobs are kept; the same line goes on "
                "from there."
            ) from None

    def _shuffled(self, grid: list[Point]) -> Iterator[Key]:
        """Yield the whole grid, once a repeat, each time in an order of its own.

        So a machine that slows down hits all alike.
        """
        draw = random.Random(0)
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
        """Say how long the rest will take."""
        self.told = True
        left, each_s = self.total - self.count, self._job_s()
        if left:
            self.say(f"{left} more jobs of about {each_s:.1f} s: {duration(left * each_s)}.")
        if left * each_s > LONG_S:
            self.say(
                "Ctrl-C keeps what was measured;  --search 20  measures no more than 20 points."
            )

    def _job_s(self) -> float:
        return float(statistics.median(row.wall_s for row in self.done.values()))

    def _each(self, keys: Sequence[Key]) -> None:
        for key in keys:
            if key not in self.done:
                self._once(key)

    def _search(self, grid: Mapping[Place, Point], trials: int) -> None:
        def measure(place: Place, times: int) -> float | None:
            key = (POINT, grid[place], times)
            if key not in self.done:
                self._once(key)
            return None if self._failed(key[1]) else self.done[key].value

        search_points(list(grid), trials, self.repeat, measure, bool(self.metric.lower))

    def _failed(self, point: Point) -> bool:
        return any(p == point and row.status != OK for (_, p, _), row in self.done.items())

    def _once(self, key: Key) -> None:
        """Run one job, and keep it before the next begins.

        Of a point that has failed, the other repeats are left out.
        """
        role, point, repeat = key
        if self._failed(point):
            self.total -= 1
            return
        called = str(point) if role == POINT else "the default"
        row = self._job(key)
        self._keep(row)
        left = duration((self.total - self.count) * self._job_s())
        number = f"{self.count:>{len(str(self.total))}}/{self.total}"
        self.say(f"{number}  {called}: {_in_words(row)}   ({left} left)")
        copies = row.reason if row.status == COPIES else ""
        again = ""
        if row.status == "failed" and any(old.status == OK for old in self.done.values()):
            again = commands.left_behind(row.reason, self.words) * ("xist" in row.reason)
        for remark in (copies, row.remark, again):
            self._remark(remark)
        self._give_up(row)
        if not self.told:
            self._estimate()

    def _keep(self, row: Swept) -> None:
        self.journal.add(row)
        put(self.done, row)
        self.count += 1

    def _remark(self, text: str) -> None:
        """Say once what may be wrong with the figures."""
        kind = text.partition("ranks")[2] or text  # said of 2 ranks, it need not be said of 4
        if text and kind not in self.remarks:
            self.remarks.add(kind)
            self.say(text)

    def _give_up(self, row: Swept) -> None:
        """Stop a sweep whose command does not work at all."""
        failed = {point for (_, point, _), row in self.done.items() if row.status != OK}
        worked = {point for _, point, _ in self.done} - failed
        same = len({row.reason for row in self.done.values() if row.status == "failed"}) == 1
        only_first = same and all(point.threads is None for point in worked)
        if len(failed) >= HOPELESS and (not worked or only_first):
            once = any(row.status == OK for row in self.done.values())
            which = "All jobs but the first" if once else f"The first {len(failed)} settings all"
            raise ScaleoutError(
                f"{which} failed ({row.reason}): mend the command, "
                "then type the same "
                f"line. What they said is in {show(self.journal.folder / 'jobs')}."
            )

    def _job(self, key: Key) -> Swept:
        """Run one job; a failure of it is a row too."""
        role, point, repeat = key
        began = spent()
        figure, reason = Figure(0.0), ""
        try:
            job = Job.asked(
                point.script(self.words),
                name=f"sweep/{self.journal.name}/jobs",
                ranks=point.ranks,
                threads=point.threads or self.cores,
                bind=None if point.threads else "none",  # as without us: on all the cores
                env=point.variables,
                site=self.site,
                timeout=self.timeout,
            )
            run = launch.start(job, None)
            figure, status = self._figure(run, point), OK
            if run.copies and not self.metric.reduce:
                status, reason = COPIES, run.copies
        except JobTimeout as error:
            run, status = error.run, "timeout"
            reason = f"it took longer than --timeout {self.timeout:g} s"
        except JobFailed as error:
            run, status, reason = error.run, "failed", _reason(error)
        except NoFigure as error:
            if not any(row.status == OK for row in self.done.values()):
                raise  # a slip in --metric, most likely: better said at once than after the grid
            status, reason = "no figure", " ".join(str(error).split())
        remote = self.site.hosts or self.site.scheduler
        return Swept(
            role=role,
            ranks=point.ranks,
            threads=point.threads,
            env=dict(point.env),
            round=repeat,
            status=status,
            reason=reason,
            value=figure.value if status in RATED else None,
            unit=figure.unit,
            values={rank: list(given) for rank, given in figure.ranks.items()},
            remark=self.metric.remark(figure),
            copies=run.copies,
            metric=self.metric.pattern,
            reduce=self.metric.reduce,
            others=0.0 if remote else round(_taken(began), 3),
            wall_s=round(run.wall_s, 3),
            run_id=run.id,
            command=run.command,
            utc=datetime.now(UTC).isoformat(timespec="seconds"),
            cpu=machine.cpu_model(),
            cores=self.cores,
            quick=settings.quick(),
            files=self._imports(point),
        )

    def _imports(self, point: Point) -> dict[str, str]:
        """Digest the modules of one's own that the script imports."""
        script = Path(commands.script(self.words))
        folders = inputs.folders_of(script, point.variables)
        return inputs.digests(inputs.modules(script, folders))

    def _figure(self, run: Run, point: Point) -> Figure:
        """Read what a job gave, by the metric that all are judged by."""
        before, self.metric = self.metric, self.metric.settled(run)
        if self.metric != before:
            bar = " (of a bar's s/it the inverse)" * self.metric.pattern.endswith("it/s")
            self.say(
                f"Judged by what this finds:  --metric {shlex.quote(self.metric.pattern)}{bar}"
            )
        figure = self.metric.read(run)
        if question := "" if run.talked is False else self.metric.doubt(figure, point.ranks):
            raise Unclear(f"{point}: {question}")
        return figure


def duration(seconds: float) -> str:
    """Round a time as a person would say it: 40 s, 12 min, 1 h 20 min."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 100 else f"{minutes // 60} h {minutes % 60} min"


def _reason(error: JobFailed) -> str:
    """Say on one line why a job failed.

    It is who and how, then the last line of the first traceback, or of what the job said.
    """
    first, *block = str(error).splitlines()
    block = [line for line in block if not line.startswith(failures.POINTERS)]
    said = block or [text for rank, text in error.run.lines if rank is not None and text.strip()]
    return ": ".join([first.partition(" failed")[2].strip(" :."), *said[-1:]])


def _in_words(row: Swept) -> str:
    """Say what a job gave, as a line of the report has it."""
    if row.status == OK:
        return f"{rounded(row.value or 0.0)} {row.unit}".rstrip()
    if row.status == COPIES:
        return f"copies, {rounded(row.value or 0.0)} {row.unit}".rstrip() + " each: left out"
    return f"failed: {row.reason}"


def spent() -> tuple[float, float]:
    """Count the ticks of all CPUs so far, and those that others had.

    Others are all but this process and its children.
    """
    first = STAT.read_text().partition("\n")[0].split()
    # user, nice, system, idle, iowait, irq, softirq, steal: see proc(5)
    ticks = [int(text) for text in first[1:9]]
    own = sum(os.times()[:4]) * os.sysconf("SC_CLK_TCK")
    return sum(ticks), sum(ticks) - ticks[3] - ticks[4] - own


def _taken(began: tuple[float, float]) -> float:
    """Compute the share of the CPUs' time that others had since."""
    total, others = (now - before for now, before in zip(spent(), began, strict=True))
    return max(0.0, others / total) if total > 0 else 0.0
