"""The alpha-beta law of messages, and the step that is put together from it."""

import numpy as np
import pytest

from scaleout import scaling
from scaleout.base.errors import ScaleoutError

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


def test_too_few_sizes_are_refused_in_a_sentence() -> None:
    with pytest.raises(ScaleoutError, match="3 message sizes are too few.*at least 4"):
        scaling.fit_alpha_beta([8, 8, 64, 64, 512], [1e-6] * 5)


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
    assert scaling.ring_allreduce_s(n, 3, **line) == pytest.approx(4 * (ALPHA_S + BETA_S * 2e6))
    assert scaling.gather_broadcast_s(n, 1, **line) == scaling.ring_allreduce_s(n, 1, **line) == 0


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


def test_a_measured_step_has_the_median_of_its_times_and_their_spread() -> None:
    network = scaling.Network("made up", ALPHA_S, BETA_S)
    step = scaling.Step.measured([0.1, 0.2, 0.3], 4000, network, overlap=0.5)
    assert (step.compute_s, step.gradient_bytes, step.overlap) == (0.2, 4000.0, 0.5)
    assert step.spread_s == pytest.approx(0.1 / 1.349), "of the quartiles, 0.15 and 0.25 s"
    assert scaling.Step.measured([0.1], 4000, network).spread_s == 0
