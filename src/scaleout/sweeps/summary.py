"""What a sweep found, in a sentence or two, with what speaks against it."""

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..words import count, rounded
from .journal import COPIES
from .published import SOURCE
from .sure import sure

if TYPE_CHECKING:
    from .outcome import Result


Rows = Sequence[Mapping[str, Any]]


def summary(result: "Result", best: Rows, default: Rows, published: Rows) -> str:
    """What was found, what the published setting gives beside it, and what was left out."""
    return _found(result, best, default) + _published(result, best, published) + _left_out(result)


def _found(result: "Result", best: Rows, default: Rows) -> str:
    if result.best is None:
        return "No point gave a figure: the reasons are in `frame`."
    unit = f" {result.unit}" if result.unit else ""
    points = count(len(result.frame), "point")
    if result.best is result.default:
        return f"Nothing in {points} beats the default: {rounded(result.default.rate)}{unit}."
    text = f"The best of {points} gives {rounded(result.best.rate)}{unit}"
    if math.isnan(result.default.rate):
        return f"{text}; the default gives no figure ({result.default.reason})."
    text += f", {result.best.ratio:.2f} times the default's {rounded(result.default.rate)}."
    if said := sure(default, best, len(result.frame), result.lower):
        return f"{text} {said}"
    gap = abs(result.best.rate - result.default.rate)
    spreads = [s for s in (result.best.spread, result.default.spread) if not math.isnan(s)]
    if gap <= max(spreads, default=0.0):
        text += " That is no more than their spread: there is no difference to be seen here."
    elif abs(result.drift) * result.default.rate >= gap:
        text += (
            " That is no more than the default's own drift: "
            "measure again when the machine is quiet."
        )
    return text


def _published(result: "Result", best: Rows, published: Rows) -> str:
    """What to say of the best beside the published setting; "" where that was not measured."""
    if result.published is None or result.best is None:
        return ""
    if result.published.status != "ok":
        return f" The published setting gives no figure ({result.published.reason})."
    rates = (result.best.rate, result.published.rate)
    times = rates[1] / rates[0] if result.lower else rates[0] / rates[1]
    name = "the default" if result.best is result.default else "the best"
    text = f" Against the published setting ({SOURCE}) {name} is {times:.2f} times as fast."
    said = sure(published, best, len(result.frame), result.lower, "the published setting")
    return f"{text} {said}".rstrip()


def _left_out(result: "Result") -> str:
    """What to say of points that were copies of one job; "" where there was none."""
    copies = int((result.frame.status == COPIES).sum()) if len(result.frame) else 0
    if not copies:
        return ""
    points = count(len(result.frame), "point")
    is_out = "is left out: its" if copies == 1 else "are left out: their"
    return (
        f" {copies} of {points} {is_out} ranks never talked to each other, so they were copies "
        "of one job, whose rates do not add up."
    )
