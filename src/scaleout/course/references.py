"""Read what a reference machine measured, for those who lack what it was measured with: records in a
file beside a lab's runme.py, each with its place in a comparison.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..base.errors import ScaleoutError
from ..base.paths import show
from ..comparisons.comparison import Comparison
from ..kit import records

if TYPE_CHECKING:
    import pandas as pd


REFERENCE = "reference.jsonl"


class Reference(Comparison):
    """A comparison made on another machine, with the records of its jobs."""

    def __init__(self, rows: "list[dict[str, Any]]", kept: "pd.DataFrame") -> None:
        super().__init__(rows)
        self._kept = kept

    @property
    def records(self) -> "pd.DataFrame":
        """What the jobs themselves recorded."""
        return self._kept


def whose(frame: "pd.DataFrame", why: str, what: str = "What follows is") -> None:
    """Say that something was measured on a reference machine, on which one, and why."""
    first = frame.iloc[0]
    print(
        f"{why}\n{what} from a reference machine, not yours: {first.cpu}, "
        f"{first.cores} cores, measured {first.utc[:10]}."
    )


def named(file: Path, name: str) -> "pd.DataFrame":
    """Read what a reference machine recorded under that name."""
    every = records.read(file)
    mine = [place["name"] == name for place in every.get("compared", [])]
    return every.loc[mine].reset_index(drop=True)


def reference(file: Path, name: str, variants: list[str], missing: str) -> Reference:
    """Read the comparison of that name that a reference machine made."""
    kept = named(file, name)
    rows = list(kept.get("compared", []))
    if lost := [variant for variant in variants if variant not in {row["variant"] for row in rows}]:
        raise ScaleoutError(
            f"{missing} The reference machine, {show(file)}, has no runs of: {', '.join(lost)}."
        )
    return Reference(rows, kept.assign(variant=[row["variant"] for row in rows]))


def line(job: "pd.Series[Any]", place: Mapping[str, Any], metrics: Mapping[str, Any]) -> str:
    """Write a record as a file of references has it."""
    step_s = job.step_median_s  # none where no step was timed
    record = {
        **{field: _whole(job[field]) for field in records.FIELDS},
        "host": "reference",
        "step_s": [step_s] if step_s and step_s > 0 else [],
        "metrics": metrics,
        "compared": place,
    }
    return json.dumps(record, default=lambda number: number.item())  # NumPy's


def _whole(value: Any) -> Any:
    """Restore a count as it was written: beside an empty cell pandas makes 32.0 of 32."""
    return int(value) if isinstance(value, float) and value.is_integer() else value
