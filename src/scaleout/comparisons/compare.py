"""Variants of a job in rounds, the baseline twice a round: which is faster, and by how much.

result = compare(lab("01").run, {"default": {}, "oneDNN": {"env": {"TF_ENABLE_ONEDNN_OPTS": 1}}})
result.plot(guess=1.5)
explain(result, faster="{best} is {ratio} times as fast.", unclear="It is not clear here.")
"""

import functools
import shlex
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from inspect import signature
from typing import Any

from .. import progress, settings
from ..errors import ScaleoutError
from ..jobs import run as launch
from ..jobs.job import JobInterrupted
from ..paths import show
from ..words import count, rounded
from .comparison import WITHIN, Comparison
from .intervals import ROUNDS
from .journal import Kept, about_it, folder_name
from .metric import Metric, figure, is_time
from .rounds import columns, enough, plan

Job = Callable[..., Any] | str | Sequence[str]


def compare(
    job: Job,
    variants: Mapping[str, Mapping[str, Any]],
    *,
    rounds: int = 7,
    metric: Metric = "rate",
    lower: bool | None = None,
    within: float = WITHIN,
    name: str = "",
    quiet: bool = False,
    echo: Callable[[str], None] | None = None,
    **shared: Any,
) -> Comparison:
    """Runs each variant once a round, and the baseline, which is the first of them, twice.

    What the two baselines differ by is the noise: no smaller gain counts. The order changes from
    round to round, so that neither a place nor a drift favours a variant. It stops when the
    intervals of all ratios are narrow enough, never before three rounds; a round that something
    disturbed is replaced, at most twice. `intervals.paired` says how the interval is made.

    Every run is kept in results/compare/NAME/. Interrupted, the same call goes on from there; after
    its end, the same call measures anew, and with more rounds= it adds to what it has.

    Parameters
    ----------
    job : callable or command
        What is run: a lab's `run`, `scaleout.run`, any function that returns a run, a frame of
        records or a number; or a command, such as "python train.py".
    variants : mapping of name to arguments
        The arguments of `job` in each variant (of `scaleout.run`, for a command). The first is the
        baseline.
    rounds : int
        At most so many. With SCALEOUT_QUICK=1 one, from which no verdict follows; so the baseline's
        only run stands there twice.
    metric : str or function
        What a run is judged by: a field of its record, "wall_s" for the seconds it took, or a
        function of what `job` returns.
    lower : bool, optional
        Less is better. Without it: where the name of the metric ends in _s.
    within : float
        "No difference shown" needs an interval within this share of the baseline; an interval is
        narrow enough when it is half as wide.
    name : str
        Of its folder; by default made from all that decides what is measured.
    quiet : bool
        Without a progress bar.
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
    _check(variants, rounds, within)
    rounds = 1 if settings.quick() else rounds
    asked = {key: {**shared, **how} for key, how in variants.items()}
    lower = is_time(metric) if lower is None else lower
    about = about_it(job, asked, metric, lower, within)
    kept = Kept(folder_name(name, about))
    start = _start(job, f"compare/{kept.folder.name}/jobs")
    round_of = columns(list(asked))

    def result() -> Comparison:
        return Comparison(kept.rows, lower, within, about["metric"], kept.folder)

    def done() -> bool:
        return len(kept.rows) >= len(round_of) and enough(result(), rounds)

    with kept.held():
        kept.load(about, len(round_of))
        if done():
            kept.begin(about)
        before = len(kept.rows) // len(round_of)
        if before and echo:
            echo(f"{count(before, 'round')} were measured before, in {show(kept.folder)}.")
        turns = plan(round_of, before, done)
        total = max(0, rounds - before) * len(round_of)
        hidden = quiet or echo is not None
        try:
            for round_, (key, again) in progress.bar(
                turns, total=total, unit="run", disable=hidden
            ):
                # In the short form the baseline's run, which was the last, stands here twice.
                if not (again and settings.quick()):
                    row = _run(start, asked[key], metric, f"{key}, round {round_ + 1}")
                place = {"round": round_, "place": len(kept.rows), "variant": key, "again": again}
                kept.add({**place, **row})
                if echo:
                    twin = f"{key}, again" if again else key
                    echo(
                        f"round {round_ + 1}  {twin}: {rounded(row['value'])} {row['unit']}".rstrip()
                    )
        except KeyboardInterrupt:
            whole = count(len(kept.rows) // len(round_of), "whole round")
            raise JobInterrupted(
                f"Interrupted: {whole} kept; the same call goes on from there."
            ) from None
        return result()


def _run(
    start: Callable[..., Any], how: Mapping[str, Any], metric: Metric, where: str
) -> dict[str, Any]:
    try:
        found = start(**how)
        value, unit = figure(found, metric)
    except ScaleoutError as error:
        error.args = (f"{where}: {error}", *error.args[1:])
        raise
    utc = datetime.now(UTC).isoformat(timespec="seconds")
    return {"value": value, "unit": unit, "run_id": getattr(found, "id", ""), "utc": utc}


def _check(variants: Mapping[str, Mapping[str, Any]], rounds: int, within: float) -> None:
    if len(variants) < 2:
        raise ScaleoutError(
            f"A comparison needs two variants or more, not {len(variants)}: the baseline, and what "
            "is compared with it (the baseline against itself comes by itself)."
        )
    if rounds < ROUNDS:
        raise ScaleoutError(f"A comparison needs {ROUNDS} rounds or more, not {rounds}.")
    if not 0 < within < 1:
        raise ScaleoutError(f"within takes a share, such as 0.05 for 5 %, not {within!r}.")
    known: dict[str, str] = {}
    for name, how in variants.items():
        if not isinstance(how, Mapping):
            raise ScaleoutError(
                f"The variant {name!r} is {how!r}: write the arguments of the job, such as "
                '{"env": {"OMP_NUM_THREADS": 1}}.'
            )
        if (twin := known.setdefault(repr(how), name)) != name:
            raise ScaleoutError(
                f"{twin!r} and {name!r} are the same variant: change one of them (the baseline runs "
                "against itself in any case)."
            )


def _start(job: Job, folder: str) -> Callable[..., Any]:
    """What runs a variant, without printing what the job prints."""
    if not callable(job):
        return functools.partial(_command, folder, script=job)
    if job is launch.run:
        return functools.partial(_command, folder)
    return functools.partial(job, echo=None) if "echo" in signature(job).parameters else job


def _command(folder: str, script: str | Sequence[str], **how: Any) -> Any:
    words = shlex.split(script) if isinstance(script, str) else list(script)
    return launch.run(words, **{"name": folder, "echo": None, **how})
