"""Which run next: it costs what was allowed, and it narrows the interval."""

import numpy as np
import pytest

from scaleout import scaling

COUNTS = np.array([1, 2, 4, 8, 16])


@pytest.fixture(scope="module")
def fit() -> scaling.RateFit:
    noise = np.exp(0.03 * np.random.default_rng(1).standard_normal(len(COUNTS)))
    return scaling.fit_rates(COUNTS, COUNTS / (1 + 0.02 * (COUNTS - 1)) * noise)


def test_no_run_costs_more_than_was_allowed(fit: scaling.RateFit) -> None:
    found = scaling.next_experiment(fit, 64, most=24, node_runs=48)
    assert found and all(1 <= trial.nodes <= 24 and trial.node_runs <= 48 for trial in found)
    assert all(trial.node_runs == trial.nodes * trial.repeats for trial in found)
    assert [trial.width for trial in found] == sorted(trial.width for trial in found)


def test_the_goal_itself_is_not_proposed(fit: scaling.RateFit) -> None:
    assert max(trial.nodes for trial in scaling.next_experiment(fit, 20)) == 16
    assert max(trial.nodes for trial in scaling.next_experiment(fit, 50)) == 25


def test_a_run_nearer_to_the_goal_tells_more_than_one_far_from_it(fit: scaling.RateFit) -> None:
    width = {trial.nodes: trial.width for trial in scaling.next_experiment(fit, 64, node_runs=32)}
    assert width[32] < width[1] and width[32] < 0.9 * scaling.next_experiment(fit, 64)[0].width_now


def test_what_it_promises_is_about_what_comes(fit: scaling.RateFit) -> None:
    best = scaling.next_experiment(fit, 64)[0]
    rate = best.nodes / (1 + 0.02 * (best.nodes - 1))
    after = scaling.fit_rates(
        [*COUNTS, *[best.nodes] * best.repeats],
        [*(COUNTS / (1 + 0.02 * (COUNTS - 1))), *[rate] * best.repeats],
    ).predict(64)
    assert after.high / after.low == pytest.approx(best.width, rel=0.4)
