"""What cannot be started is named, with what to do, and nothing of the job is left."""

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from scaleout.errors import ScaleoutError
from scaleout.jobs import local
from scaleout.jobs import run as launch

WORDS = {
    errno.EAGAIN: "no room for more now: end other jobs, or look at  ulimit -a",
    errno.ENOMEM: "no room for more now",
    errno.EMFILE: "no room for more now",
    errno.E2BIG: "its arguments and variables are too long",
    errno.EACCES: "type  make lab  to mend it, or correct the site file",
}


@pytest.mark.parametrize("number", WORDS, ids=errno.errorcode.get)
def test_what_really_failed_is_named(
    results: Path, monkeypatch: pytest.MonkeyPatch, no_process_left, run_id, number: int
) -> None:
    """A fork that fails is no full disk."""
    real = subprocess.Popen

    def failing(command: list[str], **how: object) -> "subprocess.Popen[bytes]":
        if any("supervise.py" in word for word in command[:8]):
            raise OSError(number, os.strerror(number))
        return real(command, **how)

    monkeypatch.setattr(subprocess, "Popen", failing)
    with pytest.raises(ScaleoutError) as caught:
        launch.run([sys.executable, "-c", ""], name="x", echo=None)
    said = str(caught.value)
    assert f"cannot be started ({os.strerror(number)}): " in said and WORDS[number] in said
    assert "\n" not in said and "output" not in said
    no_process_left(run_id())


def test_an_argument_that_is_too_long_is_one_sentence(
    results: Path, no_process_left, run_id
) -> None:
    with pytest.raises(ScaleoutError, match="Argument list too long.*put them into a file"):
        launch.run([sys.executable, "-c", "#" * 3_000_000], name="x", echo=None)
    no_process_left(run_id())


def test_a_full_disk_is_called_one(results: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = local.new_run

    def with_full_disk(name: str) -> tuple[str, Path]:
        run_id, folder = real(name)
        (folder / "output.txt").symlink_to("/dev/full")
        return run_id, folder

    monkeypatch.setattr(local, "new_run", with_full_disk)
    with pytest.raises(ScaleoutError, match="output cannot be written .No space left on device"):
        launch.run([sys.executable, "-c", "print('hello')"], name="x", echo=None)


def test_a_listener_that_fails_is_not_called_a_full_disk(
    results: Path, no_process_left, run_id
) -> None:
    def say(text: str) -> None:
        if "hello" in text and not text.startswith("$"):
            raise OSError(errno.EIO, "Input/output error")

    with pytest.raises(OSError, match="Input/output error"):
        launch.run([sys.executable, "-c", "print('hello')"], name="x", echo=say)
    no_process_left(run_id())
