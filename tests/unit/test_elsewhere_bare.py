"""The headlines of a machine with many cores: they keep to their time, and their rows are those of
elsewhere.jsonl."""

import time
import zipfile
from pathlib import Path

import elsewhere_bare as bare
import headlines
import pytest

from scaleout import Comparison
from scaleout.comparisons import elsewhere


def test_what_a_headline_leaves_goes_to_the_next() -> None:
    clock = [0.0]
    budget = bare.Budget(100.0, {"a": 1, "b": 1, "c": 2}, lambda: clock[0])
    assert budget.take("a") == 25
    clock[0] = 10.0
    assert budget.take("b") == pytest.approx(30)
    clock[0] = 40.0
    assert budget.take("c") == 60


def test_a_headline_that_takes_too_long_leaves_less_and_never_less_than_nothing() -> None:
    clock = [0.0]
    budget = bare.Budget(100.0, {"a": 1, "b": 1, "c": 1}, lambda: clock[0])
    budget.take("a")
    clock[0] = 90.0
    assert budget.take("b") == 5
    clock[0] = 130.0
    assert budget.take("c") == 0


def test_what_takes_too_long_is_interrupted() -> None:
    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt), bare.no_longer_than(0.05) as late:
        time.sleep(30)
    assert late and time.monotonic() - began < 20
    with bare.no_longer_than(30) as late:
        pass
    assert not late


def test_where_time_is_short_the_fewer_ranks_are_left_out() -> None:
    variants = dict.fromkeys(["1 rank", "2 ranks", "4 ranks", "8 ranks"])
    cost_s = dict.fromkeys(variants, 2.0)  # and the baseline runs twice a round
    assert list(bare.affordable(variants, cost_s, 30.0)) == list(variants)
    assert list(bare.affordable(variants, cost_s, 29.0)) == ["1 rank", "4 ranks", "8 ranks"]
    assert list(bare.affordable(variants, cost_s, 0.0)) == ["1 rank", "8 ranks"]


def test_rows_are_those_of_elsewhere_jsonl(tmp_path: Path) -> None:
    runs = [
        {"round": k, "variant": name, "again": again, "value": value + k, "unit": "s"}
        for k in range(3)
        for name, again, value in [("1 rank", 0, 10.0), ("1 rank", 1, 11.0), ("2 ranks", 0, 5.0)]
    ]
    one = headlines.Headline("weak-scaling", Comparison(runs, lower=True))
    bare.keep(tmp_path, "07", one)
    rows, left_out = elsewhere.read(tmp_path / "07_scaling.jsonl")
    assert not left_out
    assert [(row.variant, row.values, row.again) for row in rows] == [
        ("1 rank", [10, 11, 12], [11, 12, 13]),
        ("2 ranks", [5, 6, 7], []),
    ]
    assert rows[0].code and rows[0].lower and rows[0].unit == "s"
    (there,) = elsewhere.others(rows)
    assert there.found.rounds == 3


def test_the_pack_has_what_the_lock_names_and_no_tests(tmp_path: Path) -> None:
    lines = bare.locked(bare.LOCK.read_text(), bare.PACKAGES)
    assert lines.count("==") == len(bare.PACKAGES) and lines.startswith("mpi4py==")
    with zipfile.ZipFile(tmp_path / "a.whl", "w") as wheel:
        for name in ("a/b.py", "a/tests/c.py"):
            wheel.writestr(name, "pass")
        wheel.writestr("a-1.dist-info/RECORD", "a/b.py,,\na/tests/c.py,,\n")
    bare._without_tests(tmp_path / "a.whl", tmp_path / "new.whl")
    with zipfile.ZipFile(tmp_path / "new.whl") as wheel:
        assert wheel.namelist() == ["a/b.py", "a-1.dist-info/RECORD"]
        assert wheel.read("a-1.dist-info/RECORD") == b"a/b.py,,\n"
