"""Who belongs to a job: seen also in the moments in which a process shows little of itself."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from scaleout.jobs import reaper

ID = f"of-test-process-{os.getpid()}"  # another lane has other children
CARRIES = f"PATH=/bin\0SCALEOUT_RUN_ID={ID}\0".encode()


@pytest.fixture
def child() -> Iterator[int]:
    """A process, just born, that carries the id."""
    process = subprocess.Popen(["sleep", "60"], env={**os.environ, "SCALEOUT_RUN_ID": ID})
    yield process.pid
    process.kill()
    process.wait()


def test_a_process_carries_the_whole_id_and_no_other(child: int) -> None:
    assert reaper.processes(ID) == [child]
    assert reaper.processes(ID[:-1]) == reaper.processes(ID + "x") == reaper.processes("") == []


def test_the_process_that_looks_is_left_out() -> None:
    code = f"from scaleout.jobs import reaper; print(reaper.processes({ID!r}))"
    environment = {**os.environ, "SCALEOUT_RUN_ID": ID}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=60
    )
    assert done.stdout == "[]\n"


def test_a_young_process_without_an_environment_is_looked_at_again(
    child: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So it looks in the middle of its exec."""
    shown = [b"", b"", CARRIES]
    monkeypatch.setattr(reaper, "_variables", lambda pid: shown.pop(0))
    assert reaper._carries(child, ID) and shown == []


def test_an_old_process_without_an_environment_is_not_waited_for(
    child: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = [b"", CARRIES]
    monkeypatch.setattr(reaper, "_variables", lambda pid: shown.pop(0))
    now = time.clock_gettime(time.CLOCK_BOOTTIME)
    monkeypatch.setattr(time, "clock_gettime", lambda clock: now + 2)
    assert not reaper._carries(child, ID)


def test_a_process_that_has_ended_is_not_waited_for(
    child: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.kill(child, 9)
    os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)  # ended, and not collected
    monkeypatch.setattr(reaper, "_variables", lambda pid: b"")
    start = time.monotonic()
    assert not reaper._carries(child, ID) and time.monotonic() - start < 0.5


def test_a_process_that_is_born_while_one_looks_is_found(
    child: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    listings = [["1", "self", "cpuinfo"], ["1", str(child)], ["1", str(child)]]
    monkeypatch.setattr(os, "listdir", lambda path: listings.pop(0))
    assert reaper.processes(ID) == [child]


def test_a_process_that_has_got_mpiruns_number_meanwhile_is_left_alone(child: int) -> None:
    start = time.monotonic()
    reaper.end("nobody-has-this-id", mpirun=child)
    assert time.monotonic() - start < 1
    assert reaper.processes(ID) == [child]


def test_maps_that_aborted_jobs_left_are_removed(tmp_path: Path) -> None:
    old, new, other = (
        tmp_path / name for name in ("hydra_hwloc_xmlfile_a1", "hydra_hwloc_xmlfile_b2", "mine.xml")
    )
    for path in (old, new, other):
        path.touch()
    for path in (old, other):
        os.utime(path, (0, 0))
    with subprocess.Popen(["sleep", "60"]) as alive:
        try:
            while Path(f"/proc/{alive.pid}/comm").read_text() != "sleep\n":
                time.sleep(0.01)  # a process gets its name late in its exec
            reaper.tidy(str(tmp_path), b"sleep")
            assert old.exists(), "it may be in use while a proxy is alive"
        finally:
            alive.kill()
    reaper.tidy(str(tmp_path), b"no such proxy")
    assert not old.exists() and new.exists() and other.exists()
