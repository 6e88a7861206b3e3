"""Engines that do not start: one sentence, and all that was taken is given back. None starts here."""

import atexit
import os
from collections.abc import Callable
from pathlib import Path

import ipyparallel as ipp
import pytest

from scaleout import engines
from scaleout.base.errors import ScaleoutError
from scaleout.engines import Engines


@pytest.fixture
def taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], list[str]]:
    """What engines have taken and not given back: folders, locks."""
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(engines.tempfile, "tempdir", str(tmp_path / "temporary"))
    monkeypatch.setenv("SCALEOUT_LEASES", str(tmp_path / "leases"))

    def left() -> list[str]:
        found = [str(path) for path in (tmp_path / "temporary").iterdir()]
        files = (os.path.realpath(f"/proc/self/fd/{name}") for name in os.listdir("/proc/self/fd"))
        return found + [path for path in files if path.startswith(str(tmp_path / "leases"))]

    return left


@pytest.mark.parametrize("error", [RuntimeError, OSError, KeyboardInterrupt, ValueError])
def test_what_was_taken_is_given_back_when_they_cannot_be_made(
    taken: Callable[[], list[str]], monkeypatch: pytest.MonkeyPatch, error: type[BaseException]
) -> None:
    seen: list[str] = []

    def make(**how: object) -> None:
        seen.extend(taken())
        raise error("on purpose")

    monkeypatch.setattr(ipp, "Cluster", make)
    made = Engines(1, threads=1)
    with pytest.raises(ScaleoutError if error in (RuntimeError, OSError) else error):
        made.start()
    assert len(seen) == 2
    assert taken() == [] and made.client is None
    atexit.unregister(made.stop)
