"""One job started from this machine: mpirun's command, its run, and how it ended."""

import contextlib
import shlex
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from ..paths import show
from . import meeting, rank, reaper, talking
from .binding import place
from .environment import inherited_environment, job_environment, program
from .failures import explain
from .job import Enough, JobFailed, JobInterrupted, JobTimeout, Run, keep, new_run
from .processes import stream

# What ranks on other hosts get beyond the job's own limit, before they end by themselves.
GRACE_S = 30.0


@dataclass(frozen=True)
class Job:
    """What is asked of one job."""

    script: Sequence[str]
    name: str
    ranks: int
    threads: int
    nodes: int
    cores: int
    env: Mapping[str, str]
    timeout: float


@dataclass(frozen=True)
class Mpirun:
    """How ranks are started from here."""

    program: str = "mpirun"
    launcher: str = "hydra"
    options: Sequence[str] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    bind: str = "core"
    hosts: Sequence[str] = ()
    slurm: bool = False
    first: str = ""
    ask: Sequence[str] = ()


def run(job: Job, mpirun: Mpirun, say: Callable[[str], None]) -> Run:
    """Runs a job to its end."""
    found = program(mpirun.program)
    elsewhere = bool(mpirun.hosts) or job.nodes > 1
    on_each = -(-job.ranks // job.nodes)
    with place(
        on_each,
        job.threads,
        job.cores,
        launcher=mpirun.launcher,
        bind=mpirun.bind,
        elsewhere=elsewhere,
    ) as placement:
        spread = ["-ppn", str(on_each)] if job.nodes > 1 or mpirun.hosts else []
        options = [
            "-n",
            str(job.ranks),
            *mpirun.hosts,
            *spread,
            *placement.options,
            *mpirun.options,
        ]
        command = shlex.join([mpirun.program, *options, *job.script])
        run_id, folder = new_run(job.name)
        say("$ " + command)
        if placement.warning:
            say(placement.warning)
        ended = Run(run_id, job.name, command, folder, job.ranks, job.threads)
        # What only a launcher needs to hear, and no person.
        quiet = _marks(run_id) if mpirun.launcher == "hydra" else []
        if quiet:
            quiet += talking.options(found, job.ranks, elsewhere)
        alone = [rank.ALONE] if _alone(job, mpirun) else []
        line = [found, *quiet, *options, *_limit(job, mpirun), *rank.COMMAND, *alone, *job.script]
        with meeting.place(run_id, mpirun.first, mpirun.ask) as where:
            _follow(ended, line, _environment(job, mpirun, ended, where), job, say)
    return _judged(ended, job, say)


def _marks(run_id: str) -> list[str]:
    """What makes Hydra mark each piece of output with its rank."""
    return ["-prepend-pattern", f"\x1e{run_id}:%r\x1f"]


def _limit(job: Job, mpirun: Mpirun) -> list[str]:
    """What ends ranks on a host that is cut off, where no signal of ours arrives."""
    seconds = f"{job.timeout + GRACE_S:g}"
    return ["timeout", "--foreground", "-s", "KILL", seconds] if mpirun.hosts else []


def _alone(job: Job, mpirun: Mpirun) -> bool:
    """Whether all ranks are on this machine, started by Hydra."""
    return job.nodes == 1 and not mpirun.hosts and mpirun.launcher == "hydra"


def _environment(job: Job, mpirun: Mpirun, run: Run, where: Mapping[str, str]) -> dict[str, str]:
    given = job_environment(
        job.threads,
        site_env=mpirun.env,
        env=job.env,
        run_id=run.id,
        records=str(run.folder / "records.jsonl"),
        cores=job.nodes * job.cores,
        nodes=job.nodes,
    )
    kept = inherited_environment(mpirun.slurm, _alone(job, mpirun))
    return {**kept, **where, **given}


def _follow(
    ended: Run,
    line: list[str],
    environment: dict[str, str],
    job: Job,
    say: Callable[[str], None],
) -> None:
    """Starts the command, waits for its end, and keeps what is known of the run."""
    start = time.monotonic()
    try:
        with contextlib.suppress(Enough):
            stream(ended, line, environment, job.timeout, say)
    except KeyboardInterrupt:
        # At a second Ctrl-C, the guard ends the job.
        how = "is being ended" if reaper.processes(ended.id) else "has been ended"
        seconds = time.monotonic() - start
        raise JobInterrupted(f"Interrupted after {seconds:.1f} s: the job {how}.") from None
    finally:
        ended.wall_s = time.monotonic() - start
        with contextlib.suppress(OSError):  # a full disk must not hide how the job ended
            keep(ended, job.script, job.env)


def _judged(ended: Run, job: Job, say: Callable[[str], None]) -> Run:
    """The run, if it ended well; else what its end calls for is raised."""
    if ended.status is None:
        raise JobTimeout(
            late(ended, job.timeout, "give it longer with --timeout (timeout=)"), ended
        )
    if ended.status:
        raise JobFailed(explain(ended), ended)
    if ended.talked is False:
        say(talking.sentence(ended.ranks))
    return ended


def late(ended: Run, timeout: float, cause: str) -> str:
    """What to say of a job that took too long."""
    return (
        f"{ended.name} did not end within {timeout:g} s and was ended; {cause}. "
        f"What it said so far is in {show(ended.folder / 'output.txt')}."
    )
