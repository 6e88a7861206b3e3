"""A measured row: what it takes, what it says of a damaged one, and that it forgets nothing."""

import json
import math

import msgspec
import numpy as np
import pytest
from msgspec import structs

from scaleout.base.errors import ScaleoutError
from scaleout.measuring.row import COPIES, LAST, POINT, Compared, Row, Swept, wrong

RUN = {"variant": "a", "round": 2, "again": 0, "value": 3.5}
JOB = {"role": POINT, "ranks": 2, "threads": 1, "env": {"A": None}, "round": 1}
JOB |= {"status": "ok", "value": 7.0, "wall_s": 1.5}


@pytest.mark.parametrize(
    ("kind", "line", "says"),
    [
        (Compared, {"value": None}, "its value is another kind, or out of range"),
        (Compared, {"value": 0}, "its value is another kind, or out of range"),
        (Compared, {"value": math.inf}, "its value is another kind, or out of range"),
        (Compared, {"value": math.nan}, "its value is another kind, or out of range"),
        (Compared, {"round": True}, "its round is another kind, or out of range"),
        (Compared, {"again": 2}, "its again is another kind, or out of range"),
        (Compared, {"values": {"0": ["x"]}}, "its values is another kind, or out of range"),
        (Swept, {"threads": 0}, "its threads is another kind, or out of range"),
        (Swept, {"role": "best"}, "its role is another kind, or out of range"),
        (Swept, {"env": {"A": 1}}, "its env is another kind, or out of range"),
        (Swept, {"value": None}, "its value is missing"),
        (Swept, {"status": COPIES, "value": None}, "its value is missing"),
        (Swept, {"status": "failed", "value": None}, ""),
        (Compared, {"value": np.float32(2), "round": np.int64(1), "of_tomorrow": 1}, ""),
    ],
)
def test_each_field_is_looked_at(kind: type[Row], line: dict[str, object], says: str) -> None:
    whole = RUN if kind is Compared else JOB
    assert wrong(whole, kind) == "" and wrong({**whole, **line}, kind) == says
    if says:
        with pytest.raises(ScaleoutError, match="^A row is damaged: its "):
            kind.of({**whole, **line})


@pytest.mark.parametrize("name", sorted(JOB))
def test_what_a_sweep_cannot_do_without_is_missed(name: str) -> None:
    assert wrong({k: v for k, v in JOB.items() if k != name}, Swept) == f"its {name} is missing"


def test_a_line_of_an_older_file_is_read() -> None:
    old = {k: v for k, v in JOB.items() if k not in ("round", "value")}
    row = Swept.of({**old, "repeat": 1, "rate": 7, "doubt": "Is it?", "schema": 1})
    assert (row.round, row.value, row.remark) == (1, 7.0, "Is it?")
    assert Swept.of(json.loads(msgspec.json.encode(row))) == row


def test_a_job_of_a_sweep_forgets_nothing_as_a_run_of_a_comparison() -> None:
    told: dict[str, object] = {
        "unit": "rows/s",
        "values": {"0": [7.0]},
        "remark": "r",
        "copies": "c",
    }
    told |= {"metric": "m", "reduce": "sum", "command": "mpirun", "run_id": "x", "utc": "2026"}
    told |= {"start_s": 0.5, "others": 0.25, "cpu": "A", "cores": 2, "versions": {"numpy": "2"}}
    told |= {"commit": "abc", "quick": True, "files": {"unet.py": "a"}}
    job = Swept.of({**JOB, **told, "role": LAST})
    run = job.compared("2 ranks", 5, "3")
    assert (run.variant, run.place, run.seed, run.again, run.value) == ("2 ranks", 5, "3", 1, 7.0)
    kept = set(Row.__struct_fields__) - {"seed"}
    assert {name: getattr(run, name) for name in kept} == {
        name: getattr(job, name) for name in kept
    }
    unset = {name for name in kept if getattr(run, name) == getattr(Compared(**RUN), name)}
    assert not unset, "a field that this test does not fill may be forgotten"
    assert Compared.of(json.loads(msgspec.json.encode(run))) == run
    assert structs.replace(run, seed=None) != run
