"""The alpha-beta law: known values come back inside the stated intervals, and too few points are
refused."""

import json

import numpy as np
import pandas as pd
import pytest

from scaleout import scaling
from scaleout.comparisons.intervals import Ratio
from scaleout.errors import ScaleoutError

ALPHA_S, BETA_S = 2e-6, 0.5e-9
BYTES = 4.0 ** np.arange(1, 13)


def _times(seed: int, noise: float = 0.15) -> np.ndarray:
    return (ALPHA_S + BETA_S * BYTES) * np.exp(
        noise * np.random.default_rng(seed).standard_normal(len(BYTES))
    )


def test_exact_points_give_the_exact_line() -> None:
    fit = scaling.fit_alpha_beta(BYTES, _times(0, noise=0.0))
    assert fit.alpha_s == pytest.approx(ALPHA_S, rel=1e-6)
    assert fit.beta_s == pytest.approx(BETA_S, rel=1e-6)
    assert fit.seconds(1e6) == pytest.approx(ALPHA_S + BETA_S * 1e6, rel=1e-6)
    assert fit.scatter < 1e-6 and fit.sizes == len(BYTES)


def test_the_intervals_hold_the_truth_as_often_as_they_say() -> None:
    fits = [scaling.fit_alpha_beta(BYTES, _times(seed)) for seed in range(400)]
    for truth, ranges in (
        (ALPHA_S, [f.alpha_range_s for f in fits]),
        (BETA_S, [f.beta_range_s for f in fits]),
    ):
        held = np.mean([low < truth < high for low, high in ranges])
        assert 0.91 <= held <= 0.98  # 95 %, give or take what 400 tries leave open


def test_the_standard_errors_are_the_spread_of_the_estimates() -> None:
    fits = [scaling.fit_alpha_beta(BYTES, _times(seed)) for seed in range(400)]
    assert np.std([f.alpha_s for f in fits]) == pytest.approx(
        np.mean([f.alpha_error_s for f in fits]), rel=0.15
    )
    assert np.std([f.beta_s for f in fits]) == pytest.approx(
        np.mean([f.beta_error_s for f in fits]), rel=0.15
    )


def test_an_empty_message_counts_for_alpha() -> None:
    fit = scaling.fit_alpha_beta([0, *BYTES], [ALPHA_S, *_times(0, noise=0.0)])
    assert fit.alpha_s == pytest.approx(ALPHA_S, rel=1e-6)


def test_too_few_sizes_are_refused_in_a_sentence() -> None:
    with pytest.raises(ScaleoutError, match="3 message sizes are too few.*at least 4"):
        scaling.fit_alpha_beta([8, 8, 64, 64, 512], [1e-6] * 5)


@pytest.mark.parametrize(
    "seconds", [[1e-6, 0.0, 1e-6, 1e-6], [1e-6, float("nan"), 1e-6, 1e-6], [1e-6] * 3]
)
def test_what_is_no_time_is_refused(seconds: list[float]) -> None:
    with pytest.raises(ScaleoutError, match="one time above 0 for each message"):
        scaling.fit_alpha_beta([8, 64, 512, 4096], seconds)


def test_large_messages_alone_do_not_tell_alpha_and_it_says_so() -> None:
    large = scaling.fit_alpha_beta(BYTES[-4:], _times(0, noise=0.1)[-4:])
    assert "alpha is not known" in str(large) and "GB/s" in str(large)
    assert large.alpha_range_s[1] > 10 * ALPHA_S
    small = scaling.fit_alpha_beta(BYTES[:4], _times(1, noise=0.3)[:4])
    assert "beta is not known" in str(small) and "alpha = " in str(small)


def test_allreduce_formulas() -> None:
    n, line = 6e6, {"alpha": ALPHA_S, "beta": BETA_S}
    one_array = ALPHA_S + BETA_S * n
    assert scaling.gather_broadcast_s(n, 3, **line) == pytest.approx(4 * one_array)
    assert scaling.tree_allreduce_s(n, 3, **line) == pytest.approx(4 * one_array)
    assert scaling.tree_allreduce_s(n, 8, **line) == pytest.approx(6 * one_array)
    assert scaling.ring_allreduce_s(n, 3, **line) == pytest.approx(4 * (ALPHA_S + BETA_S * 2e6))
    # A ring's time hardly grows with the ranks while the array is large; that of the way through
    # rank 0 does.
    assert (
        scaling.ring_allreduce_s(n, 64, **line)
        < 2.1 * one_array
        < scaling.gather_broadcast_s(n, 64, **line) / 50
    )
    # With tiny arrays it is the other way round: only the number of messages counts.
    assert scaling.ring_allreduce_s(8, 64, **line) > 10 * scaling.tree_allreduce_s(8, 64, **line)


@pytest.mark.parametrize("formula", ["gather_broadcast_s", "ring_allreduce_s", "tree_allreduce_s"])
def test_one_rank_sends_nothing(formula: str) -> None:
    assert getattr(scaling, formula)(1e6, 1, ALPHA_S, BETA_S) == 0


# Amdahl


def _amdahl(seed: int, serial: float = 0.1, noise: float = 0.03) -> scaling.Amdahl:
    p = np.repeat([1, 2, 4, 8], 3)
    times = (serial + (1 - serial) / p) * np.exp(
        noise * np.random.default_rng(seed).standard_normal(len(p))
    )
    return scaling.fit_amdahl(p, times)


def test_amdahl_exact_points_give_the_serial_part() -> None:
    fit = _amdahl(0, noise=0)
    assert fit.serial == pytest.approx(0.1) and fit.one_s == pytest.approx(1)
    assert fit.speed_up(1e9) == pytest.approx(10, rel=1e-3)
    assert "serial part 10 %" in str(fit) and "never more than 10 times" in str(fit)


def test_amdahl_the_interval_holds_the_truth_as_often_as_it_says() -> None:
    ranges = [_amdahl(seed).serial_range for seed in range(300)]
    assert 0.91 <= np.mean([low < 0.1 < high for low, high in ranges]) <= 0.98


def test_amdahl_all_parallel_is_no_negative_serial_part() -> None:
    fit = scaling.fit_amdahl([1, 1, 2, 2, 4, 4, 8], [1, 1, 0.49, 0.5, 0.24, 0.25, 0.12])
    assert fit.serial == 0 and fit.serial_range[0] == 0 and "no limit seen" in str(fit)


@pytest.mark.parametrize("ranks", [[1, 2], [1, 2, 4] * 3, []])
def test_amdahl_is_refused_what_the_other_fit_is_refused(ranks: list[int]) -> None:
    seconds = [1 / n for n in ranks]
    with pytest.raises(ScaleoutError, match="too few to tell a serial part"):
        scaling.fit_amdahl(ranks, seconds)
    with pytest.raises(ScaleoutError, match="too few to say how sure"):
        scaling.fit_rates(ranks, seconds)


def test_a_speed_up_means_a_serial_part_if_the_law_holds() -> None:
    law = scaling.Amdahl.assumed(4, Ratio(2.0, 1.6, 2.5, 5))  # 1 / (s + (1 - s) / 4) = 2: s = 1 / 3
    assert law.serial == pytest.approx(1 / 3) and law.speed_up(4) == pytest.approx(2)
    assert law.serial_range == pytest.approx((0.2, 0.5))
    assert "if the law holds, which two counts cannot tell" in str(law)
    assert scaling.Amdahl.assumed(2, Ratio(1.9, 0.0, float("inf"), 1)).serial_range == (0, 1)
    more = scaling.Amdahl.assumed(2, Ratio(2.1, 1.9, 2.3, 5))
    assert more.serial == 0 and more.serial_range[0] == 0 < more.serial_range[1]
    with pytest.raises(ScaleoutError, match="at least 2 ranks"):
        scaling.Amdahl.assumed(1, Ratio(1.0, 0.9, 1.1, 5))


@pytest.mark.parametrize("fit", [scaling.fit_amdahl, scaling.fit_rates])
@pytest.mark.parametrize("wrong", [float("inf"), float("nan"), 0.5])
def test_what_is_no_count_is_refused_by_both_fits(fit, wrong: float) -> None:
    with pytest.raises(ScaleoutError, match="which is 1 or more"):
        fit([1, 2, 4, wrong], [1.0, 0.6, 0.4, 0.3])


def test_the_knee_is_where_twice_the_ranks_no_longer_pay() -> None:
    law = _amdahl(0, noise=0)  # from p to 2 p: (0.1 + 0.9 / p) / (0.1 + 0.45 / p), 1.5 at p = 4.5
    assert scaling.knee(law.seconds) == 8
    assert scaling.knee(lambda p: 1 / p) is None
    assert scaling.knee(lambda p: 1 + 0.1 * (p - 1), weak=True) == 8
    assert scaling.efficiency(10, 5, 4) == 0.5 and scaling.efficiency(10, 20, 4, weak=True) == 0.5


# A step of training


def test_a_step_is_its_three_parts() -> None:
    network = scaling.Network("made up", ALPHA_S, BETA_S)
    step = scaling.Step(0.1, 100e6, network, overlap=0.3, spread_s=0.005)
    assert step.parts(1) == {"compute": 0.1, "exchange": 0, "stragglers": 0}
    exchange_s = scaling.ring_allreduce_s(100e6, 16, ALPHA_S, BETA_S)
    assert step.parts(16)["exchange"] == pytest.approx(exchange_s - 0.03)
    assert step.seconds(16) == pytest.approx(sum(step.parts(16).values()))
    assert scaling.Step(1.0, 100e6, network, overlap=1).parts(16)["exchange"] == 0  # wholly hidden
    assert step.efficiency(16) == pytest.approx(0.1 / step.seconds(16))


def test_the_slowest_of_many_is_as_late_as_a_simulation_says() -> None:
    step = scaling.Step(0.1, 0, scaling.NETWORKS["10 Gb/s Ethernet"], spread_s=1)
    for ranks in (2, 8, 128):
        drawn = np.random.default_rng(0).standard_normal((20_000, ranks)).max(axis=1).mean()
        assert step.parts(ranks)["stragglers"] == pytest.approx(drawn, rel=0.05)


def test_a_step_that_cannot_be_is_refused() -> None:
    network = scaling.NETWORKS["100 Gb/s InfiniBand"]
    for wrong in ({"overlap": 1.1}, {"spread_s": -1}):
        with pytest.raises(ScaleoutError, match="A step needs times and bytes of 0 or more"):
            scaling.Step(0.1, 1e6, network, **wrong)
    with pytest.raises(ScaleoutError, match="at least 1 rank"):
        scaling.Step(0.1, 1e6, network).seconds(0)


def test_a_measured_step_has_compute_and_gradient_of_one_job() -> None:
    copies = [{"gradient_bytes": 4000}]
    job = pd.DataFrame({"step_s": [[0.1, 0.2, 0.3]], "metrics": [{"on_rank": copies}]})
    network = scaling.Network("made up", ALPHA_S, BETA_S)
    step = scaling.Step.measured(job, network, overlap=0.5)
    assert (step.compute_s, step.gradient_bytes, step.overlap) == (0.2, 4000.0, 0.5)
    assert step.spread_s == pytest.approx(0.1 / 1.349), "of the quartiles, 0.15 and 0.25 s"
    assert scaling.Step.measured(job, network, spread_s=0.0).spread_s == 0
    with pytest.raises(ValueError, match="too many values"):
        scaling.Step.measured(pd.concat([job, job]), network)


# Rates


@pytest.mark.parametrize("name", scaling.PUBLISHED)
def test_the_largest_row_of_a_published_table_is_predicted_from_the_small_ones(name: str) -> None:
    table = scaling.PUBLISHED[name]
    found = scaling.fit_rates(table.nodes[:-1], table.rates[:-1]).predict(table.nodes[-1])
    assert found.rate == pytest.approx(table.rates[-1], rel=0.10)
    assert found.low < table.rates[-1] < found.high
    assert "2019" in table.source


def _grows(law: str, p: np.ndarray) -> np.ndarray:
    return {"Amdahl": p - 1, "ring": 8 * (p - 1) / p, "stragglers": 3 * np.sqrt(2 * np.log(p))}[law]


@pytest.mark.parametrize("law", ["Amdahl", "ring", "stragglers"])
def test_the_interval_of_a_prediction_holds_the_truth_nine_times_of_ten(law: str) -> None:
    p, held = np.array([1, 2, 4, 8, 16]), []
    for seed in range(30):
        noise = np.exp(0.01 * np.random.default_rng(seed).standard_normal(6))
        rates = p / (1 + 0.02 * _grows(law, p)) * noise[:5]
        found = scaling.fit_rates(p, rates).predict(64)
        held.append(
            found.low < 64 / (1 + 0.02 * _grows(law, np.array(64.0))) * noise[5] < found.high
        )
    assert np.mean(held) >= 0.9


@pytest.mark.parametrize("law", ["Amdahl", "ring", "stragglers"])
def test_the_law_that_made_the_table_is_among_the_three_that_weigh_most(law: str) -> None:
    p = np.array([1, 2, 4, 8, 16, 32])
    weights = scaling.fit_rates(p, p / (1 + 0.05 * _grows(law, p))).weights
    assert law in sorted(weights, key=weights.get)[-3:]
    assert sum(weights.values()) == pytest.approx(1)


def test_a_fit_that_cannot_be_trusted_is_refused_in_a_sentence() -> None:
    with pytest.raises(ScaleoutError, match="3 different numbers of nodes are too few"):
        scaling.fit_rates([1, 2, 2, 4], [10, 19, 19, 36])
    fit = scaling.fit_rates([1, 2, 4, 8], [10, 19, 36, 70])
    with pytest.raises(ScaleoutError, match="more than 16 times the 8 that were measured"):
        fit.predict(129)
    wild = scaling.fit_rates([1, 2, 4, 8], [10, 9, 36, 30])
    with pytest.raises(ScaleoutError, match="lies anywhere between .*no prediction"):
        wild.predict(64)
    with pytest.raises(ScaleoutError, match="one rate above 0"):
        scaling.fit_rates([1, 2, 4, 8], [10, 0, 1, 1])
    with pytest.raises(ScaleoutError, match="at least 1 node"):
        fit.predict(0)


def test_node_hours_are_what_the_work_costs() -> None:
    found = scaling.Prediction(64, 1000.0, 900.0, 1100.0, 0.5)
    assert found.node_hours(3_600_000) == pytest.approx(64)


# scaleout scaling TABLE.csv


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "mine.csv"
    path.write_text("# my cluster\nnodes, rate, note\n1,182,a\n4,705,\n\n8,1402,b\n16,2680,c\n")
    return path


def test_a_table_is_read_fitted_and_predicted(table, scaleout) -> None:
    assert scaling.read_table(table) == ([1, 4, 8, 16], [182, 705, 1402, 2680])
    done = scaleout("scaling", table, "--predict", "32,64", "--work", "1e6")
    assert done.returncode == 0, done.stderr
    rows = [line.split() for line in done.stdout.splitlines() if line.split()[0] in ("32", "64")]
    assert [row[0] for row in rows] == ["32", "64"] and "node hours for 1e+06" in done.stdout
    assert float(rows[0][1].replace(",", "")) == pytest.approx(5120, rel=0.1)


def test_the_same_for_a_program_to_read(table, scaleout) -> None:
    found = json.loads(scaleout("scaling", table, "--json", "--predict", "32,9999").stdout)
    first, second = found["predictions"]
    assert first["low"] < first["rate"] < first["high"]
    assert first["node_hours"] == pytest.approx(32 * 1e6 / first["rate"] / 3600)
    assert "too far to trust" in second["refused"]
    assert scaleout("scaling", table, "--predict", "32,9999").returncode == 1


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "needs a first line that names the columns"),
        ("n,images\n1,2\n", "needs a first line that names the columns"),
        ("nodes,rate\n1,fast\n", "line 2: '1,fast' holds no two numbers"),
        ("nodes,rate\n1\n", "line 2: '1' holds no two numbers"),
        ("nodes,rate\n1,10\n2,19\n", "2 different numbers of nodes are too few"),
        (None, "cannot be read: No such file"),
    ],
)
def test_a_table_that_is_none_is_told_in_a_sentence(
    text: str | None, words: str, tmp_path, scaleout
) -> None:
    path = tmp_path / "t.csv"
    if text is not None:
        path.write_text(text)
    done = scaleout("scaling", path)
    assert done.returncode == 2 and words in done.stderr and len(done.stderr.splitlines()) == 1


def test_what_is_no_list_of_nodes_is_refused(table, scaleout) -> None:
    for wrong in ("x", "0", "4,,8", "-1"):
        done = scaleout("scaling", table, f"--predict={wrong}")
        assert done.returncode == 2 and "--predict takes numbers of nodes" in done.stderr
