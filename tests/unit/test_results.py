"""Who only reads makes no folder: neither in a workshop nor in anybody's project."""

from pathlib import Path

import pytest

from scaleout import paths, records
from scaleout.course import history
from scaleout.doctor import examine


def test_the_place_of_results_is_told_without_making_it(results: Path) -> None:
    assert paths.results_path("00_tiny", "a-run") == results / "00_tiny" / "a-run"
    assert not results.exists()
    assert paths.results("00_tiny") == paths.results_path("00_tiny") and results.is_dir()


def test_the_place_is_the_same_whether_one_reads_or_writes(
    workshop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SCALEOUT_RESULTS")
    monkeypatch.chdir(workshop / "notebooks")
    assert paths.results_path() == workshop / "results" and not (workshop / "results").exists()
    assert paths.results() == workshop / "results"


def test_reading_records_makes_nothing(results: Path) -> None:
    assert len(records.read()) == 0 and not results.exists()


def test_looking_back_makes_nothing(workshop: Path, results: Path) -> None:
    assert "00 ○○" in history.passed() and history.not_passed("00_tiny") == [1, 2]
    assert len(history.runs("00_tiny")) == 0
    assert not results.exists()


def test_results_that_nobody_may_write_can_still_be_read(
    results: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SCALEOUT_RESULTS", "/proc/nothing")
    assert paths.results_path() == Path("/proc/nothing") and len(records.read()) == 0


def test_the_doctor_looks_and_makes_nothing(results: Path) -> None:
    assert examine._results().status == "ok" and not results.exists()


@pytest.mark.parametrize("under", ["file", "file/results", "results"])
def test_the_doctor_sees_that_results_cannot_be_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, under: str
) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "results").symlink_to(tmp_path / "nowhere" / "else")
    monkeypatch.setenv("SCALEOUT_RESULTS", str(tmp_path / under))
    check = examine._results()
    assert check.status == "fail" and under in check.seen and check.fix
