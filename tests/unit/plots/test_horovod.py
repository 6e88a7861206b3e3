"""The pictures of 05_horovod say what was found, and mark a guess where it stands."""

import pandas as pd
import pytest

from scaleout import Comparison, plots
from scaleout.errors import ScaleoutError

ACCURACY = {"batch 64": 0.98, "512, decay": 0.95, "512, gradual warm-up": 0.97}


def _record() -> pd.DataFrame:
    runs = [
        {"variant": name, "again": 0, "accuracy": mean + (seed - 1) / 100, "tested": 1234}
        for name, mean in ACCURACY.items()
        for seed in range(3)
    ]
    runs.append({"variant": "batch 64", "again": 1, "accuracy": 0.1, "tested": 1234})
    rates = {name: [0.1, 0.2] for name in ACCURACY}
    return pd.DataFrame({"metrics": [{"runs": runs, "rates": rates}]})


def _tuned(**rates: float) -> Comparison:
    names = {"1 rank": 100.0, "2 ranks, apart": 196.0}
    names |= {f"2 ranks, cycle {ms[1:]} ms": rate for ms, rate in rates.items()}
    order = [("1 rank", 1), *((name, 0) for name in names)]
    rows = [
        {"round": r, "place": 9 * r + i, "variant": name, "again": again, "value": names[name]}
        for r in range(3)
        for i, (name, again) in enumerate(order)
    ]
    return Comparison(rows)


def test_schedules_name_the_best_of_the_large_batch_with_its_standard_error() -> None:
    said = plots.schedules(_record()).get_label()
    assert said.startswith("512, gradual warm-up: 97.00 ± 0.58 %, the best of the large batch; ")
    assert "batch 64: 98.00 ± 0.58 %" in said, "the second run of the baseline is left out"


def test_a_guessed_schedule_has_its_star_on_its_row() -> None:
    def stars(guess: str | None) -> list[float]:
        lines = plots.schedules(_record(), guess).axes[1].lines
        return [float(y) for line in lines if line.get_marker() == "*" for y in line.get_ydata()]

    assert stars("512, decay") == [1.0]
    assert stars("warm-up") == [2.0] and stars("magic") == stars(None) == []


def test_the_cycle_is_named_with_the_efficiency_it_brought() -> None:
    said = plots.cycle_times(_tuned(c1=120, c4=176, c10=150), goal=0.85).get_label()
    assert said.startswith("Best at 4 ms: an efficiency of 0.88; without talking they reach 0.98.")
    assert "10 ms: 0.75." in said


def test_the_best_cycle_is_the_one_that_is_measured_again() -> None:
    rates = {
        "1 rank": [100, 100, 100],
        "cycle 4 ms": [155, 156, 157],
        "cycle 8 ms": [146, 160, 160],
    }
    rows = [
        {"round": r, "variant": name, "again": again, "value": own[r]}
        for r in range(3)
        for again, (name, own) in [
            (1, ("1 rank", rates["1 rank"])),
            *((0, x) for x in rates.items()),
        ]
    ]
    found = Comparison(rows)
    again = max(found.variants, key=lambda name: found.ratio(name).middle)  # as 05 chooses
    assert again == "cycle 4 ms", "though the other has the higher median"
    assert plots.cycle_times(found).get_label().startswith("Best at 4 ms")


def test_without_a_cycle_there_is_nothing_to_draw() -> None:
    with pytest.raises(ScaleoutError, match="No variant has a cycle"):
        plots.cycle_times(_tuned())
