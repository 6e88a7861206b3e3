"""The course on one line, and runs compared."""

import json
from pathlib import Path

import pytest

from scaleout import records
from scaleout.course import history

RUN = {
    "id": "x",
    "name": "00_tiny",
    "ranks": 1,
    "threads": 2,
    "env": {},
    "status": 0,
    "wall_s": 1.5,
}


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


def _run(results: Path, name: str, **changes) -> None:
    folder = results / "00_tiny" / name
    folder.mkdir(parents=True)
    flags = changes.pop("flags", "")
    about = {
        **RUN,
        "command": f"mpirun -n 1 python -m mpi4py labs/00_tiny/runme.py {flags}",
        **changes,
    }
    (folder / "run.json").write_text(json.dumps(about))


def test_progress_is_what_each_check_found_last(results: Path) -> None:
    assert history.passed() == "00 ○○   01 ○"
    history.keep_state("00_tiny", 1, "passed")
    history.keep_state("00_tiny", 2, "passed")
    history.keep_state("00_tiny", 2, "not yet")
    assert history.passed() == "00 ●○   01 ○"
    with open(results / "00_tiny/checks.jsonl", "a") as file:
        file.write('{"todo": 1, "sta')  # cut off
    assert history.passed() == "00 ●○   01 ○"


def test_runs_say_what_changed_since_the_one_before(
    results: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _run(results, "1")
    _run(results, "2", ranks=2, threads=1)
    _run(results, "3", ranks=2, threads=1, flags="--colours 8 --sizes 1 7 --plain", env={"A": "1"})
    _run(results, "4", ranks=2, threads=1, flags="--colours 16 --sizes 1 7", status=1)
    _run(results, "5", ranks=2, threads=1, flags="--colours=16 --sizes 1 7")
    monkeypatch.setenv("SCALEOUT_RECORDS", str(results / "00_tiny/5/records.jsonl"))
    records.write(lab="00_tiny", rate=12.0, rate_unit="images/s", step_s=[1, 2, 3])
    table = history.runs("00_tiny", last=4)
    assert list(table.index) == ["2", "3", "4", "5"]
    assert list(table.changed) == [
        "ranks 1 -> 2, threads 2 -> 1",
        "--colours unset -> 8, --plain unset -> on, --sizes unset -> 1 7, A unset -> 1",
        "--colours 8 -> 16, --plain on -> unset, A 1 -> unset",
        "nothing",
    ]
    assert (
        list(table.status) == [0, 0, 1, 0]
        and table.rate.iloc[-1] == 12
        and table.step_median_s.iloc[-1] == 2
    )


def test_an_edit_of_the_script_is_a_change(results: Path) -> None:
    _run(results, "1", script="abc")
    _run(results, "2", script="def")
    assert list(history.runs("00_tiny").changed) == ["", "the script was edited"]
