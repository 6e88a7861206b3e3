"""The two builds: which is here, what takes its place where it is not, and what a difference is."""

import json
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import matplotlib
import pandas as pd
import pytest

from scaleout import paths, plots, records
from scaleout.errors import ScaleoutError
from scaleout.measure import openmp

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


def frame(rates: dict[str, list[float]]) -> pd.DataFrame:
    return pd.DataFrame(
        [{"arm": arm, "rate": rate} for arm, several in rates.items() for rate in several]
    )


@pytest.fixture
def reference(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """A lab without the OpenMP build, with the records of another machine beside it."""
    monkeypatch.setattr(openmp, "python", lambda: None)
    lines = [
        record(arm=arm, rate=rate, cpu="A CPU")
        for arm, rate in (("b", 5.0), ("a", 1.0), ("b", 7.0), ("c", 9.0))
    ]
    (tmp_path / openmp.REFERENCE).write_text("".join(json.dumps(line) + "\n" for line in lines))
    return SimpleNamespace(folder=tmp_path, run=lambda **how: pytest.fail("a job was started"))


def test_a_difference_is_one_where_the_runs_do_not_overlap() -> None:
    rates = {
        "first": [10, 12, 11],
        "more": [13, 14, 15],
        "less": [7, 8, 9],
        "within": [11.5, 30, 40],
        "below": [2, 10.5],
    }
    rates["once"] = [99]
    found = openmp.table(frame(rates))
    words = [
        "",
        "faster",
        "slower",
        "no difference here",
        "no difference here",
        "one run tells nothing",
    ]
    assert found.verdict.tolist() == words and list(found.index) == list(rates)
    assert found.loc["more"].tolist()[:5] == [3, 14, 13, 15, 14 / 11]


def test_where_the_build_is_missing_the_reference_stands_in_and_says_so(reference, capsys) -> None:
    found = openmp.turns(reference, {"a": {}, "b": {}}, openmp=True)
    assert found.arm.tolist() == ["a", "b", "b"] and found.rate.tolist() == [1, 5, 7]
    assert found.attrs["where"] == "reference machine, not yours: A CPU, 2 cores"
    said = capsys.readouterr().out
    assert (
        "make intel" in said
        and "reference machine, not yours: A CPU, 2 cores, measured 2026-01-02" in said
    )


def test_without_a_reference_it_says_what_is_missing(reference) -> None:
    (reference.folder / openmp.REFERENCE).unlink()
    with pytest.raises(ScaleoutError, match="make intel.*are missing too"):
        openmp.turns(reference, {"a": {}}, openmp=True)


def test_an_arm_that_the_reference_has_not_is_named(reference) -> None:
    with pytest.raises(ScaleoutError, match="has no runs of: z"):
        openmp.turns(reference, {"a": {}, "z": {}}, openmp=True)


def test_the_sides_take_turns() -> None:
    started = []

    def run(**how: Any) -> SimpleNamespace:
        started.append(how)
        return SimpleNamespace(records=pd.DataFrame([record(rate=1.0)]))

    found = openmp.turns(
        SimpleNamespace(run=run), {"a": {"ranks": 1}, "b": {"ranks": 2}}, repeat=2, quiet=True
    )
    assert [how["ranks"] for how in started] == [1, 2, 1, 2] and found.arm.tolist() == [
        "a",
        "b",
        "a",
        "b",
    ]
    assert all(how["python"] == "python" and how["echo"] is False for how in started)


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
    file = ROOT / "solutions/02_threads" / openmp.REFERENCE
    kept = records.read(file)
    assert (
        len(kept) > 10
        and kept.cpu.notna().all()
        and kept.arm.notna().all()
        and (kept.rate > 0).all()
    )
    assert kept.versions.map(lambda versions: "intel-tensorflow" in versions).all()
    assert not re.search(r"(?<![\w.])/(root|work|home|tmp|Users)/", file.read_text())
    assert len(file.read_bytes()) < 200_000


def test_figures_have_axes_with_units() -> None:
    runs = pd.DataFrame(
        [record(arm=a, rate=r, threads_per_rank=n) for a, r, n in (("a", 1.0, 1), ("b", 2.0, 4))]
    )
    runs["metrics.on_rank"] = [row["on_rank"] for row in runs.metrics]
    runs["metrics.cores"], runs["metrics.cpus_busy"] = [row["cores"] for row in runs.metrics], 1.5
    grid = pd.DataFrame(
        [(n, t, 10.0 * n + t) for n in (1, 2) for t in (1, 4)], columns=["ranks", "threads", "rate"]
    )
    drawn = {
        "threads (count)": plots.thread_census({"one": runs[:1], "other": runs[1:]}),
        "threads a rank (count); hollow: more threads in all than cores": plots.rate_over_threads(
            grid, 2, guess=3
        ),
        "threads for each core": plots.cliff({"ours": runs}),
        "CPUs kept busy (count)": plots.which_knob({"ours": runs, "theirs": runs}),
        "images/s trained": plots.settings_dots(runs),
    }
    for label, figure in drawn.items():
        assert isinstance(figure, matplotlib.figure.Figure) and figure.axes[0].get_xlabel() == label
