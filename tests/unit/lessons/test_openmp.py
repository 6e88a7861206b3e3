"""The two builds: which is here, what takes its place where it is not, and what a difference is."""

import json
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest
from helpers import lesson

from scaleout import paths, records
from scaleout.comparisons import references
from scaleout.errors import ScaleoutError

openmp = lesson("02_threads", "openmp")

ROOT = Path(__file__).resolve().parents[3]
LOCK = ROOT / "requirements-intel.lock"


def record(**more: Any) -> dict[str, Any]:
    on_rank = [
        {
            "threads": {"Python": 1, "Eigen": 4},
            "cpus": {"Python": 0.1, "Eigen": 1.5},
            "switches_per_s": 9.0,
        }
    ]
    about = {"cores": [[0], [1]], "cpus_busy": 1.6, "on_rank": on_rank}
    return (
        dict.fromkeys(records.FIELDS, "")
        | dict.fromkeys(("schema", "ranks", "nodes", "warmup_steps"), 1)
        | dict.fromkeys(("threads_per_rank", "batch_per_rank", "batch_global", "seed", "dirty"))
        | {"step_s": [0.1], "metrics": about, "utc": "2026-01-02", "cores": 2, "versions": {}}
        | more
    )


def compared(variant: str, again: int = 0, round_: int = 0, name: str = "knobs") -> dict[str, Any]:
    return {"name": name, "round": round_, "variant": variant, "again": again, "value": 2.0}


@pytest.fixture
def reference(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """A lab without the OpenMP build, with a comparison of another machine beside it."""
    monkeypatch.setattr(openmp, "python", lambda: None)
    rows = []
    for round_ in range(3):
        for place, (variant, again) in enumerate((("a", 0), ("a", 1), ("b", 0))):
            about = compared(variant, again, round_) | {"place": 3 * round_ + place}
            about |= {"value": 9.0 if variant == "b" else 3.0, "unit": "images/s"}
            rows.append(record(cpu="A CPU", rate=about["value"], compared=about))
    rows.append(record(cpu="Another", rate=1.0, compared=compared("z", name="kmp")))
    text = "".join(json.dumps(row) + "\n" for row in rows)
    (tmp_path / references.REFERENCE).write_text(text)
    return SimpleNamespace(folder=tmp_path, run=lambda **how: pytest.fail("a job was started"))


def test_where_the_build_is_missing_the_reference_stands_in_and_says_so(reference, capsys) -> None:
    found = openmp.on_openmp(reference, {"a": {}, "b": {}}, name="knobs", ranks=1)
    assert found.verdict("b") == "faster" and found.ratio("b").middle == pytest.approx(3)
    assert found.records.variant.tolist() == ["a", "a", "b"] * 3
    assert set(found.records.cpu) == {"A CPU"}
    said = capsys.readouterr().out
    assert "make intel" in said
    assert "reference machine, not yours: A CPU, 2 cores, measured 2026-01-02" in said


def test_without_a_reference_it_says_what_is_missing(reference) -> None:
    (reference.folder / references.REFERENCE).unlink()
    with pytest.raises(ScaleoutError, match="make intel.*has no runs of: a"):
        openmp.on_openmp(reference, {"a": {}}, name="knobs")


def test_a_variant_that_the_reference_has_not_is_named(reference) -> None:
    with pytest.raises(ScaleoutError, match="has no runs of: z"):
        openmp.on_openmp(reference, {"a": {}, "z": {}}, name="knobs")


def test_where_the_build_is_here_it_runs_the_jobs(monkeypatch: pytest.MonkeyPatch, results) -> None:
    monkeypatch.setattr(openmp, "python", lambda: "side/python")
    started = []

    def run(**how: Any) -> SimpleNamespace:
        started.append(how)
        return SimpleNamespace(records=pd.DataFrame([record(rate=1.0)]))

    lab = SimpleNamespace(folder=Path(), run=run)
    openmp.on_openmp(lab, {"a": {"ranks": 1}, "b": {"ranks": 2}}, name="t", rounds=3, quiet=True)
    assert {how["python"] for how in started} == {"side/python"} and len(started) >= 3


def test_a_comparison_that_was_kept_is_read_back(tmp_path: Path, reference) -> None:
    made = openmp.on_openmp(reference, {"a": {}, "b": {}}, name="knobs")
    made._kept["run_id"] = [f"run-{n}" for n in range(9)]
    for n, row in enumerate(made._rows):
        row["run_id"] = f"run-{n}"
    file = reference.folder / references.REFERENCE
    references.keep(made, "knobs", file)
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert len(lines) == 10, "the nine runs took the place of the nine before"
    assert {line["host"] for line in lines[1:]} == {"reference"}
    assert not any(copy["cpu_s"] for line in lines[1:] for copy in line["metrics"]["on_rank"])
    again = openmp.on_openmp(reference, {"a": {}, "b": {}}, name="knobs")
    assert again.ratio("b") == made.ratio("b")


def test_an_environment_that_was_cut_off_does_not_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("labs", "notebooks", ".side/intel/bin"):
        (tmp_path / name).mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    assert openmp.python() is None
    (tmp_path / ".side/intel" / paths.WHOLE).touch()
    assert openmp.python() == ".side/intel/bin/python"


def test_the_lock_has_the_openmp_build_and_the_numpy_that_it_wants() -> None:
    pins = dict(re.findall(r"^([\w-]+)==(\S+) \\$", LOCK.read_text(), re.M))
    assert {
        "intel-tensorflow": "2.14.0",
        "mpi4py": "4.1.2",
        "mpich": "4.3.2",
    }.items() <= pins.items()
    assert pins["numpy"].startswith("1.")


def test_the_shipped_reference_names_its_machine_and_no_path() -> None:
    file = ROOT / "solutions/02_threads" / references.REFERENCE
    kept = records.read(file)
    names = {place["name"] for place in kept.compared}
    assert names == {"knobs", "kmp"}
    assert len(kept) > 10 and kept.cpu.notna().all() and (kept.rate > 0).all()
    assert set(kept.host) == {"reference"}
    assert kept.versions.map(lambda versions: "intel-tensorflow" in versions).all()
    assert not re.search(r"(?<![\w.])/(root|work|home|tmp|Users)/", file.read_text())
    assert len(file.read_bytes()) < 200_000
