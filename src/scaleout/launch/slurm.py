"""Jobs through Slurm: a readable job script, submitted, followed, and its records brought back."""

import contextlib
import os
import re
import shutil
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from ..base import jsonlines
from ..base.errors import ScaleoutError
from ..base.paths import results_path, show
from ..base.words import count
from ..jobs import failures, talking
from ..jobs.job import Job, JobFailed, JobInterrupted, JobTimeout, Run, new_run
from ..jobs.output import READ_BYTES, Line, Pieces, Stderr, Transcript
from ..site import Site
from . import slurm_commands
from .jobscript import STATUS, job_script
from .slurm_commands import ENDS, LIVE, QUEUED

LOOK_S = (0.5, 5.0)  # how often the state is asked for: at first, and in the end
ERRORS = "stderr-"  # how the file of a rank's standard error begins
LATE_S = 10.0  # for the output of a job that has ended to be seen: a file system may hold it back
# What Slurm and the launchers say of an end; a job that is cancelled has it in one sentence.
LAUNCHERS = re.compile(
    r"slurmstepd[\w-]*: |srun: |mpirun: |\[(mpiexec|proxy)[:@]|=+$|=  |YOUR APPLICATION |"
    r"This typically refers to a problem |Please see the FAQ page |$"
)


def submit(job: Job, say: Callable[[str], None]) -> Run:
    """Submit a job to Slurm, follow it, and return when it has ended."""
    if not slurm_commands.there_is("sbatch"):
        raise ScaleoutError(
            "There is no sbatch here: log in to the cluster and submit there, or leave out --site."
        )
    slurm_commands.use(job.site.slurm_conf)
    scratch = _scratch(job.site)
    run_id, folder = new_run(job.name)
    away = _away(scratch, run_id) or folder
    script = job_script(job, run_id, str(away))
    command = script.splitlines()[-1]
    run = Run(run_id, job.name, command, folder, job.ranks, job.threads, env=job.env)
    path = folder / "job.sh"
    jsonlines.write(path, script, mode=0o600)  # it may hold a secret
    start = time.monotonic()
    follower = None
    try:
        _make(away)
        number = slurm_commands.sbatch(path, run_id)
        size = f"{count(job.ranks, 'rank')} on {count(job.nodes, 'node')}"
        most = count(job.site.minutes, "minute")
        say(f"Job {number} submitted: {size}, {most} at most, script {show(path)}")
        follower = Follower(job, run, number, away / "slurm.txt", say)
        follower.until_end()
    finally:
        run.wall_s = time.monotonic() - start
        if away != folder:
            saving = follower.number if follower and not follower.gone else ""
            _bring_home(away, folder, saving, say)
        run.keep()
    if run.copies:
        say(run.copies)
    return run


def dry_run(job: Job) -> str:
    """Write the job script that `submit` would, and start nothing."""
    folder = _away(_scratch(job.site), "RUN_ID") or results_path(job.name, "RUN_ID")
    return job_script(job, "RUN_ID", str(folder)).rstrip()


def _away(scratch: str, run_id: str) -> Path | None:
    """Name the job's folder in the scratch folder; None where the site has none."""
    return Path(scratch) / f"scaleout-{run_id}" if scratch else None


def _scratch(site: Site) -> str:
    """Fill in ~ and variables of the scratch folder; ScaleoutError when a variable is unknown."""
    path = os.path.expanduser(os.path.expandvars(site.scratch))
    if "$" in path:
        raise ScaleoutError(
            f"scratch = {site.scratch!r} names a variable that is not set here: export it first."
        )
    return path


def _make(away: Path) -> None:
    try:
        away.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ScaleoutError(
            f"{away} cannot be used ({error.strerror}): correct scratch in the site file."
        ) from None


def _bring_home(away: Path, folder: Path, saving: str, say: Callable[[str], None]) -> None:
    """Copy what the job wrote to scratch, and remove it there once all is copied.

    Of a job that may still be saving, its number is given: then the folder stays.
    """
    if not away.is_dir():
        return
    try:
        shutil.copytree(away, folder, dirs_exist_ok=True)
    except OSError:
        say(f"Not all that the job wrote could be copied to {show(folder)}: it is still in {away}.")
        return
    if saving:
        say(f"Job {saving} may still be saving what it has, so its folder stays, too: {away}")
    else:
        shutil.rmtree(away, ignore_errors=True)


class Follower:
    """Shows what a job says while it waits and runs."""

    def __init__(
        self, job: Job, run: Run, number: str, output: Path, say: Callable[[str], None]
    ) -> None:
        self.job, self.run, self.number, self.output, self.say = job, run, number, output, say
        self.waiting = ""
        self.gone = False  # the job writes no more
        self.talk = talking.Talk(job.counted)
        self._read: dict[str, int] = {}  # how far each file was read
        self._pieces: dict[str, Pieces] = {}  # and what of it is no whole line yet

    def until_end(self) -> None:
        """Wait for the end of the job, and judge it."""
        with Transcript(self.run.name, self.run.folder, self.run.lines, self.say) as transcript:
            try:
                state = self._watch(time.monotonic() + self.job.timeout, transcript)
            except KeyboardInterrupt as stop:
                by = f" by {stop}" * bool(str(stop))
                became = self._cancel(transcript)
                raise JobInterrupted(f"Interrupted{by}: job {self.number} {became}.") from None
            except ScaleoutError as error:
                error.args = (f"{error} Job {self.number} {self._cancel(transcript)}.",)
                raise
            except BaseException:
                self._cancel(transcript)
                raise
            self._wait_for_output(transcript)
        self.run.talked = self.talk.verdict()
        self._judge(state)

    def _watch(self, end: float, transcript: Transcript) -> dict[str, str]:
        """Follow the job until it has ended, and return its last state."""
        every, next_look, state = LOOK_S[0], 0.0, {"JobState": "PENDING", "Reason": "None"}
        while state["JobState"] in LIVE:
            if time.monotonic() >= next_look:
                state = slurm_commands.state(self.number) or state
                self._say_why(state)
                every = min(every * 1.2, LOOK_S[1])
                next_look = time.monotonic() + every
            self._take_output(transcript)
            if time.monotonic() > end:
                waits = f"in the queue: {self.waiting}"
                where = waits if state["JobState"] in QUEUED else "running"
                raise JobTimeout(
                    f"Job {self.number} did not end within {self.job.timeout:g} s, still {where}; "
                    "give it longer with --timeout (timeout=).",
                    self.run,
                )
            time.sleep(0.2)
        self.gone = True
        return state

    def _say_why(self, state: Mapping[str, str]) -> None:
        """Say why the job waits, whenever that changes; raise JobFailed where waiting is no use."""
        if state["JobState"] not in QUEUED:
            nodes = state.get("NodeList", "(null)")
            if self.waiting != "runs" and nodes != "(null)":
                self.waiting = "runs"
                verb = "runs" if state["JobState"] in LIVE else "ran"
                self.say(f"Job {self.number} {verb} on {nodes}.")
            return
        reason = state.get("Reason", "None")
        why, passes = slurm_commands.why(reason)
        if not passes:
            raise JobFailed(f"Job {self.number} would wait for ever: {why}.", self.run)
        if why != self.waiting and reason != "None":
            self.say(f"Job {self.number} waits: {why}.")
        self.waiting = why

    def _take_output(self, transcript: Transcript, last: bool = False) -> None:
        """Take what the files hold by now; at last also lines that have no end."""
        for name in self._files():
            kind = Stderr if name.startswith(ERRORS) else str
            pieces = self._pieces.setdefault(name, Pieces(self.run.id, kind=kind))
            data = self._more(name)
            while data:
                self._add(transcript, pieces.feed(data))
                data = self._more(name) if last else b""
            self._add(transcript, pieces.drawn())
        for pieces in self._pieces.values() if last else ():
            self._add(transcript, pieces.feed(b""))

    def _status(self) -> str:
        """Read the exit status that the job script has left; "" where it left none."""
        try:
            left = self.output.with_name(STATUS).read_text(encoding="ascii").strip()
        except (OSError, ValueError):
            return ""
        return left if left.isdecimal() else ""

    def _files(self) -> list[str]:
        try:
            found = os.listdir(self.output.parent)  # makes a shared folder look again
        except OSError:  # it may be away for a moment
            return []
        return sorted(n for n in found if n == self.output.name or n.startswith(ERRORS))

    def _more(self, name: str) -> bytes:
        """Read what a file holds behind what was read of it before."""
        try:
            with open(self.output.parent / name, "rb") as file:
                file.seek(self._read.get(name, 0))
                data = file.read(READ_BYTES)
        except OSError:  # as above: it is read at the next look
            return b""
        self._read[name] = self._read.get(name, 0) + len(data)
        return data

    def _add(self, transcript: Transcript, lines: Iterable[Line]) -> None:
        """Show the ranks' lines, and keep the launchers' own beside them."""
        for line in map(self._labelled, lines):
            if not self.talk.consume(*line):
                stepd = line[1].startswith("slurmstepd")  # which srun labels as a rank's
                launchers = (line[0] is None or stepd) and LAUNCHERS.match(line[1]) is not None
                transcript.add([line], quietly=launchers)

    def _labelled(self, line: Line) -> Line:
        """Read the rank of a line that srun --label has written; mpirun marks its own."""
        rank, text = line
        by_srun = rank is None and self.job.site.start == "srun"
        label = re.match(r" *(\d+): (.*)", text) if by_srun else None
        if label and int(label[1]) < self.job.ranks:
            return int(label[1]), type(text)(label[2])
        return line

    def _wait_for_output(self, transcript: Transcript) -> None:
        """Take what the job printed, for which a shared folder may need some seconds."""
        end = time.monotonic() + LATE_S
        while not self.output.exists() and time.monotonic() < end:
            self._files()
            time.sleep(0.2)
        if not self.output.exists():
            self.say(
                f"The output of job {self.number} cannot be seen yet: it will be in "
                f"{show(self.output)}"
            )
        self._take_output(transcript, last=True)

    def _cancel(self, transcript: Transcript) -> str:
        """Cancel the job, wait until it is gone, and say what became of it."""
        try:
            became = slurm_commands.cancel(self.number)
        except KeyboardInterrupt:  # a second one: Slurm has been told
            return slurm_commands.GOING
        self.gone = became == slurm_commands.GONE
        # Where that cannot be written, the job is cancelled for just this reason.
        with contextlib.suppress(ScaleoutError):
            self._take_output(transcript, last=True)
        return became

    def _judge(self, state: Mapping[str, str]) -> None:
        """Raise what the end calls for."""
        ended, code = state["JobState"], state.get("ExitCode", "0:0").split(":")
        if ended == "UNKNOWN" and (left := self._status()):
            ended, code = "COMPLETED" if left == "0" else "FAILED", [left, "0"]
        if ended == "COMPLETED":
            self.run.status = 0
            return
        self.run.status = int(code[0]) or (128 + int(code[1]) if int(code[1]) else 1)
        path = show(self.run.folder / "output.txt")
        if ended == "TIMEOUT":
            raise JobTimeout(
                f"Job {self.number} reached its limit of {self.job.site.minutes} minutes and was ended "
                f"by Slurm; set more minutes in the site file. What it said is in {path}.",
                self.run,
            )
        if ended == "FAILED":
            raise JobFailed(f"Job {self.number}: {failures.explain(self.run)}", self.run)
        how = ENDS.get(ended, "ended as " + ended)
        raise JobFailed(f"Job {self.number} {how}. All it said: {path}", self.run)
