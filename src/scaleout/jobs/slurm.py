"""Jobs through Slurm: a readable job script, submitted, followed, and its records brought back."""

import contextlib
import os
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from ..errors import ScaleoutError
from ..paths import show
from ..words import count
from .environment import check_variables
from .follower import Follower
from .guard import guarded
from .job import Run, check_command, check_size, keep, new_run
from .jobscript import job_script, per_node, start_line
from .site import Site
from .slurm_commands import sbatch, there_is


def submit(
    script: Sequence[str],
    *,
    name: str,
    ranks: int = 1,
    nodes: int = 1,
    threads: int | None = None,
    env: Mapping[str, str] | None = None,
    site: Site,
    timeout: float = 3600.0,
    echo: Callable[[str], None] | None = print,
) -> Run:
    """Submits a script to Slurm, follows it, and returns when it has ended."""
    check_size(ranks, threads, timeout)
    check_command(script, env)
    check_variables({**site.env, **(env or {})})
    threads = threads or _share(site, ranks, nodes)
    say = echo or (lambda text: None)
    if not there_is("sbatch"):
        raise ScaleoutError(
            "There is no sbatch here: log in to the cluster and submit there, or leave out --site."
        )
    scratch = _scratch(site)
    run_id, folder = new_run(name)
    away = Path(scratch) / f"scaleout-{run_id}" if scratch else folder
    text = job_script(
        script,
        name=name,
        run_id=run_id,
        folder=str(away),
        ranks=ranks,
        nodes=nodes,
        threads=threads,
        env=env or {},
        site=site,
    )
    command = start_line(
        script, folder=str(away), ranks=ranks, nodes=nodes, threads=threads, site=site
    )
    job = Run(run_id, name, command, folder, ranks, threads)
    (folder / "job.sh").write_text(text, encoding="utf-8")
    start = time.monotonic()
    try:
        _make(away)
        with guarded(run_id):
            number = sbatch(folder / "job.sh", run_id)
            path = show(folder / "job.sh")
            size = f"{count(ranks, 'rank')} on {count(nodes, 'node')}"
            most = count(site.minutes, "minute")
            say(f"Job {number} submitted: {size}, {most} at most, script {path}")
            Follower(job, number, away / "slurm.txt", say).until_end(timeout, site.minutes)
    finally:
        job.wall_s = time.monotonic() - start
        if away != folder:
            _bring_home(away, folder, say)
        with contextlib.suppress(OSError):  # a full disk must not hide how the job ended
            keep(job, script, env or {})
    return job


def dry_run(
    script: Sequence[str],
    *,
    name: str,
    ranks: int = 1,
    nodes: int = 1,
    threads: int | None = None,
    env: Mapping[str, str] | None = None,
    site: Site,
) -> str:
    """The job script that `submit` would write; nothing is made or started."""
    check_size(ranks, threads, 1)
    check_command(script, env)
    check_variables({**site.env, **(env or {})})
    return job_script(
        script,
        name=name,
        run_id="RUN_ID",
        folder=f"{_scratch(site) or 'results/' + name}/RUN_ID",
        ranks=ranks,
        nodes=nodes,
        threads=threads or _share(site, ranks, nodes),
        env=env or {},
        site=site,
    ).rstrip()


def _share(site: Site, ranks: int, nodes: int) -> int:
    """Threads of each rank, where nobody says how many."""
    return max(1, site.cores // per_node(ranks, nodes))


def _scratch(site: Site) -> str:
    """The scratch folder with ~ and variables filled in; ScaleoutError when a variable is
    unknown."""
    path = os.path.expanduser(os.path.expandvars(site.scratch))
    if "$" in path:
        raise ScaleoutError(
            f"scratch = {site.scratch!r} names a variable that is not set here: export it first."
        )
    return path


def _make(away: Path) -> None:
    try:
        away.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ScaleoutError(
            f"{away} cannot be used ({error.strerror}): correct scratch in the site file."
        ) from None


def _bring_home(away: Path, folder: Path, say: Callable[[str], None]) -> None:
    """Copies what the job wrote to scratch, and removes it there once all is copied."""
    if not away.is_dir():
        return
    try:
        shutil.copytree(away, folder, dirs_exist_ok=True)
    except OSError:
        say(f"Not all that the job wrote could be copied to {show(folder)}: it is still in {away}.")
    else:
        shutil.rmtree(away, ignore_errors=True)
