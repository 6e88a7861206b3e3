"""Jobs: one command line built from ranks, threads, environment and site; streamed, timed out, ended, collected."""

import json
import os
import re
import secrets
import selectors
import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import machine, reaper
from .errors import ScaleoutError
from .paths import home, results, show, topic
from .site import Site

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "JobError",
    "JobFailed",
    "JobInterrupted",
    "JobTimeout",
    "Lab",
    "Run",
    "clean_environment",
    "first_traceback",
    "lab",
    "program",
    "run",
    "thread_variables",
]

TIMEOUT_S = 600.0
SCHEDULERS = ("SLURM_", "PMI_", "PMI2_", "PMIX_", "HYDRA_", "HYDI_", "OMPI_", "MPI_LOCAL", "FLUX_", "PRTE_", "PRRTE_")
MARK = re.compile(rb"\x1e(\d+)\x1f")  # what mpirun is told to put before each piece of a rank's output


@dataclass
class Run:
    """One job, ended: what was asked, what it said, what it wrote.

    command: the mpirun line, to paste into a terminal.  status: its exit status.  wall_s: seconds, start-up included.
    lines: (rank, text) in the order of arrival; rank is None where mpirun itself speaks.  folder: where all is kept.
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

    @property
    def output(self) -> str:
        """Everything the job printed, each line with its rank before it: `[1] text`."""
        return "\n".join(_prefixed(rank, text) for rank, text in self.lines)

    @property
    def records(self) -> "pd.DataFrame":
        """The records that the job wrote, a row each (records.read says which columns)."""
        from . import records

        return records.read(self.folder / "records.jsonl")

    def __repr__(self) -> str:
        end = "ended well" if self.status == 0 else f"exit status {self.status}"
        return f"Run {self.id}: {self.name}, {self.ranks} x {self.threads}, {self.wall_s:.1f} s, {end}"


class JobError(ScaleoutError):
    """A job that did not end well. `run` holds what it left."""

    def __init__(self, message: str, run: Run) -> None:
        super().__init__(message)
        self.run = run


class JobFailed(JobError):
    """The job ended with an exit status other than 0."""

    @property
    def status(self) -> int:  # type: ignore[override]
        return self.run.status or 1


class JobTimeout(JobError):
    """The job took longer than it was given, and was ended."""

    status = 124  # as of timeout(1)


class JobInterrupted(KeyboardInterrupt):
    """Somebody pressed Ctrl-C or the stop button; the job has been ended."""

    def _render_traceback_(self) -> list[str]:
        return [str(self)]


def clean_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """The environment without what a scheduler or another MPI job left in it (SLURM_*, PMI*, HYDRA*, OMPI_* ...).

    A local mpirun that finds them believes it is a part of that other job.
    """
    return {k: v for k, v in environment.items() if not k.startswith(SCHEDULERS) and k not in ("PMI_FD", "PMI_RANK")}


def thread_variables(threads: int) -> dict[str, str]:
    """What tells OpenMP and TensorFlow how many threads a rank may use."""
    return {k: str(threads) for k in ("OMP_NUM_THREADS", "TF_NUM_INTRAOP_THREADS", "TF_NUM_INTEROP_THREADS")}


def _command(script: Sequence[str], ranks: int, threads: int, site: Site, cores: int) -> list[str]:
    bind = ["-bind-to", f"core:{threads}"] if ranks * threads <= cores else []
    return [site.mpirun, "-n", str(ranks), *bind, *site.options, *script]


def program(name: str) -> str:
    """The path of a program of this same environment, never another's that PATH happens to find."""
    if os.sep in name:
        return name
    path = Path(sys.prefix) / "bin" / name
    if not path.exists():
        raise ScaleoutError(
            f"There is no {name} in this environment ({show(path.parent)}): type  make lab  to mend it."
        )
    return str(path)


def run(
    script: Sequence[str],
    *,
    name: str,
    ranks: int = 1,
    threads: int | None = None,
    env: Mapping[str, str] | None = None,
    site: Site | None = None,
    timeout: float = TIMEOUT_S,
    echo: Callable[[str], None] | None = print,
) -> Run:
    """Runs `script` (a command, such as ["python", "-m", "mpi4py", "train.py"]) on so many ranks; returns when it ends.

    threads: threads a rank may use; without it the usable cores are shared out.  env: more variables.
    timeout: seconds.  echo: takes each line of output as it comes, `[rank] ` before it; None keeps quiet.
    Raises JobFailed, JobTimeout or JobInterrupted; in each case no process of the job is left.
    """
    if ranks < 1 or (threads is not None and threads < 1):
        raise ScaleoutError(f"A job needs at least 1 rank and 1 thread; asked for {ranks} and {threads}.")
    site = site or Site()
    cores = site.cores or machine.facts().usable_cores
    threads = threads or max(1, cores // ranks)
    command = _command(script, ranks, threads, site, cores)
    say = echo or (lambda text: None)
    say("$ " + shlex.join(command))
    if ranks * threads > cores:
        say(f"Oversubscribed: {ranks} ranks x {threads} threads share {cores} cores.")

    run_id = f"{datetime.now(UTC):%Y%m%dT%H%M%S}-{secrets.token_hex(3)}"
    folder = results() / name / run_id
    folder.mkdir(parents=True)
    job = Run(run_id, name, shlex.join(command), folder, ranks, threads)
    environment = {
        **clean_environment(os.environ),
        "PATH": os.pathsep.join([str(Path(sys.prefix) / "bin"), os.environ.get("PATH", os.defpath)]),
        **thread_variables(threads),
        "PYTHONUNBUFFERED": "1",
        **site.env,
        **(env or {}),
        "SCALEOUT_RUN_ID": run_id,
        "SCALEOUT_RECORDS": str(folder / "records.jsonl"),
        "SCALEOUT_CORES": str(cores),
        "SCALEOUT_NODES": "1",
    }
    start = time.monotonic()
    try:
        _stream(job, [program(command[0]), "-prepend-pattern", "\x1e%r\x1f", *command[1:]], environment, timeout, say)
    except KeyboardInterrupt:
        raise JobInterrupted(f"Interrupted after {time.monotonic() - start:.1f} s: the job has been ended.") from None
    finally:
        job.wall_s = time.monotonic() - start
        _keep(job, env or {})
    if job.status is None:
        raise JobTimeout(
            f"{name} did not end within {timeout:g} s and was ended; give it longer with --timeout (timeout=). "
            f"What it said so far is in {show(folder / 'output.txt')}.",
            job,
        )
    if job.status:
        raise JobFailed(_explain(job), job)
    return job


def _stream(
    job: Run, command: list[str], environment: dict[str, str], timeout: float, say: Callable[[str], None]
) -> None:
    """Starts mpirun and a guard that outlives this process; collects lines until the end; leaves nothing behind."""
    end = time.monotonic() + timeout
    guard = reaper.guard(job.id)
    mpirun = subprocess.Popen(
        command,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,  # Ctrl-C in a terminal reaches us alone, and we end the job in order
    )
    try:
        with open(job.folder / "output.txt", "a", encoding="utf-8") as kept:
            for rank, text in _lines(mpirun, end):
                job.lines.append((rank, text))
                kept.write(_prefixed(rank, text) + "\n")
                say(_prefixed(rank, text))
        try:
            job.status = mpirun.wait(max(0.0, end - time.monotonic()))
        except subprocess.TimeoutExpired:
            return
    finally:
        reaper.end(job.id, mpirun.pid)
        mpirun.wait()
        guard.communicate(b"done")


def _lines(mpirun: subprocess.Popen[bytes], end: float) -> Iterator[tuple[int | None, str]]:
    """Yields (rank, line) as whole lines arrive, until both pipes close or the time `end` has come.

    Hydra marks each piece it forwards, also in the middle of a line; the pieces of a rank are put together again here.
    """
    with selectors.DefaultSelector() as ready:
        for pipe in (mpirun.stdout, mpirun.stderr):
            assert pipe is not None
            ready.register(pipe, selectors.EVENT_READ, _Pieces())
        while ready.get_map():
            for key, _ in ready.select(max(0.0, min(1.0, end - time.monotonic()))):
                data = os.read(key.fd, 65536)
                yield from key.data.feed(data)
                if not data:
                    ready.unregister(key.fileobj)
            if time.monotonic() >= end or mpirun.poll() is not None and not ready.select(0.2):
                break  # out of time, or mpirun is gone and only a rank that it lost still holds the pipe
        for key in list(ready.get_map().values()):
            yield from key.data.feed(b"")


class _Pieces:
    """Puts the marked pieces of one stream together to lines, a buffer for each rank."""

    def __init__(self) -> None:
        self.rank: int | None = None
        self.data = b""
        self.partial: dict[int | None, bytes] = {}

    def feed(self, data: bytes) -> Iterator[tuple[int | None, str]]:
        self.data += data
        while self.data:
            mark = MARK.match(self.data)
            if mark:
                self.rank, self.data = int(mark[1]), self.data[mark.end() :]
                continue
            if self.data.startswith(b"\x1e") and len(self.data) < 12 and data:
                return  # the rest of the mark is still to come
            stop = re.search(rb"\n|(?!^)\x1e", self.data)
            piece = self.data[: stop.start()] if stop else self.data
            self.data = self.data[len(piece) :]
            self.partial[self.rank] = self.partial.get(self.rank, b"") + piece
            if self.data.startswith(b"\n"):
                yield self.rank, self._text(self.rank)
                self.rank, self.data = None, self.data[1:]
        if not data:
            yield from [(rank, self._text(rank)) for rank in list(self.partial)]

    def _text(self, rank: int | None) -> str:
        return self.partial.pop(rank).decode("utf-8", "replace").rstrip("\r")


def _prefixed(rank: int | None, text: str) -> str:
    return text if rank is None else f"[{rank}] {text}"


def _keep(job: Run, env: Mapping[str, str]) -> None:
    """Writes run.json, whole or not at all."""
    about = {"id": job.id, "name": job.name, "command": job.command, "ranks": job.ranks, "threads": job.threads}
    about |= {"env": dict(env), "status": job.status, "wall_s": round(job.wall_s, 3)}
    partial = job.folder / "run.json.part"
    partial.write_text(json.dumps(about, indent=1) + "\n", encoding="utf-8")
    partial.rename(job.folder / "run.json")


def first_traceback(lines: Sequence[tuple[int | None, str]]) -> tuple[int | None, list[str]]:
    """The rank that failed first, and its own traceback without the frames of the launcher.

    Later tracebacks are echoes: ranks that lost their partner. (None, []) when nobody printed one.
    """
    for at, (rank, text) in enumerate(lines):
        if not text.startswith("Traceback (most recent call last)"):
            continue
        block = [text]
        for line in (t for r, t in lines[at + 1 :] if r == rank):
            block.append(line)
            if line and not line.startswith((" ", "Traceback", "During handling", "The above exception")):
                break
        return rank, _own_frames(block)
    return None, []


def _own_frames(block: list[str]) -> list[str]:
    """The traceback without the frames of runpy and mpi4py, which say nothing about the script."""
    kept, skipping = [], False
    for line in block:
        if line.startswith("  File "):
            skipping = "<frozen runpy>" in line or "/mpi4py/" in line
        elif not line.startswith("    "):
            skipping = False
        if not skipping:
            kept.append(line)
    return kept


def _explain(job: Run) -> str:
    """Why the job failed, as far as its output tells: first rank, first traceback, exit status in words."""
    rank, block = first_traceback(job.lines)
    banner = "\n".join(text for r, text in job.lines if r is None)
    if rank is None and (found := re.search(r"RANK (\d+) PID", banner)):
        rank = int(found[1])
    code = re.search(r"EXIT CODE: (\d+)", banner)
    status = int(code[1]) if code else job.status or 0
    how = f"exit status {job.status}"
    if not block and status in (9, 137):
        how = "it was killed (signal 9), as the system does when memory runs out"
    elif not block and status in (11, 139):
        how = "it crashed in native code (signal 11)"
    who = f"{job.name} failed" + ("" if rank is None else f" first on rank {rank}")
    return "\n".join(
        [f"{who}: {how}, after {job.wall_s:.1f} s.", *block, f"All it said: {show(job.folder / 'output.txt')}"]
    )


class Lab:
    """A topic of the workshop: its runme.py to run, its checks, its hints."""

    def __init__(self, name: str, solution: bool | None = None) -> None:
        self.name = topic(name)
        self.solution = "solutions" in Path.cwd().relative_to(home()).parts if solution is None else solution
        self.folder = home() / ("solutions" if self.solution else "labs") / self.name
        self.script = self.folder / "runme.py"
        if not self.script.is_file():
            raise ScaleoutError(f"{show(self.script)} is missing: type  scaleout reset {self.name}  for a fresh one.")

    def run(
        self,
        ranks: int = 1,
        threads: int | None = None,
        env: Mapping[str, str] | None = None,
        site: Site | None = None,
        timeout: float = TIMEOUT_S,
        echo: bool = True,
        **args: Any,
    ) -> Run:
        """Runs runme.py on so many ranks. Further arguments become its flags: colors=16 is `--colors 16`."""
        say = (lambda text: print(text, flush=True)) if echo else None
        script = ["python", "-m", "mpi4py", show(self.script), *_flags(args)]
        return run(script, name=self.name, ranks=ranks, threads=threads, env=env, site=site, timeout=timeout, echo=say)

    def check(self, number: int | None = None) -> None:
        """Runs the checks of one TODO, or of all, on runme.py and prints what each found."""
        from . import exercises

        for result in exercises.check(self, number):
            print(result, flush=True)

    def hint(self, number: int) -> None:
        """Prints the next hint for a TODO, one more each time."""
        from . import exercises

        print(exercises.hint(self, number))


def _flags(args: Mapping[str, Any]) -> list[str]:
    flags: list[str] = []
    for name, value in args.items():
        if value is not False and value is not None:
            flags += ["--" + name.replace("_", "-"), *([] if value is True else [str(value)])]
    return flags


def lab(name: str, solution: bool | None = None) -> Lab:
    """The topic called `name` ("04_kmeans", "04" or "kmeans").

    A notebook in `solutions/` gets the solution's runme.py, any other the lab's; solution=True or False decides.
    """
    return Lab(name, solution)
