"""Follows one job in Slurm: why it waits, what it says, how it ends."""

import contextlib
import os
import re
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from ..errors import ScaleoutError
from ..paths import show
from . import failures, slurm_commands
from .job import JobFailed, JobInterrupted, JobTimeout, Run
from .output import Pieces
from .slurm_words import ENDS, LIVE, NEVER, WAITS, reason
from .transcript import Transcript

LOOK_S = (0.5, 5.0)  # how often the state is asked for: at first, and in the end
CANCEL_S = 15.0  # for a cancelled job to go
READ_BYTES = 2**20  # of a file at once
READS = 32  # of a file at one look, so that the clock is looked at too


class Follower:
    """Shows what a job says while it waits and runs."""

    def __init__(self, job: Run, number: str, output: Path, say: Callable[[str], None]) -> None:
        self.job, self.number, self.output, self.say = job, number, output, say
        self.waiting = ""
        self._read: dict[str, int] = {}  # how far each file was read
        self._pieces: dict[str, Pieces] = {}  # and what of it is no whole line yet

    def until_end(self, timeout: float, minutes: int) -> None:
        """Waits for the end of the job."""
        with Transcript(self.job, self.say) as transcript:
            try:
                state = self._watch(time.monotonic() + timeout, timeout, transcript)
            except KeyboardInterrupt:
                raise self._interrupted(transcript) from None
            except BaseException:
                self._cancel(transcript)
                raise
            self._take_output(transcript, last=True)
        self._judge(state, minutes)

    def _watch(self, end: float, timeout: float, transcript: Transcript) -> dict[str, str]:
        """Follows the job until it has ended, and returns its last state."""
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
                where = waits if state["JobState"] == "PENDING" else "running"
                raise JobTimeout(
                    f"Job {self.number} was cancelled after {timeout:g} s, still {where}; give it "
                    "longer with --timeout (timeout=).",
                    self.job,
                )
            time.sleep(0.2)
        return state

    def _say_why(self, state: Mapping[str, str]) -> None:
        """Says why the job waits, whenever that changes; JobFailed for what does not pass by
        itself."""
        if state["JobState"] != "PENDING":
            nodes = state.get("NodeList", "(null)")
            if self.waiting != "runs" and nodes != "(null)":
                self.waiting = "runs"
                verb = "runs" if state["JobState"] in LIVE else "ran"
                self.say(f"Job {self.number} {verb} on {nodes}.")
            return
        key = reason(state)
        if key in NEVER:
            raise JobFailed(f"Job {self.number} would wait for ever: {NEVER[key]}.", self.job)
        why = WAITS.get(key, f"Slurm says {key}")
        if why != self.waiting and key != "None":
            self.say(f"Job {self.number} waits: {why}.")
        self.waiting = why

    def _take_output(self, transcript: Transcript, last: bool = False) -> None:
        """Takes what the files hold by now; at last also lines that have no end."""
        for name in self._files():
            pieces = self._pieces.setdefault(name, Pieces(self.job.id))
            reads = 0
            while (last or reads < READS) and (data := self._more(name)):
                self._add(transcript, pieces.feed(data))
                reads += 1
        if last:
            for pieces in self._pieces.values():
                self._add(transcript, pieces.feed(b""))

    def _files(self) -> list[str]:
        try:
            found = os.listdir(self.output.parent)  # makes a shared folder look again
        except OSError:  # it may be away for a moment
            return []
        return sorted(n for n in found if n == self.output.name or n.startswith("stderr-"))

    def _more(self, name: str) -> bytes:
        """What a file holds behind what was read of it before."""
        try:
            with open(self.output.parent / name, "rb") as file:
                file.seek(self._read.get(name, 0))
                data = file.read(READ_BYTES)
        except OSError:  # as above: it is read at the next look
            return b""
        self._read[name] = self._read.get(name, 0) + len(data)
        return data

    def _add(self, transcript: Transcript, lines: Iterable[tuple[int | None, str]]) -> None:
        transcript.add([self._own(rank, text) for rank, text in lines])

    def _own(self, rank: int | None, text: str) -> tuple[int | None, str]:
        """A line as srun --label writes it has its rank before it."""
        labelled = re.match(r" *(\d+): (.*)", text) if rank is None else None
        if labelled and int(labelled[1]) < self.job.ranks:
            return int(labelled[1]), labelled[2]
        return rank, text

    def _interrupted(self, transcript: Transcript) -> JobInterrupted:
        """Cancels the job; at a second Ctrl-C, the guard does that in our place."""
        job = f"Interrupted: job {self.number}"
        try:
            self._cancel(transcript)
        except KeyboardInterrupt:
            said = f"{job} is being cancelled; `squeue --me` shows when it is gone."
            return JobInterrupted(said, over=False)
        return JobInterrupted(f"{job} has been cancelled.")

    def _cancel(self, transcript: Transcript) -> None:
        """Cancels the job and waits until it is gone."""
        end = time.monotonic() + CANCEL_S
        slurm_commands.ask("scancel", self.number)
        while time.monotonic() < end:
            if slurm_commands.state(self.number).get("JobState") not in LIVE:
                break
            time.sleep(0.3)
        # Where that cannot be written, the job is cancelled for just this reason.
        with contextlib.suppress(ScaleoutError):
            self._take_output(transcript, last=True)

    def _judge(self, state: Mapping[str, str], minutes: int) -> None:
        """Raises what the end calls for."""
        ended, code = state["JobState"], state.get("ExitCode", "0:0").split(":")
        self.job.status = int(code[0]) or (128 + int(code[1]) if int(code[1]) else 0)
        if ended == "COMPLETED":
            self.job.status = 0
            return
        self.job.status = self.job.status or 1
        path = show(self.job.folder / "output.txt")
        if ended == "TIMEOUT":
            raise JobTimeout(
                f"Job {self.number} reached its limit of {minutes} minutes and was ended by Slurm; "
                f"set more minutes in the site file. What it said is in {path}.",
                self.job,
            )
        if ended == "FAILED":
            raise JobFailed(f"Job {self.number}: {failures.explain(self.job)}", self.job)
        how = ENDS.get(ended, "ended as " + ended)
        raise JobFailed(f"Job {self.number} {how}. All it said: {path}", self.job)
