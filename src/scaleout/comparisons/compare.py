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
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from inspect import getattr_static, signature
from numbers import Number
from pathlib import Path, PurePath
from types import CellType, CodeType, FunctionType, MethodType
from typing import Any

from .. import machine
from ..base import jsonlines, progress, settings
from ..base.errors import ScaleoutError
from ..base.jsonlines import Row
from ..base.paths import show
from ..base.words import count, rounded
from ..jobs.job import JobFailed, JobInterrupted
from ..launch import run as launch
from ..measuring import command
from ..measuring.journal import Journal, folder_name, scripts
from ..measuring.metric import LAST_LINES, Metric
from ..measuring.numbers import NoFigure
from .comparison import Comparison, wrong
from .intervals import ROUNDS, WITHIN

Measured = Callable[..., Any]  # what is run and gives a figure
Column = tuple[str, int]  # a variant, and 1 where it is the baseline's second run of a round
SHORT_S = 10.0  # a job's start is no large part of more
ROUND = "{ROUND}"  # in a command
MOST_BYTES = 200_000  # of a script whose text is kept
MORE = 2  # rounds at most that take the place of disturbed ones


def compare(
    job: Measured,
    variants: Mapping[str, Mapping[str, Any]],
    *,
    rounds: int = 7,
    metric: str = "rate",
    lower: bool | None = None,
    reduce: str = "",
    name: str = "",
    guess: float | None = None,
    least: int = ROUNDS,
    echo: Callable[[str], None] | None = None,
    **shared: Any,
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
        Of its folder; by default made from all that decides what is measured.
    guess : float, optional
        How many times as fast you expect the last variant to be. It is kept with the hour, before
        the first run, and never changed when the comparison is taken up again.
    least : int
        No fewer rounds than so many, however clear it is before: five, where each has its own seed.
    echo : callable, optional
        Takes a line a run, in place of the bar.
    **shared
        Arguments of `job` that all variants have.

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
    rounds = settings.rounds(rounds)
    measure = Metric(metric, lower, reduce)
    about = _about(job, asked, metric, bool(measure.lower))
    about |= {"reduce": reduce} if reduce else {}
    journal = Journal("compare", folder_name(name, about["job"], about), "runs.jsonl", wrong)
    files = _files(job, asked)
    about |= {"scripts": files, "texts": _texts(files)}
    start = _start(job, f"compare/{journal.name}/jobs")
    by_the_clock = measure.what == "wall_s" and job is launch.run
    round_of = columns(list(asked))
    rows: list[Row] = []
    printing: dict[str, tuple[int, int]] = {}  # how many ranks of each variant print a figure

    def result() -> Comparison:
        return Comparison(rows, bool(measure.lower), about["metric"], journal.folder)

    def done() -> bool:
        return len(rows) >= len(round_of) and enough(result(), rounds, least)

    with journal.held():
        about |= _guess(journal, about, guess)
        if guess is not None and "guess" not in about:
            (echo or print)("This guess is not kept, as its comparison has runs already.")
        rows += _whole_rounds(journal, about, len(round_of), echo or print)
        if done():
            journal.begin(about, "before")
            rows.clear()
        before = len(rows) // len(round_of)
        if before and echo:
            echo(f"{count(before, 'round')} were measured before, in {show(journal.folder)}.")
        turns = plan(round_of, before, done)
        total = max(0, rounds - before) * len(round_of)
        try:
            for round_, (key, again) in progress.bar(
                turns, total=total, unit="run", disable=echo is not None
            ):
                # In the short form the baseline's run, which was the last, stands here twice.
                if not (again and rounds == 1):
                    where = f"{key}, round {round_ + 1}"
                    worked = any(row["variant"] == key for row in rows)
                    told = any(row.get("copies") for row in rows if row["variant"] == key)
                    _unchanged(about)
                    with settings.in_round(round_ + 1):
                        how = _of_round(asked[key], round_ + 1)
                        row, measure = _run(start, how, measure, where, worked)
                    row |= _start_s(start, asked[key], row, rows) if by_the_clock else {}
                    printing[key] = row.pop("printing")
                    _ask(measure, printing)
                    if echo and row["copies"] and not told:
                        echo(f"{key}: {row['copies']}")
                place = {"round": round_, "place": len(rows), "variant": key, "again": again}
                rows.append({**place, **row})
                journal.add(rows[-1])
                if echo:
                    twin = f"{key}, again" if again else key
                    echo(
                        f"round {round_ + 1}  {twin}: {rounded(row['value'])} {row['unit']}".rstrip()
                    )
        except KeyboardInterrupt:
            whole = count(len(rows) // len(round_of), "whole round")
            raise JobInterrupted(
                f"Interrupted: {whole} kept; the same call goes on from there."
            ) from None
        return result()


def _of_round(how: Mapping[str, Any], number: int) -> Mapping[str, Any]:
    """Fill in {ROUND} in the words of a command."""
    script = how.get("script")
    if isinstance(script, str):
        return {**how, "script": script.replace(ROUND, str(number))}
    if isinstance(script, (list, tuple)):
        return {**how, "script": [str(word).replace(ROUND, str(number)) for word in script]}
    return how


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
    start: Callable[..., Any], how: Mapping[str, Any], metric: Metric, where: str, worked: bool
) -> tuple[Row, Metric]:
    """Make a row of one run, and return the metric that all others are read by."""
    try:
        found = start(**how)
        metric = metric.settled(found)
        figure = metric.read(found)
        ranks = getattr(found, "ranks", 1)
        if question := "" if getattr(found, "copies", "") else metric.doubt(figure, ranks):
            raise NoFigure(question)
    except JobFailed as error:
        reason = str(error).removeprefix(f"{error.run.name} ")  # the variant's name says more
        lines = [text for rank, text in error.run.lines if rank is not None and text.strip()]
        if "Traceback" not in reason and lines:
            reason += "\nIts last lines:" + "".join(
                f"\n    {text[:160]}" for text in lines[-LAST_LINES:]
            )
        again = command.left_behind(reason, how.get("script", "")) if worked else ""
        error.args = (f"{where}: {reason}" + f"\n{again}" * bool(again),)
        raise
    except ScaleoutError as error:
        error.args = (f"{where}: {error}", *error.args[1:])
        raise
    utc = datetime.now(UTC).isoformat(timespec="seconds")
    row = {"value": figure.value, "unit": figure.unit, "run_id": getattr(found, "id", "")}
    row |= {"utc": utc, "remark": metric.remark(figure), "printing": (len(figure.ranks), ranks)}
    row |= {"copies": getattr(found, "copies", ""), "quick": settings.quick()}
    return row, metric


def _start_s(
    start: Callable[..., Any], how: Mapping[str, Any], row: Row, rows: Sequence[Row]
) -> Row:
    """Measure, once, the start of a job that does nothing, where the jobs are so short."""
    if rows:
        return {key: rows[0][key] for key in ("start_s",) if key in rows[0]}
    if row["value"] > SHORT_S:
        return {}
    empty = [float(start(**{**how, "script": ["true"]}).wall_s) for _ in range(2)]
    return {"start_s": round(min(empty), 4)}


def _ask(metric: Metric, printing: Mapping[str, tuple[int, int]]) -> None:
    """Ask what the figures mean where all ranks of one variant print, and not all of another."""
    several = {key: counts for key, counts in printing.items() if counts[1] > 1}
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
    journal: Journal, about: Mapping[str, Any], size: int, say: Callable[[str], None]
) -> list[Row]:
    """Read the whole rounds of the same comparison; put aside those of another one."""
    found, left_out = journal.rows()
    kept = _kept(journal, about)
    same = kept == about and not left_out  # a lost run would shift the others
    rows = found[: len(found) // size * size] if same else []
    if not rows:
        journal.begin(about, "before")
        if found and not left_out:
            texts = kept.get("texts") != about["texts"]
            say(f"Measured anew, as {'the text of a script' if texts else 'what is measured'} has "
                f"changed: what was there is put aside in {show(journal.folder)}.")  # fmt: skip
    elif len(rows) < len(found):
        journal.keep_only(rows)
    return rows


def _about(
    job: Measured, variants: Mapping[str, Mapping[str, Any]], metric: str, lower: bool
) -> dict[str, Any]:
    """Collect all that decides what a comparison measures, as JSON gives it back."""
    about = {
        "schema": 1,
        "job": _label(job),
        "text": _text(job, variants),
        "variants": variants,
        "metric": metric,
        "lower": lower,
        "machine": [machine.cpu_model(), machine.usable_cores()],
    }
    return dict(json.loads(json.dumps(about, default=_plain)))


def _plain(value: Any) -> Any:
    """Write as JSON what a variant may hold: a site, a path, a number of NumPy's."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return dataclasses.asdict(value)
    if isinstance(value, Path):
        return str(value)
    return value.tolist() if hasattr(value, "tolist") else repr(value)


def _kept(journal: Journal, about: Mapping[str, Any]) -> dict[str, Any]:
    """Read what was measured here; where the scripts lie, and whether texts were kept, is the same."""
    kept = journal.description()

    def texts(one: Mapping[str, Any]) -> dict[str, str]:
        return {key: one["texts"].get(file) for key, file in one.get("scripts", {}).items()}

    alike = kept and texts(kept) in ({}, texts(about))
    return {**kept, **{key: about[key] for key in ("scripts", "texts") if alike}}


def _guess(journal: Journal, about: Mapping[str, Any], guess: float | None) -> dict[str, Any]:
    """Take the guess of the same comparison where there is one: the first one stands."""
    kept = _kept(journal, about)
    words = ("guess", "guessed")
    first: dict[str, Any] = {key: kept.pop(key) for key in words if key in kept}
    same = kept == about
    if first and same or same and journal.rows()[0]:
        return first
    now = datetime.now(UTC).isoformat(timespec="seconds")
    return {} if guess is None else {"guess": float(guess), "guessed": now}


def _files(job: Measured, variants: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    """Name the file that each variant runs, as its command does, where it runs one."""
    lab: Any = getattr(job, "__self__", None)
    found = {}
    for key, how in variants.items():
        if hasattr(lab, "folder") and hasattr(lab, "script"):
            path = lab.folder / how["script"] if how.get("script") else lab.script
            found[key] = show(path)
        elif file := command.script(command.words(how.get("script", ""))):
            found[key] = file
    return found


def _texts(files: Mapping[str, str]) -> dict[str, str]:
    """Read the files that are run; one that is no text, or is very large, is left out."""
    found = {}
    for file in dict.fromkeys(files.values()):
        with contextlib.suppress(OSError, ValueError):
            if Path(file).stat().st_size <= MOST_BYTES:
                found[file] = jsonlines.text(Path(file))
    return found


def _unchanged(about: Mapping[str, Any]) -> None:
    """Refuse to go on with a script that somebody has edited meanwhile."""
    now = _texts(about["scripts"])
    if edited := [file for file, text in about["texts"].items() if now.get(file) != text]:
        raise ScaleoutError(
            f"{edited[0]} was edited while it is measured, so that rounds would not be alike: put "
            "its old text back, and the same call goes on; else it measures anew."
        )


def _label(job: Any) -> str:
    owner = getattr(job, "__self__", None)
    return str(getattr(owner, "name", "") or getattr(job, "__qualname__", type(job).__name__))


def _text(job: Measured, variants: Mapping[str, Mapping[str, Any]]) -> str:
    """Digest the scripts and the function that are run: edited, they are another comparison.

    Of what a function reads from its module, and of lists and objects, which it may change, nothing
    is seen.
    """
    words = [str(getattr(getattr(job, "__self__", None), "script", ""))]
    words += [word for how in variants.values() for word in command.words(how.get("script", ""))]
    digests = "".join(scripts(words).values())
    return hashlib.sha256((digests + _written(job, set())).encode()).hexdigest()[:16]


def _written(value: Any, seen: set[int]) -> str:
    """Write what a function does, its constants, defaults and closure included, or a value.

    It is the same in each process. Lists and objects are told by their type alone: a function may
    change them while it is measured.
    """

    def all_of(values: Iterable[Any]) -> str:
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


def _content(cell: CellType) -> Any:
    """Return what a closure holds; nothing where its name has no value yet."""
    try:
        return cell.cell_contents
    except ValueError:
        return None


def _check(variants: Mapping[str, Mapping[str, Any]], rounds: int) -> None:
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


def _asked(how: Mapping[str, Any]) -> str:
    """Write what a variant asks for, the same for each way to ask for the same."""
    env = how.get("env") or {}
    env = {name: value if value is None else str(value) for name, value in env.items()}
    script = command.words(how.get("script") or "")
    return json.dumps({**how, "env": env, "script": script}, sort_keys=True, default=_plain)


def _start(job: Measured, folder: str) -> Callable[..., Any]:
    """Return the callable that runs a variant, without printing what the job prints."""
    if job is launch.run:
        return functools.partial(_command, folder)
    return functools.partial(job, echo=None) if "echo" in signature(job).parameters else job


def _command(folder: str, script: str | Sequence[str], **how: Any) -> Any:
    return launch.run(command.words(script), **{"name": folder, "echo": None, **how})
