"""The alpha-beta law: known values come back inside the stated intervals, and too few points are refused."""

import numpy as np
import pytest

from scaleout import ScaleoutError, scaling

ALPHA_S, BETA_S = 2e-6, 0.5e-9
BYTES = 4.0 ** np.arange(1, 13)


def _times(seed: int, noise: float = 0.15) -> np.ndarray:
    return (ALPHA_S + BETA_S * BYTES) * np.exp(noise * np.random.default_rng(seed).standard_normal(len(BYTES)))


def test_exact_points_give_the_exact_line() -> None:
    fit = scaling.fit_alpha_beta(BYTES, _times(0, noise=0.0))
    assert fit.alpha_s == pytest.approx(ALPHA_S, rel=1e-6)
    assert fit.beta_s == pytest.approx(BETA_S, rel=1e-6)
    assert fit.seconds(1e6) == pytest.approx(ALPHA_S + BETA_S * 1e6, rel=1e-6)
    assert fit.scatter < 1e-6 and fit.sizes == len(BYTES)


def test_the_intervals_hold_the_truth_as_often_as_they_say() -> None:
    fits = [scaling.fit_alpha_beta(BYTES, _times(seed)) for seed in range(400)]
    for truth, ranges in ((ALPHA_S, [f.alpha_range_s for f in fits]), (BETA_S, [f.beta_range_s for f in fits])):
        held = np.mean([low < truth < high for low, high in ranges])
        assert 0.91 <= held <= 0.98  # 95 %, give or take what 400 tries leave open


def test_the_standard_errors_are_the_spread_of_the_estimates() -> None:
    fits = [scaling.fit_alpha_beta(BYTES, _times(seed)) for seed in range(400)]
    assert np.std([f.alpha_s for f in fits]) == pytest.approx(np.mean([f.alpha_error_s for f in fits]), rel=0.15)
    assert np.std([f.beta_s for f in fits]) == pytest.approx(np.mean([f.beta_error_s for f in fits]), rel=0.15)


def test_an_empty_message_counts_for_alpha() -> None:
    fit = scaling.fit_alpha_beta([0, *BYTES], [ALPHA_S, *_times(0, noise=0.0)])
    assert fit.alpha_s == pytest.approx(ALPHA_S, rel=1e-6)


def test_too_few_sizes_are_refused_in_a_sentence() -> None:
    with pytest.raises(ScaleoutError, match="3 message sizes are too few.*at least 4"):
        scaling.fit_alpha_beta([8, 8, 64, 64, 512], [1e-6] * 5)


@pytest.mark.parametrize("seconds", [[1e-6, 0.0, 1e-6, 1e-6], [1e-6, float("nan"), 1e-6, 1e-6], [1e-6] * 3])
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
    # A ring's time hardly grows with the ranks while the array is large; that of the way through rank 0 does.
    assert scaling.ring_allreduce_s(n, 64, **line) < 2.1 * one_array < scaling.gather_broadcast_s(n, 64, **line) / 50
    # With tiny arrays it is the other way round: only the number of messages counts.
    assert scaling.ring_allreduce_s(8, 64, **line) > 10 * scaling.tree_allreduce_s(8, 64, **line)


@pytest.mark.parametrize("formula", ["gather_broadcast_s", "ring_allreduce_s", "tree_allreduce_s"])
def test_one_rank_sends_nothing(formula: str) -> None:
    assert getattr(scaling, formula)(1e6, 1, ALPHA_S, BETA_S) == 0
