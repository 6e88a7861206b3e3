"""What a folder of results holds, as one value that a page can carry.

It has runs, commands and settings, and no name of a person, a host or a folder, and no secret:
those are taken out here, once.
"""

import hashlib
import re
import shlex
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Annotated, Literal, TypeVar

import msgspec
from msgspec import Meta
from msgspec.structs import asdict, replace

from .. import __version__, machine
from ..base import jsonlines
from ..base.errors import ScaleoutError
from ..base.paths import results_path, show
from ..kit import records
from ..kit.fields import wrong
from ..measuring.asked import Comparing, Sweeping
from ..measuring.journal import description, read_rows
from ..measuring.metric import Metric
from ..measuring.row import MOST, OK, POINT, Compared, Count, Share, Some, Swept
from ..sweeps.points import Point, filled, holes
from ..sweeps.rows import latest, point_of
from .private import Veil
from .private import anonymous as anonymous

SCHEMA = 2
SEED = "SEED"  # a sweep over this variable is an accuracy test
LINE = re.compile(r"(?:\[(\d+)\] )?(.*)")
LESS = {  # words in the name of a figure of which less is better
    *("loss", "losses", "error", "errors", "err", "perplexity", "ppl", "nll", "rmse", "mse", "mae"),
    *("mape", "wer", "cer", "fid"),
}
WORK = ("epochs", "images", "samples", "rows")  # what a record's metrics may count
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


class Tested(Compared, frozen=True, kw_only=True, omit_defaults=True):
    """A run that tells how good a training is."""

    value: Finite
    round: Count = 0
    again: Literal[0, 1] = 0


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

    @property
    def line(self) -> str:
        """What measures it again."""
        call = f"the same call of {'sweep' if self.swept else 'compare'}()"
        return shlex.join(self.typed) if self.typed else call

    @property
    def began(self) -> str:
        return min(row.utc for row in self.rows)

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


Jobs = Mapping[str, Path]  # the folder of each run
Kind = TypeVar("Kind", bound=Runs)


def gather(
    names: Path | str | Sequence[Path | str],
    accuracy: str = "accuracy",
    say: Callable[[str], None] = print,
    notes: str = "",
) -> Evidence:
    """Read the comparisons, sweeps and records in a folder of results, or in several.

    Several tell a story in their order, and the last is its claim.
    """
    folders = [folder(name) for name in ([names] if isinstance(names, (Path, str)) else names)]
    jobs = {path.parent.name: path.parent for path in _files(folders, "run.json")}
    texts: dict[str, str] = {}
    found: list[Measured] = []
    of_seeds: list[Measured] = []
    known: set[Path] = set()
    for top in reversed(folders):  # what is named twice is told where it is named last
        places = [path.parent for path in _measured(top) if path.resolve() not in known]
        known |= {path.resolve() for path in _measured(top)}
        each = _each(places, jobs, texts, say)
        if not each and len(folders) > 1:
            raise _nothing(top)
        of_seeds += [one for one in each if one.seeds]
        found[:0] = sorted((one for one in each if not one.seeds), key=lambda one: one.began)
    if not found:
        raise _nothing(folders[-1])
    test = None
    if len(folders) > 1:
        found[-1] = replace(found[-1], claim=True)
        if test := _by_records(found[-1:], _inside([], found[-1:], jobs), accuracy):
            test = replace(test, own=True, typed=found[-1].typed)
    test = test or _by_sweeps(of_seeds)
    test = test or _by_records(found, _inside(folders, found, jobs), accuracy)
    every = [row for one in [*found, *filter(None, [test])] for row in one.rows]
    whole = Evidence(
        scaleout=__version__,
        machine=_machine(found[0]),
        versions=next((row.versions for row in every if row.versions), {}),
        comparisons=found,
        accuracy=test,
        texts=texts,
        notes=notes,
    )
    veil = Veil(whole)
    named = [_renamed(one, veil.unlike(one.variants)) for one in found]
    test = test and _renamed(test, veil.unlike(test.variants))
    return veil.shown(replace(whole, comparisons=named, accuracy=test))


def folder(name: Path | str) -> Path:
    """Find the folder that somebody names by its path, or by what it is called below results/."""
    places = [results_path(*kind, str(name)) for kind in ((), ("compare",), ("sweep",))]
    there = [place for place in (Path(name), *places) if place.is_dir()]
    if not there:
        near = sorted(path.parent.name for path in results_path("compare").glob("*/compare.json"))
        raise ScaleoutError(
            f"There is no folder {show(Path(name))}: name the one that compare and sweep have "
            f"written to, such as  scaleout report {near[-1] if near else 'results'}"
        )
    return next((place for place in there if _measured(place)), there[0])


def _nothing(folder: Path) -> ScaleoutError:
    return ScaleoutError(
        f"There is nothing to report in {show(folder)}: measure first, with  scaleout compare  "
        "or  scaleout sweep --repeat 3"
    )


def _measured(folder: Path) -> list[Path]:
    """List what says that something was compared or swept."""
    return [path for name in ("compare", "sweep") for path in sorted(folder.rglob(f"{name}.json"))]


def _files(folders: Sequence[Path], name: str) -> list[Path]:
    """List such files in these folders, and in the results around a comparison's own folder."""
    around = [
        f.resolve().parents[1] for f in folders if f.resolve().parent.name in ("compare", "sweep")
    ]
    return [path for top in dict.fromkeys([*around, *folders]) for path in sorted(top.rglob(name))]


def _inside(folders: Sequence[Path], found: Sequence[Measured], jobs: Jobs) -> dict[str, Path]:
    """Leave out the runs that lie elsewhere, and belong to none of these comparisons."""
    known = {row.run_id for one in found for row in one.rows}
    tops = [one.resolve() for one in folders]
    return {
        run_id: place
        for run_id, place in jobs.items()
        if run_id in known or any(place.resolve().is_relative_to(top) for top in tops)
    }


def _each(
    places: Iterable[Path], jobs: Jobs, texts: dict[str, str], say: Callable[[str], None]
) -> list[Measured]:
    """Read what was compared and swept; what is not whole is left out."""
    found = []
    for place in places:
        try:
            swept = (place / "sweep.json").is_file()
            one = _sweep(place, jobs) if swept else _comparison(place, jobs, texts)
        except (ScaleoutError, LookupError, ValueError):
            one = None
        if one is not None and (one.seeds or _has_a_round(one)):
            found.append(one)
        else:
            say(f"{show(place)} is left out: it has no whole round, or is damaged.")
    return found


def _has_a_round(one: Measured) -> bool:
    each = [row.round for row in one.rows]
    names = {row.variant for row in one.rows}
    return len(names) > 1 and any(each.count(number) == len(names) + 1 for number in set(each))


def _renamed(one: Kind, called: Mapping[str, str]) -> Kind:
    """Call the variants as a page may."""
    variants = {called[name]: setting for name, setting in one.variants.items()}
    rows = [replace(row, variant=called[row.variant]) for row in one.rows]
    return replace(one, variants=variants, rows=rows)


def _comparison(place: Path, jobs: Jobs, texts: dict[str, str]) -> Measured | None:
    """Read what `compare` has left in a folder; add the scripts' texts."""
    about = description(place / "compare.json", Comparing)
    if about is None:
        return None
    rows, _ = read_rows(place / "runs.jsonl", Compared)
    judge = Metric(about.metric, about.lower, about.reduce)
    settings = {}
    for name in about.variants:
        ran = [row for row in rows if row.variant == name]
        setting = _variant(about, name, _job(ran, jobs))
        if text := about.texts.get(file := about.scripts.get(name, "")):
            key = hashlib.sha256(text.encode()).hexdigest()[:16]  # of what was run
            texts[key] = text
            setting = replace(setting, script=file, text=key)
        settings[name] = replace(setting, work=_work(ran, jobs))
    return Measured(
        metric=about.metric,
        lower=about.lower,
        reduce=about.reduce,
        machine=about.machine,
        typed=about.typed,
        variants=settings,
        rows=[_whole(row, settings[row.variant], jobs, judge) for row in rows],
        guess=about.guess,
        guessed=about.guessed,
        limits=about.limits,
    )


def _job(rows: Sequence[Compared], jobs: Jobs) -> Job:
    """Read the run.json of the first of these runs that has one; a row's own command counts."""
    folders = [jobs[row.run_id] for row in rows if row.run_id in jobs]
    job = folders and description(folders[0] / "run.json", Job) or Job()
    command = next((row.command for row in rows if row.command), job.command)
    return replace(job, command=command)


def _variant(about: Comparing, name: str, job: Job) -> Setting:
    """Describe a variant's command: as it was given or, of a lab's job, as its run tells it."""
    way = about.way(name)
    words = way.script
    if not isinstance(words, list):  # a file of a lab, or a command in one text
        called = shlex.split(about.job)
        words = (not called[1:] and _ran(job)) or shlex.split(words or "") or called
    ranks = way.ranks or 1
    placed = {"nodes": way.nodes, "bind": way.bind}
    return Setting(
        words=words,
        env={key: None if value is None else str(value) for key, value in (way.env or {}).items()},
        ranks=ranks,
        threads=way.threads or max(1, about.machine[1] // ranks),
        placed={key: str(value) for key, value in placed.items() if value},
        command=job.command,
    )


def _ran(job: Job) -> list[str]:
    """Read the command of a rank, from its Python on, out of mpirun's line."""
    typed = shlex.split(job.command)
    python = [at for at, word in enumerate(typed) if Path(word).name.startswith("python")]
    return typed[python[0] :] if python else []


def _records(folder: Path) -> list[Record]:
    lines, _ = jsonlines.read(folder / "records.jsonl", wrong)
    return msgspec.convert(lines, list[Record])


def _work(rows: Sequence[Compared], jobs: Jobs) -> dict[str, float]:
    """Count what a job did, by its records, in the median of all."""
    each: dict[str, list[float]] = {}
    for folder in (jobs[row.run_id] for row in rows if row.run_id in jobs):
        for record in _records(folder)[-1:]:
            steps = record.warmup_steps + len(record.step_s)
            done: dict[str, object] = {"steps": steps, "batch": record.batch_global}
            done |= {name: number for name in WORK if (number := record.metrics.get(name))}
            for name, number in done.items():
                if isinstance(number, (int, float)) and 0 <= number <= MOST:
                    each.setdefault(name, []).append(number)
    return {name: statistics.median(numbers) for name, numbers in each.items()}


def _whole(row: Compared, setting: Setting, jobs: Jobs, judge: Metric) -> Compared:
    """Add to a row what an older one lacks, and its run's folder holds."""
    folder = jobs.get(row.run_id)
    if folder is None:
        return row
    more: dict[str, object] = {}
    if not row.command:
        more |= {"ranks": setting.ranks, "threads": setting.threads}
    if row.wall_s is None and (job := description(folder / "run.json", Job)):
        more["wall_s"] = job.wall_s
    if not row.values and judge.what != "wall_s":
        more["values"] = _given(folder, judge)
    if not row.versions and (record := next(iter(_records(folder)), None)):
        more |= {"versions": record.installed, "commit": record.commit or ""}
    return replace(row, **more)


def _given(folder: Path, judge: Metric) -> dict[str, list[float]]:
    """Read the figures in a job's records or in what its ranks printed."""
    try:
        lines = (folder / "output.txt").read_text(encoding="utf-8").splitlines()
        pairs = [(int(m[1]) if m[1] else None, m[2]) for m in map(LINE.fullmatch, lines) if m]
        frame = records.read(folder / "records.jsonl")
        run = SimpleNamespace(lines=pairs, records=frame, talked=None)
        return {rank: list(each) for rank, each in judge.settled(run).read(run).ranks.items()}
    except (OSError, ScaleoutError, ValueError):
        return {}


def _sweep(place: Path, jobs: Jobs) -> Measured | None:
    """Read what `sweep` has left in a folder; the default's two jobs are its baseline."""
    about = description(place / "sweep.json", Sweeping)
    if about is None:
        return None
    judge = Metric(about.metric.what, about.metric.lower, about.metric.reduce)
    inside = {name for word in about.command for name in holes(word)}
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
            words=filled(about.command, row.env),
            env={key: value for key, value in row.env.items() if key not in inside},
            ranks=row.ranks,
            threads=row.threads or max(1, row.cores),
            command=row.command,
        )
        settings.setdefault(name, setting)
        if row.status == OK:
            one = row.compared(name, number, row.env.get(SEED))
            rows.append(_whole(one, setting, jobs, judge))
    seeds = about.grid.get(SEED, [])
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
    )


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


def less_is_better(name: str) -> bool:
    """Tell by a figure's name whether less of it is better, as of a loss."""
    return not LESS.isdisjoint(re.split("[^a-z]+", name.lower()))


def _by_sweeps(found: Sequence[Measured]) -> Test | None:
    """Make the accuracy test of sweeps over seeds: a variant for each command."""
    settings: dict[str, Setting] = {}
    rows = []
    for one in sorted((one for one in found if one.rows), key=lambda one: one.began):
        for row in one.rows:
            if row.seed is None:
                continue  # the default, which has none
            setting = one.variants[row.variant]
            setting = replace(
                setting,
                words=_without(setting.words, row.seed),
                env={key: value for key, value in setting.env.items() if key != SEED},
                typed=one.typed,
            )
            env = [f"{key}={value}" for key, value in setting.env.items()]
            name = shlex.join([*env, *setting.words]) + f" on {setting.ranks} x {setting.threads}"
            settings.setdefault(name, setting)
            rows.append(Tested(**{**asdict(row), "variant": name}))
    if not rows:
        return None
    first = found[0]
    return Test(
        metric=first.metric,
        lower=first.lower or less_is_better(first.metric),
        reduce=first.reduce,
        machine=first.machine,
        typed=first.typed,
        seeds=sorted({seed for one in found for seed in one.seeds}, key=_by_size),
        variants=settings,
        rows=rows,
    )


def _by_size(seed: str) -> tuple[int, str]:
    return (int(seed), "") if seed.isdecimal() else (0, seed)


def _without(words: Sequence[str], seed: str) -> list[str]:
    """Drop the seed from the words of a command, and the flag before it."""
    kept: list[str] = []
    for word in words:
        if word == seed and kept and "seed" in kept[-1].lower():
            kept.pop()
        elif not ("seed" in word.lower() and word.endswith(f"={seed}")):
            kept.append(word)
    return kept


def _by_records(found: Sequence[Measured], jobs: Jobs, metric: str) -> Test | None:
    """Make the accuracy test of records: of a comparison's variants, or of a lab's."""
    of = {row.run_id: (n, row.variant) for n, one in enumerate(found) for row in one.rows}
    twins = {row.run_id for one in found for row in one.rows if row.again}
    tests: dict[int | str, list[Tested]] = {}  # by a comparison's number, or a lab's name
    settings: dict[tuple[int | str, str], Setting] = {}
    for run_id, folder in jobs.items():
        if run_id in twins:  # the baseline's second run of a round has its seed
            continue
        job = description(folder / "run.json", Job) or Job()
        for record in _records(folder):
            value = record.metrics.get(metric)
            value = value[-1] if isinstance(value, list) and value else value
            if not isinstance(value, (int, float)) or record.seed is None:
                continue
            key, variant = of.get(run_id, (record.lab, record.variant))
            setting = Setting(
                words=_without(_ran(job), str(record.seed)) or [record.lab, record.variant],
                env=job.env,
                ranks=record.ranks,
                threads=record.threads_per_rank or 1,
            )
            settings.setdefault((key, variant), setting)
            row = Tested(
                variant=variant,
                seed=str(record.seed),
                value=value,
                values={"record": [value]},
                ranks=record.ranks,
                utc=record.utc,
                run_id=run_id,
                wall_s=job.wall_s,
                cpu=record.cpu,
                cores=record.cores,
                versions=record.installed,
            )
            tests.setdefault(key, []).append(row)
    known = [(k, rows) for k, rows in tests.items() if len({row.variant for row in rows}) > 1]
    if not known:
        return None
    key, rows = max(known, key=lambda test: len({row.seed for row in test[1]}))
    rows.sort(key=lambda row: row.utc)
    whose = found[key].variants if isinstance(key, int) else {}
    return Test(
        metric=metric,
        lower=less_is_better(metric),
        machine=(rows[0].cpu, rows[0].cores),
        seeds=sorted({str(row.seed) for row in rows}, key=_by_size),
        variants={v: whose.get(v) or settings[key, v] for v in (row.variant for row in rows)},
        rows=rows,
        recorded=True,
    )


def _machine(first: Measured) -> Machine:
    """Describe the machine of the first comparison, as far as it is known or is this one."""
    cpu, cores = first.machine
    about: dict[str, object] = {"processor": cpu, "cores that a job may fill": cores}
    if (machine.cpu_model(), machine.usable_cores()) == (cpu, cores):
        here = machine.facts()
        about["sockets"] = here.sockets
        about["hardware threads"] = here.hardware_threads
        about["memory (GiB)"] = here.memory_limit_gib or here.memory_gib
        about["instruction sets"] = ", ".join(here.isa)
        about["MPI"] = f"{here.mpi} {here.mpi_version}"
    about |= first.limits
    return Machine(cpu=cpu, cores=cores, about=[(name, str(what)) for name, what in about.items()])
