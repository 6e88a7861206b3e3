"""Which cores each rank of a job gets, and what tells mpirun so."""

import os
from collections.abc import Sequence
from dataclasses import dataclass, field

from .. import machine, settings, words
from ..machine import Core
from . import leases
from .leases import Lease


@dataclass
class Placement:
    """Where the ranks of one job run; a context that gives the leased cores back at its end."""

    options: list[str]
    warning: str = ""
    lease: Lease = field(default_factory=Lease)

    def __enter__(self) -> "Placement":
        return self

    def __exit__(self, *_: object) -> None:
        self.lease.release()


def place(
    ranks: int,
    threads: int,
    cores: int,
    *,
    launcher: str = "hydra",
    bind: str = "core",
    elsewhere: bool = False,
    for_engines: bool = False,
) -> Placement:
    """Chooses cores for a job that starts now, and holds them until the placement ends."""
    wanted = ranks * threads
    asked = f"{words.count(ranks, 'rank')} x {words.count(threads, 'thread')}"
    if wanted > cores:
        share = "shares" if ranks == 1 else "share"
        crowd = f"Oversubscribed: {asked} {share} {words.count(cores, 'core')}."
        return Placement(binding(ranks, threads, cores, launcher, elsewhere, bind=bind), crowd)
    mine = _mine()
    # A job inside a job computes on the cores that were leased for that one.
    if bind == "none" or elsewhere or settings.run_id() or len(mine) < wanted:
        return Placement(binding(ranks, threads, cores, launcher, elsewhere, bind=bind))
    lease = leases.take(mine, wanted, for_engines=for_engines)
    if not lease.cores:
        crowd = (
            f"Oversubscribed: {asked} would fill {words.count(wanted, 'core')}, but other jobs leave "
            f"{lease.free} of {len(mine)} free: this job is not bound, and shares cores with them."
        )
        return Placement(binding(ranks, threads, cores, launcher, bind="none"), crowd, lease)
    options = binding(ranks, threads, cores, launcher, leased=lease.cores)
    return Placement(options, "", lease)


def binding(
    ranks: int,
    threads: int,
    cores: int,
    launcher: str = "hydra",
    elsewhere: bool = False,
    *,
    bind: str = "core",
    leased: Sequence[Core] = (),
) -> list[str]:
    """What tells mpirun to give each rank its own cores; nothing where they do not fit."""
    if bind == "none" or ranks * threads > cores:
        # Open MPI would refuse more ranks than cores, and bind them all the same.
        return [] if launcher == "hydra" else ["--map-by", ":OVERSUBSCRIBE", "--bind-to", "none"]
    chosen = list(leased or _mine())[: ranks * threads]
    plain = elsewhere or len(chosen) < ranks * threads or _come_first(chosen)
    if launcher == "openmpi":
        return [
            *([] if plain else _only(chosen)),
            "--map-by",
            f"slot:PE={threads}",
            "--bind-to",
            "core",
        ]
    if plain:
        return ["-bind-to", f"core:{threads}"]
    # Counting from the machine's first core, mpirun would leave those that we may use: name the
    # logical CPUs.
    allowed = os.sched_getaffinity(0)
    cpus = [sorted(allowed.intersection(core.cpus)) for core in chosen]
    shares = (sum(cpus[r * threads : (r + 1) * threads], []) for r in range(ranks))
    return ["-bind-to", "user:" + ",".join("+".join(map(str, share)) for share in shares)]


def _come_first(chosen: Sequence[Core]) -> bool:
    """Whether these are the cores that mpirun takes by itself: the first of a machine of which we
    may use the whole."""
    whole = len(os.sched_getaffinity(0)) == os.cpu_count()
    return whole and [core.cpus[0] for core in chosen] == [*range(len(chosen))]


def _only(chosen: Sequence[Core]) -> list[str]:
    """What keeps Open MPI on these cores: it counts whole cores, from 0."""
    layout = machine.read_cores(allowed=os.sched_getaffinity(0))[0]
    return [
        "--prtemca",
        "hwloc_default_cpu_list",
        ",".join(str(layout.index(core)) for core in chosen),
    ]


def _mine() -> list[Core]:
    """The cores of which this process may use a logical CPU at least."""
    allowed = os.sched_getaffinity(0)
    return [core for core in machine.read_cores(allowed=allowed)[0] if allowed & set(core.cpus)]
