"""What cannot be started is named, with what to do, and nothing of the job is left."""

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from scaleout.clusters import run as launch
from scaleout.errors import ScaleoutError

WORDS = {
    errno.EAGAIN: "no room for more now: end other jobs, or look at  ulimit -a",
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
