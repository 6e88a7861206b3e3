"""Jobs through Slurm: a readable job script, submitted, followed, and its records brought back."""

import contextlib
import math
import os
import re
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from . import launch
from .errors import ScaleoutError
from .jobscript import job_script, per_node
from .launch import JobFailed, JobInterrupted, JobTimeout, Run
from .output import Pieces, prefixed
from .paths import show
from .site import Site

__all__ = ["ask", "submit", "there_is"]

ASK_LIMIT_S = 20.0  # for one answer of Slurm's
LOOK_S = (0.5, 5.0)  # how often the state is asked for: at first, and in the end
CANCEL_S = 15.0  # for a cancelled job to go
LIVE = ("PENDING", "CONFIGURING", "RUNNING", "COMPLETING", "SUSPENDED", "REQUEUED", "STAGE_OUT", "SIGNALING", "STOPPED")
# Why a job waits, in words; those in NEVER do not pass by themselves.
WAITS = {
    "None": "Slurm has not looked at it yet",
    "Priority": "jobs of higher priority are before it",
    "Resources": "other jobs hold the nodes",
    "ReqNodeNotAvail": "nodes that it needs are down, drained or reserved",
    "Nodes_required": "nodes that it needs are down, drained or reserved; `sinfo -R` says why",
    "Reservation": "its reservation has not begun",
    "Licenses": "it waits for a licence",
    "QOSMaxJobsPerUserLimit": "you have as many jobs running as you may",
    "AssocMaxJobsLimit": "your account has as many jobs running as it may",
}
NEVER = {
    "PartitionTimeLimit": "it asks for more time than the partition allows: set fewer minutes in the site file",
    "PartitionNodeLimit": "it asks for more nodes than the partition allows: take fewer with -N",
    "PartitionConfig": "the partition cannot give what it asks for: take fewer nodes, ranks or minutes",
    "PartitionDown": "the partition takes no jobs now: name another in the site file",
    "PartitionInactive": "the partition takes no jobs now: name another in the site file",
    "BadConstraints": "no node can give what it asks for: take fewer ranks a node or threads",
    "AccountNotAllowed": "the account may not use this partition: correct account or partition in the site file",
    "InvalidAccount": "Slurm does not know the account: correct it in the site file",
    "InvalidQOS": "Slurm does not know the quality of service: correct sbatch in the site file",
    "JobHeldUser": "it is held: type  scontrol release JOBID  or submit without --hold",
    "JobHeldAdmin": "an administrator holds it: ask them",
    "QOSMaxWallDurationPerJobLimit": "it asks for more time than you may have: set fewer minutes in the site file",
    "AssocMaxWallDurationPerJobLimit": "it asks for more time than you may have: set fewer minutes in the site file",
    "ReservationDeleted": "its reservation is gone: correct reservation in the site file",
}
ENDS = {
    "CANCELLED": "was cancelled, by somebody or by Slurm",
    "NODE_FAIL": "lost one of its nodes",
    "OUT_OF_MEMORY": "needed more memory than it was given: take fewer ranks a node, or ask for more with sbatch",
    "PREEMPTED": "had to make room for another job: submit it again",
    "BOOT_FAIL": "got nodes that would not start: submit it again",
    "DEADLINE": "could not end before its deadline",
    "REVOKED": "was taken over by another cluster",
}


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
    dry_run: bool = False,
) -> Run | None:
    """Submits `script` (the command of a rank) to Slurm, follows it, and returns when it has ended.

    timeout: seconds, for waiting in the queue and running together; the job is cancelled after that.  dry_run: shows
    the job script and does nothing else.  Raises JobFailed, JobTimeout or JobInterrupted; in each case the job is gone.
    """
    on_each = per_node(ranks, nodes)
    if threads is not None and threads < 1:
        raise ScaleoutError(f"A job needs at least 1 thread a rank; asked for {threads}.")
    if not 0 < timeout < math.inf:
        raise ScaleoutError(f"A job needs a time limit in seconds, above 0 and finite; asked for {timeout:g}.")
    threads = threads or max(1, site.cores // on_each)
    say = echo or (lambda text: None)
    how = {"name": name, "ranks": ranks, "nodes": nodes, "threads": threads, "env": env or {}, "site": site}
    if dry_run:
        say(job_script(script, run_id="RUN_ID", folder=f"{_scratch(site) or 'results/' + name}/RUN_ID", **how).rstrip())
        return None
    if not there_is("sbatch"):
        raise ScaleoutError("There is no sbatch here: log in to the cluster and submit there, or leave out --site.")
    run_id, folder = launch.new_run(name)
    away = Path(_scratch(site)) / f"scaleout-{run_id}" if site.scratch else folder
    text = job_script(script, run_id=run_id, folder=str(away), **how)
    job = Run(run_id, name, next(line for line in reversed(text.splitlines()) if line), folder, ranks, threads)
    (folder / "job.sh").write_text(text, encoding="utf-8")
    start = time.monotonic()
    try:
        away.mkdir(parents=True, exist_ok=True)
        number = _sbatch(folder / "job.sh", run_id)
        say(f"Job {number} submitted: {ranks} ranks on {nodes} nodes, script {show(folder / 'job.sh')}")
        _Follower(job, number, away / "slurm.txt", say).until_end(start + timeout, timeout, site)
    except OSError as error:
        raise ScaleoutError(f"{away} cannot be used ({error.strerror}): correct scratch in the site file.") from None
    finally:
        job.wall_s = time.monotonic() - start
        with contextlib.suppress(OSError):
            if away != folder and away.is_dir():
                shutil.copytree(away, folder, dirs_exist_ok=True)
                shutil.rmtree(away, ignore_errors=True)
            launch.keep(job, env or {})
    return job


def _scratch(site: Site) -> str:
    """The scratch folder with ~ and variables filled in; ScaleoutError when a variable is unknown."""
    path = os.path.expanduser(os.path.expandvars(site.scratch))
    if "$" in path:
        raise ScaleoutError(f"scratch = {site.scratch!r} names a variable that is not set here: export it first.")
    return path


def _environment() -> dict[str, str]:
    """Ours, without what an MPI job or another Slurm job left; Slurm's own configuration stays."""
    kept = {name: os.environ[name] for name in ("SLURM_CONF", "SLURM_CLUSTERS") if name in os.environ}
    return launch.clean_environment(os.environ) | kept


def there_is(program: str) -> bool:
    """Whether this machine has a program of Slurm's."""
    return shutil.which(program) is not None


def ask(*command: str) -> "subprocess.CompletedProcess[str]":
    """What one of Slurm's commands says; ScaleoutError when it takes too long."""
    try:
        return subprocess.run(command, env=_environment(), capture_output=True, text=True, timeout=ASK_LIMIT_S)
    except subprocess.TimeoutExpired as late:
        said = late.stderr.decode(errors="replace") if isinstance(late.stderr, bytes) else late.stderr or ""
        return subprocess.CompletedProcess(command, 124, "", said)


def _sbatch(path: Path, run_id: str) -> str:
    """Submits the script and returns the job's number."""
    done = ask("sbatch", "--parsable", str(path))
    if done.returncode == 0:
        return done.stdout.strip().partition(";")[0]
    said = done.stderr.replace("sbatch: error: ", "").strip().splitlines()
    if done.returncode == 124:  # it may have come through at the last moment
        for line in ask("squeue", "--noheader", "--format=%i %k").stdout.splitlines():
            if line.split()[1:] == [run_id]:
                ask("scancel", line.split()[0])
        if "temporarily unable to accept" in done.stderr:
            raise ScaleoutError("The queue is full, Slurm takes no more jobs: try later; `squeue --me` shows yours.")
        raise ScaleoutError(f"Slurm did not answer within {ASK_LIMIT_S:g} s: ask with  scontrol ping")
    why = said[-1].removeprefix("Batch job submission failed: ") if said else f"status {done.returncode}"
    raise ScaleoutError(f"Slurm refused the job: {why}. Correct the site file, or -n and -N.")


class _Follower:
    """Shows what a job says while it waits and runs, and how it ends."""

    def __init__(self, job: Run, number: str, output: Path, say: Callable[[str], None]) -> None:
        self.job, self.number, self.output, self.say = job, number, output, say
        self.files: dict[str, tuple[int, Pieces]] = {}  # how far each was read, and what is whole of it
        self.waiting, self.began = "", time.monotonic()

    def until_end(self, end: float, timeout: float, site: Site) -> None:
        every, next_look, state = LOOK_S[0], 0.0, {"JobState": "PENDING", "Reason": "None"}
        try:
            while state["JobState"] in LIVE:
                if time.monotonic() >= next_look:
                    state = self._state() or state
                    self._say_why(state)
                    every = min(every * 1.2, LOOK_S[1])
                    next_look = time.monotonic() + every
                self._take_output()
                if time.monotonic() > end:
                    self._cancel()
                    where = f"in the queue: {self.waiting}" if state["JobState"] == "PENDING" else "running"
                    raise JobTimeout(
                        f"Job {self.number} was cancelled after {timeout:g} s, still {where}; give it longer with "
                        f"--timeout (timeout=).",
                        self.job,
                    )
                time.sleep(0.2)
        except KeyboardInterrupt:
            self._cancel()
            raise JobInterrupted(f"Interrupted: job {self.number} has been cancelled.") from None
        except BaseException:
            self._cancel()
            raise
        self._take_output(last=True)
        self.job.wall_s = time.monotonic() - self.began
        self._judge(state, site)

    def _state(self) -> dict[str, str]:
        """What Slurm knows of the job; {} when it cannot be asked right now."""
        done = ask("scontrol", "show", "job", "--oneliner", self.number)
        if done.returncode == 0:
            return dict(re.findall(r"(\S+?)=(\S*)", done.stdout))
        if "Invalid job id" in done.stderr:  # so long over that it is forgotten
            past = ask("sacct", "-n", "-X", "-P", "-j", self.number, "-o", "State,ExitCode").stdout.split("|")
            state, code = (past[0].split()[0], past[1].strip()) if len(past) == 2 else ("COMPLETED", "0:0")
            return {"JobState": state, "ExitCode": code}
        return {}

    def _say_why(self, state: Mapping[str, str]) -> None:
        """Says why the job waits, whenever that changes; ScaleoutError for what does not pass by itself."""
        reason = state.get("Reason", "None")
        key = "Nodes_required" if reason.startswith("Nodes_required") else reason.partition(",")[0]
        nodes = state.get("NodeList", "(null)")
        if state["JobState"] != "PENDING" and self.waiting != "runs" and nodes != "(null)":
            self.waiting = "runs"
            self.say(f"Job {self.number} {'runs' if state['JobState'] in LIVE else 'ran'} on {nodes}.")
        if state["JobState"] != "PENDING":
            return
        if key in NEVER:
            raise JobFailed(f"Job {self.number} would wait for ever: {NEVER[key]}.", self.job)
        why = WAITS.get(key, f"Slurm says {key}")
        if why != self.waiting and key != "None":
            self.say(f"Job {self.number} waits: {why}.")
        self.waiting = why

    def _take_output(self, last: bool = False) -> None:
        with contextlib.suppress(OSError):
            found = os.listdir(self.output.parent)  # makes a shared folder look again
            for name in sorted(name for name in found if name == self.output.name or name.startswith("stderr-")):
                read, pieces = self.files.setdefault(name, (0, Pieces(self.job.id)))
                with open(self.output.parent / name, "rb") as file:
                    file.seek(read)
                    data = file.read()
                self.files[name] = read + len(data), pieces
                self._add(pieces.feed(data) if data else ())
        if last:
            for _, pieces in self.files.values():
                self._add(pieces.feed(b""))

    def _add(self, lines: "Iterator[tuple[int | None, str]] | tuple[()]") -> None:
        with open(self.job.folder / "output.txt", "a", encoding="utf-8") as kept:
            for rank, text in lines:
                labelled = re.match(r" *(\d+): (.*)", text) if rank is None else None  # as srun --label writes it
                if labelled and int(labelled[1]) < self.job.ranks:
                    rank, text = int(labelled[1]), labelled[2]
                self.job.lines.append((rank, text))
                kept.write(prefixed(rank, text) + "\n")
                self.say(prefixed(rank, text))

    def _cancel(self) -> None:
        """Cancels the job and waits until it is gone."""
        end = time.monotonic() + CANCEL_S
        ask("scancel", self.number)
        while time.monotonic() < end and self._state().get("JobState") in LIVE:
            time.sleep(0.3)
        self._take_output(last=True)

    def _judge(self, state: Mapping[str, str], site: Site) -> None:
        """Raises what the end calls for."""
        ended, code = state["JobState"], state.get("ExitCode", "0:0").split(":")
        self.job.status = int(code[0]) or (128 + int(code[1]) if int(code[1]) else 0)
        if ended == "COMPLETED":
            self.job.status = 0
            return
        self.job.status = self.job.status or 1
        if ended == "TIMEOUT":
            raise JobTimeout(
                f"Job {self.number} reached its limit of {site.minutes} minutes and was ended by Slurm; set more "
                f"minutes in the site file. What it said is in {show(self.job.folder / 'output.txt')}.",
                self.job,
            )
        if ended == "FAILED":
            raise JobFailed(f"Job {self.number}: {launch.explain(self.job)}", self.job)
        said = f"All it said: {show(self.job.folder / 'output.txt')}"
        raise JobFailed(f"Job {self.number} {ENDS.get(ended, 'ended as ' + ended)}. {said}", self.job)
