"""What 11_parallelism computes for its figures, from made-up records with known answers."""

import re

import numpy as np
import pandas as pd
import pytest
from helpers import lesson, read_figure

figures = lesson("11_parallelism")


def _steps(crossing: float) -> pd.DataFrame:
    """Records of which.py in which tensor's steps are as long as data's at this batch / width."""
    rows = []
    for width in (64, 128):
        for part in (0.25, 0.5, 1, 2, 4):
            rows += [
                {
                    "variant": way,
                    "metrics.width": width,
                    "metrics.batch": int(width * part),
                    "step_s": [seconds] * 3,
                    "metrics.products_s": [0.5 * seconds] * 3,
                    "metrics.messages_s": [0.4 * seconds] * 3,
                }
                for way, seconds in (("data", 1.0), ("tensor", part / crossing))
            ]
    return pd.DataFrame(rows)


@pytest.mark.parametrize("wanted", [0.3, 1.0, 1.7])
def test_the_crossing_is_found_between_two_batches(wanted: float) -> None:
    _, predicted = figures.ratios(_steps(wanted))
    assert figures.crossing(predicted) == pytest.approx(wanted)
    assert f"batch / width = {wanted:.2f}" in figures.which_when(_steps(wanted))
    assert f"batch / width = {wanted:.2f}" in read_figure(figures.crossover(_steps(wanted), 0.5))


def test_the_crossing_has_the_interval_of_the_steps() -> None:
    """Tensor's steps are a tenth shorter and longer in turns, six in all: five degrees of freedom."""
    rows = _steps(1.0)
    rows["step_s"] = [
        [seconds / by, seconds * by] * 3
        for way, (seconds, *_) in zip(rows["variant"], rows["step_s"], strict=True)
        for by in [1.1 if way == "tensor" else 1.0]
    ]
    said = figures.which_when(rows)
    low, high = map(float, re.search(r"= 1\.00 on \((\S+) to (\S+)\)", said).groups())
    half = 2.5706 * np.std(np.log([1.1, 1 / 1.1] * 3), ddof=1) / 6**0.5
    assert [low, high] == pytest.approx(np.exp([-half, half]), abs=0.006)


def test_a_crossing_that_is_not_there_is_not_made_up() -> None:
    said = figures.which_when(_steps(99))
    assert "shorter step at no size tried; predicted: at no size tried" in said
    assert "shorter step at every size tried" in figures.which_when(_steps(0.01))


def test_a_predicted_step_is_held_against_the_measured_one() -> None:
    said = figures.which_when(_steps(1.0))
    assert "data parallelism is shown to be faster at 2, tensor parallelism at 2" in said
    assert "A predicted step is 10 % off in the median, 10 % at most." in said


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


def _served(times: dict[str, list[float]], gradients: dict[str, float]) -> pd.DataFrame:
    """Records of server.py whose loss falls evenly from 2 to 0.5 in these seconds and gradients."""
    rows = []
    for rule, each in times.items():
        for seconds in each:
            parts = [0, 1 / 3, 2 / 3, 1]
            curve = [[seconds * part, gradients[rule] * part, 2 - 1.5 * part] for part in parts]
            rows.append({"variant": rule, "metrics.curve": curve})
    return pd.DataFrame(rows)


def test_sync_beside_async_by_the_clock_and_by_gradients() -> None:
    frame = _served({"async": [1, 2, 2], "sync": [3, 4, 10]}, {"async": 300, "sync": 240})
    figure = figures.sync_or_async(frame, guess=3)
    label = figure.get_label()
    assert "To reach a loss of 0.50, waiting takes 3.00 (2.00 to 5.00) times as long" in label
    assert "0.80 (0.80 to 0.80) times the gradients" in label
    (star,) = [
        line for line in figure.axes[0].lines if "your guess: 3 times" in str(line.get_label())
    ]
    assert star.get_xydata().tolist() == [[6, 0.5]], "three times the median of those who do not"


def test_a_loss_is_reached_between_two_looks() -> None:
    fast = _served({"async": [3]}, {"async": 300})
    slow = _served({"sync": [3]}, {"sync": 300})
    slow.at[0, "metrics.curve"] = [[0, 0, 2], [3, 300, 1.25]]
    label = figures.sync_or_async(pd.concat([fast, slow])).get_label()
    assert "To reach a loss of 1.25, waiting takes 2.00 times as long" in label
