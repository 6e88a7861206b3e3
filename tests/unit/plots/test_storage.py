"""Figures of 10_input's file system, from made-up records with known answers."""

import pandas as pd
import pytest
from matplotlib.figure import Figure

from scaleout import plots


def _server(guess: float | None = None, off: float = 1.0) -> Figure:
    jobs = [
        ("one file an image", 1, 600, 1.2),
        ("one file an image", 4, 600, 1.2),
        ("from shards", 4, 8, 0.1),
        ("staged first", 4, 16, 0.2),
        ("staged", 4, 0, 0.0),
    ]
    rows = [
        {
            "variant": way,
            "ranks": ranks,
            "step_s": [off * seconds or 0.001] * 3,
            "metrics": {"delay_ms": 2.0, "mb_per_s": 50.0, "opens": opens, "model_s": seconds},
        }
        for way, ranks, opens, seconds in jobs
    ]
    return plots.one_server(pd.DataFrame(rows), guess)


def test_the_formula_is_judged_where_the_server_had_work() -> None:
    assert "formula: 0 % off at most" in _server().axes[1].get_title()
    assert "formula: 15 % off at most" in _server(off=1.15).axes[1].get_title()
    assert "Shards are 12.0 times as fast" in _server().get_label()
    assert len(_server().axes[0].patches) == 5


def _load(guess: float | None = None) -> Figure:
    ways = {"one file an image": 100.0, "shards": 0.1}
    return plots.server_load(
        ways, mb_per_s=2.0, delay_ms=1.0, server_mb_per_s=1000.0, nodes=100, guess=guess
    )


def test_a_server_is_enough_for_as_many_nodes_as_fill_its_second() -> None:
    # 0.1 s for the opens of a node and 0.002 s for its bytes.
    assert _load().axes[0].get_title("left").endswith("enough for 9 nodes")
    assert "one file an image: 10.2 s for 100 nodes" in _load().get_label()
    assert "shards: 0.210 s for 100 nodes, enough for 476 nodes" in _load().get_label()


@pytest.mark.parametrize(
    ("figure", "words"), [(_server(4), "your guess: 4 times"), (_load(200), "your guess: 200")]
)
def test_the_guess_comes_back(figure: Figure, words: str) -> None:
    legends = [axes.get_legend() for axes in figure.axes]
    assert words in [text.get_text() for legend in legends if legend for text in legend.get_texts()]
