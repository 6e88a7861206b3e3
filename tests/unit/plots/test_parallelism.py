"""Figures of 11_parallelism, from made-up records with known answers."""

import pandas as pd
import pytest

from scaleout import plots
from scaleout.plots import pipeline


def _sums(crossing: float) -> pd.DataFrame:
    """Records of which.py in which tensor's sums are as long as data's at this batch / width."""
    rows = []
    for width in (64, 128):
        for part in (0.25, 0.5, 1, 2, 4):
            rows += [
                {
                    "variant": way,
                    "metrics.width": width,
                    "metrics.batch": int(width * part),
                    "metrics.sum_s": [seconds] * 3,
                }
                for way, seconds in (("data", 1.0), ("tensor", part / crossing))
            ]
    return pd.DataFrame(rows)


@pytest.mark.parametrize("wanted", [0.3, 1.0, 1.7])
def test_the_crossing_is_found_between_two_batches(wanted: float) -> None:
    assert plots.crossing(_sums(wanted)) == pytest.approx(wanted)
    assert f"batch / width = {wanted:.2f}" in plots.crossover(_sums(wanted), 0.5).get_label()


def test_a_crossing_that_is_not_there_is_not_made_up() -> None:
    assert plots.crossing(_sums(99)) != plots.crossing(_sums(99)), "nan"
    assert "nowhere here" in plots.crossover(_sums(99)).get_label()


def _pipeline(micro_batches: int) -> pd.DataFrame:
    """Two stages, each forward 1 s and each backward 2 s, in GPipe's order."""
    logs: list[list[list[object]]] = [[], []]
    whole = 3.0 * (micro_batches + 1)
    for stage, log in enumerate(logs):
        log += [["forward", m, m + stage, m + stage + 1, m + 1] for m in range(micro_batches)]
        begin = micro_batches + 1 + (2 if stage == 0 else 0)
        log += [
            ["backward", m, begin + 2 * m, begin + 2 * m + 2, micro_batches - m]
            for m in range(micro_batches)
        ]
    row = {
        "ranks": 2,
        "step_s": [whole],
        "metrics.micro_batches": micro_batches,
        "metrics.found": [{"logs": [log]} for log in logs],
    }
    return pd.DataFrame([row])


@pytest.mark.parametrize("micro_batches", [1, 4, 16])
def test_idle_time_of_even_stages_is_the_formula(micro_batches: int) -> None:
    frame = _pipeline(micro_batches)
    (idle,) = pipeline.idle_parts(frame.iloc[0])
    assert idle == pytest.approx(pipeline.bubble(2, micro_batches))
    label = plots.pipeline_timeline({"GPipe": frame}).get_label()
    assert f"{100 * idle:.0f} percent idle, at most {micro_batches}, {micro_batches}" in label


def test_idle_time_beside_the_formula() -> None:
    label = plots.idle_over_micro_batches([_pipeline(4), _pipeline(1)], guess=30).get_label()
    assert "1: 50 percent, of it the bubble 50, by the formula 50" in label
    assert "4: 20 percent, of it the bubble 20, by the formula 20" in label


def test_a_wait_between_two_micro_batches_is_no_bubble() -> None:
    """Each backward begins a second late, but for the first."""
    row = _pipeline(4).iloc[0]
    late = 3.0
    for each in row["metrics.found"]:
        for line in each["logs"][0]:
            if line[0] == "backward":
                line[2] += line[1]
                line[3] += line[1]
    row["step_s"] = [15.0 + late]
    (idle,) = pipeline.idle_parts(row)
    (bubble,) = pipeline.bubble_parts(row)
    assert bubble == pytest.approx(3 / 18) and idle == pytest.approx(6 / 18)


def test_memory_is_compared_with_the_same_work_on_one_rank() -> None:
    rows = [("data", 1, 100), ("adam", 1, 200), ("pipeline", 2, 55), ("sharded", 2, 120)]
    frame = pd.DataFrame([{"variant": v, "ranks": n, "metrics.peak_bytes": b} for v, n, b in rows])
    label = plots.rank_memory([frame], guess=0.5).get_label()
    assert "pipeline on 2 ranks 0.55" in label and "sharded on 2 ranks 0.60" in label


def test_who_talks_names_both_circles() -> None:
    circles = [[[0, 1], [0, 2]], [[0, 1], [1, 3]], [[2, 3], [0, 2]], [[2, 3], [1, 3]]]
    found = [{"circles": each, "layers": [0, 1]} for each in circles]
    row = {"metrics.found": found, "metrics.dtype": "float32", "metrics.width": 4,
           "metrics.batch": 8}  # fmt: skip
    label = plots.who_talks(pd.DataFrame([row])).get_label()
    assert "(0, 1), (2, 3) hand on" in label and "(0, 2), (1, 3) add up" in label


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
    figure = plots.sync_or_async(frame, guess=3)
    label = figure.get_label()
    assert "To a loss of 0.50, waiting takes 3.00 (2.00 to 5.00) times the time" in label
    assert "0.80 (0.80 to 0.80) times the gradients" in label
    (star,) = [line for line in figure.axes[0].lines if "your guess: 3 x" in str(line.get_label())]
    assert star.get_xydata().tolist() == [[6, 0.5]], "three times the median of those who do not"


def test_a_loss_is_reached_between_two_looks() -> None:
    fast = _served({"async": [3]}, {"async": 300})
    slow = _served({"sync": [3]}, {"sync": 300})
    slow.at[0, "metrics.curve"] = [[0, 0, 2], [3, 300, 1.25]]
    label = plots.sync_or_async(pd.concat([fast, slow])).get_label()
    assert "To a loss of 1.25, waiting takes 2.00 times the time" in label
