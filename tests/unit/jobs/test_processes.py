"""What cannot be started is named, with what to do, and nothing of the job is left."""

import errno
import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from scaleout import cli
from scaleout.base.errors import ScaleoutError
from scaleout.launch import run as launch

WORDS = {
    errno.EAGAIN: "no room for more now: take fewer ranks, end other jobs, or look at  ulimit -a",
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


def test_at_any_limit_of_open_files_a_sentence_says_what_to_do_and_all_are_closed(
    results: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = subprocess.Popen
    monkeypatch.setattr(subprocess, "Popen", lambda words, **how: real(["false"], **how))

    def opened() -> int:
        return len(os.listdir("/proc/self/fd"))

    def start() -> str:
        with pytest.raises(ScaleoutError) as caught:
            launch.run(["true"], name="x", ranks=3, threads=1, echo=None)
        return str(caught.value)

    assert start().startswith("x failed: exit status 1"), "and all that it imports is there now"
    before, usual = opened(), resource.getrlimit(resource.RLIMIT_NOFILE)
    taken = {*map(int, os.listdir("/proc/self/fd"))}
    third = [free for free in range(len(taken) + 3) if free not in taken][2]
    said = []
    for limit in range(third + 1, third + 100):
        resource.setrlimit(resource.RLIMIT_NOFILE, (limit, usual[1]))
        try:
            said.append(start())
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, usual)
        assert opened() == before, f"with {limit} open files at most: {said[-1]}"
        if said[-1].startswith("x failed"):
            break
        assert "Too many open files" in said[-1] and "ulimit -a" in said[-1]
    assert len(said) > 8 and said[-1].startswith("x failed")


def test_a_command_line_that_finds_no_room_says_what_to_do(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    monkeypatch.setattr(cli, "_run", full)
    assert cli.main(["run", "x.py"]) == 2
    assert "Too many open files: this machine has no room" in capsys.readouterr().err
