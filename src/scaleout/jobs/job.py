"""One job: what is asked for, checked once; and what came of it."""

import contextlib
import json
import operator
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from numbers import Real
from pathlib import Path
from typing import TYPE_CHECKING

from .. import machine
from ..base import jsonlines
from ..base.errors import ScaleoutError
from ..base.paths import results
from ..base.words import count, plain, veiled
from ..site import Site, allocated_nodes
from . import talking
from .environment import check_variables, job_environment
from .output import prefixed

if TYPE_CHECKING:
    import pandas as pd


TIMEOUT_S = 600.0
MOST_S = 366 * 86_400.0
MOST_RANKS, MOST_A_CORE = 256, 16  # on one machine: more is a slip, and would take it down


class EndJob(Exception):
    """Raised by what takes a job's output line by line: the job is ended as if its time were up."""


@dataclass(frozen=True)
class Job:
    """What is asked of one job. `Job.asked` makes and checks it; all that starts jobs takes it whole."""

    command: tuple[str, ...]  # of a rank
    name: str
    ranks: int
    threads: int
    nodes: int
    cores: int  # to fill on each node
    site: Site
    env: Mapping[str, str | None] = field(default_factory=dict)  # None takes a variable away
    timeout: float = TIMEOUT_S
    stdin: bool = False  # whether rank 0 reads our standard input
    queued: bool = False  # whether Slurm is asked to start it

    @classmethod
    def asked(
        cls,
        command: Sequence[str],
        *,
        name: str,
        ranks: int = 1,
        threads: int | None = None,
        env: Mapping[str, str | None] | None = None,
        site: Site | Path | str | None = None,
        nodes: int | None = None,
        bind: str | None = None,
        timeout: float = TIMEOUT_S,
        stdin: bool = False,
        queued: bool | None = None,
    ) -> "Job":
        """Fill in what nobody said, and refuse what can be no job."""
        ranks = whole("ranks", ranks)
        threads = None if threads is None else whole("threads", threads)
        nodes = None if nodes is None else whole("nodes", nodes)
        check_size(ranks, threads, timeout)
        if not isinstance(env or {}, Mapping):
            raise ScaleoutError(f'env is a table, such as {{"OMP_NUM_THREADS": "1"}}, not {env!r}.')
        words = () if isinstance(command, str) else tuple(map(str, command))
        if not words or not words[0] or any("\0" in word for word in words):
            raise ScaleoutError(
                f'A command is a list of words, such as ["python", "train.py"], not {command!r}.'
            )
        where = _site(site, bind)
        if queued is None:
            queued = bool(where.scheduler) and not allocated_nodes(os.environ)
        nodes = _even_nodes(ranks, nodes) if queued else _nodes(where, ranks, nodes)
        on_each = -(-ranks // nodes)
        if queued:
            cores = where.cores or on_each * (threads or 1)
        else:
            cores = where.cores or machine.usable_cores()
            if on_each > (most := max(MOST_RANKS, MOST_A_CORE * cores)):
                raise ScaleoutError(
                    f"{ranks:,} ranks would take all memory of {count(nodes, 'machine')} with "
                    f"{count(cores, 'core')}: take  -n {nodes * most}  at most."
                )
        check_variables({**where.env, **(env or {})})
        return cls(
            command=words,
            name=name,
            ranks=ranks,
            threads=threads or max(1, cores // on_each),
            nodes=nodes,
            cores=cores,
            site=where,
            env=env or {},
            timeout=timeout,
            stdin=stdin,
            queued=queued,
        )

    @property
    def ranks_per_node(self) -> int:
        return -(-self.ranks // self.nodes)

    def variables(self, run_id: str, records: str = "") -> dict[str, str | None]:
        """Return the variables that the job is given; None takes one away."""
        return job_environment(
            self.threads,
            site_env=self.site.env,
            env=self.env,
            run_id=run_id,
            records=records,
            cores=self.nodes * self.cores,
            nodes=self.nodes,
        )

    @property
    def elsewhere(self) -> bool:
        """Whether ranks may run on other machines than this one."""
        return bool(self.site.hosts) or self.nodes > 1 or self.queued

    @property
    def counted(self) -> bool:
        """Whether our own mpirun starts the ranks, and counts the calls that they make to it."""
        by_mpirun = self.site.start == "mpirun" if self.queued else not self.elsewhere
        return self.ranks > 1 and by_mpirun and self.site.ours()

    @property
    def watched(self) -> bool:
        """Whether the first and the last rank are watched in place of that."""
        return self.ranks > 1 and not self.counted


def whole(name: str, value: object) -> int:
    """Read a number of ranks, threads or nodes, NumPy's own included; refuse all else."""
    if not isinstance(value, bool):
        with contextlib.suppress(TypeError):
            return operator.index(value)  # type: ignore[arg-type]
    raise ScaleoutError(f"{name} is a whole number, such as {name}=2, not {plain(repr(value))}.")


def check_size(ranks: int, threads: int | None, timeout: float) -> None:
    """Refuse what can be no size of a job, and no limit of its time."""
    counts = [ranks] if threads is None else [ranks, threads]
    if min(counts) < 1:
        asked = " and ".join(map(str, counts))
        raise ScaleoutError(
            f"A job needs at least 1 rank and 1 thread, in whole numbers; asked for {asked}."
        )
    if not (isinstance(timeout, Real) and 0 < timeout <= MOST_S):
        raise ScaleoutError(
            f"A job needs a time limit in seconds, above 0 and finite; asked for {timeout!r}."
        )


def _site(site: Site | Path | str | None, bind: str | None) -> Site:
    if bind not in ("core", "none", None):
        raise ScaleoutError(f'bind is "core" or "none", not {bind!r}.')
    named = Site.here() if site is None else site if isinstance(site, Site) else Site.read(site)
    return replace(named, bind=bind) if bind else named


def _nodes(site: Site, ranks: int, nodes: int | None) -> int:
    """Choose the number of machines that the job uses."""
    most = min(site.nodes(), ranks)
    # On one machine alone, ranks that were to be on several nodes all run here.
    alone = not (site.hosts or site.scheduler)
    nodes = most if nodes is None or (alone and nodes > 0) else nodes
    if not 1 <= nodes <= most:
        raise ScaleoutError(
            f"{nodes} nodes asked for, but there are {site.nodes()} to use here and each needs a rank "
            f"(-n {ranks}): take  -N {most}"
        )
    return nodes


def _even_nodes(ranks: int, nodes: int | None) -> int:
    """Choose the number of nodes to ask Slurm for, each with as many ranks as the others."""
    nodes = 1 if nodes is None else nodes
    if nodes < 1 or ranks % nodes or ranks < nodes:
        fits = max(1, ranks // max(1, nodes)) * max(1, nodes)
        raise ScaleoutError(
            f"{ranks} ranks cannot be shared out evenly over {nodes} nodes: "
            f"take  -n {fits} -N {max(1, nodes)}"
        )
    return nodes


@dataclass
class Run:
    """One job, ended: what was asked, what it said, what it wrote.

    Attributes
    ----------
    id, name, folder
        Its id, which sorts by the time of its start; whose runs it is one of; where all is kept.
    command : str
        The mpirun line, to paste into a terminal.
    ranks, threads : int
        How many ranks, and threads of each.
    status : int or None
        Its exit status; None when it had to be ended.
    wall_s : float
        Seconds, start-up included.
    lines : list of (rank, text)
        What it said, in the order of arrival; rank is None where mpirun itself speaks.
    talked : bool or None
        Whether ranks have talked to each other, or may have, by sockets or memory that they share
        with others; None where nobody has looked, and for one rank.
    waited : bool
        Whether the other ranks waited for the one that failed, until they were ended.
    env : Mapping
        The variables that were asked for; None took one away.
    """

    id: str
    name: str
    command: str
    folder: Path
    ranks: int
    threads: int
    status: int | None = None
    wall_s: float = 0.0
    lines: list[tuple[int | None, str]] = field(default_factory=list, repr=False)
    talked: bool | None = None
    waited: bool = False
    env: Mapping[str, str | None] = field(default_factory=dict, repr=False)

    @property
    def output(self) -> str:
        """The lines, each with its rank before it: `[1] text`."""
        return "\n".join(prefixed(rank, text) for rank, text in self.lines)

    @property
    def copies(self) -> str:
        """Say that the ranks were copies of one job; "" where they talked, or nobody can know."""
        return talking.sentence(self.ranks) if self.talked is False else ""

    @property
    def records(self) -> "pd.DataFrame":
        """The records that the job wrote, a row each (records.read says which columns)."""
        from ..kit import records

        return records.read(self.folder / "records.jsonl")

    def __repr__(self) -> str:
        end = "ended well" if self.status == 0 else f"exit status {self.status}"
        return (
            f"Run {self.id}: {self.name}, {self.ranks} x {self.threads}, {self.wall_s:.1f} s, {end}"
        )

    def keep(self) -> None:
        """Write run.json, whole or not at all."""
        about = {
            "id": self.id,
            "name": self.name,
            "command": self.command,
            "ranks": self.ranks,
            "threads": self.threads,
            "env": veiled(self.env),
            "status": self.status,
            "wall_s": round(self.wall_s, 3),
        }
        # A full disk must not hide how the job ended.
        with contextlib.suppress(OSError):
            jsonlines.write(self.folder / "run.json", json.dumps(about, indent=1) + "\n")


def new_run(name: str) -> tuple[str, Path]:
    """Make the id of a new run, and its folder in `results/`. Ids sort in the order of time."""
    run_id = f"{datetime.now(UTC):%Y%m%dT%H%M%S.%f}-{os.urandom(3).hex()}"
    return run_id, results(name, run_id)


class JobError(ScaleoutError):
    """A job that did not end well."""

    def __init__(self, message: str, run: Run) -> None:
        super().__init__(message)
        self.run = run


class JobFailed(JobError):
    """The job ended with an exit status other than 0, kept as `status`: 128 and the signal's number
    where a signal ended it. `run` is what it left."""

    def __init__(self, message: str, run: Run) -> None:
        super().__init__(message, run)
        status = run.status or 1
        # Negative: the signal that ended mpirun, which a shell counts from 128 on.
        self.status = status if status > 0 else 128 - status


class JobTimeout(JobError):
    """The job took longer than it was given, and was ended."""

    status = 124  # as of timeout(1)


class JobInterrupted(KeyboardInterrupt):
    """Somebody pressed Ctrl-C or the stop button; the job has been ended."""

    def _render_traceback_(self) -> list[str]:
        return [str(self)]
