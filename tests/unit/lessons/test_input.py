"""What 10_input says of its pipelines and formats, from made-up figures with known answers."""

import numpy as np
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
    said = figures.sentences(tuned).splitlines()
    verdicts = [line.split(": ")[1].split(",")[0] for line in said]
    assert verdicts == ["faster", "no difference shown", "faster", "slower"]
    assert "times as fast as batch" in said[2]
    drawn = read_figure(figures.step_waterfall(tuned, 1.5))
    assert figures.all_steps(tuned) in drawn
    for line in said:
        assert line in drawn and f"{line.split(', ')[1].split(' times')[0]} times" in drawn


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
