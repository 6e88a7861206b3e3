"""The verb `run`: one job, on this machine, on hosts, or through Slurm, as the site says."""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from .. import machine
from ..errors import ScaleoutError
from ..words import count
from . import hosts, local, slurm
from .environment import allocated_nodes, check_variables
from .job import TIMEOUT_S, JobFailed, JobTimeout, Run, check_command, check_size
from .local import Job, Mpirun
from .site import Site

MOST_RANKS, MOST_A_CORE = 256, 16  # on one machine: more is a slip, and would take it down


def run(
    script: Sequence[str],
    *,
    name: str,
    ranks: int = 1,
    threads: int | None = None,
    env: Mapping[str, str] | None = None,
    site: Site | Path | str | None = None,
    nodes: int | None = None,
    bind: str | None = None,
    timeout: float = TIMEOUT_S,
    echo: Callable[[str], None] | None = print,
) -> Run:
    """Runs a script on so many ranks; returns when it ends.

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
        More variables.
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
        When what was asked for is no job, or it cannot be started.
    """
    check_size(ranks, threads, timeout)
    check_command(script, env)
    at = _site(site, bind)
    check_variables({**at.env, **(env or {})})
    if at.scheduler and not allocated_nodes(os.environ):
        return slurm.submit(
            script,
            name=name,
            ranks=ranks,
            nodes=nodes or 1,
            threads=threads,
            env=env,
            site=at,
            timeout=timeout,
            echo=echo,
        )
    nodes = _nodes(at, ranks, nodes)
    cores = at.cores or machine.usable_cores()
    if -(-ranks // nodes) > max(MOST_RANKS, MOST_A_CORE * cores):
        raise ScaleoutError(
            f"{ranks:,} ranks would take all memory of {count(nodes, 'machine')} with "
            f"{count(cores, 'core')}: take  -n {nodes * max(MOST_RANKS, MOST_A_CORE * cores)}  at most."
        )
    threads = threads or max(1, cores // -(-ranks // nodes))
    job = Job(script, name, ranks, threads, nodes, cores, env or {}, timeout)
    try:
        return local.run(job, _mpirun(at, nodes), echo or (lambda text: None))
    except JobTimeout as late:
        if gone := hosts.silent(at):
            cause = f"{', '.join(gone)} did not answer in the end, so take out that host"
            raise JobTimeout(local.late(late.run, timeout, cause), late.run) from None
        raise
    except JobFailed as failed:
        began = any(rank is not None for rank, _ in failed.run.lines)
        if at.hosts and not began and (gone := hosts.silent(at)):
            raise JobFailed(
                f"{', '.join(gone)} cannot be reached over ssh: correct the name, or type  "
                f"ssh {gone[0]} true  to see why.",
                failed.run,
            ) from None
        raise


def _site(site: Site | Path | str | None, bind: str | None) -> Site:
    """Where the job runs, and how it is bound."""
    if bind not in ("core", "none", None):
        raise ScaleoutError(f'bind is "core" or "none", not {bind!r}.')
    if not isinstance(site, (Site, str, Path, type(None))):
        raise ScaleoutError(f"site takes a Site, or the path of its file, not {site!r}.")
    found = Site.here() if site is None else site if isinstance(site, Site) else Site.read(site)
    return replace(found, bind=bind) if bind else found


def _nodes(site: Site, ranks: int, nodes: int | None) -> int:
    """How many machines the job uses."""
    most = min(site.nodes(), ranks)
    if not isinstance(nodes, (int, type(None))):
        raise ScaleoutError(f"nodes takes a whole number, such as {most}, not {nodes!r}.")
    # On one machine alone, ranks that were to be on several nodes all run here.
    alone = not (site.hosts or site.scheduler)
    nodes = most if nodes is None or (alone and nodes > 0) else nodes
    if not 1 <= nodes <= most:
        raise ScaleoutError(
            f"{nodes} nodes asked for, but there are {site.nodes()} to use here and each needs a rank "
            f"(-n {ranks}): take  -N {most}"
        )
    return nodes


def _mpirun(site: Site, nodes: int) -> Mpirun:
    """How ranks are started there."""
    ssh = ["-launcher", "ssh", *(["-launcher-exec", site.ssh] if site.ssh else [])]
    first, ask = hosts.first(site, nodes)
    return Mpirun(
        site.mpirun,
        site.launcher,
        site.options,
        site.env,
        site.bind,
        ["-hosts", ",".join(site.hosts[:nodes]), *ssh] if site.hosts else [],
        slurm=bool(site.scheduler),
        first=first,
        ask=ask,
    )
