"""One job of a sweep: it runs at its point, and what it gave becomes a row."""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from .. import machine
from ..jobs import run as launch
from ..jobs import talking
from ..jobs.job import JobFailed, JobTimeout, Run
from ..jobs.site import Site
from ..machine import noise
from ..words import rounded
from .early import Early
from .journal import COPIES
from .loaded import Load, Watch
from .points import Point
from .rates import Metric, NoFigure


def attempt(
    point: Point,
    words: Sequence[str],
    figure: Metric,
    *,
    name: str,
    site: Site,
    cores: int,
    timeout: float,
    settle: Callable[[Run], Metric],
    strict: bool,
    early: Early | None = None,
) -> dict[str, Any]:
    """Runs one job; a failure of it is a row too."""
    watch = Watch()
    try:
        run = launch.run(
            point.script(words),
            name=name,
            ranks=point.ranks,
            threads=point.threads or cores,
            bind=None if point.threads else "none",  # as without us: on all the cores
            env=point.variables,
            site=site,
            timeout=timeout,
            echo=early,
        )
        figure = settle(run)
        found = {"status": "ok", "reason": "", **figure.read(run)}
        if run.talked is False:
            found |= {"status": COPIES, "reason": talking.sentence(point.ranks)}
    except JobTimeout as error:
        run = error.run
        found = _failure("timeout", f"it took longer than --timeout {timeout:g} s")
        if early and early.hopeless:
            found = _so_far(figure, run)
    except JobFailed as error:
        run, found = error.run, _failure("failed", _reason(error))
    except NoFigure as error:
        if strict:
            # a slip in --metric, most likely: better said at once than after the whole grid
            raise
        run, found = error.run, _failure("no figure", str(error).splitlines()[0])
    load = Load() if site.hosts or site.scheduler else watch.load()
    return {
        **found,
        "disturbed": round(load.others + load.stolen, 3) if load.disturbs else 0.0,
        "early": early is not None and early.hopeless,
        "metric": figure.pattern,
        "wall_s": round(run.wall_s, 3),
        "run_id": run.id,
        "command": run.command,
        "utc": datetime.now(UTC).isoformat(timespec="seconds"),
        "cpu": machine.cpu_model(),
        "cores": cores,
        "huge_pages": noise.huge_pages(),
    }


def _so_far(figure: Metric, run: Run) -> dict[str, Any]:
    """What a job gave until it was ended."""
    try:
        return {"status": "ok", "reason": "", **figure.read(run)}
    except NoFigure as error:
        return _failure("no figure", str(error).splitlines()[0])


def _failure(status: str, reason: str) -> dict[str, Any]:
    return {"status": status, "reason": reason, "rate": None, "unit": "", "values": {}}


def _reason(error: JobFailed) -> str:
    """Why a job failed, on one line: who and how, then the last line of the first traceback."""
    first, *block, _ = str(error).splitlines()
    return ": ".join([first.partition(" failed")[2].strip(" :."), *block[-1:]])


def said_of(row: Mapping[str, Any]) -> str:
    """What a job gave, as a line of the report says it."""
    if row["status"] == "ok":
        ended = " (ended early, as hopeless)" if row.get("early") else ""
        return f"{rounded(row['rate'])} {row['unit']}".rstrip() + ended
    if row["status"] == COPIES:
        return f"copies, {rounded(row['rate'])} {row['unit']}".rstrip() + " each: left out"
    return f"failed: {row['reason']}"
