"""Jobs at the same time on one machine: cores of their own while there are enough, and what is said
when there are not."""

import contextlib
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from helpers import COMMAND

from scaleout import Engines, machine
from scaleout.launch import run as launch

pytestmark = [pytest.mark.mpi, pytest.mark.timeout(600)]

CORES = machine.usable_cores()
TELL = """
    import os, sys, time
    from mpi4py import MPI
    print("cores", *sorted(os.sched_getaffinity(0)), flush=True)
    while not os.path.exists(sys.argv[1]):
        time.sleep(0.02)
"""


@pytest.fixture(autouse=True)
def own_leases(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SCALEOUT_LEASES", str(tmp_path / "leases"))


class Started:
    """A `scaleout run` of one rank with one thread."""

    def __init__(self, path: Path, end: Path, *words: str) -> None:
        line = [COMMAND, "run", str(path), "-t", "1", *words, "--", str(end)]
        self.process = subprocess.Popen(line, stdout=subprocess.PIPE, text=True)
        self.said: list[str] = []

    def cores(self) -> set[int]:
        """The logical CPUs of its rank, once it runs."""
        assert self.process.stdout
        while not self.said or "] cores " not in self.said[-1]:
            line = self.process.stdout.readline()
            assert line, self.said
            self.said.append(line)
        return set(map(int, self.said[-1].split()[2:]))


@pytest.fixture
def start(script: Callable[..., Path], tmp_path: Path, results: Path) -> Iterator[Callable]:
    """Starts a job that runs until the test is over."""
    with contextlib.ExitStack() as stack:
        path, end = script(TELL), tmp_path / "end"

        def begin(*words: str) -> Started:
            started = Started(path, end, *words)
            stack.callback(started.process.communicate, timeout=300)
            return started

        stack.callback(end.touch)
        yield begin
        end.touch()


@pytest.mark.skipif(CORES < 2, reason="one core cannot be shared out")
def test_jobs_started_at_once_have_cores_of_their_own(start: Callable[..., Started]) -> None:
    jobs = [start() for _ in range(CORES)]  # all start before the first is asked
    sets = [job.cores() for job in jobs]
    assert all(sets) and len(set.union(*sets)) == sum(map(len, sets)), sets
    assert not any("Oversubscribed" in line for job in jobs for line in job.said)

    late = start()
    assert late.cores() == os.sched_getaffinity(0)  # not bound
    assert late.said[1] == (
        f"Oversubscribed: 1 rank x 1 thread would fill 1 core, but other jobs leave 0 of {CORES} free: "
        "this job is not bound, and shares cores with them.\n"
    )
    assert "-bind-to" not in late.said[0]

    jobs[-1].process.kill()  # its launcher; the guard ends the job
    jobs[-1].process.wait()
    again = start()
    assert again.cores() == sets[-1] and "Oversubscribed" not in "".join(again.said)


@pytest.mark.skipif(CORES < 2, reason="one core cannot be shared out")
def test_the_cores_of_a_job_that_has_ended_are_free(
    script: Callable[..., Path], results: Path
) -> None:
    path = script("import os\nprint('cores', *os.sched_getaffinity(0))\n")
    found = [
        launch.run(["python", str(path)], name="x", threads=CORES, echo=None).output
        for _ in range(3)
    ]
    assert len(set(found)) == 1


def test_a_job_that_is_not_to_be_bound_holds_no_core(start: Callable[..., Started]) -> None:
    free = start("--bind", "none")
    assert free.cores() == os.sched_getaffinity(0) and "-bind-to" not in free.said[0]
    bound = start()
    assert len(bound.cores()) < max(2, CORES) and "-bind-to" in bound.said[0]


def test_a_notebooks_job_may_use_the_cores_of_its_engines(
    script: Callable[..., Path], results: Path
) -> None:
    """They wait meanwhile. Another notebook's job may not."""
    said: list[str] = []
    path = script("import os\nprint('cores', *os.sched_getaffinity(0))\n")
    with Engines(CORES, threads=1):
        launch.run(["python", str(path)], name="x", threads=CORES, echo=said.append)
        assert "-bind-to" in said[0] and not any("Oversubscribed" in line for line in said)
        other = subprocess.run(
            [COMMAND, "run", str(path), "-t", "1"], capture_output=True, text=True, timeout=300
        )
        assert f"other jobs leave 0 of {CORES} free" in other.stdout


def test_a_job_inside_a_job_uses_the_cores_of_that_one(
    script: Callable[..., Path], results: Path
) -> None:
    inner = script("import os\nprint('inner', *os.sched_getaffinity(0))\n", "inner.py")
    text = f"""
        import os
        from scaleout.launch import run as launch
        print("outer", *os.sched_getaffinity(0))
        launch.run(["python", {str(inner)!r}], name="inner", threads=1)
    """
    said: list[str] = []
    launch.run(["python", str(script(text))], name="x", threads=1, echo=said.append)
    outer = next(line for line in said if " outer " in line).split()[2:]
    within = next(line for line in said if " inner " in line).split()[3:]
    assert outer == within and not any("Oversubscribed" in line for line in said)
