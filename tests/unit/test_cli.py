"""The command: every bad input is answered with one sentence and status 1 or 2, never with a
traceback."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from scaleout.jobs.binding import place
from scaleout.jobs.job import Job

Command = Callable[..., "subprocess.CompletedProcess[str]"]


def _one_sentence(done: "subprocess.CompletedProcess[str]") -> str:
    assert done.returncode in (1, 2), done
    (line,) = done.stderr.splitlines()
    assert line.startswith("scaleout"), line
    assert "Traceback" not in done.stdout + done.stderr
    return line


def test_bad_input_is_answered_with_one_sentence(workshop: Path, scaleout: Command) -> None:
    """From a terminal; tests/faults/test_bad_input.py has a row for each sentence."""
    (workshop / "gone.toml").write_text("mpirun = '/no/mpirun'\n")
    said = _one_sentence(scaleout("run", "00_tiny", "--site", "gone.toml"))
    assert "/no/mpirun cannot be started (No such file" in said


def test_outside_a_workshop_a_master_is_missed_in_one_sentence(
    workshop: Path, scaleout: Command
) -> None:
    (workshop / "solutions").rename(workshop / "elsewhere")
    assert "solutions/ is missing" in _one_sentence(scaleout("exercises"))
    assert "solutions/00_tiny/runme.py is missing" in _one_sentence(
        scaleout("run", "00_tiny", "--solution")
    )


@pytest.mark.mpi
def test_a_reader_that_leaves_early_is_no_error(
    script: Callable[..., Path], results: Path, no_process_left, run_id
) -> None:
    path = script("for i in range(100_000): print(i, flush=True)")
    line = f"{Path(sys.executable).with_name('scaleout')} run {path} | head -2"
    done = subprocess.run(["sh", "-c", line], capture_output=True, text=True, timeout=60)
    assert done.stdout.splitlines()[1] == "[0] 0"
    assert done.stderr == ""
    no_process_left(run_id(), within_s=5)


@pytest.mark.mpi
def test_a_terminal_that_cannot_show_a_letter_shows_its_number(
    script: Callable[..., Path], results: Path, scaleout: Command
) -> None:
    path = script("import sys; sys.stdout.buffer.write('\\N{GREEK SMALL LETTER PI}'.encode())")
    done = scaleout("run", path, env={**os.environ, "PYTHONIOENCODING": "ascii"})
    assert done.returncode == 0 and done.stdout.splitlines()[-1] == r"[0] \u03c0", done


@pytest.mark.mpi
def test_run_prints_the_plain_command_and_ends_with_the_jobs_status(
    script: Callable[..., Path], results: Path, scaleout: Command
) -> None:
    path = script(
        "import sys; from mpi4py import MPI; print(sys.argv[1:]); sys.exit(int(sys.argv[1]))"
    )
    for status in (0, 3):
        done = scaleout("run", path, "-n", 1, "-t", 1, "--env", "A=b=c", "--", status, "--env", "x")
        said = done.stdout.splitlines()
        assert done.returncode == status
        with place(Job.asked(["true"], name="x", threads=1)) as placement:
            bind = " ".join(placement.options)
        assert said[0] == f"$ mpirun -n 1 {bind} python -m mpi4py {path} {status} --env x"
        assert said[1] == f"[0] ['{status}', '--env', 'x']"


@pytest.mark.mpi
def test_check_hint_and_reset_work_from_a_terminal(workshop: Path, scaleout: Command) -> None:
    done = scaleout("check", "tiny")
    # Beside the verdicts, a job that takes long says so.
    said = [line for line in done.stdout.splitlines() if line.startswith("TODO")]
    assert done.returncode == 1 and [line.split()[1:3] for line in said] == [
        ["1", "not"],
        ["2", "not"],
    ]
    assert scaleout("check", "tiny", "--solution").returncode == 0
    assert scaleout("hint", "tiny", "2").stdout == "Hint 1 of 2: One call.\n"
    assert scaleout("hint", "tiny", "2").stdout == "Hint 2 of 2: total = comm.allreduce(rank + 1)\n"
    done = scaleout("check", "tiny", "1", "2", "--solution")
    assert done.returncode == 0 and done.stdout.count("passed") == 2, done


@pytest.mark.mpi
def test_exercises_names_what_differs_and_what_is_missing(
    workshop: Path, scaleout: Command
) -> None:
    scaleout("exercises")
    (workshop / "solutions/00_tiny.ipynb").write_text('{"cells": []}')
    assert scaleout("exercises").stdout == "written: notebooks/00_tiny.ipynb\n"
    (workshop / "labs/00_tiny/runme.py").write_text("mine\n")
    assert (
        scaleout("exercises", "--check").stdout
        == "differs from its master: labs/00_tiny/runme.py\n"
    )
    assert scaleout("exercises", "--check").returncode == 1
    assert "The old one is labs/00_tiny/runme.kept-1.py" in scaleout("reset", "tiny").stdout
    assert scaleout("exercises", "--check").returncode == 0


def test_the_command_starts_at_once(scaleout: Command) -> None:
    code = "import scaleout.cli, sys; print(' '.join(sys.modules))"
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()
    slow = {
        "numpy",
        "pandas",
        "matplotlib",
        "sklearn",
        "scipy",
        "IPython",
        "ipyparallel",
        "nbformat",
        "hashlib",
        "urllib.request",
    }
    assert not slow.intersection(loaded)
