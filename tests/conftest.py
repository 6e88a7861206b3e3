"""What several tests share: a small workshop of its own, scripts to run, the command, and a look for what was left."""

import os
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from scaleout import exercises, reaper

MASTER = '''
    """Adds one number from each rank."""

    import sys

    from mpi4py import MPI

    from scaleout import records

    comm = MPI.COMM_WORLD
    # TODO 1: ask for my number.  (1 line)
    # BEGIN SOLUTION
    rank = comm.Get_rank()
    # STARTER: rank = 0
    # END SOLUTION

    # TODO 2: add up the numbers of all ranks.  (1 line)
    # BEGIN SOLUTION
    total = comm.allreduce(rank + 1)
    # END SOLUTION
    if comm.Get_rank() == 0:
        print(f"total {total}", flush=True)
        records.write(lab="00_tiny", ranks=comm.Get_size(), metrics={"total": total})
'''
CHECKS = '''
    from scaleout.exercises import todo


    @todo(1, hints=["The communicator knows.", "rank = comm.Get_rank()"])
    def ranks_differ(job):
        """Two ranks give 1 + 2."""
        total = job(ranks=2, threads=1).records["metrics.total"].iloc[0]
        assert total == 3, f"expected 3, saw {total}."


    @todo(2, hints=["One call.", "total = comm.allreduce(rank + 1)"])
    def numbers_are_added(job):
        """The total is more than one rank's."""
        total = job(ranks=2, threads=1).records["metrics.total"].iloc[0]
        assert total >= 2, f"expected 2 or more, saw {total}."
'''


@pytest.fixture
def results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder that runs write to, in this test alone."""
    folder = tmp_path / "results"
    monkeypatch.setenv("SCALEOUT_RESULTS", str(folder))
    monkeypatch.delenv("SCALEOUT_RECORDS", raising=False)
    return folder


@pytest.fixture
def workshop(tmp_path: Path, results: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A workshop with one topic, 00_tiny, made from its master; it is the current folder."""
    folder = tmp_path / "workshop"
    for name in ("labs", "notebooks", "solutions/00_tiny"):
        (folder / name).mkdir(parents=True)
    (folder / "solutions/00_tiny/runme.py").write_text(textwrap.dedent(MASTER).lstrip())
    (folder / "solutions/00_tiny/checks.py").write_text(textwrap.dedent(CHECKS).lstrip())
    monkeypatch.chdir(folder)
    exercises.generate()
    return folder


@pytest.fixture
def script(tmp_path: Path) -> Callable[..., Path]:
    """Writes a script for a job: script("print(1)") is its path."""

    def write(text: str, name: str = "train.py") -> Path:
        path = tmp_path / name
        path.write_text(textwrap.dedent(text))
        return path

    return write


@pytest.fixture
def scaleout() -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs the command as a person does: scaleout("run", "00_tiny") ends within a minute."""
    command = str(Path(sys.executable).with_name("scaleout"))

    def call(*words: object, **how: object) -> subprocess.CompletedProcess[str]:
        line = [command, *map(str, words)]
        return subprocess.run(line, **{"capture_output": True, "text": True, "timeout": 60, **how})

    return call


def _left(run_id: str) -> list[str]:
    """The command lines of the job's processes and of its guard, which has the run id among its arguments."""
    found, carriers = [], reaper.processes(run_id)
    for pid in map(int, filter(str.isdigit, os.listdir("/proc"))):
        try:
            line = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if pid != os.getpid() and (run_id in line or pid in carriers):
            found.append(f"{pid}: {line}")
    return found


@pytest.fixture
def no_process_left() -> Callable[..., None]:
    """Fails when a process of the job, or its guard, is still there after so many seconds."""

    def look(run_id: str, within_s: float = 0.0) -> None:
        end = time.monotonic() + within_s
        while (left := _left(run_id)) and time.monotonic() < end:
            time.sleep(0.05)
        assert not left, f"after {within_s:g} s there is still: {left}"

    return look


@pytest.fixture
def run_id(results: Path) -> Callable[[], str]:
    """The id of the one job that this test has started."""

    def find() -> str:
        (folder,) = (f for f in results.glob("*/*") if f.is_dir())
        return folder.name

    return find
