"""Which cores each rank of a job gets, and what tells mpirun or the ranks so."""

import os
from collections.abc import Sequence
from dataclasses import dataclass, field

from .. import machine
from ..base import settings, words
from ..machine import Core
from . import leases
from .job import Job
from .leases import Lease


@dataclass
class Placement:
    """Where the ranks of one job run; a context that gives the leased cores back at its end."""

    options: list[str]  # of mpirun, as a person would type them
    warning: str = ""
    lease: Lease = field(default_factory=Lease)
    # Each rank's logical CPUs, 0+4,1+5, where it binds itself: ranks that Hydra binds cannot start
    # others by MPI_Comm_spawn.
    cpus: str = ""

    def __enter__(self) -> "Placement":
        return self

    def __exit__(self, *_: object) -> None:
        self.lease.release()


def place(job: Job, *, for_engines: bool = False) -> Placement:
    """Choose cores for a job that starts now, and hold them until the placement ends."""
    ranks = job.ranks_per_node
    wanted = ranks * job.threads
    asked = f"{words.count(ranks, 'rank')} x {words.count(job.threads, 'thread')}"
    if wanted > job.cores:
        share = "shares" if ranks == 1 else "share"
        crowd = f"Oversubscribed: {asked} {share} {words.count(job.cores, 'core')}."
        return Placement(unbound(job), crowd)
    usable = _usable()
    # A job inside a job computes on the cores that were leased for that one.
    free = job.site.bind != "none" and not (job.elsewhere or settings.run_id())
    if not free or len(usable) < wanted:
        return _bound(job, usable[:wanted], Lease())
    lease = leases.take(usable, wanted, for_engines=for_engines)
    if not lease.cores:
        crowd = (
            f"Oversubscribed: {asked} would fill {words.count(wanted, 'core')}, but other jobs leave "
            f"{lease.free} of {len(usable)} free: this job is not bound, and shares cores with them."
        )
        return Placement(unbound(job), crowd, lease)
    return _bound(job, lease.cores, lease)


def _bound(job: Job, cores: Sequence[Core], lease: Lease) -> Placement:
    """Bind each rank of a job to its share of these cores."""
    if job.site.bind == "none":
        return Placement(unbound(job), lease=lease)
    few = len(cores) < job.ranks_per_node * job.threads
    if job.site.launcher == "openmpi":
        only = [] if few or _come_first(cores) else _only(cores)
        return Placement([*only, *on_cores(job)], lease=lease)
    if job.elsewhere or few:
        return Placement(on_cores(job), lease=lease)
    allowed = os.sched_getaffinity(0)
    by_rank = []
    for first in range(0, len(cores), job.threads):
        share = cores[first : first + job.threads]
        by_rank.append(
            "+".join(str(cpu) for core in share for cpu in sorted(allowed & {*core.cpus}))
        )
    cpus = ",".join(by_rank)
    # Counting from the machine's first core, mpirun would leave those that we may use.
    options = on_cores(job) if _come_first(cores) else ["-bind-to", f"user:{cpus}"]
    return Placement(options, lease=lease, cpus=cpus if job.site.ours() else "")


def on_cores(job: Job) -> list[str]:
    """Build the options by which mpirun gives each rank cores of its own.

    They are counted from the first of each node.
    """
    if job.site.bind == "none":
        return unbound(job)
    if job.site.launcher == "openmpi":
        return ["--map-by", f"slot:PE={job.threads}", "--bind-to", "core"]
    return ["-bind-to", f"core:{job.threads}"]


def unbound(job: Job) -> list[str]:
    """Build the options that keep mpirun from binding ranks."""
    # Open MPI would refuse more ranks than cores, and bind them all the same.
    openmpi = ["--map-by", ":OVERSUBSCRIBE", "--bind-to", "none"]
    return openmpi if job.site.launcher == "openmpi" else []


def _come_first(chosen: Sequence[Core]) -> bool:
    """Tell whether mpirun takes these cores by itself.

    It does where they are the first of a machine of which we may use the whole.
    """
    whole = len(os.sched_getaffinity(0)) == os.cpu_count()
    return whole and [core.cpus[0] for core in chosen] == [*range(len(chosen))]


def _only(chosen: Sequence[Core]) -> list[str]:
    """Build the options that keep Open MPI on these cores: it counts whole cores, from 0."""
    layout = machine.read_cores(allowed=os.sched_getaffinity(0))[0]
    numbers = ",".join(str(layout.index(core)) for core in chosen)
    return ["--prtemca", "hwloc_default_cpu_list", numbers]


def _usable() -> list[Core]:
    """List the cores of which this process may use a logical CPU at least."""
    allowed = os.sched_getaffinity(0)
    return [core for core in machine.read_cores(allowed=allowed)[0] if allowed & set(core.cpus)]
