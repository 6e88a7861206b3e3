"""A process that a rank leaves behind with a session of its own, no parent and an empty environment
is found all the same, and ended with its job."""

import os
import random
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest
from helpers import COMMAND, left_of, run_script, until

from scaleout.jobs import supervise
from scaleout.jobs.job import JobFailed, JobTimeout

pytestmark = [pytest.mark.mpi, pytest.mark.timeout(300)]

# The last argument of the orphan is how it is found again.
ORPHAN = """
    import os, sys, time
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            null = os.open("/dev/null", os.O_RDWR)
            for stream in (0, 1, 2):
                os.dup2(null, stream)
            os.closerange(3, 256)
            os.execve("/bin/sleep", ["sleep", sys.argv[1]], {})
        os._exit(0)
    os.wait()

    def command(pid):
        try:
            return open(f"/proc/{pid}/cmdline").read().split(chr(0))[:2]
        except OSError:  # it has ended
            return []

    while ["sleep", sys.argv[1]] not in map(command, filter(str.isdigit, os.listdir("/proc"))):
        time.sleep(0.01)
    print("left one", flush=True)
    time.sleep(float(sys.argv[2]))
    sys.exit(int(sys.argv[3]))
"""


# It holds whatever Hydra gave to its rank, above all the output, for whose end Hydra waits.
HOLDER = """
    import os, sys
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.execve("/bin/sleep", ["sleep", sys.argv[1]], {})
        os._exit(0)
    os.wait()
    print("left one", flush=True)
"""
SLEEP = """
    import sys, time
    from mpi4py import MPI
    print("up", flush=True)
    time.sleep(float(sys.argv[1]))
"""


@pytest.fixture
def mark() -> Iterator[str]:
    """Seconds to sleep that nobody else sleeps; whoever does is ended after the test."""
    seconds = f"{random.SystemRandom().randrange(10**5, 10**6)}.25"
    yield seconds
    for process in _orphans(seconds):
        process.kill()


def _orphans(mark: str) -> list[psutil.Process]:
    found = psutil.process_iter(["cmdline"])
    return [process for process in found if process.info["cmdline"] == ["sleep", mark]]


def test_at_the_end_of_a_job(script: Callable[..., Path], results: Path, mark: str) -> None:
    run = run_script(script(ORPHAN), mark, 0, 0)
    assert "left one" in run.output and not _orphans(mark)


def test_one_that_holds_hydras_connections_is_not_waited_for(
    script: Callable[..., Path], results: Path, mark: str
) -> None:
    run = run_script(script(HOLDER), mark, ranks=2, timeout=300)
    assert run.output.count("left one") == 2 and not _orphans(mark)


def test_a_daemon_may_live_as_long_as_its_rank(
    script: Callable[..., Path], results: Path, mark: str
) -> None:
    text = f"""{HOLDER}
    import psutil, time
    daemons = lambda: [p for p in psutil.process_iter(["cmdline"])
                       if p.info["cmdline"] == ["sleep", sys.argv[1]]]
    while not daemons():
        time.sleep(0.01)
    time.sleep(3)
    print("it lives" if daemons() else "it is gone", flush=True)
    """
    run = run_script(script(text), mark, timeout=300)
    assert "it lives" in run.output and not _orphans(mark)


def test_when_a_rank_fails(script: Callable[..., Path], results: Path, mark: str) -> None:
    with pytest.raises(JobFailed) as caught:
        run_script(script(ORPHAN), mark, 0, 3)
    assert caught.value.status == 3 and not _orphans(mark)


def test_when_the_time_is_up(script: Callable[..., Path], results: Path, mark: str) -> None:
    with pytest.raises(JobTimeout) as caught:
        run_script(script(ORPHAN), mark, 600, 0, timeout=10)
    assert "left one" in caught.value.run.output and not _orphans(mark)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_when_the_command_is_ended(
    number: signal.Signals, script: Callable[..., Path], results: Path, mark: str
) -> None:
    words = [COMMAND, "run", str(script(ORPHAN)), "-t", "1", "--", mark, "600", "0"]
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    until(lambda: _orphans(mark), what="the orphan")
    os.kill(process.pid, number)
    process.wait(60)
    until(lambda: not _orphans(mark), what="its end")


WATCHERS = ("supervise.py", "mpirun")  # who starts a job's ranks


def test_when_the_command_and_its_watchers_are_killed(
    script: Callable[..., Path], results: Path, mark: str, run_id: Callable[[], str]
) -> None:
    """All at the same moment, so that none of them can act for another."""
    words = [COMMAND, "run", str(script(SLEEP)), "-n", "2", "-t", "1", "--", mark]
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def up() -> bool:
        return any(file.read_text().count("up") == 2 for file in results.glob("*/*/output.txt"))

    until(up, what="two ranks")
    words_of = {pid: line.split() for pid, line in left_of(run_id()).items()}
    programs = {  # mpirun, or a script of ours: what comes after python -I -S
        pid: Path(words[3 if words[1] == "-I" else 0]).name for pid, words in words_of.items()
    }
    victims = [pid for pid, name in programs.items() if name in WATCHERS]
    assert len(victims) == 2, programs
    for number in (signal.SIGSTOP, signal.SIGKILL):
        for pid in [process.pid, *victims]:
            os.kill(pid, number)
    process.wait()
    until(lambda: not left_of(run_id()), what="the end of the job")


def test_the_supervisor_ends_as_mpirun_does() -> None:
    for line, status in (("exit 7", 7), ("kill -9 $$", -9), ("kill -15 $$", -15), ("true", 0)):
        done = subprocess.run(supervise.command("sh", "-c", line), timeout=300)
        assert done.returncode == status, line
    done = subprocess.run(
        supervise.command("/no/such"), capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 127
    assert done.stderr == "/no/such cannot be started: No such file or directory\n"
