"""How a side environment is made, a folder under .side/: one maker at a time, what is whole is left
alone, what was cut off is made anew, and it counts as whole when a job of two ranks has run on
it."""

import fcntl
import hashlib
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from setup_env import ROOT, Stop, check_disk, check_machine, explain, free_gib, say

from scaleout.base import paths

SIDE = ROOT / ".side"
LIMIT_S = 3600.0  # for one pip
PROOF_LIMIT_S = 120.0


def one_at_a_time(maker: str, bring: Callable[[], int]) -> int:
    """Runs bring(), which returns an exit status, unless the same maker is at work; a Stop becomes
    its sentence."""
    _log(maker).parent.mkdir(exist_ok=True)
    with _log(maker).with_suffix(".lock").open("w") as only_one:
        try:
            fcntl.flock(only_one, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return bring()
        except BlockingIOError:
            say(f"{maker} is at work already: wait for it.")
        except Stop as stop:
            say(str(stop))
        except KeyboardInterrupt:
            say(f"\nInterrupted. Type  {maker}  again: what is whole stays, the rest begins anew.")
            return 130
    return 1


def python311(maker: str, title: str, otherwise: str) -> str:
    """A Python 3.11 to make the environment with: this one, or one on PATH; Stop when there is
    none."""
    if sys.version_info[:2] == (3, 11):
        return getattr(sys, "_base_executable", sys.executable)
    for name in ("python3.11", "python311"):
        found = shutil.which(name)
        probe = "import ensurepip, sys, venv; sys.exit(sys.version_info[:2] != (3, 11))"
        if (
            found
            and subprocess.call(
                [found, "-c", probe], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
            )
            == 0
        ):
            return found
    raise Stop(
        f"{title} needs Python 3.11 and this is {platform.python_version()}: install python3.11 (with its "
        f"venv module) beside it, then type  {maker}  again. {otherwise}"
    )


def make_whole(
    title: str, folder: Path, inputs: str, needed_gib: float, fill: Callable[[], str]
) -> None:
    """Empties and fills the folder unless it is whole and made of these inputs; fill() returns what
    a job said."""
    stamp = folder / paths.WHOLE
    version = hashlib.sha256(f"{folder}\0{sys.prefix}\0{inputs}".encode()).hexdigest()
    if stamp.exists() and stamp.read_text() == version:
        say(f"{title} is there.")
        return
    check_machine(platform.system(), platform.machine(), platform.libc_ver())
    check_disk(ROOT, needed_gib, free_gib(ROOT))
    shutil.rmtree(str(folder), ignore_errors=True)
    folder.mkdir(parents=True)
    say(f"{title} runs: {fill()}.")
    stamp.write_text(version)


def pip(
    maker: str, folder: Path, command: list[str], environ: dict[str, str] | None = None
) -> None:
    """Runs a command that installs into the folder, its output in a log; Stop says why it did not
    work."""
    quiet = {"PIP_USER": "0", "PIP_NO_INPUT": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    quiet |= {"PIP_REQUIRE_VIRTUALENV": "0", "PIP_ROOT_USER_ACTION": "ignore"}
    with _log(maker).open("w") as log:
        try:
            done = subprocess.run(
                command,
                stdout=log,
                stderr=log,
                env={**os.environ, **quiet, **(environ or {})},
                timeout=LIMIT_S,
            )
        except subprocess.TimeoutExpired:
            raise Stop(
                f"pip did not end within {LIMIT_S / 60:.0f} minutes: try  {maker}  again."
            ) from None
    if done.returncode:
        raise Stop(
            f"{explain(_log(maker).read_text(errors='replace'), folder)}, then type  {maker}  again."
        )


def wheels(maker: str, folder: Path, lines: str) -> None:
    """Puts the wheels of these lines of a lock into the folder, each checked by its hash."""
    wanted = folder / "wanted.txt"
    wanted.write_text(lines)
    command = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "--no-deps",
        "--require-hashes",
        "--ignore-installed",
    ]
    pip(
        maker,
        folder,
        [*command, "--only-binary", ":all:", "--prefix", str(folder), "-r", str(wanted)],
    )


def two_ranks(title: str, mpirun: Path, python: list[str], environ: dict[str, str]) -> str:
    """Runs Python with these words on two ranks; its output. Stop unless each rank wrote a line
    with `ranks 2`."""
    try:
        done = subprocess.run(
            [str(mpirun), "-n", "2", *python],
            capture_output=True,
            text=True,
            env={
                **os.environ,
                "PYTHONUNBUFFERED": "",
                **environ,
            },  # a line is one write, or those of two ranks mix
            timeout=PROOF_LIMIT_S,
        )
    except subprocess.TimeoutExpired:
        raise Stop(
            f"{title} is in place, but a job of two ranks did not end within {PROOF_LIMIT_S:.0f} s."
        ) from None
    if done.returncode or done.stdout.count("ranks 2") != 2:
        last = (done.stderr or done.stdout).strip().splitlines() or ["it said nothing"]
        raise Stop(
            f"{title} is in place, but a job of two ranks fails on this machine ({last[-1].strip()})."
        )
    return done.stdout


def said(output: str) -> str:
    """What the first rank wrote after `ranks 2`."""
    return next(
        line.partition("ranks 2 ")[2] for line in output.splitlines() if "ranks 2" in line
    ).strip("\0 ")


def _log(maker: str) -> Path:
    return ROOT / ".setup" / f"{maker.split()[-1]}.log"
