"""What a sweep leaves for a person: pictures of its grid, and a script of its best point."""

import shlex
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..jobs.jobscript import job_script
from ..jobs.site import Site
from ..words import markdown_table, rounded
from .journal import point_of

if TYPE_CHECKING:
    from .outcome import Result


def write(
    result: "Result", job: Mapping[str, Any], command: Sequence[str], site: Site
) -> list[Path]:
    """Writes what a person goes on with into the sweep's folder: a heat map for each pair of axes
    with a choice, table.md, and the best point as best.sh and as best.sbatch, for Slurm.
    """
    from .. import plots

    assert result.folder is not None
    vary = [axis for axis in result.axes if result.frame[axis].nunique() > 1]
    pairs = list(combinations(vary, 2)) or [
        (axis, "ranks" if axis != "ranks" else "threads") for axis in vary
    ]
    paths = []
    for one, other in pairs:
        paths.append(result.folder / f"{one}-{other}.png")
        figure = plots.heat_map(
            result.frame,
            x=other,
            y=one,
            unit=result.unit,
            default=result.default.rate,
            lower=result.lower,
        )
        figure.savefig(paths[-1])
    script = result.folder / "best.sh"
    script.write_text(_script(result, job, command, site), encoding="utf-8")
    script.chmod(0o755)
    sheet = result.folder / "table.md"
    sheet.write_text(_table(result, command), encoding="utf-8")
    asked = result.folder / "best.sbatch"
    asked.write_text(_job_script(result, job, command, site), encoding="utf-8")
    return [*paths, script, sheet, asked]


def _table(result: "Result", command: Sequence[str]) -> str:
    shown = result.frame.sort_values("rate", ascending=result.lower)
    columns = [*result.axes, "rate", "spread", "ratio", "repeats", "status"]
    rows = [
        [rounded(cell) if isinstance(cell, float) else cell for cell in row]
        for row in shown[columns].itertuples(index=False)
    ]
    about = f"`{shlex.join(command)}`, {result.unit or 'the figure of a run'}; median of each point"
    return f"{about}\n\n{markdown_table(columns, rows)}\n\n{result.summary}\n"


def _job_script(
    result: "Result", job: Mapping[str, Any], command: Sequence[str], site: Site
) -> str:
    point = point_of(job)
    return job_script(
        point.script(command),
        name="best",
        run_id="best",
        folder=str(result.folder),
        ranks=point.ranks,
        nodes=1,
        threads=point.threads or max(1, int(job["cores"]) // point.ranks),
        env=point.variables,
        site=site,
    )


def _script(result: "Result", job: Mapping[str, Any], command: Sequence[str], site: Site) -> str:
    assert result.best is not None
    about = [
        f"The best of {len(result.frame)} settings for:  {shlex.join(command)}",
        result.summary,
        f"Measured on {job['cpu']}, {job['cores']} cores, {datetime.now(UTC):%Y-%m-%d}; "
        f"median of {result.best.repeats}.",
        "Start it in the folder where the sweep was started, or paste it into a job script.",
    ]
    if "-bind-to user:" in job["command"]:
        about.append(
            "Its mpirun line names CPUs of that machine: on another, put  -bind-to "
            "core:THREADS  there."
        )
    comment = "".join(f"# {line}\n" for line in about)
    return f"#!/bin/sh\n{comment}{point_of(job).shell(job['command'], site)}\n"
