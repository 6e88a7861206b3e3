"""The course on one line."""

from pathlib import Path

import pytest

from scaleout.course import history


@pytest.fixture
def results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "notebooks").mkdir()
    for topic, todos in {"00_tiny": 2, "01_next": 1}.items():
        (tmp_path / "labs" / topic).mkdir(parents=True)
        text = "".join(f"# TODO {n}: it.\npass\n" for n in range(1, todos + 1))
        (tmp_path / "etc/starts" / topic).mkdir(parents=True)
        (tmp_path / "etc/starts" / topic / "runme.py").write_text(text)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SCALEOUT_RESULTS", raising=False)
    return tmp_path / "results"


def test_progress_is_what_each_check_found_last(results: Path) -> None:
    assert history.passed() == "00 ○○   01 ○"
    history.keep_state("00_tiny", 1, "passed")
    history.keep_state("00_tiny", 2, "passed")
    history.keep_state("00_tiny", 2, "not yet")
    assert history.passed() == "00 ●○   01 ○"
    with open(results / "00_tiny/checks.jsonl", "a") as file:
        file.write('{"todo": 1, "sta')  # cut off
    assert history.passed() == "00 ●○   01 ○"
