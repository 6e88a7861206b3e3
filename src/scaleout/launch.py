"""Jobs: one command line built from ranks, threads, environment and site; streamed, timed out, ended, collected."""

import contextlib
import json
import math
import os
import re
import shlex
import subprocess
import sys
import time
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import known, machine, reaper
from .errors import ScaleoutError
from .output import first_traceback, lines, prefixed
from .paths import home, results, show, topic
from .site import Site, allocated_nodes

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "JobError",
    "JobFailed",
    "JobInterrupted",
    "JobTimeout",
    "Lab",
    "Run",
    "binding",
    "clean_environment",
    "explain",
    "interpreter",
    "keep",
    "lab",
    "new_run",
    "program",
    "run",
    "thread_variables",
]

TIMEOUT_S = 600.0
GRACE_S = 30.0  # what ranks on other hosts get beyond the job's own limit, before they end by themselves
SCHEDULERS = (
    ("SLURM", "PMI", "HYDRA_", "HYDI_", "OMPI_", "PRTE_", "PRRTE_", "MPI_LOCAL", "FLUX_")  # Slurm, and MPI's own
    + ("PBS_", "LSB_", "PE_HOSTFILE", "LOADL_", "COBALT_")  # the other schedulers that mpirun looks for
)
NATIVE_FRAME = re.compile(r"\[0x[0-9a-f]+\]$")  # of the backtrace that an MPI library prints of itself
SIGNALS = {
    "6": "a rank gave up in native code (signal 6), as TensorFlow does when refused memory, MPI when called wrongly",
    "9": "a rank was killed (signal 9), as the system does when memory runs out",
    "11": "a rank crashed in native code (signal 11)",
}


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
        return "\n".join(prefixed(rank, text) for rank, text in self.lines)

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
        status = self.run.status or 1
        return status if status > 0 else 128 - status  # negative: the signal that ended mpirun, as a shell counts it


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
    return {k: v for k, v in environment.items() if not k.startswith(SCHEDULERS)}


def thread_variables(threads: int) -> dict[str, str]:
    """What tells OpenMP and TensorFlow how many threads a rank may use."""
    return {k: str(threads) for k in ("OMP_NUM_THREADS", "TF_NUM_INTRAOP_THREADS", "TF_NUM_INTEROP_THREADS")}


def binding(ranks: int, threads: int, cores: int, launcher: str = "hydra", elsewhere: bool = False) -> list[str]:
    """What tells mpirun to give each rank its own cores; nothing where they do not fit. ranks and cores: of one node.

    elsewhere: on other machines than this one, where our own share of the cores says nothing.
    """
    if launcher == "openmpi":  # which would refuse more ranks than cores, and bind them all the same
        fits = ["--map-by", f"slot:PE={threads}", "--bind-to", "core"]
        return fits if ranks * threads <= cores else ["--map-by", ":OVERSUBSCRIBE", "--bind-to", "none"]
    if ranks * threads > cores:
        return []
    allowed = os.sched_getaffinity(0)
    mine = [found for core in machine.read_cores(allowed=allowed)[0] if (found := allowed.intersection(core.cpus))]
    if elsewhere or len(allowed) == os.cpu_count() or len(mine) < ranks * threads:
        return ["-bind-to", f"core:{threads}"]
    # Counting from the machine's first core, mpirun would leave those that we may use: name the logical CPUs.
    shares = ([cpu for core in mine[r * threads : (r + 1) * threads] for cpu in sorted(core)] for r in range(ranks))
    return ["-bind-to", "user:" + ",".join("+".join(map(str, share)) for share in shares)]


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


def interpreter(path: str) -> str:
    """The Python to start: "python", this environment's, or the path of another's; ScaleoutError when it starts not."""
    if path == "python":
        return path
    if os.sep not in path or not os.access(path, os.X_OK) or Path(path).is_dir():
        raise ScaleoutError(f"There is no Python to start at {path}: give its path, such as .side/intel/bin/python")
    return path


def run(
    script: Sequence[str],
    *,
    name: str,
    ranks: int = 1,
    threads: int | None = None,
    env: Mapping[str, str] | None = None,
    site: "Site | Path | str | None" = None,
    nodes: int | None = None,
    timeout: float = TIMEOUT_S,
    echo: Callable[[str], None] | None = print,
) -> Run:
    """Runs `script` (a command, such as ["python", "-m", "mpi4py", "train.py"]) on so many ranks; returns when it ends.

    threads: threads a rank may use; without it the usable cores are shared out.  env: more variables.
    site: a Site or its file; without it this machine, or the Slurm allocation around us. A Slurm site, named outside of
    an allocation, submits a job and waits for it.  nodes: machines to use; without it all of the site's.
    timeout: seconds.  echo: takes each line of output as it comes, `[rank] ` before it; None keeps quiet.
    Raises JobFailed, JobTimeout or JobInterrupted; in each case no process of the job is left.
    """
    if ranks < 1 or (threads is not None and threads < 1):
        raise ScaleoutError(f"A job needs at least 1 rank and 1 thread; asked for {ranks} and {threads}.")
    if not 0 < timeout < math.inf:
        raise ScaleoutError(f"A job needs a time limit in seconds, above 0 and finite; asked for {timeout:g}.")
    site = Site.here() if site is None else site if isinstance(site, Site) else Site.read(site)
    if site.scheduler and not allocated_nodes(os.environ):
        from .submit import submit

        how = {"name": name, "ranks": ranks, "nodes": nodes or 1, "threads": threads, "env": env, "site": site}
        return submit(script, timeout=timeout, echo=echo, **how)  # type: ignore[return-value,arg-type]
    where, nodes = _places(site, ranks, nodes)
    on_each = -(-ranks // nodes)
    cores = site.cores or machine.usable_cores()  # of one node
    threads = threads or max(1, cores // on_each)
    bind = [] if site.bind == "none" else binding(on_each, threads, cores, site.launcher, nodes > 1)
    command = [site.mpirun, "-n", str(ranks), *where, *bind, *site.options, *script]
    mpirun = program(command[0])
    say = echo or (lambda text: None)
    say("$ " + shlex.join(command))
    if on_each * threads > cores:
        say(f"Oversubscribed: {on_each} ranks x {threads} threads share {cores} {'core' if cores == 1 else 'cores'}.")

    run_id, folder = new_run(name)
    job = Run(run_id, name, shlex.join(command), folder, ranks, threads)
    environment = {
        **clean_environment(os.environ),
        "PATH": os.pathsep.join([str(Path(sys.prefix) / "bin"), os.environ.get("PATH", os.defpath)]),
        **thread_variables(threads),
        "PYTHONUNBUFFERED": "1",
        **site.env,
        **{k: str(v) for k, v in (env or {}).items()},
        "SCALEOUT_RUN_ID": run_id,
        "SCALEOUT_RECORDS": str(folder / "records.jsonl"),
        "SCALEOUT_CORES": str(nodes * cores),
        "SCALEOUT_NODES": str(nodes),
    }
    if site.scheduler:  # mpirun finds the nodes of the allocation by its variables
        environment |= {name: value for name, value in os.environ.items() if name.startswith("SLURM")}
        environment |= {"SLURM_OVERLAP": "1"}  # we may ourselves be a step of the job, which holds all its cores
    marks = ["-prepend-pattern", f"\x1e{run_id}:%r\x1f"] if site.launcher == "hydra" else []
    if site.hosts:  # a host that is cut off hears no signal: its ranks end by themselves
        command[-len(script) :] = ["timeout", "--foreground", "-s", "KILL", f"{timeout + GRACE_S:g}", *script]
    start = time.monotonic()
    try:
        _stream(job, [mpirun, *marks, *command[1:]], environment, timeout, say)
    except KeyboardInterrupt:
        ended = "is being ended" if reaper.processes(run_id) else "has been ended"  # is being: by the guard
        raise JobInterrupted(f"Interrupted after {time.monotonic() - start:.1f} s: the job {ended}.") from None
    except BrokenPipeError:  # whoever read what we say has gone
        raise
    except OSError as error:
        raise ScaleoutError(
            f"{name} was ended because its output cannot be written ({error.strerror}): make room, or type  "
            "export SCALEOUT_RESULTS=FOLDER  to keep results elsewhere."
        ) from None
    finally:
        job.wall_s = time.monotonic() - start
        with contextlib.suppress(OSError):  # a full disk must not hide how the job ended
            keep(job, env or {})
    if job.status is None:
        cause = "give it longer with --timeout (timeout=)"
        if site.hosts:
            from .hosts import silent

            gone = silent(site)
            cause = f"{', '.join(gone)} did not answer in the end, so take out that host" if gone else cause
        raise JobTimeout(
            f"{name} did not end within {timeout:g} s and was ended; {cause}. "
            f"What it said so far is in {show(folder / 'output.txt')}.",
            job,
        )
    if job.status:
        raise JobFailed(explain(job), job)
    return job


def _places(site: Site, ranks: int, nodes: int | None) -> tuple[list[str], int]:
    """What tells mpirun which machines to use, and how many these are."""
    there = site.nodes()
    alone = not (site.hosts or site.scheduler)  # then ranks that were to be on several nodes all run here
    nodes = min(there, ranks) if nodes is None or (alone and nodes > 0) else nodes
    if not 1 <= nodes <= min(there, ranks):
        raise ScaleoutError(
            f"{nodes} nodes asked for, but there are {there} to use here and each needs a rank (-n {ranks}): "
            f"take  -N {min(there, ranks)}"
        )
    if site.hosts:
        ssh = ["-launcher", "ssh", *(["-launcher-exec", site.ssh] if site.ssh else [])]
        return ["-hosts", ",".join(site.hosts[:nodes]), "-ppn", str(-(-ranks // nodes)), *ssh], nodes
    return (["-ppn", str(-(-ranks // nodes))] if nodes > 1 else []), nodes


def _stream(
    job: Run, command: list[str], environment: dict[str, str], timeout: float, say: Callable[[str], None]
) -> None:
    """Starts mpirun and a guard that outlives this process; collects lines until the end; leaves nothing behind."""
    end = time.monotonic() + timeout
    guard = reaper.guard(job.id)
    mpirun = None
    try:
        with open(job.folder / "output.txt", "a", encoding="utf-8", buffering=1) as kept:  # line by line, as it comes
            mpirun = _start(command, environment)
            for rank, text in lines(mpirun, job.id, end):
                job.lines.append((rank, text))
                kept.write(prefixed(rank, text) + "\n")
                say(prefixed(rank, text))
        with contextlib.suppress(subprocess.TimeoutExpired):
            job.status = mpirun.wait(max(0.0, end - time.monotonic()))
    finally:
        try:
            _finish(job.id, mpirun)
            with contextlib.suppress(subprocess.TimeoutExpired):
                guard.communicate(b"done", timeout=reaper.GRACE_S)
        finally:
            guard.stdin.close()  # without "done", as at a second Ctrl-C, the guard now ends the job in our place


def _start(command: list[str], environment: dict[str, str]) -> "subprocess.Popen[bytes]":
    try:
        return subprocess.Popen(
            command,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,  # Ctrl-C in a terminal reaches us alone, and we end the job in order
        )
    except OSError as error:
        raise ScaleoutError(
            f"{command[0]} cannot be started ({error.strerror}): type  make lab  to mend it, or correct the site file."
        ) from None


def _finish(run_id: str, mpirun: "subprocess.Popen[bytes] | None") -> None:
    """Ends whatever is left of the job, and collects mpirun."""
    if mpirun is None:
        return reaper.end(run_id)
    for pipe in (mpirun.stdout, mpirun.stderr):
        pipe.close()  # nobody reads it any more: mpirun need not wait for somebody
    reaper.end(run_id, mpirun.pid)
    with contextlib.suppress(subprocess.TimeoutExpired):
        mpirun.wait(reaper.GRACE_S)


def new_run(name: str) -> tuple[str, Path]:
    """The id of a new run, and its folder in `results/`."""
    run_id = f"{datetime.now(UTC):%Y%m%dT%H%M%S}-{os.urandom(3).hex()}"
    return run_id, results(name, run_id)


def keep(job: Run, env: Mapping[str, str]) -> None:
    """Writes run.json, whole or not at all."""
    about = {"id": job.id, "name": job.name, "command": job.command, "ranks": job.ranks, "threads": job.threads}
    about |= {"env": dict(env), "status": job.status, "wall_s": round(job.wall_s, 3)}
    script = next((word for word in shlex.split(job.command) if word.endswith(".py")), "")
    with contextlib.suppress(OSError):  # so that history.runs can say that it was edited
        about["script"] = f"{zlib.crc32(Path(script).read_bytes()):08x}"
    partial = job.folder / "run.json.part"
    partial.write_text(json.dumps(about, indent=1) + "\n", encoding="utf-8")
    partial.rename(job.folder / "run.json")


def explain(job: Run) -> str:
    """Why the job failed, as far as its output tells: first rank, first traceback, exit status in words."""
    rank, block = first_traceback(job.lines)
    if rank is None:  # sys.exit(3) and comm.Abort() leave no traceback, but MPI says who called
        at = next((i for i, (r, text) in enumerate(job.lines) if r is not None and text.startswith("Abort(")), None)
        if at is not None:
            rank = job.lines[at][0]
            said = (text for r, text in job.lines[:at] if r == rank and text.strip())
            block = [text for text in said if not NATIVE_FRAME.search(text)][-1:]  # its own last words
    banner = "\n".join(text for r, text in job.lines if r is None)
    killed = re.search(r"EXIT STRING: (.+) \(signal (\d+)\)", banner)
    how = f"exit status {job.status}"
    if killed and not block:
        how = SIGNALS.get(killed[2], f"a rank was ended by signal {killed[2]} ({killed[1].lower()})")
    elif job.status is not None and job.status < 0:
        how = f"mpirun itself was ended by signal {-job.status}"
    who = f"{job.name} failed" + ("" if rank is None else f" first on rank {rank}")
    said = [f"{who}: {how}, after {job.wall_s:.1f} s.", *block]
    if page := known.section("\n".join(said), job.output):
        said.append(f"What it means: {page}")
    return "\n".join([*said, f"All it said: {show(job.folder / 'output.txt')}"])


class Lab:
    """A topic of the workshop: its runme.py to run, its checks, its hints."""

    def __init__(self, name: str, solution: bool | None = None) -> None:
        self.name = topic(name)
        masters = home() / "solutions"
        self.solution = masters in [Path.cwd(), *Path.cwd().parents] if solution is None else solution
        self.folder = home() / ("solutions" if self.solution else "labs") / self.name
        self.script = self.folder / "runme.py"
        if not self.script.is_file():
            raise ScaleoutError(f"{show(self.script)} is missing: type  scaleout reset {self.name}  for a fresh one.")

    def run(
        self,
        ranks: int = 1,
        threads: int | None = None,
        env: Mapping[str, str] | None = None,
        site: "Site | Path | str | None" = None,
        nodes: int | None = None,
        timeout: float = TIMEOUT_S,
        echo: bool = True,
        script: str = "runme.py",
        python: str = "python",
        **args: Any,
    ) -> Run:
        """Runs a script of the lab on so many ranks. Further arguments become its flags: colors=16 is `--colors 16`,
        sizes=[1, 7] is `--sizes 1 7`, and True is the flag alone. python: that of another environment, its path.
        On Slurm, timeout counts the wait in the queue too."""
        say = (lambda text: print(text, flush=True)) if echo else None
        path = self.folder / script
        if not path.is_file():
            raise ScaleoutError(f"{self.name} has no script {script!r}: there is no {show(path)}.")
        command = [interpreter(python), "-m", "mpi4py", show(path), *_flags(args)]
        how = {"name": self.name, "ranks": ranks, "threads": threads, "env": env, "site": site, "nodes": nodes}
        return run(command, timeout=timeout, echo=say, **how)  # type: ignore[arg-type]

    def job_script(
        self,
        ranks: int = 1,
        nodes: int = 1,
        threads: int = 1,
        site: "Site | Path | str" = "../sites/slurm.toml",
        **args: Any,
    ) -> None:
        """Prints the job script that run(ranks=, nodes=, site=) would submit to this Slurm."""
        from .submit import submit

        site = site if isinstance(site, Site) else Site.read(site)
        command = ["python", "-m", "mpi4py", show(self.script), *_flags(args)]
        how = {"name": self.name, "ranks": ranks, "nodes": nodes, "threads": threads, "site": site}
        submit(command, echo=lambda text: print(text.replace(str(home()), "WORKSHOP")), dry_run=True, **how)  # type: ignore[arg-type]

    def check(self, number: int | None = None) -> None:
        """Runs the checks of one TODO, or of all, on runme.py and prints what each found."""
        from . import exercises

        for result in exercises.check(self, number):
            print(result, flush=True)

    def hint(self, number: int) -> None:
        """Prints the next hint for a TODO, one more each time."""
        from . import exercises

        print(exercises.hint(self, number))

    def runs(self, last: int = 5) -> "pd.DataFrame":
        """The last runs of this lab, and what changed from each to the next."""
        from . import history

        return history.runs(self.name, last)

    def reset(self) -> None:
        """Puts a fresh runme.py in the lab's folder; the old one is kept beside it."""
        from . import exercises

        print(exercises.reset(self.name))


def _flags(args: Mapping[str, Any]) -> list[str]:
    flags: list[str] = []
    for name, value in args.items():
        if value is not False and value is not None:
            values = [] if value is True else value if isinstance(value, (list, tuple)) else [value]
            flags += ["--" + name.replace("_", "-"), *map(str, values)]
    return flags


def lab(name: str, solution: bool | None = None) -> Lab:
    """The topic called `name` ("04_kmeans", "04" or "kmeans").

    A notebook in `solutions/` gets the solution's runme.py, any other the lab's; solution=True or False decides.
    """
    return Lab(name, solution)
