"""What `compare --json` writes."""

import math
from typing import Annotated, Literal

import msgspec

from ..base.paths import show
from ..measuring.document import Document, Stamp, about, argv, number
from .comparison import Comparison
from .gate import WORDS, Judged, Says, Status
from .intervals import Ratio, Verdict


class Interval(msgspec.Struct, frozen=True, kw_only=True):
    """How many times as fast as the baseline, with the ends of its interval."""

    middle: float
    low: Annotated[float | None, about("null: too few rounds")]
    high: Annotated[float | None, about("null: too few rounds")]
    rounds: Annotated[int, about("on how many it rests")]


class Variant(msgspec.Struct, frozen=True, kw_only=True):
    """What was measured of a variant, and what follows from it."""

    name: str
    values: Annotated[list[float], about("the figure of each run, in the order of the rounds")]
    ratio: Interval
    verdict: Verdict
    sentence: str


class Baseline(msgspec.Struct, frozen=True, kw_only=True):
    """The first variant, which runs twice a round."""

    name: str
    values: list[float]
    again: Annotated[list[float], about("its second run of each round")]
    ratio: Annotated[Interval, about("of the second run to the first")]


class Gated(msgspec.Struct, frozen=True, kw_only=True):
    """What the gate says of a variant."""

    name: str
    says: Says
    ratio: Annotated[Interval, about("with an interval that all looks together keep")]
    needed: Annotated[int, about("rounds that would tell, about; 0: it is told, or very many")]


class Gate(msgspec.Struct, frozen=True, kw_only=True):
    """What --gate says."""

    share: Annotated[float, about("by how much slower a variant may be: 0.05 is 5 %")]
    status: Annotated[Status, about("the exit status: passes, slower, cannot tell")]
    says: Says
    variants: list[Gated]


class Compared(Document, frozen=True, kw_only=True):
    """A comparison."""

    kind: Literal["compare"] = "compare"
    rounds: int
    baseline: Baseline
    variants: list[Variant]
    noise: Annotated[
        float | None, about("by how much two identical variants could differ, a share")
    ]
    drift: Annotated[float | None, about("by how much faster the machine became, a share")]
    notes: Annotated[list[str], about("what speaks against it, a sentence each")]
    gate: Gate | None = None


def document(result: Comparison, typed: list[str], judged: Judged | None = None) -> Compared:
    """Make the document of a comparison, and of what a gate says of it."""
    runs = {
        (name, again): own.value.tolist()
        for (name, again), own in result.runs.groupby(["variant", "again"], sort=False)
    }
    return Compared(
        argv=argv(typed),
        folder=show(result.folder) if result.folder else "",
        metric=result.metric,
        lower=result.lower,
        unit=result.unit,
        stamp=Stamp.here(),
        rounds=result.rounds,
        baseline=Baseline(
            name=result.baseline,
            values=runs[result.baseline, 0],
            again=runs[result.baseline, 1],
            ratio=_interval(result.found.null),
        ),
        variants=[
            Variant(
                name=name,
                values=runs[name, 0],
                ratio=_interval(result.ratio(name)),
                verdict=result.verdict(name),
                sentence=result.sentence(name),
            )
            for name in result.variants
        ],
        noise=number(result.noise),
        drift=number(result.drift),
        notes=result.notes,
        gate=None if judged is None else _gate(judged),
    )


def _interval(ratio: Ratio) -> Interval:
    known = math.isfinite(ratio.high)
    low, high = (ratio.low, ratio.high) if known else (None, None)
    return Interval(middle=ratio.middle, low=low, high=high, rounds=ratio.rounds)


def _gate(judged: Judged) -> Gate:
    variants = [
        Gated(
            name=name,
            says=WORDS[status],
            ratio=_interval(judged.ratios[name]),
            needed=judged.needed.get(name, 0),
        )
        for name, status in judged.statuses.items()
    ]
    status = judged.status
    return Gate(share=judged.share, status=status, says=WORDS[status], variants=variants)
