"""What `compare` and `sweep` have left in a folder, read with what the runs themselves have kept."""

import contextlib
import hashlib
import math
import re
import shlex
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import TypeVar

import msgspec
from msgspec.structs import replace

from ..base import jsonlines
from ..base.errors import ScaleoutError
from ..kit import records
from ..kit.fields import wrong
from ..measuring.asked import Comparing, Sweeping
from ..measuring.journal import description, read_rows
from ..measuring.metric import Metric
from ..measuring.row import MOST, OK, POINT, Compared, Row, Share, Some, Swept
from ..sweeps.points import Point, filled, holes
from ..sweeps.rows import latest, point_of
from .evidence import Finite, Measured, Setting

LINE = re.compile(r"(?:\[(\d+)\] )?(.*)")
WORK = ("epochs", "images", "samples", "rows")  # what a record's metrics may count
WALL_S = 2e-3  # the seconds of a run are rounded to a thousandth
SEED = "SEED"  # a sweep over this variable is an accuracy test


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """What a run.json tells."""

    command: str = ""
    env: dict[str, str | None] = {}
    wall_s: Share | None = None


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """What a job has recorded, as far as a report needs it."""

    utc: str
    lab: str
    variant: str
    ranks: Some
    threads_per_rank: Some | None
    batch_global: int | None
    warmup_steps: int
    step_s: list[float]
    seed: int | None
    metrics: dict[str, object]
    cpu: str
    cores: Some
    versions: dict[str, object]
    commit: str | None

    @property
    def installed(self) -> dict[str, str]:
        return {name: str(version) for name, version in self.versions.items()}


class Told(msgspec.Struct, frozen=True, kw_only=True):
    """What the metrics of a record tell of a test, beside its figure."""

    beside: dict[str, Finite] = {}
    worst: dict[str, Finite] = {}
    trained_on: list[int | str] = []
    tested_on: list[int | str] = []


class Spent(msgspec.Struct, frozen=True, kw_only=True):
    """Where a rank's time went, as `Books.note(spent=...)` keeps it."""

    spent: dict[str, Share] = {}


class Shares(msgspec.Struct, frozen=True, kw_only=True):
    """What each rank has noted."""

    shares: list[Spent] = []


Jobs = Mapping[str, Path]  # the folder of each run
Part = TypeVar("Part", bound=msgspec.Struct)


def comparison(path: Path, lines: Path, jobs: Jobs, texts: dict[str, str]) -> Measured | None:
    """Read what `compare` has left; add the scripts' texts."""
    about = description(path, Comparing)
    if about is None:
        return None
    rows, _ = read_rows(lines, Compared)
    judge = Metric(about.metric, about.lower, about.reduce)
    settings = {}
    for name in about.variants:
        ran = [row for row in rows if row.variant == name]
        setting = _variant(about, name, job_of(ran, jobs), ran)
        if text := about.texts.get(file := about.scripts.get(name, "")):
            setting = replace(setting, script=file, text=_kept(text, texts))
        modules = {
            module: _kept(about.texts[file], texts)
            for module, file in about.modules.get(name, {}).items()
            if file in about.texts
        }
        settings[name] = replace(
            _agreed(setting, ran), work=_work(ran, jobs), modules=modules,
            profile=_profile(ran, jobs),
        )  # fmt: skip
    return Measured(
        metric=about.metric,
        lower=about.lower,
        reduce=about.reduce,
        machine=about.machine,
        typed=about.typed,
        variants=settings,
        rows=[_whole(row, settings[row.variant], jobs, judge, bool(about.work)) for row in rows],
        guess=about.guess,
        guessed=about.guessed,
        limits=about.limits,
        behind_s=about.behind_s,
        name=path.parent.name,
        rounds=about.rounds,
        least=about.least,
        work=about.work,
    )


def sweep(place: Path, jobs: Jobs) -> Measured | None:
    """Read what `sweep` has left in a folder; the default's two jobs are its baseline."""
    about = description(place / "sweep.json", Sweeping)
    if about is None:
        return None
    judge = Metric(about.metric.what, about.metric.lower, about.metric.reduce)
    inside = {name for word in about.command for name in holes(word)}
    seeds = about.grid.get(SEED, [])
    script = next((w for w in about.scripts if seeds and w.endswith((".py", ".sh"))), "")
    called: dict[Point | None, str] = {}
    settings: dict[str, Setting] = {}
    rows: list[Compared] = []
    for number, row in enumerate(latest(read_rows(place / "points.jsonl", Swept)[0]).values()):
        point = point_of(row)
        name = str(point) if row.role == POINT else "default"
        if name in called.values():  # two secrets look alike
            name += f" ({len(called) + 1})"
        name = called.setdefault(point if row.role == POINT else None, name)
        setting = Setting(
            words=filled(about.command, {**row.env, SEED: f"{{{SEED}}}"}),
            env={key: value for key, value in row.env.items() if key not in inside},
            ranks=row.ranks,
            threads=row.threads or max(1, row.cores),
            script=script,
            text=about.scripts.get(script, "")[:16],
            command=row.command,
        )
        settings.setdefault(name, _agreed(setting, [row]))
        if row.status == OK:
            one = row.compared(name, number, row.env.get(SEED))
            rows.append(_whole(one, setting, jobs, judge))
    return Measured(
        metric=about.metric.what,
        lower=about.metric.lower,
        reduce=about.metric.reduce,
        machine=about.machine,
        typed=about.typed,
        variants=settings,
        rows=rows if seeds else _rounds(rows),
        swept=True,
        seeds=seeds,
        limits=about.limits,
        behind_s=about.behind_s,
    )


def records_of(folder: Path) -> list[Record]:
    lines, _ = jsonlines.read(folder / "records.jsonl", wrong)
    return msgspec.convert(lines, list[Record])


def job_of(rows: Sequence[Compared], jobs: Jobs) -> Job:
    """Read the run.json of the first of these runs that has one; a row's own command counts."""
    folders = [jobs[row.run_id] for row in rows if row.run_id in jobs]
    job = folders and description(folders[0] / "run.json", Job) or Job()
    command = next((row.command for row in rows if row.command), job.command)
    return replace(job, command=command)


def ran_words(job: Job) -> list[str]:
    """Read the command of a rank, from its Python on, out of mpirun's line."""
    typed = shlex.split(job.command)
    python = [at for at, word in enumerate(typed) if Path(word).name.startswith("python")]
    return typed[python[0] :] if python else []


def told(folder: Path | None) -> Told:
    """Read what a run's record tells of its test, where it wrote one."""
    records = records_of(folder) if folder else []
    return fields_of(Told, records[-1].metrics) if records else Told()


def _kept(text: str, texts: dict[str, str]) -> str:
    """Keep a text, and return its key."""
    key = hashlib.sha256(text.encode()).hexdigest()[:16]  # of what was run
    texts[key] = text
    return key


def _agreed(setting: Setting, rows: Sequence[Row]) -> Setting:
    """Add what all runs of a variant have read, and name what was not the same in all."""
    read: dict[str, set[str]] = {}
    for name, digest in (pair for row in rows for pair in row.files.items()):
        read.setdefault(name, set()).add(digest)
    files = {name: next(iter(each)) for name, each in read.items() if len(each) == 1}
    return replace(setting, files=files, unlike=sorted(read.keys() - files.keys()))


def _profile(rows: Sequence[Compared], jobs: Jobs) -> list[dict[str, float]]:
    """Take the seconds of each part on each rank, in the median of all runs that tell them."""
    each: list[list[Spent]] = []
    for folder in (jobs[row.run_id] for row in rows if row.run_id in jobs):
        for record in records_of(folder)[-1:]:
            each.append(fields_of(Shares, record.metrics).shares)
    ranks = max(map(len, each), default=0)
    found = []
    for rank in range(ranks):
        parts = [of[rank].spent for of in each if len(of) > rank and of[rank].spent]
        names = dict.fromkeys(name for spent in parts for name in spent)
        found.append({n: statistics.median(spent.get(n, 0.0) for spent in parts) for n in names})
    return [one for one in found if one]


def fields_of(kind: type[Part], metrics: Mapping[str, object]) -> Part:
    """Read of a record's metrics the fields of a kind; what is no such field is left out."""
    found = kind()
    for name in kind.__struct_fields__:
        if name in metrics:
            with contextlib.suppress(msgspec.ValidationError):
                found = replace(found, **{name: getattr(
                    msgspec.convert({name: metrics[name]}, kind), name)})  # fmt: skip
    return found


def _variant(about: Comparing, name: str, job: Job, ran: Sequence[Row]) -> Setting:
    """Describe a variant's command: as it was given or, of a lab's job, as its run tells it."""
    way = about.way(name)
    words = way.script
    if not isinstance(words, list):  # a file of a lab, or a command in one text
        called = shlex.split(about.job)
        words = (not called[1:] and ran_words(job)) or shlex.split(words or "") or called
    ranks = way.ranks or max((row.ranks for row in ran), default=1)
    held = next((row.threads for row in ran if row.threads), max(1, about.machine[1] // ranks))
    placed = {"nodes": way.nodes, "bind": way.bind}
    return Setting(
        words=words,
        env={key: None if value is None else str(value) for key, value in (way.env or {}).items()},
        ranks=ranks,
        threads=way.threads or held,
        placed={key: str(value) for key, value in placed.items() if value},
        command=job.command,
    )


def _work(rows: Sequence[Compared], jobs: Jobs) -> dict[str, float]:
    """Count what a job did, by its records, in the mean of all: one that did less is seen."""
    each: dict[str, list[float]] = {}
    for folder in (jobs[row.run_id] for row in rows if row.run_id in jobs):
        for record in records_of(folder)[-1:]:
            steps = record.warmup_steps + len(record.step_s)
            done: dict[str, object] = {"steps": steps, "batch": record.batch_global}
            done |= {name: number for name in WORK if (number := record.metrics.get(name))}
            for name, number in done.items():
                if isinstance(number, (int, float)) and 0 <= number <= MOST:
                    each.setdefault(name, []).append(number)
    return {name: statistics.fmean(numbers) for name, numbers in each.items()}


def _whole(
    row: Compared, setting: Setting, jobs: Jobs, judge: Metric, parts: bool = False
) -> Compared:
    """Add to a row what an older one lacks, and its run's folder holds; what that says counts.

    The seconds of a row that is made of `parts` are those of several jobs.
    """
    folder = jobs.get(row.run_id)
    if folder is None:
        return row
    more: dict[str, object] = {}
    if not row.command:
        more |= {"ranks": setting.ranks, "threads": setting.threads}
    if (job := description(folder / "run.json", Job)) and job.wall_s is not None and not parts:
        same = row.wall_s is not None and abs(row.wall_s - job.wall_s) <= WALL_S
        more |= {} if same else {"wall_s": job.wall_s}
    if judge.what != "wall_s":
        given = _given(
            folder, Metric(row.metric, judge.lower, judge.reduce) if row.metric else judge
        )
        more |= {"values": given} if given and not _alike(given, row.values) else {}
    if not row.versions and (record := next(iter(records_of(folder)), None)):
        more |= {"versions": record.installed, "commit": record.commit or ""}
    return replace(row, **more)


def _alike(one: Mapping[str, Sequence[float]], other: Mapping[str, Sequence[float]]) -> bool:
    """Tell whether two readings of a run give the same figures, whichever rank gave which."""
    both = [
        sorted(figure for figures in each.values() for figure in figures) for each in (one, other)
    ]
    return len(both[0]) == len(both[1]) and all(map(math.isclose, *both))


def _given(folder: Path, judge: Metric) -> dict[str, list[float]]:
    """Read the figures in a job's records or in what its ranks printed."""
    try:
        lines = (folder / "output.txt").read_bytes().decode().split("\n")  # a line may hold a \r
        pairs = [(int(m[1]) if m[1] else None, m[2]) for m in map(LINE.fullmatch, lines) if m]
        frame = records.read(folder / "records.jsonl")
        run = SimpleNamespace(lines=pairs, records=frame, talked=None)
        return {rank: list(each) for rank, each in judge.settled(run).read(run).ranks.items()}
    except (OSError, ScaleoutError, ValueError):
        return {}


def _rounds(rows: Sequence[Compared]) -> list[Compared]:
    """Arrange a sweep in rounds: of the default and of the points that ran well in each of them."""
    ends = [{row.round for row in rows if row.variant == "default" and row.again == again}
            for again in (0, 1)]  # fmt: skip
    rounds = sorted(set.intersection(*ends))
    ran: dict[str, set[int]] = {}
    for row in rows:
        ran.setdefault(row.variant, set()).add(row.round)
    names = [
        "default",
        *(n for n, ran_in in ran.items() if n != "default" and ran_in >= set(rounds)),
    ]
    order = [(r, name, again) for r in rounds for name in names for again in (0, 1)]
    at = {(row.round, row.variant, row.again): row for row in rows}
    return [at[key] for key in order if key in at] if len(names) > 1 else []
