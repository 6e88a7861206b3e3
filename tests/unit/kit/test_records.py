"""The record: what is written, how it is read, and what a damaged file does."""

import json
import os
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from scaleout import __version__, records

SOME = {
    "lab": "00_welcome",
    "ranks": 2,
    "step_s": [0.1, 0.2, 0.4],
    "rate": 20,
    "rate_unit": "images/s",
}


@pytest.fixture(autouse=True)
def _nothing_inherited(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (
        "SCALEOUT_RUN_ID",
        "SCALEOUT_RECORDS",
        "SCALEOUT_CORES",
        "SCALEOUT_NODES",
        "OMP_NUM_THREADS",
    ):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "records.jsonl"
    monkeypatch.setenv("SCALEOUT_RECORDS", str(path))
    return path


def test_a_record_is_one_flat_line_with_the_fields_in_order(file: Path) -> None:
    written = records.write(**SOME)
    (line,) = file.read_text().splitlines()
    assert json.loads(line) == written
    assert list(written) == list(records.FIELDS)
    nested = {name for name, value in written.items() if isinstance(value, dict)}
    assert nested == {"metrics", "versions"}


def test_a_record_says_how_it_was_run(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SCALEOUT_RUN_ID", "the-run")
    monkeypatch.setenv("SCALEOUT_CORES", "48")
    monkeypatch.setenv("SCALEOUT_NODES", "3")
    monkeypatch.setenv("OMP_NUM_THREADS", "4")
    row = records.write(lab="05_horovod", ranks=6, batch_per_rank=64)
    expected = {
        "run_id": "the-run",
        "cores": 48,
        "nodes": 3,
        "threads_per_rank": 4,
        "batch_global": 384,
        "schema": 1,
    }
    assert {name: row[name] for name in expected} == expected
    assert row["versions"]["python"] == ".".join(map(str, sys.version_info[:3]))
    assert row["versions"]["scaleout"] == __version__  # as --version has it
    assert row["mpi"] is None or "mpi4py.MPI" in sys.modules
    assert records.write(lab="05_horovod")["batch_global"] is None


def test_numpy_values_become_plain_ones(file: Path) -> None:
    metrics = {"loss": np.float32(0.5), "shares": np.arange(3), "nested": [{"n": np.int64(2)}]}
    records.write(
        lab="04_kmeans", step_s=np.array([0.5, 0.25]), rate=np.float64(3), metrics=metrics
    )
    row = json.loads(file.read_text())
    assert row["metrics"] == {"loss": 0.5, "shares": [0, 1, 2], "nested": [{"n": 2}]}
    assert row["step_s"] == [0.5, 0.25]


def test_what_no_record_can_hold_is_named_and_nothing_is_written(file: Path) -> None:
    with pytest.raises(TypeError, match="numbers, text and lists"):
        records.write(lab="04_kmeans", metrics={"path": Path("x")})
    assert not file.exists()


def test_reading_computes_the_median_and_the_distance_of_the_quartiles(file: Path) -> None:
    records.write(lab="a", step_s=[1.0, 2.0, 3.0, 4.0, 5.0])
    records.write(lab="b", step_s=[1.0, 2.0])
    records.write(lab="c", step_s=[7.0])
    records.write(lab="d", metrics={"loss": 0.5})
    frame = records.read(file)
    assert frame["step_median_s"].tolist()[:3] == [3.0, 1.5, 7.0]
    assert frame["step_spread_s"].tolist() == [2.0, 0.5, 0.0, 0.0]
    assert frame["metrics.loss"].tolist()[3] == 0.5
    assert frame["metrics"].tolist()[3] == {"loss": 0.5}
    assert list(frame.columns[: len(records.FIELDS)]) == list(records.FIELDS)


def test_without_a_path_everything_in_results_is_read(
    results: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for job in ("one", "two"):
        (results / "00_welcome" / job).mkdir(parents=True)
        monkeypatch.setenv("SCALEOUT_RECORDS", str(results / "00_welcome" / job / "records.jsonl"))
        records.write(lab=job)
    assert records.read()["lab"].tolist() == ["one", "two"]


def test_a_half_written_line_does_not_swallow_the_next_record(file: Path) -> None:
    records.write(lab="before")
    with file.open("a") as out:
        out.write('{"schema": 1, "run_')
    records.write(lab="after")
    with pytest.warns(UserWarning, match="line 2"):
        assert records.read(file)["lab"].tolist() == ["before", "after"]


def test_many_writers_of_one_file_leave_whole_lines(file: Path) -> None:
    text = "from scaleout import records\nfor i in range(20): records.write(lab='x', metrics={'long': 'y' * 200_000})"
    writers = [subprocess.Popen([sys.executable, "-c", text]) for _ in range(4)]
    assert [writer.wait(60) for writer in writers] == [0] * 4
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(records.read(file)) == 80


# Damaged files: reading ends, warns once, and gives what is whole


@pytest.fixture
def whole(file: Path) -> dict[str, Any]:
    """A record as it stands in a file; the file is empty again."""
    records.write(lab="x", step_s=[0.5, 1.0], rate=2.0, metrics={"loss": 0.1})
    line: dict[str, Any] = json.loads(file.read_text())
    file.unlink()
    return line


def _read(path: Path) -> tuple[list[str], list[str]]:
    """The labs of the records, and the warnings."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        labs = records.read(path)["lab"].tolist()
    return labs, [str(one.message) for one in said]


@pytest.mark.parametrize(
    "bad",
    ["[" * 100_000, "9" * 400, '{"schema": 1, "run_id": "x', '{"schema": 1}', "\udcff", "nul"],
    ids=["brackets", "digits", "cut off", "incomplete", "surrogate", "word"],
)
def test_what_is_no_line_costs_itself_alone(file: Path, whole: dict[str, Any], bad: str) -> None:
    text = f"{json.dumps(whole)}\n{bad}\n{json.dumps(whole)}\n"
    file.write_bytes(text.encode("utf-8", "surrogatepass"))
    labs, said = _read(file)
    assert labs == ["x", "x"] and len(said) == 1 and "line 2: no record" in said[0]


def test_a_pipe_is_named_and_nobody_waits_for_it(file: Path) -> None:
    os.mkfifo(file)
    labs, said = _read(file)
    assert labs == [] and len(said) == 1 and "cannot be read (it is no regular file)" in said[0]


PLAIN = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20)
JSON = st.recursive(
    PLAIN,
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=9), inner, max_size=4)
    ),
    max_leaves=12,
)
CHANGES = st.dictionaries(st.sampled_from(sorted(records.FIELDS)), JSON, max_size=3)


@settings(
    max_examples=150,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(rows=st.lists(st.one_of(CHANGES, st.binary(max_size=60)), max_size=4))
def test_no_file_is_too_strange_to_read(
    file: Path, whole: dict[str, Any], rows: list[dict[str, Any] | bytes]
) -> None:
    said = [
        row if isinstance(row, bytes) else json.dumps({**whole, **row}).encode() for row in rows
    ]
    file.write_bytes(b"\n".join([json.dumps(whole).encode(), *said]) + b"\n")
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        frame = records.read(file)
    assert len(frame) >= 1 and len(warned) <= 1
    assert frame["lab"].map(type).eq(str).all() and frame["ranks"].ge(1).all()
    assert frame["step_median_s"].dropna().map(type).eq(float).all()
