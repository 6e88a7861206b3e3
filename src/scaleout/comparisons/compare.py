"""Variants of a job in rounds, the baseline twice a round: which is faster, and by how much.

result = compare(lab("01").run, {"default": {}, "oneDNN": {"env": {"TF_ENABLE_ONEDNN_OPTS": 1}}})
result.plot(guess=1.5)
explain(result, faster="{best} is {ratio} times as fast.", unclear="It is not clear here.")
"""

import contextlib
import dataclasses
import functools
import hashlib
import json
import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from inspect import getattr_static, signature
from numbers import Number
from pathlib import Path, PurePath
from types import CellType, CodeType, FunctionType, MethodType
from typing import Protocol, runtime_checkable

import msgspec

from .. import machine
from ..base import jsonlines, progress, settings
from ..base.errors import ScaleoutError
from ..base.paths import show
from ..base.words import count, rounded, veiled
from ..jobs.ignored import ignored, undone
from ..jobs.job import JobFailed, JobInterrupted, Run
from ..launch import run as launch
from ..measuring import command, inputs
from ..measuring.asked import Comparing, Way
from ..measuring.journal import Journal, folder_name, scripts
from ..measuring.kind import Kind
from ..measuring.metric import LAST_LINES, Metric
from ..measuring.numbers import NoFigure, clash
from ..measuring.row import Again, Compared
from .comparison import Comparison
from .elsewhere import FILE as ELSEWHERE
from .elsewhere import kept as kept_elsewhere
from .gate import MOST_ROUNDS, told
from .intervals import ROUNDS, WITHIN
from .lengths import Lengths

# What is run and gives a figure; it takes whatever its variants hold.
Measured = Callable[..., object]  # type: ignore[explicit-any]


@runtime_checkable
class OfLab(Protocol):
    """A lab, whose script lies in its folder."""

    folder: Path
    script: Path


Column = tuple[str, Again]  # a variant, and 1 where it is the baseline's second run of a round
SHORT_S = 10.0  # a job's start is no large part of more
ROUND = "{ROUND}"  # in a command
PREPARE = "prepare"  # of a variant: what is run before each of its runs
MOST_BYTES = 200_000  # of a script whose text is kept
MORE = 2  # rounds at most that take the place of disturbed ones
BESIDE = (
    "guess",
    "guessed",
    "behind_s",
    "typed",
    "limits",
    "kind",
    "rounds",
    "least",
    "modules",  # their texts count
)  # told of a comparison, and no part of what it is


def compare(
    job: Measured,
    variants: Mapping[str, Mapping[str, object]],
    *,
    rounds: int = 7,
    metric: str = "rate",
    lower: bool | None = None,
    reduce: str = "",
    name: str = "",
    guess: float | None = None,
    least: int = ROUNDS,
    work: str = "",
    echo: Callable[[str], None] | None = None,
    typed: Sequence[str] = (),
    gate: float | None = None,
    minutes: float | None = None,
    **shared: object,
) -> Comparison:
    """Run each variant once a round, and the baseline, which is the first of them, twice.

    What the two baselines differ by is the noise: no smaller gain counts. The order changes from
    round to round, so that neither a place nor a drift favours a variant. It stops when the
    intervals of all ratios are narrow enough, never before three rounds; a round that something
    disturbed is replaced, at most twice. `intervals.paired` says how the interval is made.

    Every run is kept in results/compare/NAME/, and the texts of the scripts. Interrupted, the same
    call goes on from there; after its end, the same call measures anew, and with more rounds= or
    least= it adds to what it has. A script that was edited since is measured anew.

    Parameters
    ----------
    job : callable
        What is run: a lab's `run`, `scaleout.run`, or any function that returns a run, a frame of
        records or a number.
    variants : mapping of name to arguments
        The arguments of `job` in each variant. The first is the baseline. {ROUND} in a command is
        the number of the round, from 1, and so is the variable SCALEOUT_ROUND of each job: a seed
        that all variants of a round share.
    rounds : int
        At most so many, and no more than SCALEOUT_QUICK where that is set. From one no verdict
        follows, so the baseline's only run stands there twice.
    metric : str
        What a run is judged by: a field of its record, "wall_s" for the seconds it took, or a
        pattern for what it prints. Without a record, "rate" is the one line that looks like a rate.
    lower : bool, optional
        Less is better. Without it: where the name of the metric ends in _s.
    reduce : {"sum", "mean", "max"}, optional
        What the figures that ranks print make together. Without it they are added up, and of times
        the largest counts; where that is in doubt, the comparison asks for it and ends.
    name : str
        Of its folder; by default made from all that decides what is measured. Of a lab's job, what
        other machines gave under this name, in elsewhere.jsonl beside it, is shown below.
    guess : float, optional
        How many times as fast you expect the last variant to be. It is kept with the hour, before
        the first run, and never changed when the comparison is taken up again.
    least : int
        No fewer rounds than so many, however clear it is before: five, where each has its own seed.
    work : str, optional
        NAME=A,B, such as "steps=40,80": each run is a job of A and one of B, which take the place of
        {NAME} in the commands, and is judged by the seconds that the longer takes more. So neither a
        job's start nor a clock of its own counts.
    echo : callable, optional
        Takes a line a run, in place of the bar.
    typed : sequence of str
        The command line that asked for it, where one did: a report prints it.
    gate : float, optional
        Go on, in place of `rounds`, until each variant is shown to be slower than the baseline by no
        more than this share, or by more; `gate.judge` says which.
    minutes : float, optional
        No round begins that would end later.
    **shared
        Arguments of `job` that all variants have. `prepare`, a shell's line or the words of a
        command, is run before each run, and is no part of its seconds.

    Returns
    -------
    Comparison

    Raises
    ------
    ScaleoutError
        For what cannot be compared, and for a job that fails.
    JobInterrupted
        What was measured is kept.
    """
    asked = {key: {**shared, **how} for key, how in variants.items()}
    _check(asked, rounds)
    if guess is not None and not 0 < guess < math.inf:
        raise ScaleoutError(f"A guess says how many times as fast, as in guess=1.3; not {guess!r}.")
    if not (gate is None or 0 < gate < 1) or not (minutes is None or 0 < minutes < math.inf):
        raise ScaleoutError(
            f"A gate is a share between 0 and 1, and minutes are above 0; not {gate!r}, {minutes!r}."
        )
    rounds = settings.rounds(rounds if gate is None else MOST_ROUNDS)
    began = time.monotonic()
    lengths = Lengths.asked(work, asked) if work else None
    if lengths:
        if metric not in ("rate", "wall_s") or job is not launch.run:
            raise ScaleoutError(
                "--work judges commands by their seconds, from outside: leave --metric out, and compare "
                "scaleout.run in Python."
            )
        metric = "wall_s"
    measure = Metric(metric, lower, reduce)
    about = msgspec.structs.replace(_about(job, asked, metric, measure), work=work)
    journal = Journal(
        "compare", folder_name(name, about.job, about), "runs.jsonl", Comparing, Compared
    )
    files = _files(job, asked)
    imported = _modules(job, asked, files)
    every = [*files.values(), *(file for each in imported.values() for file in each.values())]
    about = msgspec.structs.replace(
        about, scripts=files, modules=imported, texts=_texts(every), typed=list(typed),
        rounds=rounds, least=least,
    )  # fmt: skip
    start = _start(job, f"compare/{journal.name}/jobs")
    prepare = functools.partial(_command, f"compare/{journal.name}/prepare")
    start = lengths.around(start) if lengths else start
    by_the_clock = measure.what == "wall_s" and job is launch.run and not lengths
    round_of = columns(list(asked))
    rows: list[Compared] = []
    before = 0  # rounds, by an earlier call
    own = _lab(job)
    there = kept_elsewhere(own.folder / ELSEWHERE, name) if own and name else []

    def result() -> Comparison:
        return Comparison(rows, measure.lower is True, about.metric, journal.folder, others=there)

    def done() -> bool:
        if len(rows) < len(round_of):
            return False
        here, spent_s = len(rows) // len(round_of) - before, time.monotonic() - began
        if here and minutes is not None and spent_s * (1 + 1 / here) > 60 * minutes:
            return True
        if gate is None or settings.quick():
            return enough(result(), rounds, least)
        return told(result(), gate)

    say: Callable[[str], None] = echo or print
    with journal.held():
        about = _as_before(journal, about, guess)
        if not about.limits:
            about = msgspec.structs.replace(about, limits=_limits(job), kind=Kind.here())
        if guess is not None and about.guess is None:
            say("This guess is not kept, as its comparison has runs already.")
        rows += _whole_rounds(journal, about, len(round_of), say)
        before = len(rows) // len(round_of)
        if done():
            journal.begin(about, "before")
            rows.clear()
            before = 0
        behind_s, went_back = journal.behind()
        if not rows and behind_s != about.behind_s:
            about = msgspec.structs.replace(about, behind_s=behind_s)
            journal.note(about)
        for warning in filter(None, (went_back, _threads(asked))):
            say(warning)
        if before and echo:
            echo(f"{count(before, 'round')} were measured before, in {show(journal.folder)}.")
        turns = plan(round_of, before, done)
        total = max(0, rounds - before) * len(round_of)
        try:
            for round_, (key, again) in progress.bar(
                turns, total=total, unit="run", disable=echo is not None
            ):
                earlier = [row for row in rows if row.variant == key]
                # In the short form the baseline's run, which was the last, stands here twice.
                if again and rounds == 1:
                    row = rows[-1]
                else:
                    _unchanged(about)
                    how = _of_round(asked[key], round_ + 1)
                    reads = _reads(about, key, how)
                    before_it = inputs.digests(reads)
                    with settings.in_round(round_ + 1):
                        where = f"{key}, round {round_ + 1}"
                        _prepare(prepare, how, where)
                        row, measure = _run(start, how, measure, where, bool(earlier))
                    row = msgspec.structs.replace(row, files=_kept(before_it, reads))
                    if by_the_clock:
                        start_s = rows[0].start_s if rows else _start_s(start, asked[key], row)
                        row = msgspec.structs.replace(row, start_s=start_s)
                    _ask(measure, [*rows, msgspec.structs.replace(row, variant=key)])
                    if echo and not earlier:
                        for note in filter(None, (row.copies, row.ignored)):
                            echo(f"{key}: {note}")
                rows.append(
                    msgspec.structs.replace(
                        row, round=round_, place=len(rows), variant=key, again=again
                    )
                )
                journal.add(rows[-1])
                if echo:
                    twin = f"{key}, again" if again else key
                    echo(f"round {round_ + 1}  {twin}: {rounded(row.value)} {row.unit}".rstrip())
        except KeyboardInterrupt:
            whole = count(len(rows) // len(round_of), "whole round")
            raise JobInterrupted(
                f"Interrupted: {whole} kept; the same call goes on from there."
            ) from None
        return result()


def _threads(asked: Mapping[str, Mapping[str, object]]) -> str:
    """Say which variables of this shell undo the threads that the variants ask for."""
    envs = [env for how in asked.values() if isinstance(env := how.get("env"), Mapping)]
    threads = {n for how in asked.values() if isinstance(n := how.get("threads"), int)}
    return undone(sorted(threads), {name for env in envs for name in env})


def _of_round(how: Mapping[str, object], number: int) -> Mapping[str, object]:
    """Fill in {ROUND} in the words of a command, and of what prepares it."""
    found = dict(how)
    for key in ("script", PREPARE):
        words = found.get(key)
        if isinstance(words, str):
            found[key] = words.replace(ROUND, str(number))
        elif isinstance(words, (list, tuple)):
            found[key] = [str(word).replace(ROUND, str(number)) for word in words]
    return found


def _prepare(run: Measured, how: Mapping[str, object], where: str) -> None:
    """Run what prepares a run, to its end."""
    words = how.get(PREPARE)
    try:
        if words:
            run(["sh", "-c", words] if isinstance(words, str) else words, ranks=1, threads=1)
    except ScaleoutError as error:
        error.args = (f"{where}, --prepare: {error}", *error.args[1:])
        raise


def _bare(how: Mapping[str, object]) -> dict[str, object]:
    """Leave out what prepares a run: the job itself does not take it."""
    return {key: value for key, value in how.items() if key != PREPARE}


def columns(names: Sequence[str]) -> list[Column]:
    """List the runs of a round: the baseline twice, then each variant."""
    return [(names[0], 0), (names[0], 1), *((name, 0) for name in names[1:])]


def plan(
    round_of: Sequence[Column], first: int, enough: Callable[[], bool]
) -> Iterator[tuple[int, Column]]:
    """Yield the runs to come, each with the number of its round.

    Every second round is the mirror image of the one before, so that a steady drift cancels, and
    each pair of rounds begins one place further on, so that nobody keeps a place.
    """
    number = first
    while not enough():
        shift = number // 2 % len(round_of)
        turn = [*round_of[shift:], *round_of[:shift]]
        for column in turn if number % 2 == 0 else reversed(turn):
            yield number, column
        number += 1


def enough(result: Comparison, rounds: int, least: int = ROUNDS) -> bool:
    """Tell whether no more rounds are needed: every variant is settled, or all rounds are there."""
    if result.rounds < min(rounds, max(least, ROUNDS)):
        return False
    settled = all(_settled(result, name) for name in result.variants)
    disturbed = {number for number, _, _ in result.found.disturbed}
    return settled or result.rounds >= rounds + min(MORE, len(disturbed))


def _settled(result: Comparison, name: str) -> bool:
    """Tell whether more rounds would change nothing.

    That is so for an interval that is narrow, and either far from 1 (twice its half-width) or
    around it (by half of that at most).

    It does not stop at the first verdict: a test that is repeated after every round, until it says
    "different", says so more often than it should.
    """
    ratio, narrow = result.ratio(name), math.log1p(WITHIN / 2)
    half, size = math.log(ratio.high / ratio.middle), abs(math.log(ratio.middle))
    if result.verdict(name) == "no difference shown":
        return half + size <= narrow and size <= half / 2
    return result.verdict(name) != "unclear" and half <= max(narrow, size / 10) and half <= size / 2


def _run(
    start: Measured, how: Mapping[str, object], metric: Metric, where: str, worked: bool
) -> tuple[Compared, Metric]:
    """Make a row of one run, and return the metric that all others are read by."""
    try:
        found = start(**_bare(how))
        metric = metric.settled(found)
        figure = metric.read(found)
        ranks = getattr(found, "ranks", 1)
        copies = getattr(found, "copies", "")
        if question := "" if copies else metric.doubt(figure, ranks):
            raise NoFigure(question)
    except JobFailed as error:
        reason = str(error).removeprefix(f"{error.run.name} ")  # the variant's name says more
        lines = [text for rank, text in error.run.lines if rank is not None and text.strip()]
        if "Traceback" not in reason and lines:
            reason += "\nIts last lines:" + "".join(
                f"\n    {text[:160]}" for text in lines[-LAST_LINES:]
            )
        again = command.left_behind(reason) if worked else ""
        error.args = (f"{where}: {reason}" + f"\n{again}" * bool(again),)
        raise
    except ScaleoutError as error:
        error.args = (f"{where}: {error}", *error.args[1:])
        raise
    run = found if isinstance(found, Run) else None
    return Compared(
        variant="",
        round=0,
        again=0,
        value=figure.value,
        unit=figure.unit,
        values={rank: list(given) for rank, given in figure.ranks.items()},
        metric=metric.pattern,
        reduce=metric.reduce,
        remark=metric.remark(figure),
        behind=list(figure.behind),
        ignored=ignored(run) if run else "",
        copies=copies,
        ranks=ranks,
        threads=run.threads if run else None,
        env=veiled({key: v if v is None else str(v) for key, v in run.env.items()}) if run else {},
        command=run.command if run else "",
        run_id=getattr(found, "id", ""),
        utc=datetime.now(UTC).isoformat(timespec="seconds"),
        wall_s=round(run.wall_s, 3) if run else None,
        cpu=machine.cpu_model(),
        cores=machine.usable_cores(),
        quick=settings.quick(),
    ), metric


def _start_s(start: Measured, how: Mapping[str, object], row: Compared) -> float:
    """Measure the start of a job that does nothing, where the jobs are so short."""
    if row.value > SHORT_S:
        return 0.0
    seconds = Metric("wall_s")
    empty = [seconds.read(start(**{**_bare(how), "script": ["true"]})).value for _ in range(2)]
    return round(min(empty), 4)


def _ask(metric: Metric, rows: Sequence[Compared]) -> None:
    """Ask what the figures mean where all ranks of one variant print, and not all of another, and
    refuse figures of two units."""
    if words := clash({row.variant: row.behind for row in rows}):
        raise NoFigure(words)
    several = {row.variant: (len(row.values), row.ranks) for row in rows if row.ranks > 1}
    whole = {key: printed for key, (printed, ranks) in several.items() if printed == ranks}
    if metric.reduce or metric.lower or not metric.pattern or len(whole) in (0, len(several)):
        return
    all_, part = next(iter(whole)), next(key for key in several if key not in whole)
    raise NoFigure(
        f"{all_} prints a figure on each rank, {part} on {several[part][0]} of {several[part][1]}: add  "
        "--reduce mean  if each figure is the total of the job,  --reduce sum  if each is a rank's "
        "own, to be added up."
    )


def _whole_rounds(
    journal: Journal[Comparing, Compared], about: Comparing, size: int, say: Callable[[str], None]
) -> list[Compared]:
    """Read the whole rounds of the same comparison; put aside those of another one."""
    found, left_out = journal.rows()
    kept = journal.description()
    same = _same(kept, about) and not left_out  # a lost run would shift the others
    rows = found[: len(found) // size * size] if same else []
    if not rows:
        journal.begin(about, "before")
        if found and not left_out:
            texts = kept is None or kept.texts != about.texts
            say(f"Measured anew, as {'the text of a script' if texts else 'what is measured'} has "
                f"changed: what was there is put aside in {show(journal.folder)}.")  # fmt: skip
        return []
    journal.note(about)
    if len(rows) < len(found):
        journal.keep_only(rows)
    return rows


def _about(
    job: Measured, variants: Mapping[str, Mapping[str, object]], metric: str, measure: Metric
) -> Comparing:
    """Collect all that decides what a comparison measures, as JSON gives it back."""
    return Comparing(
        job=_label(job),
        text=_text(job, variants),
        variants=json.loads(json.dumps(variants, default=_plain)),
        metric=metric,
        lower=measure.lower is True,
        reduce=measure.reduce,
        machine=(machine.cpu_model(), machine.usable_cores()),
    )


def _limits(job: Measured) -> dict[str, float]:
    """Return the machine's limits, where jobs are started on it."""
    return machine.speed_limits() if job is launch.run or _lab(job) else {}


def _lab(job: Measured) -> OfLab | None:
    """Return the lab whose jobs are compared; None where it is another job."""
    lab = getattr(job, "__self__", None)
    return lab if isinstance(lab, OfLab) else None


def _plain(value: object) -> object:
    """Write as JSON what a variant may hold: a site, a path, a number of NumPy's."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return dataclasses.asdict(value)
    if isinstance(value, Path):
        return str(value)
    return value.tolist() if hasattr(value, "tolist") else repr(value)


def _same(kept: Comparing | None, about: Comparing) -> bool:
    """Tell whether two descriptions are of one comparison.

    Where the scripts lie, and whether their texts were kept, makes no other one of it.
    """
    if kept is None:
        return False

    def texts(one: Comparing) -> dict[str, str | None]:
        files = {variant: file for variant, file in one.scripts.items()}
        if kept.modules or not kept.texts:  # an older one does not tell them
            each = one.modules.items()
            files |= {f"{v} {name}": file for v, named in each for name, file in named.items()}
        return {what: one.texts.get(file) for what, file in files.items()}

    beside = (*BESIDE, *(("scripts", "texts") if texts(kept) in ({}, texts(about)) else ()))
    return msgspec.structs.replace(kept, **{key: getattr(about, key) for key in beside}) == about


def _as_before(
    journal: Journal[Comparing, Compared], about: Comparing, guess: float | None
) -> Comparing:
    """Add the guess; of the same comparison the first one stands, and so do the limits."""
    kept = journal.description()
    if kept is not None and _same(kept, about):
        about = msgspec.structs.replace(about, limits=kept.limits, behind_s=kept.behind_s)
        if kept.guess is not None or journal.rows()[0]:
            return msgspec.structs.replace(about, guess=kept.guess, guessed=kept.guessed)
    if guess is None:
        return about
    now = datetime.now(UTC).isoformat(timespec="seconds")
    return msgspec.structs.replace(about, guess=float(guess), guessed=now)


def _files(job: Measured, variants: Mapping[str, Mapping[str, object]]) -> dict[str, str]:
    """Name the file that each variant runs, as its command does, where it runs one."""
    found = {}
    for key, how in variants.items():
        if lab := _lab(job):
            path = lab.folder / str(how["script"]) if how.get("script") else lab.script
            found[key] = show(path)
        elif file := command.script(_words(how)):
            found[key] = file
    return found


def _modules(
    job: Measured, variants: Mapping[str, Mapping[str, object]], files: Mapping[str, str]
) -> dict[str, dict[str, str]]:
    """Name the modules of one's own that each variant's script imports."""
    found = {}
    for key, file in files.items():
        lab, env = _lab(job), variants[key].get("env")
        folders = inputs.folders_of(
            Path(file), env if isinstance(env, Mapping) else {}, [lab.folder] if lab else []
        )
        imported = inputs.modules(Path(file), folders)
        found[key] = {name: show(path) for name, path in imported.items()}
    return {key: each for key, each in found.items() if each}


def _reads(about: Comparing, key: str, how: Mapping[str, object]) -> dict[str, Path]:
    """Name what a variant's script imports, and the files that its words or arguments name."""
    own = {name: Path(file) for name, file in about.modules.get(key, {}).items()}
    words: list[object] = [*_words(how)[1:]]
    words += [value for name, value in how.items() if name not in Way.__struct_fields__]
    told = [word for word in words if isinstance(word, (str, Path))]
    given = inputs.files(word for word in told if str(word) != about.scripts.get(key))
    return {**given, **own}


def _kept(before: Mapping[str, str], reads: Mapping[str, Path]) -> dict[str, str]:
    """Leave out files that the job itself has written: these are no part of what it reads."""
    after = inputs.digests(reads)
    return {name: digest for name, digest in before.items() if after.get(name) == digest}


def _texts(files: Iterable[str]) -> dict[str, str]:
    """Read the files that are run; one that is no text, or is very large, is left out."""
    found = {}
    for file in dict.fromkeys(files):
        with contextlib.suppress(OSError, ValueError):
            if Path(file).stat().st_size <= MOST_BYTES:
                found[file] = jsonlines.text(Path(file))
    return found


def _unchanged(about: Comparing) -> None:
    """Refuse to go on with a script that somebody has edited meanwhile."""
    now = _texts(about.texts)
    if edited := [file for file, text in about.texts.items() if now.get(file) != text]:
        raise ScaleoutError(
            f"{edited[0]} was edited while it is measured, so that rounds would not be alike: put "
            "its old text back, and the same call goes on; else it measures anew."
        )


def _label(job: object) -> str:
    owner = getattr(job, "__self__", None)
    return str(getattr(owner, "name", "") or getattr(job, "__qualname__", type(job).__name__))


def _text(job: Measured, variants: Mapping[str, Mapping[str, object]]) -> str:
    """Digest the scripts and the function that are run: edited, they are another comparison.

    Of what a function reads from its module, and of lists and objects, which it may change, nothing
    is seen.
    """
    words = [str(getattr(getattr(job, "__self__", None), "script", ""))]
    words += [word for how in variants.values() for word in _words(how)]
    digests = "".join(scripts(words).values())
    return hashlib.sha256((digests + _written(job, set())).encode()).hexdigest()[:16]


def _written(value: object, seen: set[int]) -> str:
    """Write what a function does, its constants, defaults and closure included, or a value.

    It is the same in each process. Lists and objects are told by their type alone: a function may
    change them while it is measured.
    """

    def all_of(values: Iterable[object]) -> str:
        return f"{type(value).__name__}({', '.join(_written(each, seen) for each in values)})"

    if id(value) in seen:  # a function that calls itself
        return ""
    if isinstance(value, CodeType):
        return all_of([value.co_code, value.co_names, value.co_consts])
    if isinstance(value, FunctionType):
        seen = seen | {id(value)}
        cells = [_content(cell) for cell in value.__closure__ or ()]
        given = sorted((value.__kwdefaults__ or {}).items())
        return all_of([value.__code__, value.__defaults__, tuple(map(tuple, given)), *cells])
    if isinstance(value, MethodType):
        return _written(value.__func__, seen)
    if isinstance(value, functools.partial):
        return all_of([value.func, value.args, tuple(sorted(value.keywords.items()))])
    if isinstance(value, tuple):
        return all_of(value)
    if isinstance(value, frozenset):
        return str(sorted(_written(each, seen) for each in value))
    if value is None or isinstance(value, (str, bytes, Number, PurePath, slice)):
        return repr(value)
    call = getattr_static(type(value), "__call__", None)
    return type(value).__qualname__ + (all_of([call]) if isinstance(call, FunctionType) else "")


def _content(cell: CellType) -> object:
    """Return what a closure holds; nothing where its name has no value yet."""
    try:
        return cell.cell_contents
    except ValueError:
        return None


def _check(variants: Mapping[str, Mapping[str, object]], rounds: int) -> None:
    if len(variants) < 2:
        raise ScaleoutError(
            f"A comparison needs two variants or more, not {len(variants)}: the baseline, and what "
            "is compared with it (the baseline against itself comes by itself)."
        )
    if rounds < ROUNDS:
        raise ScaleoutError(f"A comparison needs {ROUNDS} rounds or more, not {rounds}.")
    known: dict[str, str] = {}
    for name, how in variants.items():
        if (twin := known.setdefault(_asked(how), name)) != name:
            raise ScaleoutError(
                f"{twin!r} and {name!r} are the same variant: change one of them (the baseline runs "
                "against itself in any case)."
            )


def _asked(how: Mapping[str, object]) -> str:
    """Write what a variant asks for, the same for each way to ask for the same."""
    given = how.get("env")
    variables = given.items() if isinstance(given, Mapping) else ()
    env = {name: value if value is None else str(value) for name, value in variables}
    return json.dumps({**how, "env": env, "script": _words(how)}, sort_keys=True, default=_plain)


def _words(how: Mapping[str, object]) -> list[str]:
    """Return the words of a variant's command; none where its job has one of its own."""
    script = how.get("script") or ""
    return command.words(script if isinstance(script, (list, tuple)) else str(script))


def _start(job: Measured, folder: str) -> Measured:
    """Return the callable that runs a variant, without printing what the job prints."""
    if job is launch.run:
        return functools.partial(_command, folder)
    return functools.partial(job, echo=None) if "echo" in signature(job).parameters else job


def _command(folder: str, script: str | Sequence[str], **how: object) -> object:
    run: Measured = launch.run
    return run(command.words(script), **{"name": folder, "echo": None, **how})
