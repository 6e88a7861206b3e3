"""The files of a sweep that a person goes on with: maps, a table, and the best point as a script."""

import shlex
from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import combinations
from pathlib import Path

from ..base import jsonlines
from ..base.words import markdown_table, percent, rounded
from ..jobs.job import Job
from ..launch.jobscript import job_script
from ..site import Site
from .result import Result
from .rows import point_of


def write(result: Result, command: Sequence[str], site: Site) -> list[Path]:
    """Write what a person goes on with into the sweep's folder.

    That is a heat map for each pair of axes with a choice, table.md, and the best point as best.sh
    and, for Slurm, best.sbatch.
    """
    if result.best is None or result.folder is None:
        return []
    vary = [axis for axis in result.axes if result.frame[axis].nunique() > 1]
    pairs = list(combinations(vary, 2)) or [
        (axis, "ranks" if axis != "ranks" else "threads") for axis in vary
    ]
    paths = []
    for one, other in pairs:
        paths.append(result.folder / f"{one}-{other}.png")
        result.heat_map(other, one).savefig(paths[-1])
    texts = {
        "best.sh": (_script(result, command, site), 0o700),  # these two may hold a secret
        "table.md": (_markdown(result, command), None),
        "best.sbatch": (_job_script(result, command, site), 0o600),
    }
    for name, (text, mode) in texts.items():
        paths.append(result.folder / name)
        jsonlines.write(paths[-1], text, mode)
    return paths


def _markdown(result: Result, command: Sequence[str]) -> str:
    shown = result.frame.sort_values("rate", ascending=result.lower)
    columns = [*result.axes, "rate", "spread", "ratio", "repeats", "others", "status"]
    shown = shown[columns].assign(others=shown.others.map(percent))
    rows = [
        [rounded(cell) if isinstance(cell, float) else cell for cell in row]
        for row in shown.itertuples(index=False)
    ]
    about = (
        f"`{shlex.join(command)}`, {result.unit or 'the figure of a run'}; median of each point; "
        "others: the share of the CPUs' time that other programs took"
    )
    return f"{about}\n\n{markdown_table(columns, rows)}\n\n{result.summary}\n"


def _job_script(result: Result, command: Sequence[str], site: Site) -> str:
    job = result.of_best[-1]
    point = point_of(job)
    best = Job.asked(
        point.script(command),
        name="best",
        ranks=point.ranks,
        threads=point.threads or max(1, job.cores // point.ranks),
        env=point.variables,
        site=site,
        queued=True,
    )
    return job_script(best, "best", str(result.folder))


def _script(result: Result, command: Sequence[str], site: Site) -> str:
    assert result.best is not None
    job = result.of_best[-1]
    about = [
        f"The best of {len(result.frame)} settings for:  {shlex.join(command)}",
        result.summary,
        f"Measured on {job.cpu}, {job.cores} cores, {datetime.now(UTC):%Y-%m-%d}; "
        f"median of {result.best.repeats}; other programs took up to "
        f"{percent(result.best.others)} of the CPUs' time meanwhile.",
        "Start it in the folder where the sweep was started, or paste it into a job script.",
    ]
    line = point_of(job).shell(job.command, site)
    if site.scheduler:  # the line that is kept is one of the job's own script
        line = 'exec sbatch "$(dirname "$0")/best.sbatch"'
    elif "-bind-to user:" in job.command:
        about.append(
            "Its mpirun line names CPUs of that machine: on another, put  -bind-to "
            "core:THREADS  there."
        )
    comment = "".join(f"# {text}\n" for text in "\n".join(about).splitlines())
    return f"#!/bin/sh\n{comment}{line}\n"
