"""The best of a sweep beside a setting that others recommend."""

from typing import Any

from scaleout import sweeps
from scaleout.sweeps.journal import FIRST, LAST, OTHERS_FIRST, OTHERS_LAST, POINT
from scaleout.sweeps.points import Point
from scaleout.sweeps.published import SOURCE, published


def _rows(role: str, point: Point, *rates: float) -> list[dict[str, Any]]:
    each = {"status": "ok", "reason": "", "unit": "images/s", "wall_s": 1.0}
    where = {"ranks": point.ranks, "threads": point.threads, "env": dict(point.env)}
    return [{**each, **where, "role": role, "repeat": n, "rate": r} for n, r in enumerate(rates)]


def test_a_rank_for_each_socket_and_what_the_sweep_varies_else_is_left_alone() -> None:
    found = published(["ranks", "threads", "HOROVOD_CYCLE_TIME"], cores=48, sockets=2)
    assert (found.ranks, found.threads) == (2, 24)
    assert dict(found.env) == {
        "HOROVOD_CYCLE_TIME": None,
        "TF_ENABLE_ONEDNN_OPTS": "1",
        "TF_NUM_INTEROP_THREADS": "2",
    }


def test_openmps_variables_are_set_where_a_sweep_varies_one() -> None:
    given = dict(published(["OMP_PROC_BIND"], cores=4, sockets=1).env)
    assert given["KMP_BLOCKTIME"] == "1" and given["OMP_PROC_BIND"] is None
    assert "KMP_BLOCKTIME" not in dict(published(["ranks"], cores=4, sockets=1).env)


DEFAULT, OTHERS, GOOD = Point(1, None, (("A", None),)), Point(1, 2), Point(2, 1, (("A", "x"),))


def _sweep(*rates: float) -> sweeps.Result:
    rows = [*_rows(FIRST, DEFAULT, 100, 101, 99, 100), *_rows(LAST, DEFAULT, 101, 100, 99, 100)]
    rows += _rows(OTHERS_FIRST, OTHERS, 120, 121, 119, 120)
    rows += _rows(POINT, GOOD, *rates)
    rows += _rows(OTHERS_LAST, OTHERS, 121, 120, 119, 120)
    return sweeps.Result(rows)


def test_the_best_has_an_interval_against_both() -> None:
    found = _sweep(150, 151, 149, 150)
    assert found.default.rate == 100 and found.published is not None
    assert found.published.rate == 120 and found.published.ratio == 1.2
    assert "1.50 times the default's 100" in found.summary
    assert f"Against the published setting ({SOURCE}) the best is 1.25 times as fast." in (
        found.summary
    )
    assert found.summary.count("The interval of that ratio") == 2
    assert list(found.table.index) == ["default", "published", "best"]


def test_no_gain_over_it_is_said() -> None:
    found = _sweep(122, 118, 121, 120)
    assert "the published setting alone varies by" in found.summary
    assert "That shows no gain" in found.summary


def test_a_sweep_without_it_says_nothing_of_it() -> None:
    rows = [*_rows(FIRST, DEFAULT, 100), *_rows(POINT, GOOD, 120), *_rows(LAST, DEFAULT, 100)]
    found = sweeps.Result(rows)
    assert found.published is None and "published" not in found.summary
    assert list(found.table.index) == ["default", "best"]
