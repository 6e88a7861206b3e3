"""Damaged records: whatever a file holds, reading it ends, warns once, and gives what is whole."""

import json
import os
import time
import warnings
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from scaleout import jsonlines, records


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "records.jsonl"
    monkeypatch.setenv("SCALEOUT_RECORDS", str(path))
    return path


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


@pytest.mark.parametrize("name", list(records.FIELDS))
@pytest.mark.parametrize(
    "value",
    [{"a": 1}, [{"a": 1}], "text", True, 1e999, float("nan"), -(10**9), [[]], ["1"]],
    ids=repr,
)
def test_a_field_of_another_type_costs_its_line_alone(
    file: Path, whole: dict[str, Any], name: str, value: Any
) -> None:
    bad = json.dumps({**whole, name: value})
    file.write_text(f"{json.dumps(whole)}\n{bad}\n{json.dumps(whole)}\n")
    labs, said = _read(file)
    assert len(labs) in (2, 3) and len(said) == 3 - len(labs)
    if len(labs) == 2:
        assert f"line 2: no record ({name} has another type, or is out of range)" in said[0]


@pytest.mark.parametrize(
    "bad",
    ["[" * 100_000, "9" * 400, '{"a": ' * 5000, '{"schema": ' + "9" * 5000 + "}", "\udcff", "nul"],
    ids=["brackets", "digits", "braces", "number", "surrogate", "word"],
)
def test_what_is_no_line_costs_itself_alone(file: Path, whole: dict[str, Any], bad: str) -> None:
    text = f"{json.dumps(whole)}\n{bad}\n{json.dumps(whole)}\n"
    file.write_bytes(text.encode("utf-8", "surrogatepass"))
    labs, said = _read(file)
    assert labs == ["x", "x"] and len(said) == 1 and "line 2: no record" in said[0]


def test_a_number_that_no_float_holds_is_refused_inside_metrics_too(
    file: Path, whole: dict[str, Any]
) -> None:
    file.write_text(json.dumps({**whole, "metrics": {"n": [10**400]}}) + "\n")
    labs, said = _read(file)
    assert labs == [] and len(said) == 1


def test_half_a_million_bad_lines_are_one_warning(file: Path, whole: dict[str, Any]) -> None:
    file.write_text('{"schema": 1}\n' * 500_000 + json.dumps(whole) + "\n")
    labs, said = _read(file)
    assert labs == ["x"] and len(said) == 1
    assert "line 1: no record (run_id is missing); left out, as are 499,999 more" in said[0]


def test_a_pipe_is_named_and_nobody_waits_for_it(file: Path) -> None:
    os.mkfifo(file)
    begun = time.monotonic()
    labs, said = _read(file)
    assert labs == [] and len(said) == 1 and "cannot be read (it is no regular file)" in said[0]
    assert time.monotonic() - begun < 60


def test_a_folder_and_a_device_are_named(tmp_path: Path) -> None:
    for path in (tmp_path, Path("/dev/zero")):
        labs, said = _read(path)
        assert labs == [] and len(said) == 1 and "it is no regular file" in said[0]


def test_a_file_without_end_is_named(file: Path) -> None:
    with open(file, "wb") as made:
        made.truncate(jsonlines.MOST_BYTES + 1)  # takes no room on the disk
    labs, said = _read(file)
    assert labs == [] and len(said) == 1 and "is larger than 200 MB: left out" in said[0]


def test_ten_thousand_metrics_are_no_ten_thousand_columns(
    file: Path, whole: dict[str, Any]
) -> None:
    many = {str(number): 0 for number in range(10_000)}
    file.write_text(json.dumps({**whole, "metrics": many}) + "\n")
    labs, said = _read(file)
    assert labs == [] and "too many fields" in said[0]


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
