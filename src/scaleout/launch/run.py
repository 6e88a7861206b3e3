"""The verb `run`: one job, on this machine, on hosts, or through Slurm, as the site says."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from ..jobs import unreadable
from ..jobs.job import TIMEOUT_S, Job, Run
from ..site import Site
from . import hosts
from .signals import like_ctrl_c


def run(
    script: Sequence[str],
    *,
    name: str,
    ranks: int = 1,
    threads: int | None = None,
    env: Mapping[str, str | None] | None = None,
    site: Site | Path | str | None = None,
    nodes: int | None = None,
    bind: str | None = None,
    timeout: float = TIMEOUT_S,
    echo: Callable[[str], None] | None = print,
) -> Run:
    """Run a script on so many ranks, and return when it ends.

    Parameters
    ----------
    script : sequence of str
        The command of a rank, such as ["python", "-m", "mpi4py", "train.py"].
    name : str
        The folder in `results/` that its runs are kept in.
    ranks : int
    threads : int, optional
        That a rank may use; without it the usable cores are shared out.
    env : mapping, optional
        More variables; None takes one away.
    site : Site, path or str, optional
        Where, as a Site or its file; without it this machine, or the Slurm allocation around us. A
        Slurm site, named outside of an allocation, submits a job and waits for it.
    nodes : int, optional
        Machines to use; without it all of the site's.
    bind : {"core", "none"}, optional
        "core" gives each rank cores of its own, which no other job on this machine gets meanwhile;
        "none" lets the ranks use all that there are. Without it the site decides: "core".
    timeout : float
        Seconds. On Slurm, the wait in the queue counts too.
    echo : callable, optional
        Takes each line of output as it comes, `[rank] ` before it; None keeps quiet.

    Returns
    -------
    Run

    Raises
    ------
    JobFailed, JobTimeout, JobInterrupted
        In each case no process of the job is left.
    ScaleoutError
        When what was asked for is no job, or it cannot be started, or Python cannot read the script.
    """
    job = Job.asked(
        script,
        name=name,
        ranks=ranks,
        threads=threads,
        env=env,
        site=site,
        nodes=nodes,
        bind=bind,
        timeout=timeout,
    )
    return start(job, echo)


def start(job: Job, echo: Callable[[str], None] | None = print) -> Run:
    """Run a job where its site says, to its end; a script that Python cannot read is refused."""
    unreadable.refuse(job.command)
    say = echo or (lambda text: None)
    with like_ctrl_c():
        if job.queued:
            from . import slurm  # only here: what runs on this machine is to start at once

            return slurm.submit(job, say)
        return hosts.run(job, say)
