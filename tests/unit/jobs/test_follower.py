"""Following a job in Slurm where something goes wrong on our side: a disk that is full, a folder that
is away for a moment, somebody who gives up. Slurm itself is played here; tests/cluster has a real
one."""

import subprocess
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from scaleout.errors import ScaleoutError
from scaleout.jobs import jobscript, slurm, slurm_commands
from scaleout.jobs.job import Job, JobFailed, JobInterrupted, Run
from scaleout.jobs.site import Site
from scaleout.jobs.slurm import Follower

SITE = Site(scheduler="slurm")


class Slurm:
    """Answers like Slurm: one job that runs until it is cancelled, or until `work` says its end."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.state = "RUNNING"
        self.work: Callable[[int], None] = lambda look: None

    def ask(self, *command: str) -> "subprocess.CompletedProcess[str]":
        self.asked.append(" ".join(command))
        if command[0] == "sbatch":
            return subprocess.CompletedProcess(command, 0, "7\n", "")
        if command[0] == "scancel":
            self.state = "CANCELLED"
        self.work(len(self.asked))
        said = f"JobId=7 JobState={self.state} Reason=None NodeList=node1 ExitCode=0:0\n"
        return subprocess.CompletedProcess(command, 0, said, "")

    @property
    def cancelled(self) -> int:
        return self.asked.count("scancel 7")


@pytest.fixture
def played(monkeypatch: pytest.MonkeyPatch) -> Slurm:
    made = Slurm()
    monkeypatch.setattr(slurm_commands, "ask", made.ask)
    monkeypatch.setattr(slurm_commands, "there_is", lambda program: True)
    monkeypatch.setattr(slurm, "LOOK_S", (0.01, 0.01))
    monkeypatch.setattr(slurm.time, "sleep", lambda seconds: None)
    return made


def _job(words: Sequence[str] = ("true",), name: str = "x", **how: object) -> Job:
    return Job.asked(words, name=name, queued=True, **{"site": SITE, **how})


def _follower(folder: Path, said: list[str] | None = None, timeout: float = 30) -> Follower:
    run = Run("ID", "train", "mpirun", folder, 2, 1)
    say = (said if said is not None else []).append
    return Follower(_job(ranks=2, timeout=timeout), run, "7", folder / "slurm.txt", say)


def test_a_full_disk_cancels_the_job_with_one_sentence(played: Slurm, tmp_path: Path) -> None:
    (tmp_path / "slurm.txt").write_text("a line\nanother\n")
    (tmp_path / "output.txt").symlink_to("/dev/full")
    words = r"train was ended because its output cannot be written \(No space left on device\)"
    with pytest.raises(ScaleoutError, match=words):
        _follower(tmp_path).until_end()
    assert played.cancelled == 1


def test_a_folder_that_is_away_for_a_moment_loses_no_line(
    played: Slurm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    output = tmp_path / "slurm.txt"
    opened, failing = open, iter([True, False, True, True, False])

    def sometimes(path: object, *words: object, **how: object):
        if path == output and next(failing, False):
            raise OSError(116, "Stale file handle")
        return opened(path, *words, **how)

    def work(look: int) -> None:
        with opened(output, "a") as file:
            file.write(f"line {look}\n")
        played.state = "COMPLETED" if look == 12 else "RUNNING"

    monkeypatch.setattr(slurm, "open", sometimes, raising=False)
    played.work = work
    follower = _follower(tmp_path)
    follower.until_end()
    texts = [text for _, text in follower.run.lines]
    assert texts == output.read_text().splitlines() and len(texts) == 12


def test_what_can_never_start_is_cancelled_once(
    played: Slurm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    states = iter([{"JobState": "PENDING", "Reason": "PartitionDown"}])
    monkeypatch.setattr(slurm_commands, "state", lambda number: next(states, {}))
    with pytest.raises(JobFailed, match="would wait for ever"):
        _follower(tmp_path).until_end()
    assert played.cancelled == 1


def test_an_interrupt_cancels_once_and_shows_the_last_words(played: Slurm, tmp_path: Path) -> None:
    def work(look: int) -> None:
        if played.cancelled:
            (tmp_path / "slurm.txt").write_text("last words")
        elif look == 3:
            raise KeyboardInterrupt

    played.work = work
    said: list[str] = []
    with pytest.raises(JobInterrupted, match="job 7 has been cancelled"):
        _follower(tmp_path, said).until_end()
    assert played.cancelled == 1 and said[-1] == "last words"


def test_what_cannot_be_brought_home_is_said_and_stays(
    played: Slurm, tmp_path: Path, results: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    played.state = "COMPLETED"

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(slurm.shutil, "copytree", full)
    said: list[str] = []
    site = replace(SITE, scratch=str(tmp_path / "scratch"))
    slurm.submit(_job(site=site), said.append)
    (away,) = (tmp_path / "scratch").iterdir()
    assert f"it is still in {away}" in said[-1]


def _script(name: str = "x", folder: str = "/shared/ID") -> str:
    return jobscript.job_script(_job(name=name), "ID", folder)


def test_a_name_cannot_add_a_line_to_the_script() -> None:
    text = _script(name="x\n#SBATCH --account=yours\ntouch here")
    assert '#SBATCH --job-name="x #SBATCH --account=yours touch here"' in text.splitlines()
    assert not [line for line in text.splitlines() if line.startswith(("touch", "#SBATCH --acc"))]
