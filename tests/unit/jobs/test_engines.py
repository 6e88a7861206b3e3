"""Engines that do not start: one sentence, and all that was taken is given back. None starts here."""

import atexit
import os
from collections.abc import Callable
from pathlib import Path

import ipyparallel as ipp
import pytest

from scaleout.errors import ScaleoutError
from scaleout.jobs import engines, supervise
from scaleout.jobs.engines import Engines


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


def test_the_environment_of_this_process_stays_as_it_is(
    taken: Callable[[], list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Other threads read it, and what they set meanwhile stays."""
    monkeypatch.setenv("PMI_RANK", "7")
    monkeypatch.delenv("SET_MEANWHILE", raising=False)
    during: list[dict[str, str]] = []
    commands: list[list[str]] = []

    class Cluster:
        def __init__(self, config: "object", **how: object) -> None:
            commands.append(config.MPIEngineSetLauncher.mpi_cmd)  # type: ignore[attr-defined]

        def start_and_connect_sync(self, activate: bool) -> None:
            during.append(dict(os.environ))
            os.environ["SET_MEANWHILE"] = "1"
            del os.environ["PMI_RANK"]
            raise RuntimeError

    monkeypatch.setattr(ipp, "Cluster", Cluster)
    before = dict(os.environ)
    with pytest.raises(ScaleoutError, match="1 engines did not start"):
        Engines(1).start()
    assert during == [before]
    assert {**before, "SET_MEANWHILE": "1"} == {**os.environ, "PMI_RANK": "7"}
    assert "PMI_RANK" not in os.environ
    (command,) = commands  # the ranks are started without what another job left
    assert supervise.__file__ in command and command[command.index("PMI_RANK") - 1] == "-u"
    monkeypatch.delenv("SET_MEANWHILE")
