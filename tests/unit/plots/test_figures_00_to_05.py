"""Every figure of the topics 00 to 05, drawn from small made-up records: a title, words for who
cannot see it, units at the axes, and the reader's guess in the picture."""

from collections.abc import Callable
from typing import Any

import pandas as pd
import pytest
from helpers import figures_of, guesses_in, lesson, read_figure


def _limits(draw: Callable[..., Any], guess: Any) -> Any:
    return draw([90.0, 100.0, 110.0], [10.0], guess)


def _shares(draw: Callable[..., Any]) -> Any:
    shares = [{"rank": r, "first": 500 * r, "last": 500 * r + 500, "part": 1.5} for r in range(2)]
    return draw(pd.DataFrame({"metrics.shares": [shares]}))


# Of each topic its figures: how to draw one, words that must be among its own, and a guess.
FIGURES: dict[str, dict[str, tuple[Callable[..., Any], str, object]]] = {
    "00_welcome": {
        "limits": (_limits, "At most 100 GFLOP/s from the cores, and 10 GB/s from memory.", 3),
        "shares": (_shares, "2 ranks took 1,000 strips together; there are 1,000.", None),
    },
}
EACH = [(topic, name) for topic, figures in FIGURES.items() for name in figures]


@pytest.mark.parametrize("topic", FIGURES)
def test_every_figure_is_drawn_here(topic: str) -> None:
    assert figures_of(topic) == set(FIGURES[topic])


@pytest.mark.parametrize(("topic", "name"), EACH)
def test_a_figure_says_what_it_found(topic: str, name: str) -> None:
    drawing, words, guess = FIGURES[topic][name]
    draw = getattr(lesson(topic), name)
    if guess is None:
        assert words in read_figure(drawing(draw))
        return
    empty = drawing(draw, None)
    assert words in read_figure(empty) and not guesses_in(empty)
    guessed = drawing(draw, guess)
    assert any(str(guess) in text for text in guesses_in(guessed))
    assert f"our guess: {guess}" in read_figure(guessed)
