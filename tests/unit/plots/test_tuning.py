"""The waterfall, and the pictures of 06_tuning, show what they were given."""

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from scaleout import plots, sweeps


def _said(figure: Figure) -> list[str]:
    """What stands above the bars, from left to right."""
    return [text.get_text() for text in figure.axes[0].texts if text.get_text()]


def _bars(figure: Figure) -> list[tuple[float, float]]:
    """From where to where each bar goes."""
    return [(bar.get_y(), bar.get_y() + bar.get_height()) for bar in figure.axes[0].patches]


STEPS = {"start": [10.0], "one": [30.0, 20.0, 20.0], "other": [15.0], "all": [40.0]}


def test_one_after_another_each_step_begins_where_the_last_has_got_to() -> None:
    figure = plots.waterfall(STEPS, chain=True)
    assert _bars(figure) == [(0, 10), (10, 20), (15, 20), (0, 40)]
    assert _said(figure) == ["10.00", "2.00x", "0.75x", "40.00\n4.00x"]


def test_one_at_a_time_each_step_begins_at_the_start() -> None:
    figure = plots.waterfall(STEPS, "efficiency", ideal=50, goal=45, guess="other")
    assert _bars(figure) == [(0, 10), (10, 20), (10, 15), (0, 40)]
    assert _said(figure) == ["10.00", "+10.00", "+5.00", "40.00"]
    legend = [text.get_text() for text in figure.axes[0].get_legend().get_texts()]
    assert {"ideal", "to be reached: 45", "your guess: other"} <= set(legend)


def test_a_step_that_was_not_kept_stays_in_the_picture_with_its_reason() -> None:
    steps = {"start": [10.0], "one": [20.0], "other": [5.0], "absent": [], "all": [40.0]}
    figure = plots.waterfall(steps, chain=True, reasons={"other": "slower here"})
    assert _said(figure) == ["10.00", "2.00x", "1.0x", "1.0x", "40.00\n4.00x"]
    assert _bars(figure) == [(0, 10), (10, 20), (0, 40)]
    assert figure.axes[0].get_xlabel().splitlines() == [
        "1.0x  other: slower here",
        "1.0x  absent: not measured here",
    ]
    heights = [y for dots in figure.axes[0].collections for _, y in np.asarray(dots.get_offsets())]
    assert 5.0 in heights, "what was measured is drawn, though it was not kept"


def test_the_runs_of_a_sweep_are_taken_and_its_failures_said() -> None:
    def row(threads: int, rate: float | None, role: str = "point") -> dict:
        how = {
            "ranks": 1,
            "threads": threads,
            "env": {},
            "repeat": 0,
            "role": role,
            "unit": "images/s",
            "wall_s": 1.0,
        }
        return how | {
            "rate": rate,
            "status": "ok" if rate else "failed",
            "reason": "" if rate else "out of memory",
        }

    found = sweeps.Result([row(1, 10.0, "default, first"), row(2, 20.0), row(4, None)]).runs
    steps = {
        "start": found[found.threads == 1],
        "two": found[found.threads == 2],
        "four": found[found.threads == 4],
    }
    figure = plots.waterfall(steps | {"all": [20.0]}, chain=True)
    assert _said(figure) == ["10.00", "2.00x", "1.0x", "20.00\n2.00x"]
    assert figure.axes[0].get_xlabel() == "1.0x  four: failed: out of memory"


def _job(**metrics: object) -> pd.DataFrame:
    parts = {"train_s": 6.0, "input_s": 1.0, "evaluation_s": 3.0, "wait_s": 0.0}
    idle = parts | {"evaluation_s": 0.0, "wait_s": 3.0, "rss_mib": [(0.5, 300.0), (2.0, 310.0)]}
    job = {"at_s": [1.0, 2.0], "at_step": [10, 20], "accuracy": [0.5, 0.92], "to_target_s": 2.0}
    job |= {
        "samples": [np.full((112, 224), grey, np.uint8).tolist() for grey in (0, 250)],
        "samples_at_s": [1.0, 2.0],
    }
    job |= {"shares": [parts | {"rss_mib": [(0.5, 400.0), (2.0, 450.0)]}, idle]} | metrics
    return pd.DataFrame(
        [{"metrics": job} | {f"metrics.{name}": value for name, value in job.items()}]
    )


def test_the_time_to_the_target_stands_in_the_legend_and_a_star_on_the_line() -> None:
    jobs = {"first": _job(), "slow": _job(to_target_s=None)}
    figure = plots.accuracy_over_time(jobs, 0.9)
    axes = figure.axes[0]
    legend = [text.get_text() for text in figure.legends[0].get_texts()]
    assert legend == ["first: 2.0 s", "slow: not reached", "target: 90 %"]
    (star,) = [line for line in axes.lines if line.get_marker() == "*"]
    assert star.get_xydata().tolist() == [[2.0, 90.0]]


def test_shares_of_the_time_are_per_cent_of_each_rank() -> None:
    figure = plots.time_shares({"first": _job()}, guess=70)
    (axes,) = figure.axes
    assert [round(bar.get_width()) for bar in axes.patches] == [60, 10, 30, 0, 60, 10, 0, 30]
    assert [text.get_text() for text in axes.texts] == [
        "60 %",
        "10 %",
        "30 %",
        "60 %",
        "10 %",
        "30 %",
    ]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["rank 0", "rank 1"]
    assert "your guess: 70" in [text.get_text() for text in figure.legends[0].get_texts()]


def test_memory_has_a_line_for_each_rank_and_a_panel_for_each_group() -> None:
    figure = plots.memory_over_time(
        {"side 28": {"predict": _job()}, "side 64": {"predict": _job()}}, limit_mib=420
    )
    assert [axes.get_title() for axes in figure.axes] == ["side 28", "side 64"]
    first, second, limit = figure.axes[0].lines
    assert first.get_ydata().tolist() == [400, 450] and second.get_ydata().tolist() == [300, 310]
    assert limit.get_ydata()[0] == 420


def test_made_digits_are_shown_in_the_order_in_which_they_were_made() -> None:
    figure = plots.made_digits(_job())
    assert [int(axes.images[0].get_array().mean()) for axes in figure.axes] == [0, 250]
    assert [axes.get_title() for axes in figure.axes] == ["after 1 s", "after 2 s"]
