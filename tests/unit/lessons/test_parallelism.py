"""What 11_parallelism computes for its figures, from made-up records with known answers."""

import re

import numpy as np
import pandas as pd
import pytest
from helpers import lesson, read_figure

figures = lesson("11_parallelism")


def _steps(crossing: float, by: float = 1.0) -> pd.DataFrame:
    """Records of which.py in which tensor's steps are as long as data's at this batch / width, and
    by this much longer and shorter in turns; forecast is a tenth less than is measured."""
    rows = []
    for part in (0.25, 0.5, 1, 2, 4):
        for way, seconds in (
            ("data", 1.0),
            ("tensor", part / crossing),
            ("data again", 1.05 if part == 2 else 1.0),
        ):
            turns = by if way == "tensor" else 1.0
            rows.append(
                {
                    "variant": way,
                    "metrics.ratio": part,
                    "metrics.predicted_ms": 900 * seconds,
                    "step_s": [seconds / turns, seconds * turns] * 3,
                }
            )
    return pd.DataFrame(rows)


@pytest.mark.parametrize("wanted", [0.3, 1.0, 1.7])
def test_the_crossing_is_found_between_two_batches(wanted: float) -> None:
    _, predicted, _ = figures.ratios(_steps(wanted))
    assert figures.crossing(predicted) == pytest.approx(wanted)
    assert f"batch / width = {wanted:.2f}" in figures.which_when(_steps(wanted))
    assert f"batch / width = {wanted:.2f}" in read_figure(figures.crossover(_steps(wanted), 0.5))


def test_the_crossing_has_the_interval_of_the_steps() -> None:
    """Tensor's steps are a tenth shorter and longer in turns, six in all: five degrees of freedom."""
    said = figures.which_when(_steps(1.0, by=1.1))
    low, high = map(float, re.search(r"= 1\.00 on \((\S+) to (\S+)\)", said).groups())
    half = 2.5706 * np.std(np.log([1.1, 1 / 1.1] * 3), ddof=1) / 6**0.5
    assert [low, high] == pytest.approx(np.exp([-half, half]), abs=0.006)


def test_a_crossing_that_is_not_there_is_not_made_up() -> None:
    said = figures.which_when(_steps(99))
    assert "shorter step at no size tried; forecast: at no size tried" in said
    assert "shorter step at every size tried" in figures.which_when(_steps(0.01))


def test_a_forecast_is_held_against_the_measured_step() -> None:
    said = figures.how_far(_steps(1.0))
    assert "The forecast steps are -10 to -10 % off, in the median 10 %." in said
    assert "data parallelism is shown to be faster at 2 of them, tensor parallelism at 2" in said
    assert "Two equal steps differed by up to 5 %." in said


def _pipeline(micro_batches: int) -> pd.Series:
    """Two stages, each forward 1 s and each backward 2 s, in GPipe's order."""
    logs: list[list[list[object]]] = [[], []]
    for stage, log in enumerate(logs):
        log += [["forward", m, m + stage, m + stage + 1, m + 1] for m in range(micro_batches)]
        begin = micro_batches + 1 + (2 if stage == 0 else 0)
        log += [
            ["backward", m, begin + 2 * m, begin + 2 * m + 2, micro_batches - m]
            for m in range(micro_batches)
        ]
    found = [{"logs": [log]} for log in logs]
    return pd.Series({"step_s": [3.0 * (micro_batches + 1)], "metrics.shares": found})


@pytest.mark.parametrize("micro_batches", [1, 4, 16])
def test_idle_time_of_even_stages_is_the_formula(micro_batches: int) -> None:
    row = _pipeline(micro_batches)
    wanted = pytest.approx(figures.bubble(2, micro_batches))
    assert figures.idle_parts(row) == [wanted] and figures.bubble_parts(row) == [wanted]


def test_a_wait_between_two_micro_batches_is_no_bubble() -> None:
    """Each backward begins a second late, but for the first."""
    row = _pipeline(4)
    late = 3.0
    for each in row["metrics.shares"]:
        for line in each["logs"][0]:
            if line[0] == "backward":
                line[2] += line[1]
                line[3] += line[1]
    row["step_s"] = [15.0 + late]
    (idle,) = figures.idle_parts(row)
    (bubble,) = figures.bubble_parts(row)
    assert bubble == pytest.approx(3 / 18) and idle == pytest.approx(6 / 18)


def _served(seconds: list[float], last: float = 0.4) -> pd.DataFrame:
    """Records of workers whose loss falls evenly from 2 to its last in these seconds."""
    parts = [0, 1 / 3, 2 / 3, 1]
    return pd.DataFrame(
        {
            "metrics.curve": [
                [[each * part, 300 * part, 2 - (2 - last) * part] for part in parts]
                for each in seconds
            ]
        }
    )


def test_a_loss_is_reached_when_a_curve_stays_below_it() -> None:
    wavy = np.array([[0, 0, 2], [1, 1, 0.4], [2, 2, 0.9], [3, 3, 0.4]])
    assert figures._reached(wavy, 0.5) == 3 and figures._reached(wavy, 0.3) == np.inf


def test_waiting_beside_not_waiting_at_each_rate() -> None:
    jobs = {
        "rate 0.1": {"all wait": _served([3, 6, 12]), "nobody waits": _served([1, 2, 4])},
        "rate 2": {"all wait": _served([3, 3, 3]), "nobody waits": _served([1, 1, 1], 0.8)},
    }
    figure = figures.sync_or_async(jobs, 0.5, guess=3)
    said = read_figure(figure)
    assert "rate 0.1: if all wait, it takes 3.0 times as long (3.0 to 3.0)" in said
    assert "rate 2: it is reached by 3 of 3 runs if all wait and by 0 of 3 runs if nobody" in said
    (star,) = [
        line for line in figure.axes[0].lines if "your guess: 3 times" in str(line.get_label())
    ]
    assert star.get_xydata().tolist() == [[6, 0.5]], "three times the median of those who do not"


def test_the_pipelines_memory_is_the_title() -> None:
    peaks = {"data": 100, "tensor": 100, "pipeline": 100, "adam": 300, "sharded": 300,
             "dropped": 300}  # fmt: skip
    split = {"data": 94, "tensor": 49, "pipeline": 53, "adam": 300, "sharded": 231, "dropped": 171}
    held = [
        pd.DataFrame({"variant": list(each), "ranks": n, "metrics.peak_bytes": list(each.values())})
        for n, each in ((1, peaks), (2, split))
    ]
    said = read_figure(figures.rank_memory(held, 0.5))
    assert "With a pipeline of 2 stages, a rank needs 0.53 of the memory" in said
    assert "sharded 0.77" in said and "your guess: 0.5" in said
