"""What 11_parallelism computes for its figures, from made-up records with known answers."""

import ast
import itertools
from collections import Counter
from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest
from helpers import ROOT, lesson, read_figure

from scaleout.comparisons import compare

figures = lesson("11_parallelism")


def _steps(crossing: float, by: float = 1.0, null: float = 1.0) -> pd.DataFrame:
    """Records of which.py in which tensor's steps are as long as data's at this batch / width, and
    by this much longer and shorter in turns; data's second step is longer by `null`. The forecast
    is a tenth less than is measured, in the products."""
    rows = []
    for part in (0.25, 0.5, 1, 2, 4):
        for way, seconds in (("data", 1.0), ("tensor", part / crossing), ("data again", null)):
            turns = by if way == "tensor" else 1.0
            rows.append(
                {
                    "variant": way,
                    "metrics.ratio": part,
                    "metrics.predicted_ms": 900 * seconds,
                    "metrics.predicted_parts": [500 * seconds, 400 * seconds],
                    "metrics.parts": [
                        [0, 0, 0],
                        [0, 0, 0],
                        [600 * seconds, 400 * seconds, 3 * part if way == "tensor" else 4],
                    ],
                    "step_s": [seconds / turns, seconds * turns] * 3,
                }
            )
    return pd.DataFrame(rows)


@pytest.mark.parametrize("wanted", [0.3, 1.0, 1.7])
def test_the_crossing_is_found_between_two_batches(wanted: float) -> None:
    _, predicted, _ = figures.ratios(_steps(wanted))
    assert figures.crossing(predicted) == pytest.approx(wanted)
    assert f"The forecast had both equal at {wanted:.2g}." in figures.which_when(_steps(wanted))


def test_a_difference_is_shown_where_it_is_larger_than_the_noise() -> None:
    """Tensor's steps are those of data's at 0.9: half as long again apart at the next batches."""
    said = figures.which_when(_steps(0.9))
    assert "tensor parallelism is shown to be faster at 0.25 and 0.5, data parallelism" in said
    assert "data parallelism at 1, 2 and 4. The forecast" in said
    said = read_figure(figures.crossover(_steps(0.9, null=1.3), 0.5))
    assert "tensor parallelism is shown to be faster at 0.25 and 0.5, data parallelism" in said
    assert "data parallelism at 2 and 4; no difference is shown at 1. The forecast" in said
    assert "your guess: 0.5" in said


def test_an_interval_with_1_shows_no_difference() -> None:
    """At 1 the two are as long, by half longer and shorter in turns."""
    measured, _, noise = figures.ratios(_steps(1.0, by=1.5))
    assert figures.shown(measured, noise)[1] == ""
    assert "no difference is shown at 0.5, 1 and 2" in figures.which_when(_steps(1.0, by=2.5))


def test_a_crossing_that_is_not_there_is_not_made_up() -> None:
    said = figures.which_when(_steps(99))
    assert "tensor parallelism is shown to be faster at 0.25, 0.5, 1, 2 and 4. The" in said
    assert "The forecast had them equal nowhere." in said
    assert "data parallelism is shown to be faster at 0.25, 0.5, 1, 2 and 4. The" in (
        figures.which_when(_steps(0.01))
    )


def test_a_forecast_is_held_against_the_measured_step() -> None:
    said = figures.how_far(_steps(1.0))
    assert "The forecast is -10 to -10 % off, in the median 10 %." in said
    rows = _steps(1.0)
    rows.at[1, "metrics.predicted_ms"], rows.at[1, "metrics.predicted_parts"] = 200, [100, 100]
    said = figures.how_far(rows)
    assert "Furthest off is tensor parallelism at 0.25: forecast 200.0 ms, measured 250.0" in said
    assert "-50.0 ms in the products, +0.0 in the messages, +0.0 between these and" in said
    assert "what is not sent grew by more than the cube of the width." in said


def test_equal_steps_tell_how_much_they_differ() -> None:
    """Data's second step is always by 30 % longer, and tensor's spread counts too."""
    assert figures.equal_steps(_steps(1, null=1.3)) == "Two equal steps could differ by 30 to 30 %."
    few = _steps(1)
    few["step_s"] = [each[:1] for each in few["step_s"]]
    assert figures.equal_steps(few).startswith("Too few rounds")


def test_what_is_shown_is_held_against_the_bytes() -> None:
    """Tensor parallelism sends as many at 4/3."""
    said = figures.by_bytes(_steps(1.33))
    assert said.startswith("Where a difference is shown, the way that sends fewer bytes is faster:")
    said = figures.by_bytes(_steps(0.9))
    assert said.startswith("Not everywhere is the way faster that sends fewer bytes: ")
    assert "at 1 data parallelism leads by 66.7 ms in the products and" in said
    assert figures.by_bytes(_steps(1.0, by=99)).startswith("No difference is shown")


def test_the_ways_take_turns_as_the_variants_of_a_comparison_do() -> None:
    text = (ROOT / "solutions/11_parallelism/which.py").read_text()
    (order,) = (
        node
        for node in ast.parse(text).body
        if isinstance(node, ast.FunctionDef) and node.name == "order"
    )
    made: dict[str, Callable[[list[str], int], list[str]]] = {}
    exec(compile(ast.Module([order], []), "which.py", "exec"), made)
    names = ["data", "tensor", "data again"]
    rounds = [made["order"](names, number) for number in range(12)]
    taken = itertools.islice(compare.plan([(name, 0) for name in names], 0, lambda: False), 36)
    assert [name for each in rounds for name in each] == [name for _, (name, _) in taken]
    follows = Counter(pair for each in rounds for pair in itertools.pairwise(each))
    assert len(follows) == 6 and set(follows.values()) == {4}, "nobody always follows the same one"


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


def test_a_bubble_below_the_formula_is_told_with_how_equal_the_stages_are() -> None:
    rows = [_pipeline(1), _pipeline(2)]
    for micro_batches, row in zip((1, 2), rows, strict=True):
        row["metrics.micro_batches"], row["ranks"] = micro_batches, 2
    said = figures.uneven([row.to_frame().T for row in rows])
    assert (
        "one stage computed 1.00 to 1.00 times" in said
        and "no bubble lies more than a point" in said
    )
    # The second stage turns round in half the time, and the first one waits so much less.
    for line in rows[1]["metrics.shares"][1]["logs"][0]:
        line[3] = (line[2] + line[3]) / 2
    for line in rows[1]["metrics.shares"][0]["logs"][0]:
        if line[0] == "backward":
            line[2], line[3] = line[2] - 1.5, line[3] - 1.5
    rows[1]["step_s"] = [9 - 1.5]
    said = figures.uneven([row.to_frame().T for row in rows])
    assert "where one computed 2.00 times as long as the other" in said and "with M = 2" in said


def _served(seconds: list[float], last: float = 0.4) -> pd.DataFrame:
    """Records of workers whose loss falls evenly from 2 to its last in these seconds."""
    parts = [0, 1 / 3, 2 / 3, 1]
    return pd.DataFrame(
        {
            "ranks": 4,
            "metrics.curve": [
                [[each * part, 300 * part, 2 - (2 - last) * part] for part in parts]
                for each in seconds
            ],
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


def test_updates_of_those_who_do_not_wait_beside_the_time_to_a_loss() -> None:
    """300 gradients in a third of the time are nine times as many updates as a hundred means."""
    jobs = {"rate 0.1": {"all wait": _served([3, 6, 12]), "nobody waits": _served([1, 2, 4])}}
    said = figures.updates(jobs, 0.5)
    assert "In the same time there were 9.0 times as many updates if nobody waits." in said
    assert "If all wait, a loss of 0.5 took 3.0 times as long (" in said
    assert said.endswith("brought less than one by the mean of all.")
    assert figures.times_as_long(jobs, 0.5) == pytest.approx(3)
    jobs["rate 0.1"]["all wait"] = _served([1, 6, 60])
    assert "do not show whether an update" in figures.updates(jobs, 0.5), "the interval is wide"
    jobs["rate 0.1"]["all wait"] = _served([3, 6, 12])
    jobs["rate 0.1"]["nobody waits"] = _served([1, 2, 4], 0.8)
    assert figures.updates(jobs, 0.5).endswith("if nobody waits.")


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
