"""The two builds: which is here, what takes its place where it is not, and what a difference is."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from helpers import lesson

from scaleout import records
from scaleout.base import paths
from scaleout.base.errors import ScaleoutError
from scaleout.course import references

openmp = lesson("02_threads", "openmp")


def record(**more: Any) -> dict[str, Any]:
    shares = [
        {
            "threads": {"Python": 1, "Eigen": 4},
            "cpus": {"Python": 0.1, "Eigen": 1.5},
            "switches_per_s": 9.0,
        }
    ]
    about = {"cores": [[0], [1]], "cpus_busy": 1.6, "shares": shares}
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


def test_an_environment_that_was_cut_off_does_not_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("labs", "notebooks", ".side/intel/bin"):
        (tmp_path / name).mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    assert openmp.python() is None
    (tmp_path / ".side/intel" / paths.WHOLE).touch()
    assert openmp.python() == ".side/intel/bin/python"


def test_the_proof_follows_from_what_ldd_names() -> None:
    plain = ["libm.so.6 => /lib/libm.so.6 (0x1)", "libc.so.6 => /lib/libc.so.6 (0x2)"]
    assert "2 libraries, of which none is an OpenMP runtime" in openmp.proof(plain)
    with_openmp = [*plain, "libiomp5.so => /opt/libiomp5.so (0x3)"]
    assert "libiomp5.so is OpenMP: it can read OMP_NUM_THREADS" in openmp.proof(with_openmp)
