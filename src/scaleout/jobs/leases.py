"""Leases of cores: two jobs on one machine compute on different cores while there are enough.

A core is a file in a folder that all users of the machine share, and a lease is a lock on it
(flock): the system gives it back when its holder ends, however that happens. Nothing is ever
written to these files, and no link is followed. Where the folder cannot be used, a job runs as if
it were alone: sharing cores is slow, and not running is worse."""

import contextlib
import errno
import fcntl
import os
import stat
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ..base import settings
from ..machine import Core

GATE_S = 2.0  # how long to wait for others that take or count cores at this moment
_resting: set[int] = set()  # cores of this process's engines, which wait while it runs a job


@dataclass
class Lease:
    """Cores that no other job on this machine gets until `release`."""

    cores: tuple[Core, ...] = ()
    free: int = 0
    _locks: list[int] = field(default_factory=list)
    _borrowed: set[int] = field(default_factory=set)  # engines' cores, given back to them
    _engines: set[int] = field(default_factory=set)  # this lease is itself an engine's

    def release(self) -> None:
        """Give the cores back; a second call does nothing."""
        _resting.difference_update(self._engines)
        _resting.update(self._borrowed)
        for lock in self._locks:
            # A child that this process forked may still hold the file: unlock it for both.
            fcntl.flock(lock, fcntl.LOCK_UN)
            os.close(lock)
        self._locks, self._borrowed, self._engines = [], set(), set()


def folder() -> Path:
    """Return the folder of the locks: $SCALEOUT_LEASES, else one that all users here see."""
    shared = next(path for path in (Path("/dev/shm"), Path("/tmp"), Path("/")) if path.is_dir())
    return settings.leases_folder() or shared / "scaleout-cores"


def take(cores: Sequence[Core], wanted: int, *, for_engines: bool = False) -> Lease:
    """Lease so many of these cores, on one NUMA node where one has enough of them."""
    try:
        with contextlib.ExitStack() as held, _gate() as where:
            locks: dict[int, int] = {}
            for core in cores:
                if (lock := _lock(where, f"core-{core.cpus[0]}")) is not None:
                    locks[core.cpus[0]] = lock
                    held.callback(os.close, lock)
            free = [core for core in cores if core.cpus[0] in locks]
            resting = [core for core in cores if core.cpus[0] in _resting and not for_engines]
            chosen = _together(free, wanted) if len(free) >= wanted else (free + resting)[:wanted]
            if len(chosen) < wanted:
                return Lease((), len(free) + len(resting))
            held.pop_all()  # below, those that are not chosen are closed
            names = {core.cpus[0] for core in chosen}
            for name in locks.keys() - names:
                os.close(locks.pop(name))
            borrowed, engines = names & _resting, names if for_engines else set()
            _resting.difference_update(borrowed)
            _resting.update(engines)
            ordered = tuple(core for core in cores if core in chosen)
            return Lease(ordered, len(free) + len(resting), [*locks.values()], borrowed, engines)
    except OSError:
        return Lease(tuple(cores[:wanted]), len(cores))


def _together(free: Sequence[Core], wanted: int) -> Sequence[Core]:
    """Choose cores on one NUMA node; the first of all where none has enough."""
    for node in dict.fromkeys(core.numa_node for core in free):
        there = [core for core in free if core.numa_node == node]
        if len(there) >= wanted:
            return there[:wanted]
    return free[:wanted]


@contextlib.contextmanager
def _gate() -> Iterator[int]:
    """Open the folder, for one process at a time: two that both find too few would get none."""
    path = folder()
    with contextlib.ExitStack() as held:
        made = False
        with contextlib.suppress(FileExistsError):
            os.mkdir(path, 0o700)
            made = True
        where = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        held.callback(os.close, where)
        if made:
            os.fchmod(where, 0o1777)  # as /tmp: everybody may add files, nobody remove another's
        end = time.monotonic() + GATE_S
        while (lock := _lock(where, "gate")) is None:
            if time.monotonic() > end:
                raise TimeoutError(errno.ETIMEDOUT, "somebody holds the gate")
            time.sleep(0.01)
        held.callback(os.close, lock)
        yield where


def _lock(where: int, name: str) -> int | None:
    """Lock one file of the folder; None when somebody holds it."""
    # A pipe that somebody put there must not make us wait, nor a link lead us elsewhere.
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK
    try:
        with contextlib.suppress(FileExistsError):
            made = os.open(name, flags | os.O_CREAT | os.O_EXCL, 0o600, dir_fd=where)
            os.fchmod(made, 0o666)
            os.close(made)
        # Without O_CREAT: in such folders the system refuses it for files of other users.
        file = os.open(name, flags, dir_fd=where)
        if stat.S_ISREG(os.fstat(file).st_mode):
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return file
    except BlockingIOError:
        os.close(file)
        return None
    os.close(file)
    raise OSError(errno.EINVAL, "no regular file", name)
