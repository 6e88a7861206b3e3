"""Bring TensorFlow's OpenMP build, intel-tensorflow, to an environment of its own: .side/intel.

    make intel

02_threads compares it with the workshop's own TensorFlow; nothing else needs it. Versions and hashes stand in
requirements-intel.lock, about 370 MB to download. It is whole when a job of two ranks has multiplied by OpenMP in it;
what is whole is left alone, what was cut off is made anew. There are wheels of it for Python 3.11 at most.
"""

import fcntl
import hashlib
import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path

from setup_env import ROOT, Stop, check_disk, check_machine, explain, free_gib, say

from scaleout import openmp

LOCK = ROOT / "requirements-intel.lock"
LOG = ROOT / ".setup" / "intel.log"
FOLDER = ROOT / ".side" / "intel"
NEEDED_GIB = 2.2  # measured: 1.5 in place, 0.4 to download, and pip unpacks one wheel at a time
LIMIT_S = 3600.0
PROOF_LIMIT_S = 120.0
PROOF = """
from mpi4py import MPI
import tensorflow as tf
from scaleout import data, records
tf.nn.conv2d(tf.ones((1, 8, 8, 16)), tf.ones((3, 3, 16, 16)), 1, "SAME")
print("ranks", MPI.COMM_WORLD.allreduce(1), "TensorFlow", tf.__version__, flush=True)
"""


def python311() -> str:
    """A Python 3.11 to make the environment with: this one, or one on PATH; Stop when there is none."""
    if sys.version_info[:2] == (3, 11):
        return getattr(sys, "_base_executable", sys.executable)
    for name in ("python3.11", "python311"):
        found = shutil.which(name)
        probe = "import ensurepip, sys, venv; sys.exit(sys.version_info[:2] != (3, 11))"
        if found and subprocess.call([found, "-c", probe], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) == 0:
            return found
    raise Stop(
        f"The OpenMP build needs Python 3.11 and this is {platform.python_version()}: install python3.11 (with its "
        "venv module) beside it, then type  make intel  again. 02_threads runs without it too."
    )


def install(python: str) -> None:
    """Make the environment and put all of the lock into it; Stop says why it did not work."""
    own = FOLDER / "bin" / "python"
    pip = [str(own), "-m", "pip", "install", "--no-deps", "--require-hashes", "--only-binary", ":all:"]
    environ = dict(os.environ, PIP_USER="0", PIP_NO_INPUT="1", PIP_DISABLE_PIP_VERSION_CHECK="1")
    environ.update(PIP_REQUIRE_VIRTUALENV="0", PIP_ROOT_USER_ACTION="ignore")
    with LOG.open("w") as log:
        for command in ([python, "-m", "venv", str(FOLDER)], [*pip, "-r", str(LOCK)]):
            try:
                done = subprocess.run(command, stdout=log, stderr=log, env=environ, timeout=LIMIT_S)
            except subprocess.TimeoutExpired:
                raise Stop(f"pip did not end within {LIMIT_S / 60:.0f} minutes: try  make intel  again.") from None
            if done.returncode:
                raise Stop(f"{explain(LOG.read_text(), FOLDER)}, then type  make intel  again.")
    packages = next(FOLDER.glob("lib/python3*/site-packages"))
    packages.joinpath("scaleout.pth").write_text(f"{ROOT / 'src'}\n")  # for a lab's data and records


def prove() -> str:
    """Run a job of two ranks whose convolution OpenMP has to do; Stop when it does not work here."""
    mpirun = Path(sys.prefix) / "bin" / "mpirun"
    command = [str(mpirun), "-n", "2", str(FOLDER / "bin" / "python"), "-c", PROOF]
    environ = dict(os.environ, ONEDNN_VERBOSE="1", TF_CPP_MIN_LOG_LEVEL="3")
    try:
        done = subprocess.run(command, capture_output=True, text=True, env=environ, timeout=PROOF_LIMIT_S)
    except subprocess.TimeoutExpired:
        raise Stop(f"It is in place, but a job of two ranks did not end within {PROOF_LIMIT_S:.0f} s.") from None
    found = [line.removeprefix("ranks 2 ") for line in done.stdout.splitlines() if line.startswith("ranks 2 ")]
    if done.returncode or len(found) != 2:
        last = (done.stderr or done.stdout).strip().splitlines() or ["it said nothing"]
        raise Stop(f"It is in place, but a job of two ranks fails on this machine ({last[-1].strip()}).")
    if "runtime:OpenMP" not in done.stdout:
        raise Stop("It is in place, but oneDNN does not report OpenMP in it: is another TensorFlow on PYTHONPATH?")
    return found[0]


def bring() -> None:
    """Left alone when whole and of this version, else made from nothing."""
    stamp = FOLDER / openmp.WHOLE
    version = hashlib.sha256(f"{FOLDER}\0{sys.prefix}\0{LOCK.read_text()}".encode()).hexdigest()
    if stamp.exists() and stamp.read_text() == version:
        say("The OpenMP build is there.")
        return
    check_machine(platform.system(), platform.machine(), platform.libc_ver())
    python = python311()
    check_disk(ROOT, NEEDED_GIB, free_gib(ROOT))
    shutil.rmtree(str(FOLDER), ignore_errors=True)
    FOLDER.parent.mkdir(exist_ok=True)
    say("intel-tensorflow, the OpenMP build: about 370 MB to download ...")
    install(python)
    say(f"It runs, on OpenMP: {prove()}.")
    stamp.write_text(version)


def main() -> int:
    LOG.parent.mkdir(exist_ok=True)
    with open(LOG.with_suffix(".lock"), "w") as only_one:
        try:
            fcntl.flock(only_one, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("make intel is at work already: wait for it.")
            return 1
        try:
            bring()
        except Stop as stop:
            say(str(stop))
            return 1
        except KeyboardInterrupt:
            say("\nInterrupted. Type  make intel  again: it begins anew.")
            return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
