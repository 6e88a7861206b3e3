"""What 10_input says of its pipelines and formats, from made-up figures with known answers."""

import numpy as np
import pandas as pd
import pytest
from helpers import lesson, read_figure

from scaleout import Comparison

figures = lesson("10_input")
NAMES = ["naive", "+ parallel", "+ batch", "+ cache", "+ prefetch"]
SPEEDS = [1.0, 1.5, 1.5, 3.0, 2.4]


def _tuned(rounds: int = 7, disturbed: int | None = None) -> Comparison:
    """Pipelines of these speeds, with a per cent of noise; and a round in which one stood still."""
    draw = np.random.default_rng(0)
    rows = []
    for round_ in range(rounds):
        for name, speed in [*zip(NAMES, SPEEDS, strict=True), ("naive", 1.0)]:
            value = 1000 * speed * np.exp(0.01 * draw.standard_normal())
            if round_ == disturbed and name == "+ cache":
                value /= 4
            again = int(bool(rows) and rows[-1]["variant"] == NAMES[-1])
            rows.append(dict(round=round_, variant=name, again=again, value=value, unit="images/s"))
    return Comparison(rows)


@pytest.mark.parametrize("disturbed", [None, 3])
def test_each_step_is_held_against_the_one_before_it_and_they_multiply(
    disturbed: int | None,
) -> None:
    tuned = _tuned(disturbed=disturbed)
    steps, total = figures.each_step(tuned)
    assert [(name, before) for name, before, _ in steps] == list(
        zip(NAMES[1:], NAMES, strict=False)
    )
    middles = [ratio.middle for *_, ratio in steps]
    assert middles == pytest.approx([1.5, 1.0, 2.0, 0.8], rel=0.03)
    assert np.prod(middles) == pytest.approx(total.middle, rel=1e-12)


def test_the_print_and_the_waterfall_say_the_same() -> None:
    tuned = _tuned(disturbed=3)
    *lines, noise = figures.sentences(tuned).splitlines()
    said = [line for line in lines if line.startswith("+")]
    verdicts = [line.split(": ")[1].split(",")[0] for line in said]
    assert verdicts == ["faster", "no difference shown", "faster", "slower"]
    assert "times as fast as batch" in said[2]
    reasons = [line.strip() for line in lines if line.startswith(" ")]
    assert reasons == [figures.REASONS[name] for name in ("+ parallel", "+ cache")]
    assert noise == (
        f"Two equal pipelines could differ by as much as {100 * tuned.noise:.0f} % in 7 rounds."
    )
    figure = figures.step_waterfall(tuned, 1.5, 2.2)
    drawn = read_figure(figure)
    assert figures.all_steps(tuned) in drawn
    assert "Shown to help where it was added: parallel, cache." in " ".join(drawn.split())
    for line in said:
        assert line in drawn and f"{line.split(', ')[1].split(' times')[0]} times" in drawn
    under = [tick.get_text().split("\n", 1) for tick in figure.axes[0].get_xticklabels()]
    assert [" ".join(words[1].split()) for words in under[1:]] == [*verdicts, "faster"]


@pytest.mark.parametrize(
    ("end", "times", "says"),
    [
        ("middle", 1.5, "without any wait."),
        ("low", 1.0, "Its interval holds the bound."),
        ("low", 0.9, "The naive pipeline waited longer here than there."),
    ],
)
def test_a_gain_is_held_against_its_bound(end: str, times: float, says: str) -> None:
    tuned = _tuned()
    _, total = figures.each_step(tuned)
    most = times * getattr(total, end)
    assert figures.sentences(tuned, most).splitlines()[-1].endswith(says)


def test_the_band_behind_a_bar_is_the_noise_around_the_pipeline_before() -> None:
    tuned = _tuned()
    axes = figures.step_waterfall(tuned).axes[0]
    bands = [bar for bar in axes.patches if bar.get_width() == pytest.approx(0.94)]
    before = [1.0, 1.5, 1.5, 3.0]
    assert [bar.get_y() * (1 + tuned.noise) for bar in bands] == pytest.approx(before, rel=0.03)
    ends = [bar.get_y() + bar.get_height() for bar in bands]
    assert [end / (1 + tuned.noise) for end in ends] == pytest.approx(before, rel=0.03)


def test_a_round_or_two_tell_of_no_step() -> None:
    tuned = _tuned(rounds=2)
    assert figures.all_steps(tuned) == "All four steps: unclear after 2 rounds; it takes 3."
    assert figures.sentences(tuned).endswith("unclear after 2 rounds; it takes 3.")
    assert "unclear after 2 rounds" in read_figure(figures.step_waterfall(tuned))


@pytest.mark.parametrize(
    ("slowest", "says"),
    [
        (1.5, "our reader of lmdb is the fastest, even in its slowest pass."),
        (2.5, "none of our readers was fastest in every pass; by the median it is that of lmdb."),
    ],
)
def test_a_format_is_the_fastest_only_if_it_always_is(slowest: float, says: str) -> None:
    assert figures._fastest_form({"files": [2, 3, 4], "lmdb": [1, 1, slowest]}).endswith(says)


def test_the_bound_of_the_input_is_a_step_without_its_wait() -> None:
    rows = [("all four", 0.1, 0.9), ("naive", 0.6, 0.4)]
    shares = [[{"wait_s": wait, "compute_s": rest, "others_s": 0.0}] for _, wait, rest in rows]
    records = pd.DataFrame(
        {"variant": [name for name, *_ in rows], "metrics": [{"shares": each} for each in shares]}
    )
    assert figures.without_waiting(records) == pytest.approx(2.5)


def test_both_parts_are_of_one_batch() -> None:
    share = {"wait_s": 1.0, "compute_s": 2.0, "others_s": 1.0}
    whole = pd.DataFrame({"step_s": [[0.06, 0.06, 0.5]], "metrics": [{"shares": [share] * 2}]})
    device = pd.DataFrame(
        {"metrics": [{"step_ms": 0, "turns_s": [0.02, 0.025]}, {"step_ms": 80, "turns_s": [0.08]}]}
    )
    first, second = figures.both_parts(whole, device).splitlines()
    assert "takes 22 ms on two threads" in first
    assert "computes for 30 ms on one core" in second


def test_what_goes_by_before_the_first_image_is_a_share_of_the_pass() -> None:
    rows = [
        ("tfrecord", "in order", "warm"),
        ("lmdb", "in order", "warm"),
        ("lmdb", "shuffled", "warm"),
    ]
    records = pd.DataFrame(
        {
            "variant": [form for form, *_ in rows],
            "step_s": [[0.1, 0.1]] * 3,
            "metrics": [
                {"order": order, "cache": cache, "first_s": [first, first]}
                for (_, order, cache), first in zip(rows, (0.04, 0.001, 0.09), strict=True)
            ],
        }
    )
    assert figures.starts(records).endswith("\ntfrecord 40 %, lmdb 1 %.")


def _servers() -> pd.DataFrame:
    """Three ways to read, with one data server and with ten."""
    found = []
    for many in (1, 10):
        for way, ranks, opens, seconds, model in (
            ("one file per image", 1, 600, 3.6, 3.24),
            ("one file per image", 4, 600, 2.0, 1.8),
            ("from shards", 4, 8, 1.5 / many, 1.45 / many),
            ("staged", 4, 0, 0.001, 0.0),
        ):
            metrics = {"opens": opens, "data_servers": many, "model_s": model}
            found.append(dict(variant=way, ranks=ranks, step_s=[seconds] * 3, metrics=metrics))
    return pd.DataFrame(found)


def test_the_servers_of_files_are_at_work_for_the_share_that_was_measured() -> None:
    said = figures.at_work(_servers())
    assert "10 data servers" in said and "1.80 s" in said
    assert said.endswith("Of an epoch that is 50 % with 1 rank, 90 % with 4 ranks.")


def test_what_more_data_servers_bring_is_in_the_title() -> None:
    figure = figures.one_server(_servers(), 4)
    title = " ".join(figure.get_suptitle().split())
    assert title == (
        "With 10 data servers, shards are 13.3 times as fast as one file per image. With 10 in "
        "place of 1, shards are 10.0 times as fast, and files are about as fast as before."
    )
    (star,) = [line for line in figure.axes[0].lines if line.get_marker() == "*"]
    assert star.get_xdata()[0] == pytest.approx(2.0 / 4)
    assert "at most 11 % off" in read_figure(figure)
