"""A damaged points.jsonl or sweep.json: what is whole is read, what is not is named once."""

import json
import os
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from scaleout import sweeps
from scaleout.measuring.asked import Comparing
from scaleout.measuring.journal import Journal
from scaleout.measuring.row import Compared

ROW: dict[str, Any] = {
    "schema": 1,
    "role": "point",
    "ranks": 1,
    "threads": 1,
    "env": {"A": None, "B": "1"},
    "repeat": 0,
    "status": "ok",
    "reason": "",
    "rate": 10.0,
    "unit": "images/s",
    "values": {"0": [10.0]},
    "wall_s": 1.0,
    "run_id": "x",
    "command": "mpirun -n 1 true",
    "utc": "2026-01-01",
    "cpu": "A CPU",
    "cores": 2,
}
DEFAULT = ROW | {"role": "default, first", "threads": None}


def _write(folder: Path, *rows: Any) -> Path:
    path = folder / "points.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_lines_with_a_field_of_another_type_are_left_out_and_named_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    names = [name for name in ROW if name not in ("schema", "values")]
    bad = [ROW | {name: value} for name in names for value in ([], -1)]
    result = sweeps.read(_write(tmp_path, DEFAULT, *bad, ROW | {"ranks": 2}))
    assert result.frame.ranks.tolist() == [2] and repr(result)
    (said,) = capsys.readouterr().out.splitlines()
    assert said.endswith(f"left out, as are {len(bad) - 1} more lines like it.")


@pytest.mark.parametrize("text", ["", "[" * 100_000, "[]", "7", '{"metric": 3}', "\0"])
def test_a_damaged_sweep_json_is_as_good_as_none(tmp_path: Path, text: str) -> None:
    (tmp_path / "sweep.json").write_text(text)
    _write(tmp_path, DEFAULT, ROW | {"ranks": 2, "rate": 20.0})
    result = sweeps.read(tmp_path)
    assert result.best is not None and result.best.rate == 20 and not result.lower


@settings(
    max_examples=80,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    changes=st.dictionaries(
        st.sampled_from(sorted(ROW)),
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9),
            lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
            max_leaves=6,
        ),
        max_size=3,
    )
)
def test_no_line_is_too_strange_to_read(tmp_path: Path, changes: dict[str, Any]) -> None:
    result = sweeps.read(_write(tmp_path, DEFAULT, ROW | changes, ROW | {"ranks": 3}))
    assert 3 in result.frame.ranks.tolist() and repr(result)


@pytest.mark.parametrize(
    ("ahead_s", "said"),
    [(5 * 3600, "5.0 hours behind"), (600, "0.2 hours behind"), (-5, ""), (20, "")],
)
@pytest.mark.parametrize("kind", ["compare", "sweep"])
def test_a_clock_that_went_back_is_told(
    results: Path, monkeypatch: pytest.MonkeyPatch, ahead_s: float, said: str, kind: str
) -> None:
    monkeypatch.chdir(results.parent)
    first, second = (Journal(kind, name, "x.jsonl", Comparing, Compared) for name in ("a", "b"))
    assert first.behind() == (0.0, "")
    first.path.touch()
    os.utime(first.path, (time.time() + ahead_s,) * 2)
    behind_s, told = second.behind()
    assert said in told and bool(told) == bool(said) == bool(behind_s)
    assert f"scaleout report results/{kind}/a results/{kind}/b" in told or not said
    assert first.behind() == (0.0, "")  # its own file is no other one


@pytest.mark.parametrize("hours", [0.1, 5, 48])
def test_what_came_after_a_clock_went_back_keeps_its_order(
    results: Path, monkeypatch: pytest.MonkeyPatch, hours: float
) -> None:
    """A measurement of an hour, then the laptop sleeps, then two of a minute."""
    now = time.time() + 3600
    Journal("compare", "a", "x.jsonl", Comparing, Compared).path.touch()
    os.utime(results / "compare/a/x.jsonl", (now, now))
    ends = [now]
    for name in ("b", "c"):
        now += 60 - 3600 * hours * (name == "b")
        monkeypatch.setattr(time, "time", lambda now=now: now)
        later = Journal("compare", name, "x.jsonl", Comparing, Compared)
        later.note(Comparing(behind_s=later.behind()[0]))
        later.path.touch()
        os.utime(later.path, (now, now))
        ends.append(now + later.behind()[0])
    assert ends == sorted(ends)
