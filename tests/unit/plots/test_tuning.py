"""The waterfall, and the pictures of 06_tuning, show what they were given."""

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

from scaleout import Comparison, plots, sweeps


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
    job = {"at_s": [1.0, 2.0], "at_step": [10, 20], "accuracy": [0.5, 0.92]}
    job |= {
        "samples": [np.full((112, 224), grey, np.uint8).tolist() for grey in (0, 250)],
        "samples_at_s": [1.0, 2.0],
    }
    job |= {"shares": [parts | {"rss_mib": [(0.5, 400.0), (2.0, 450.0)]}, idle]} | metrics
    return pd.DataFrame(
        [{"metrics": job} | {f"metrics.{name}": value for name, value in job.items()}]
    )


def test_the_accuracy_at_the_end_stands_in_the_title() -> None:
    figure = plots.accuracy_over_time({"first": _job(), "tuned": _job(accuracy=[0.6, 0.9])})
    first, tuned = figure.axes[0].lines
    assert first.get_xydata().tolist() == [[1.0, 50.0], [2.0, 92.0]]
    assert tuned.get_ydata().tolist() == [60.0, 90.0]
    assert "first: 92.0 % after 2.0 s; tuned: 90.0 % after 2.0 s" in figure.get_label()


def _pairs(gains: list[float]) -> pd.DataFrame:
    """A seed each: 60 % from the labels alone, and so many points more with the GAN."""
    rows = []
    for seed, gain in enumerate(gains):
        for variant, share in (("supervised", 0.6), ("shared", 0.6 + gain / 100)):
            metrics = {"accuracy": [0.1, share], "labelled": list(range(20))}
            rows.append({"seed": seed, "variant": variant, "metrics": metrics})
    return pd.DataFrame(rows)


@pytest.mark.parametrize(
    ("gains", "said"),
    [
        ([10.0, 11.0, 12.0], "+11.0 points with the GAN (+8.5 to +13.5), so it earns its place."),
        ([-4.0, 1.0, 6.0], "+1.0 points with the GAN (-11.4 to +13.4), so no gain is shown."),
        ([-10.0, -11.0, -12.0], "so it does harm."),
        ([10.0, 11.0], "2 seeds tell too little."),
    ],
)
def test_whether_the_gan_earns_its_place_follows_from_the_seeds(
    gains: list[float], said: str
) -> None:
    figure = plots.with_and_without(_pairs(gains), guess=5)
    assert said in figure.get_label()
    ends = [line.get_ydata()[1] for line in figure.axes[0].lines[: len(gains)]]
    assert np.allclose(ends, [60 + gain for gain in gains])
    assert "your guess: +5 points" in [text.get_text() for text in figure.legends[0].get_texts()]


def _found(*factors: float) -> Comparison:
    """Variants that are so many times as fast, in five quiet rounds."""
    rows = []
    for round_ in range(5):
        drawn = np.random.default_rng(round_).normal(0, 0.001, 2 + len(factors))
        names = ["so far", "so far", *(f"x{factor}" for factor in factors)]
        for place, (name, factor) in enumerate(zip(names, (1, 1, *factors), strict=True)):
            row = {"round": round_, "variant": name, "again": int(place == 1)}
            rows.append(row | {"value": 100 * factor * (1 + drawn[place]), "unit": "images/s"})
    return Comparison(rows)


def test_a_kept_step_is_a_bar_and_the_next_begins_on_top_of_it() -> None:
    steps = {"one": _found(1.5, 2.0), "other": _found(0.8), "last": _found(1.5)}
    figure = plots.kept_steps(steps, guess="other")
    bars = [(round(low, 1), round(high, 1)) for low, high in _bars(figure)]
    assert bars == [(0, 1), (1, 2), (2, 3), (0, 3)]
    points = [
        float(line.get_ydata()[0]) for line in figure.axes[0].lines if line.get_marker() == "o"
    ]
    assert [round(point, 1) for point in points] == [2.0, 1.6, 3.0]
    assert any("0.80x,\nnot kept" in text for text in _said(figure))
    assert figure.get_label().startswith("2 of 3 steps kept, and together they promise 3.0x")


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
    assert "first: rank 0 trains in 60 % of its time, rank 1 waits in 30 %" in figure.get_label()
    assert "your guess: 70" in [text.get_text() for text in figure.legends[0].get_texts()]


def test_memory_has_a_line_for_each_rank_and_says_how_fast_it_climbs() -> None:
    def grows(by: float) -> pd.DataFrame:
        shares = [
            {"rss_mib": [(s, 400.0 + by * s) for s in range(8)]},
            {"rss_mib": [(0, 300.0)] * 8},
        ]
        return _job(shares=shares)

    figure = plots.memory_over_time({"predict": grows(2.5), "compiled": grows(0.0)})
    assert len(figure.axes[0].lines) == 4 and figure.axes[0].get_ylim()[0] == 0
    assert "later half of the job: predict 2.50 MiB, compiled 0.00 MiB" in figure.get_label()


def test_made_digits_are_shown_in_the_order_in_which_they_were_made() -> None:
    figure = plots.made_digits(_job())
    assert [int(axes.images[0].get_array().mean()) for axes in figure.axes] == [0, 250]
    assert [axes.get_title() for axes in figure.axes] == ["after 1 s", "after 2 s"]
    assert str(figure.get_label()).endswith("after 1, 2 seconds.")
