"""Hosts over ssh: how mpirun starts ranks on them, and which of them do not answer."""

import os
import platform
import subprocess
from collections.abc import Callable

from ..jobs.job import Job, JobFailed, JobTimeout, Run
from ..site import Site, host_login, host_name
from . import local, slurm_commands


def run(job: Job, say: Callable[[str], None]) -> Run:
    """Run a job on this machine, on the hosts of its site, or on the nodes of the allocation around us.

    Where no rank began, or the time ran out, the error names the hosts that do not answer.
    """
    site = job.site
    where, first_host = launching(site, job.nodes), first(site, job.nodes)
    try:
        return local.run(job, say, where, first_host)
    except (JobTimeout, JobFailed) as error:
        began = any(rank is not None for rank, _ in error.run.lines)
        late = isinstance(error, JobTimeout)
        gone = silent(site) if late or not began else []
        if gone and late:
            error.args = (f"{error}\n{', '.join(gone)} did not answer in the end: take it out.",)
        elif gone:
            error.args = (
                f"{', '.join(gone)} cannot be reached over ssh: correct the name, or type  "
                f"ssh {gone[0]} true  to see why.",
            )
        raise


def command(site: Site, host: str) -> list[str]:
    """Give the command that runs what follows it on a host."""
    return [site.ssh or "ssh", "-o", "BatchMode=yes", "-o", "ConnectTimeout=8", host_login(host)]


def launching(site: Site, nodes: int) -> list[str]:
    """Give the options that tell mpirun on which machines to start, and how."""
    if not site.hosts:
        return []
    by = ["-launcher-exec", site.ssh] if site.ssh else []
    return ["-hosts", ",".join(map(host_login, site.hosts[:nodes])), "-launcher", "ssh", *by]


def first(site: Site, nodes: int) -> str:
    """Name the machine that rank 0 runs on; "" for a job on this one alone."""
    if site.hosts:
        return host_name(site.hosts[0])
    if nodes == 1 or not site.scheduler:
        return ""
    here = platform.node()
    if slurm_commands.there_is("scontrol"):
        nodelist = os.environ["SLURM_JOB_NODELIST"]
        done = slurm_commands.ask("scontrol", "show", "hostnames", nodelist)
        return (done.stdout.split() or [here])[0]
    return here


def silent(site: Site) -> list[str]:
    """List the hosts that do not answer within 10 s."""
    from concurrent.futures import ThreadPoolExecutor

    def answers(host: str) -> bool:
        asked = [*command(site, host), "true"]
        quiet = subprocess.DEVNULL
        try:
            return subprocess.call(asked, stdout=quiet, stderr=quiet, timeout=10) == 0
        except (OSError, subprocess.TimeoutExpired):
            return False

    with ThreadPoolExecutor(len(site.hosts) or 1) as pool:
        return [
            host_login(host)
            for host, there in zip(site.hosts, pool.map(answers, site.hosts), strict=True)
            if not there
        ]
