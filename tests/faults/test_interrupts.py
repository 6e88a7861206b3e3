"""Ctrl-C in any command is answered with one sentence and 130, whatever it was doing."""

import importlib

import pytest

from scaleout import cli
from scaleout.jobs.job import JobInterrupted

# A command, and what it calls.
COMMANDS = {
    "scaling x.csv": "scaleout.scaling.read_measured",
    "check 00": "scaleout.course.checks.check",
    "run 00": "scaleout.launch.run.start",
    "sweep -n 1 -- python": "scaleout.measuring.command.words",
}


def _calls(monkeypatch: pytest.MonkeyPatch, what: str, error: BaseException) -> None:
    def interrupted(*words: object, **more: object) -> None:
        raise error

    module, _, name = what.rpartition(".")
    monkeypatch.setattr(importlib.import_module(module), name, interrupted)


@pytest.mark.parametrize("command", COMMANDS)
def test_ctrl_c_is_answered_in_a_sentence(
    command: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    results: object,
) -> None:
    _calls(monkeypatch, COMMANDS[command], KeyboardInterrupt())
    assert cli.main(command.split()) == 130
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("scaleout: Interrupted: ") and command.split()[0] in line


def test_a_job_that_was_interrupted_says_so_itself(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    _calls(monkeypatch, "scaleout.launch.run.start", JobInterrupted("Interrupted after 1.0 s."))
    assert cli.main(["run", "00"]) == 130
    assert capsys.readouterr().err == "scaleout: Interrupted after 1.0 s.\n"
