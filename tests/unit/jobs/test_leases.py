"""Leases of cores: who gets which, what is said when there are too few, and what a shared folder
may hold without doing harm."""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from scaleout.jobs import leases
from scaleout.jobs.leases import Lease
from scaleout.machine import Core

SIX = [Core(cpu // 3, cpu // 3, (cpu, cpu + 6)) for cpu in range(6)]  # two NUMA nodes of three


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "cores"
    monkeypatch.setenv("SCALEOUT_LEASES", str(path))
    return path


def _names(lease: Lease) -> list[int]:
    return [core.cpus[0] for core in lease.cores]


def test_each_gets_cores_of_its_own_until_there_are_too_few(folder: Path) -> None:
    first, second = leases.take(SIX, 2), leases.take(SIX, 3)
    assert (_names(first), _names(second)) == ([0, 1], [3, 4, 5])  # three on one NUMA node
    third = leases.take(SIX, 2)
    assert third.cores == () and third.free == 1
    first.release()
    again = leases.take(SIX, 3)
    assert _names(again) == [0, 1, 2]
    for lease in (first, second, third, again):
        lease.release()
    assert _names(all_six := leases.take(SIX, 6)) == [*range(6)]
    all_six.release()


def test_a_job_may_use_the_cores_of_engines_that_wait(folder: Path) -> None:
    engines = leases.take(SIX, 4, for_engines=True)
    job = leases.take(SIX, 3)  # the two that are free first, then one of the engines'
    assert _names(engines) == [0, 1, 2, 3] and _names(job) == [0, 4, 5]
    other = leases.take(SIX, 3)  # no two jobs at once get the same
    assert _names(other) == [1, 2, 3] and leases.take(SIX, 1).cores == ()
    assert leases.take(SIX, 1, for_engines=True).cores == ()
    job.release()
    other.release()
    assert _names(again := leases.take(SIX, 6)) == [*range(6)]
    again.release()
    engines.release()
    assert _names(more := leases.take(SIX, 6, for_engines=True)) == [*range(6)]
    more.release()


HOLDER = """
import os, sys, time
from scaleout.jobs import leases
from scaleout.machine import Core
cores = [Core(0, 0, (cpu,)) for cpu in range(int(sys.argv[1]))]
user, forks = int(sys.argv[3]), sys.argv[4:]
if user:
    os.setuid(user)
lease = leases.take(cores, int(sys.argv[2]))
if forks and os.fork() == 0:
    time.sleep(600)
print(*(core.cpus[0] for core in lease.cores), flush=True)
sys.stdin.readline()
lease.release()
print("released", flush=True)
sys.stdin.readline()
"""


@contextlib.contextmanager
def _holder(
    cores: int, wanted: int, *more: str, user: int = 0
) -> Iterator["subprocess.Popen[str]"]:
    """A process that takes a lease, says what it got, and gives it back at a line of input."""
    command = [sys.executable, "-c", HOLDER, *map(str, (cores, wanted, user, *more))]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        try:
            yield process
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


def test_a_lease_ends_with_its_holder(folder: Path) -> None:
    with _holder(6, 6) as other:
        assert other.stdout.readline().split() == list("012345")
        assert leases.take(SIX, 1).cores == () and leases.take(SIX, 1).free == 0
        other.kill()
        other.wait()
        assert _names(mine := leases.take(SIX, 6)) == [*range(6)]
        mine.release()


def test_a_child_that_its_holder_forked_does_not_keep_it(folder: Path) -> None:
    with _holder(6, 6, "fork") as other:
        other.stdout.readline()
        assert leases.take(SIX, 1).cores == ()
        print(file=other.stdin, flush=True)
        assert other.stdout.readline() == "released\n"
        assert _names(mine := leases.take(SIX, 6)) == [*range(6)]
        mine.release()


def test_all_users_of_the_machine_share_the_folder(folder: Path) -> None:
    before = os.umask(0o077)
    try:
        leases.take(SIX, 2).release()
    finally:
        os.umask(before)
    assert folder.stat().st_mode & 0o7777 == 0o1777
    files = sorted(folder.iterdir())
    assert [file.name for file in files] == [*(f"core-{n}" for n in range(6)), "gate"]
    assert {file.stat().st_mode & 0o7777 for file in files} == {0o666}
    assert {file.stat().st_size for file in files} == {0}


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be two users")
@pytest.mark.parametrize("first", [0, 65534])
def test_two_users_get_different_cores(monkeypatch: pytest.MonkeyPatch, first: int) -> None:
    top = Path("/dev/shm") / f"scaleout-test-{os.getpid()}-{first}"  # others may enter this one
    monkeypatch.setenv("SCALEOUT_LEASES", str(top))
    try:
        with _holder(6, 4, user=first) as one:
            assert one.stdout.readline().split() == list("0123")
            with _holder(6, 4, user=65533) as two, _holder(6, 2, user=65534) as three:
                assert two.stdout.readline().split() == []
                assert three.stdout.readline().split() == ["4", "5"]
    finally:
        shutil.rmtree(top)


def test_a_folder_with_a_link_in_it_leases_the_first_cores_to_everybody(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inner, victim = folder / "inner", folder / "victim"
    inner.mkdir(parents=True)
    victim.write_text("mine")
    (inner / "core-0").symlink_to(victim)
    monkeypatch.setenv("SCALEOUT_LEASES", str(inner))
    for _ in range(2):
        assert _names(leases.take(SIX, 4)) == [0, 1, 2, 3]
    assert sorted(path.name for path in folder.iterdir()) == ["inner", "victim"]
    assert victim.read_text() == "mine"


def test_somebody_who_holds_the_gate_is_not_waited_for(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leases, "GATE_S", 0.05)
    with leases._gate():
        assert _names(leases.take(SIX, 2)) == [0, 1]
