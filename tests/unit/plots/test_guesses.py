"""A reader's guess stands in the same picture as the measurement; left empty, nothing of it
shows."""

from collections.abc import Callable

import pytest
from matplotlib.figure import Figure

from scaleout import plots, scaling
from scaleout.errors import ScaleoutError


def _waterfall(guess: object) -> Figure:
    return plots.waterfall(
        {"start": [0.5], "cycle\n5 ms": [0.6], "binding": [0.4], "all": [0.8]}, guess=guess
    )


def _networks(guess: object) -> Figure:
    network = scaling.NETWORKS["10 Gb/s Ethernet"]
    step = scaling.Step(
        network=network, compute_s=0.1, spread_s=0.01, gradient_bytes=1e8, overlap=0.5
    )
    return scaling.efficiency_of_networks({"one": [step]}, guess=guess)


NUMBERS = [_networks]
NAMES = {_waterfall: "Cycle 5 ms"}


def _said(figure: Figure) -> list[str]:
    """All that the picture says of a guess: in its legends, or beside a row."""
    legends = [axes.get_legend() for axes in figure.axes] + figure.legends
    texts = [text for legend in legends if legend for text in legend.get_texts()]
    texts += [tick for axes in figure.axes for tick in axes.get_yticklabels()]
    return [text.get_text() for text in texts if "your guess" in text.get_text()]


@pytest.mark.parametrize("draw", NUMBERS)
def test_a_number_is_drawn_beside_the_measurement(draw: Callable[..., Figure]) -> None:
    assert [said for said in _said(draw(3)) if "3" in said], "the picture does not name the guess"
    assert _said(draw(None)) == []
    with pytest.raises(
        ScaleoutError, match="Your guess is 'three': write a number, such as 1.5, or None"
    ):
        draw("three")


@pytest.mark.parametrize("draw", NAMES)
def test_a_name_is_marked_where_it_stands(draw: Callable[..., Figure]) -> None:
    def stars(guess: object) -> list[float]:
        return [
            float(line.get_xdata()[0])
            for line in draw(guess).axes[0].lines
            if line.get_marker() == "*"
        ]

    assert stars(NAMES[draw]) == [1.0] and _said(draw(NAMES[draw])) == [
        f"your guess: {NAMES[draw]}"
    ]
    assert stars("magic") == [] and _said(draw("magic")) == ["your guess: magic (not among these)"]
    assert stars(None) == [] and _said(draw(None)) == []
