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

from scaleout import records


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


def test_a_pipe_is_named_and_nobody_waits_for_it(file: Path) -> None:
    os.mkfifo(file)
    begun = time.monotonic()
    labs, said = _read(file)
    assert labs == [] and len(said) == 1 and "cannot be read (it is no regular file)" in said[0]
    assert time.monotonic() - begun < 60


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
