"""How often a comparison is wrong, on simulated machines whose truth is known.

    python tests/unit/comparisons/test_compare_proof.py 2000

prints the table of docs/compare.md.
"""

import math
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from scaleout.comparisons.compare import columns, enough, plan
from scaleout.comparisons.comparison import Comparison

pytestmark = pytest.mark.slow  # hundreds of simulated machines
NOISE = 0.05  # of one run: the standard deviation of its logarithm


class Machine:
    """Gives rates with noise of a known kind: each run's logarithm is off by about `noise`.

    drift: by what share it slows down over all the rounds.  halved: the share of runs at half the
    rate.  memory: how much of a run's noise the next one keeps (an autoregressive process).
    uneven: how many times as noisy the variants are as the baseline.
    """

    def __init__(
        self,
        seed: int,
        noise: float = NOISE,
        drift: float = 0.0,
        halved: float = 0.0,
        memory: float = 0.0,
        uneven: float = 1.0,
        one_round: bool = False,
        runs: int = 21,
    ) -> None:
        self.draw = np.random.default_rng(seed)
        self.noise, self.drift, self.halved = noise, drift, halved
        self.memory, self.uneven, self.runs = memory, uneven, runs
        self.bad = int(self.draw.integers(0, runs)) if one_round else -1
        self.now, self.last = 0, float(self.draw.normal())

    def run(self, speed: float, variant: bool) -> float:
        fresh = math.sqrt(1 - self.memory**2) * float(self.draw.normal())
        self.last = self.memory * self.last + fresh
        off = self.noise * self.last * (self.uneven if variant else 1)
        off += math.log(1 - self.drift) * self.now / self.runs
        if self.draw.random() < self.halved or self.now == self.bad:
            off += math.log(0.5)
        self.now += 1
        return 100 * speed * math.exp(off)


def compare(machine: Machine, speeds: dict[str, float], rounds: int = 7) -> Comparison:
    """What scaleout.compare does, without jobs and files."""
    round_of, rows = columns(["base", *speeds]), []

    def done() -> bool:
        return len(rows) >= 3 * len(round_of) and enough(Comparison(rows), rounds)

    for number, (name, again) in plan(round_of, 0, done):
        value = machine.run(speeds.get(name, 1.0), name in speeds)
        place = {"round": number, "place": len(rows), "variant": name, "again": again}
        rows.append({**place, "value": value})
    return Comparison(rows)


def comparisons(
    count: int, effects: tuple[float, ...] = (0.0,), rounds: int = 7, seed: int = 0, **how: Any
) -> Iterator[Comparison]:
    speeds = {f"variant {n}": math.exp(effect) for n, effect in enumerate(effects)}
    for number in range(count):
        machine = Machine(seed + number, runs=rounds * (len(speeds) + 2), **how)
        yield compare(machine, speeds, rounds)


def called(found: Comparison, *words: str) -> bool:
    return any(found.verdict(name) in words for name in found.variants)


def false_alarms(count: int, **how: Any) -> float:
    """The share of comparisons of equal variants in which any is called a difference."""
    return sum(called(c, "faster", "slower") for c in comparisons(count, **how)) / count


def found(count: int, effect: float, **how: Any) -> float:
    """The share of comparisons in which a faster variant is called faster."""
    return sum(called(c, "faster") for c in comparisons(count, (effect,), **how)) / count


MACHINES: dict[str, dict[str, Any]] = {
    "noise of 5 %": {},
    "noise of 1 %, 10 % slower over the rounds": {"noise": 0.01, "drift": 0.1},
    "one run at half the rate": {"one_round": True},
    "each run at half the rate, 1 of 20": {"halved": 0.05},
    "noise with a memory of 0.7": {"memory": 0.7},
}


@pytest.mark.parametrize("machine", MACHINES)
def test_equal_variants_are_called_different_in_5_percent_at_most(machine: str) -> None:
    assert false_alarms(200, **MACHINES[machine]) <= 0.05


@pytest.mark.parametrize("machine", MACHINES)
def test_twice_the_noise_is_found_in_90_percent(machine: str) -> None:
    how = MACHINES[machine]
    pair = math.sqrt(2) * how.get("noise", NOISE)  # what two runs of the same job differ by
    assert found(200, 2 * pair, **how) >= 0.9


def test_twice_the_noise_of_one_run_is_found_too() -> None:
    assert found(200, 2 * NOISE) >= 0.9


def test_several_variants_are_not_more_often_wrong_together() -> None:
    assert false_alarms(200, effects=(0.0, 0.0, 0.0, 0.0)) <= 0.05


def test_the_interval_holds_the_truth_as_often_as_it_says() -> None:
    effect = 0.1
    ratios = [c.ratio("variant 0") for c in comparisons(200, (effect,), seed=1000)]
    held = sum(ratio.low <= math.exp(effect) <= ratio.high for ratio in ratios)
    assert 0.93 <= held / 200 <= 1


def test_no_difference_is_never_said_of_a_large_one() -> None:
    some = list(comparisons(100, (0.15,), noise=0.02))
    assert not any(called(c, "no difference shown", "slower") for c in some)


def test_a_quiet_machine_needs_fewer_rounds_and_never_fewer_than_three() -> None:
    quiet = [c.rounds for c in comparisons(30, noise=0.005)]
    loud = [c.rounds for c in comparisons(30, noise=0.05)]
    assert min(quiet) == 3 and np.mean(quiet) < 4 and min(loud) >= 3 and np.mean(loud) > 6


def bootstrap_alarms(count: int, rounds: int) -> float:
    """The share of false alarms of the percentile bootstrap of the ratio of medians."""
    draw, wrong = np.random.default_rng(0), 0
    for _ in range(count):
        base, other = np.exp(NOISE * draw.normal(size=(2, rounds)))
        chosen = draw.integers(0, rounds, size=(2000, rounds))
        ratios = np.median(other[chosen], axis=1) / np.median(base[chosen], axis=1)
        low, high = np.quantile(ratios, [0.025, 0.975])
        wrong += not low <= 1 <= high
    return wrong / count


def table(count: int) -> None:
    """Prints the rows of docs/compare.md."""
    loud = {"variants twice as noisy as the baseline": {"uneven": 2.0}}
    print("| machine | equal, called different | 2 noise found | 2 noise of a run found | rounds |")
    for name, how in {**MACHINES, **loud}.items():
        noise = how.get("noise", NOISE)
        rounds = np.mean([c.rounds for c in comparisons(min(count, 200), **how)])
        shares = [
            false_alarms(count, **how),
            found(count, 2 * math.sqrt(2) * noise, **how),
            found(count, 2 * noise, **how),
        ]
        cells = " | ".join(f"{100 * share:.1f} %" for share in shares)
        print(f"| {name} | {cells} | {rounds:.1f} |", flush=True)
    for rounds in (3, 5):
        alarms, power = false_alarms(count, rounds=rounds), found(count, 0.1414, rounds=rounds)
        print(
            f"| noise of 5 %, {rounds} rounds | {100 * alarms:.1f} % | {100 * power:.1f} % |",
            flush=True,
        )
    alarms = false_alarms(count, effects=(0.0, 0.0, 0.0, 0.0))
    print(f"| four equal variants | {100 * alarms:.1f} % |", flush=True)
    for rounds in (3, 5, 7):
        print(
            f"| bootstrap, {rounds} | {100 * bootstrap_alarms(10 * count, rounds):.1f} % |",
            flush=True,
        )


if __name__ == "__main__":
    table(int(sys.argv[1]))
