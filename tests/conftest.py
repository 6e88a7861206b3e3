"""What several tests share: a small workshop of its own, scripts to run, the command, and a look
for what was left."""

import os
import signal
import subprocess
import textwrap
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pytest
from helpers import COMMAND, left_of

from scaleout.course.masters import generate
from scaleout.jobs import output
from scaleout.launch import local

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
    from scaleout import todo


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


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--everything", action="store_true", help="also tests marked as a choice")
    parser.addoption("--nbclient", action="store_true", help="run the notebooks without nbval")


def pytest_configure() -> None:
    """What a shell starts with `&` ignores Ctrl-C, and so would all that the tests start."""
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what nobody asked for."""
    left_out = [item for item in items if item.get_closest_marker("choice")]
    if left_out and not config.getoption("everything"):
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]


@pytest.fixture(scope="session", autouse=True)
def _own_folders(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """What a worker writes, and the cores that its jobs lease, are no other worker's."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SCALEOUT_LEASES", str(tmp_path_factory.mktemp("leases")))
        patch.setenv("SCALEOUT_RESULTS", str(tmp_path_factory.mktemp("results")))
        if "PYTEST_XDIST_WORKER" in os.environ:
            # Workers share the cores: ranks that wait must let those of others go on.
            patch.setenv("MPIR_CVAR_ENABLE_HEAVY_YIELD", "1")
        yield


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
    generate()
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
def time_is_up_at(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """time_is_up_at("ready"): a job's time limit strikes when one of its lines holds this word.

    So a test of the limit neither waits for it nor depends on how fast a job starts."""
    ahead_s = 0.0

    class Clock:
        time = staticmethod(time.time)

        def monotonic(self) -> float:
            return time.monotonic() + ahead_s

    def at(word: str, settle_s: float = 0.2) -> None:
        def add(
            self: output.Transcript,
            lines: Iterable[output.Line],
            *,
            quietly=False,
            add=output.Transcript.add,
        ) -> None:
            nonlocal ahead_s
            lines = list(lines)
            add(self, lines, quietly=quietly)
            if not ahead_s and any(word in text for _, text in lines):
                time.sleep(settle_s)  # for the job to reach what it does after the word
                ahead_s += 24 * 3600

        monkeypatch.setattr(output.Transcript, "add", add)
        monkeypatch.setattr(local, "time", Clock())
        monkeypatch.setattr(output, "time", Clock())

    return at


@pytest.fixture
def scaleout() -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs the command as a person does: scaleout("run", "00_tiny") ends within two minutes."""

    def call(*words: object, **options: object) -> subprocess.CompletedProcess[str]:
        usual = {"capture_output": True, "text": True, "timeout": 120}
        return subprocess.run([COMMAND, *map(str, words)], **{**usual, **options})

    return call


@pytest.fixture
def no_process_left() -> Callable[..., None]:
    """Fails when a process of the job, or its supervisor, is still there after so many seconds."""

    def look(run_id: str, within_s: float = 0.0) -> None:
        end = time.monotonic() + within_s
        while (left := left_of(run_id)) and time.monotonic() < end:
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
