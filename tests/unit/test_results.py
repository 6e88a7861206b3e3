"""Who only reads makes no folder: neither in a workshop nor in anybody's project."""

from pathlib import Path

import pytest

from scaleout import paths, records
from scaleout.course import history
from scaleout.doctor import examine


def test_looking_back_makes_nothing(workshop: Path, results: Path) -> None:
    before = sorted(results.rglob("*"))
    assert "00 ○○" in history.passed() and history.not_passed("00_tiny") == [1, 2]
    assert sorted(results.rglob("*")) == before


def test_results_that_nobody_may_write_can_still_be_read(
    results: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SCALEOUT_RESULTS", "/proc/nothing")
    assert paths.results_path() == Path("/proc/nothing") and len(records.read()) == 0


def test_the_doctor_looks_and_makes_nothing(results: Path) -> None:
    assert examine._results().status == "ok" and not results.exists()
