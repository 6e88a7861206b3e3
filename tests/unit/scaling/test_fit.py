"""A prediction's interval holds what would be measured as often as it says, or there is none."""

import importlib.util
import sys
from collections.abc import Callable, Iterable
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from scaleout import scaling
from scaleout.base.errors import ScaleoutError
from scaleout.comparisons.intervals import Ratio
from scaleout.scaling import fit

COUNTS = np.array([1, 2, 4, 8, 16])


def _made_up() -> Any:
    path = Path(__file__).parents[3] / "tools/made_up_tables.py"
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec and spec.loader
    sys.modules[path.stem] = module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _judge(tables: Iterable[Any]) -> tuple[np.ndarray, np.ndarray]:
    """Whether each interval holds what would be measured on 2 and on 4 times the largest count,
    and its high end over its low end; a refusal holds nothing.  (tables, 2) both."""
    held, widths = [], []
    for table in tables:
        fitted = scaling.fit_rates(table.nodes, table.rates)
        row = []
        for nodes, rate in zip(table.further, table.measured, strict=True):
            try:
                said = fitted.predict(nodes)
            except ScaleoutError:
                row.append((False, np.inf))
            else:
                row.append((said.low < rate < said.high, said.high / said.low))
        held.append([inside for inside, _ in row])
        widths.append([width for _, width in row])
    return np.array(held), np.array(widths)


@pytest.mark.slow
def test_the_intervals_hold_what_is_true_in_90_to_98_of_100_made_up_tables() -> None:
    """What docs/scaling.md says of 600 tables, on 200 of them."""
    held, widths = _judge(_made_up().tables(200, 2026))
    assert (held.mean(axis=0) >= 0.90).all() and (held.mean(axis=0) <= 0.98).all()
    assert np.median(widths[:, 0]) < 2.2


@pytest.mark.choice
@pytest.mark.parametrize("names", [*combinations(scaling.LAWS, 1), *combinations(scaling.LAWS, 2)])
def test_fewer_laws_hold_too_little(names: tuple[str, ...], monkeypatch) -> None:
    """Why there are three: on the tables that they were chosen on, none or two are too few."""
    monkeypatch.setattr(fit, "LAWS", {name: scaling.LAWS[name] for name in names})
    monkeypatch.setattr(fit, "SHAKES", 300)
    held, _ = _judge(_made_up().tables(300, 1, judge=False))
    assert held.mean(axis=0).min() < 0.90


def test_the_last_rows_of_published_tables_are_predicted() -> None:
    """All 18 today; each from the rows before it."""
    tables = scaling.published()
    assert len(tables) == 18 and tables[0].nodes == (1, 4, 8, 16, 32, 64)
    held, errors = [], []
    for table in tables:
        last = table.rates[-1]
        said = scaling.fit_rates(table.nodes[:-1], table.rates[:-1]).predict(table.nodes[-1])
        held.append(said.low < last < said.high)
        errors.append(abs(said.rate / last - 1))
    assert np.mean(held) >= 0.9 and np.mean(errors) <= 0.11


GROWTH: dict[str, Callable[[Any], Any]] = {
    "Amdahl": lambda n: 0.05 * (n - 1),
    "tree": lambda n: 0.2 * np.log2(n),
    "coherence": lambda n: 0.003 * n * (n - 1),
}


@pytest.mark.parametrize("name", scaling.LAWS)
def test_a_table_that_a_law_has_made_gives_that_law_and_its_rate(name: str) -> None:
    counts = np.repeat(COUNTS, 4)
    fitted = scaling.fit_rates(counts, 10 * counts / (1 + GROWTH[name](counts)))
    assert max(fitted.weights, key=lambda law: fitted.weights[law]) == name
    assert sum(fitted.weights.values()) == pytest.approx(1)
    assert fitted.one == pytest.approx(10, rel=0.03)
    said = fitted.predict(32)
    assert said.rate == pytest.approx(320 / (1 + GROWTH[name](32)), rel=0.1)
    assert said.efficiency == pytest.approx(said.rate / fitted.one / 32)


def test_a_prediction_is_the_same_each_time_and_repeated_rows_narrow_it() -> None:
    rates = [10.0, 19.0, 36.0, 66.0, 115.0]
    once = scaling.fit_rates(COUNTS, rates).predict(32)
    assert once == scaling.fit_rates(COUNTS, rates).predict(32)
    often = scaling.fit_rates([*COUNTS] * 5, rates * 5).predict(32)
    assert often.high / often.low < once.high / once.low


def test_a_fit_that_cannot_be_trusted_is_refused_in_a_sentence() -> None:
    with pytest.raises(ScaleoutError, match="3 different numbers of nodes are too few"):
        scaling.fit_rates([1, 2, 2, 4], [10, 19, 19, 36])
    fitted = scaling.fit_rates([1, 2, 4, 8], [10, 19, 36, 70])
    with pytest.raises(ScaleoutError, match="129 .* more than 16 times the 8 that were measured"):
        fitted.predict(129)
    with pytest.raises(ScaleoutError, match="at least 1 node"):
        fitted.predict(0)
    with pytest.raises(ScaleoutError, match="lies anywhere between .*no prediction"):
        scaling.fit_rates([1, 2, 4, 8], [10, 9, 30, 30]).predict(64)
    with pytest.raises(ScaleoutError, match="No law comes nearer to these rates than"):
        scaling.fit_rates([1, 2, 4, 8], [1e50, 1e-50, 5, 6]).predict(16)
    for nodes, rate in ((0.5, 1.0), (8, 0.0), (8, float("nan"))):
        with pytest.raises(ScaleoutError, match="one rate above 0 for each number of nodes"):
            scaling.fit_rates([1, 2, 4, nodes], [1, 1, 1, rate])


def test_a_speed_up_means_a_serial_part_if_the_law_holds() -> None:
    law = scaling.Amdahl.assumed(4, Ratio(2.0, 1.6, 2.5, 5))  # 1 / (s + (1 - s) / 4) = 2: s = 1 / 3
    assert law.serial == pytest.approx(1 / 3) and law.speed_up(4) == pytest.approx(2)
    assert law.serial_range == pytest.approx((0.2, 0.5))
    assert str(law) == (
        "The serial part is 33.3 % (20.0 to 50.0 %). If Amdahl's law holds, which two counts cannot "
        "show, no number of ranks is more than 3.00 times as fast (2.00 to 5.00)."
    )
    open_end = scaling.Amdahl(0.063, (0.0, 0.15))
    assert str(open_end).endswith("more than 15.9 times as fast (at least 6.67).")
    assert scaling.Amdahl.assumed(2, Ratio(1.9, 0.0, float("inf"), 1)).serial_range == (0, 1)
    more = scaling.Amdahl.assumed(2, Ratio(2.1, 1.9, 2.3, 5))
    assert more.serial == 0 and "no limit is seen." in str(more)
    with pytest.raises(ScaleoutError, match="at least 2 ranks"):
        scaling.Amdahl.assumed(1, Ratio(1.0, 0.9, 1.1, 5))


def test_an_interval_holds_single_measurements_not_the_curve_alone() -> None:
    draw = np.random.default_rng(0)
    counts = np.repeat(COUNTS, 20)
    scatter = np.exp(0.05 * draw.standard_normal(len(counts)))
    rates = 10 * counts / (1 + 0.05 * (counts - 1)) * scatter
    said = scaling.fit_rates(counts, rates).predict(16)
    there = rates[counts == 16]
    assert np.mean((said.low < there) & (there < said.high)) >= 0.9


def test_the_scatter_is_told_about_as_large_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two parameters are fitted, so four points leave two free; the choice of a law takes a part."""
    monkeypatch.setattr(fit, "SHAKES", 2)
    draw, counts = np.random.default_rng(1), np.array([1, 2, 4, 8])
    noise = np.exp(0.05 * draw.standard_normal((120, 4)))
    told = [scaling.fit_rates(counts, counts / (1 + 0.05 * counts) * row).scatter for row in noise]
    assert 0.7 < np.sqrt(np.mean(np.square(told))) / 0.05 < 1.0
