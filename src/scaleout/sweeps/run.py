"""The verb `sweep`: checks what was asked, measures, writes what came out."""

import math
import os
import shlex
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from .. import machine, settings
from ..errors import ScaleoutError
from ..jobs.job import TIMEOUT_S, check_size
from ..jobs.site import Site
from . import conditions, points
from .conditions import Only
from .journal import Journal, digest, scripts
from .outcome import Result
from .points import filled
from .published import published as recommended
from .rates import Metric
from .schedule import Schedule
from .work import Work

Say = Callable[[str], None]
MOST_JOBS = 10_000
MOST_LETTERS = 60  # of a folder's name


def sweep(
    command: str | Sequence[str],
    *,
    ranks: int | Sequence[int] = (),
    threads: int | Sequence[int] = (),
    env: Mapping[str, str | int | Sequence[str | int | None]] | None = None,
    only: Only | None = None,
    metric: str = "",
    reduce: str = "sum",
    skip: int = 0,
    lower: bool = False,
    repeat: int = 1,
    seed: int = 0,
    timeout: float = TIMEOUT_S,
    search: int = 0,
    published: bool = False,
    name: str = "",
    max_minutes: float = 60,
    site: Site | None = None,
    retry: bool = False,
    echo: Say | None = print,
) -> Result:
    """Measures a command at every combination of ranks, threads and variables, and with nothing set
    at all.

    Parameters
    ----------
    command : str or sequence of str
        As one rank starts it.
    ranks, threads : int or sequence of int
        To try; threads are a rank's.
    env : Mapping, optional
        {variable: values to try}; None among them leaves it unset.
    only : Mapping, optional
        {variable: (other axis, value)}: it is tried only where the other has that value. KMP_, OMP_
        and GOMP_ are in any case tried only where a point's Python has an OpenMP that reads them.
    metric, reduce, skip
        Where the figure comes from, see `rates.Metric`.
    lower : bool
        The figure is a time, less is better.
    repeat : int
        Jobs a point. With SCALEOUT_QUICK=1, one, at the first and the last value of each axis.
    seed : int
        Draws the order of each round of the grid.
    timeout : float
        Seconds a job.
    search : int
        At most so many points, chosen as it goes by what the ones before gave; of these, only what
        may still be the best is measured again. 0: the whole grid.
    published : bool
        Whether to measure also what Intel recommends for TensorFlow on CPUs, see `published.py`.
    name : str
        Of its folder in results/sweep/; by default made from all that decides what is measured.
    max_minutes : float
        Stops, keeping all, when the rest would take longer.
    site : Site, optional
        How this machine starts jobs.
    retry : bool
        Tries failed points again.
    echo : callable, optional
        Takes each line of the report as it comes; None keeps quiet, and draws no progress bar.

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
    for flag, asked, least in (
        ("--repeat", repeat, 1),
        ("--search", search, 0),
        ("--max-minutes", max_minutes, 0),
    ):
        if not isinstance(asked, (int, float)) or not asked >= least:
            raise ScaleoutError(f"{flag} takes a number, {least} or more, not {asked}.")
    check_size(1, None, timeout)
    repeat = 1 if settings.quick() else repeat
    site = site or Site()
    cores = site.cores or machine.usable_cores()
    words = _words(command)
    choices = points.choices(ranks, threads, env or {}, cores)
    if settings.quick():
        choices = points.ends(choices)
    kept = points.programs(choices, words)
    starts = [filled(words[:1], {k: str(v) if v else None}) for k in kept for v in choices[k]]
    for program in starts or [words[:1]]:
        _check([*program, *words[1:]])
    only = only or {}
    conditions.check(only, choices)
    here = not (site.hosts or site.scheduler or site.env)
    settle = conditions.settle(words, only, here)
    jobs = repeat * math.prod(map(len, choices.values()))
    if jobs > MOST_JOBS:
        raise ScaleoutError(
            f"That would be {jobs:,} jobs, and a sweep has {MOST_JOBS:,} at most: take fewer values "
            "or a smaller --repeat."
        )
    figure = Metric(metric, reduce, skip)
    about = {
        "command": words,
        "metric": asdict(figure) | {"lower": lower},
        "scripts": scripts(words),
        "machine": [machine.cpu_model(), cores],
        "site": {k: list(v) if isinstance(v, tuple) else v for k, v in asdict(site).items()},
        "choices": {axis: sorted(map(str, values)) for axis, values in choices.items()},
    }
    if only:
        about["only"] = {axis: list(where) for axis, where in only.items()}
    others = None
    if published:
        others = recommended(choices, cores, machine.facts().sockets, kept)
        about["published"] = str(others)
    journal = Journal(_name(name, words, about))
    say = echo or (lambda text: None)
    with journal.open(about, say):
        work = Work(words, site, cores, figure, timeout, journal, say)
        if retry:
            journal.forget(lambda key, row: row["status"] != "ok")
        for text in conditions.told(
            choices, list(points.grid(choices, cores, settle)), words, here
        ):
            say(text)
        Schedule(work, repeat, max_minutes).measure(
            choices, seed, search, lower, others, quiet=echo is None, settle=settle
        )
        result = Result(list(journal.done.values()), lower, journal.folder)
        result.write(words, site)
    return result


def _words(command: str | Sequence[str]) -> list[str]:
    try:
        words = shlex.split(command) if isinstance(command, str) else list(map(str, command))
    except ValueError as error:
        raise ScaleoutError(
            f"{command!r} is no command ({error}): give it as a list of words."
        ) from None
    if not words:
        raise ScaleoutError(
            "There is no command to measure: put it last, after --, as in  -n 1,2 -- python "
            "train.py"
        )
    return words


def _check(words: Sequence[str]) -> None:
    """Refuses a command that cannot be started."""
    program = words[0]
    if Path(program).name in ("mpirun", "mpiexec", "srun", "horovodrun"):
        raise ScaleoutError(
            f"Leave {program} out: a sweep starts the command with it, on each number of ranks."
        )
    path = os.pathsep.join(
        [str(Path(sys.prefix) / "bin"), os.environ.get("PATH", os.defpath)]
    )  # as a job has it
    if shutil.which(program, path=path) is None:
        raise ScaleoutError(
            f"There is no program {shlex.quote(program)} to start: check the command after the --"
        )
    script = next((word for word in words[1:] if not word.startswith("-")), "")
    if program.startswith("python") and script.endswith(".py") and not Path(script).is_file():
        raise ScaleoutError(f"There is no script {script}: check the path after the --")


def _name(name: str, words: Sequence[str], about: Mapping[str, Any]) -> str:
    """The folder's name: the one that was asked for, or the script's and a digest of all that
    decides the figures."""
    if name:
        if (
            not name.replace("-", "").replace("_", "").replace(".", "").isalnum()
            or name.startswith(".")
            or len(name) > MOST_LETTERS
        ):
            raise ScaleoutError(
                f"--name takes letters, digits, - and _, {MOST_LETTERS} at most, such as --name resnet50; "
                f"not {name!r}."
            )
        return name
    stem = Path(next((word for word in words if word.endswith((".py", ".sh"))), words[0])).stem[
        :MOST_LETTERS
    ]
    return f"{''.join(c if c.isalnum() or c in '-_' else '-' for c in stem)}-{digest(about)}"
