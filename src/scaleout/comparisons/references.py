"""What a reference machine measured, for those who lack what it was measured with: records in a
file beside a lab's runme.py, each with its place in a comparison.
"""

import json
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from .. import records
from ..errors import ScaleoutError
from ..jobs.job import Run
from ..paths import show
from .comparison import Comparison

if TYPE_CHECKING:
    import pandas as pd


REFERENCE = "reference.jsonl"


class Scripts(Protocol):
    """What is needed of a lab: its folder, and what runs a job of it."""

    folder: Path

    def run(self, **how: Any) -> Run:
        """One job."""
        ...


class Reference(Comparison):
    """A comparison made on another machine, with the records of its jobs."""

    def __init__(self, rows: "list[dict[str, Any]]", kept: "pd.DataFrame") -> None:
        super().__init__(rows)
        self._kept = kept

    @property
    def records(self) -> "pd.DataFrame":
        """What the jobs themselves recorded."""
        return self._kept


def whose(frame: "pd.DataFrame", why: str) -> None:
    """Says that what follows was measured on a reference machine, on which one, and why."""
    first = frame.iloc[0]
    print(
        f"{why}\nWhat follows is from a reference machine, not yours: {first.cpu}, "
        f"{first.cores} cores, measured {first.utc[:10]}."
    )


def named(file: Path, name: str) -> "pd.DataFrame":
    """What a reference machine recorded under that name."""
    every = records.read(file)
    mine = [place["name"] == name for place in every.get("compared", [])]
    return every.loc[mine].reset_index(drop=True)


def reference(file: Path, name: str, variants: list[str], missing: str) -> Reference:
    """The comparison of that name that a reference machine made."""
    kept = named(file, name)
    rows = list(kept.get("compared", []))
    if lost := [variant for variant in variants if variant not in {row["variant"] for row in rows}]:
        raise ScaleoutError(
            f"{missing} The reference machine, {show(file)}, has no runs of: {', '.join(lost)}."
        )
    return Reference(rows, kept.assign(variant=[row["variant"] for row in rows]))


def keep(found: Comparison, name: str, file: Path, without: Collection[str] = ()) -> None:
    """Puts a comparison into a file of references, in place of one of the same name."""
    old = file.read_text(encoding="utf-8").splitlines() if file.is_file() else []
    lines = [text for text in old if json.loads(text).get("compared", {}).get("name") != name]
    placed = found.runs.set_index("run_id")
    for _, job in found.records.iterrows():
        place = placed.loc[job.run_id]
        metrics = {key: value for key, value in job.metrics.items() if key not in without}
        if "shares" in metrics:
            metrics["shares"] = [
                {name: value for name, value in share.items() if name != "cpu_s"}
                for share in metrics["shares"]
            ]
        where = {"name": name, "run_id": job.run_id, **place.to_dict()}
        lines.append(line(job, where, metrics))
    file.write_text("".join(f"{text}\n" for text in lines), encoding="utf-8")


def line(job: "pd.Series[Any]", place: Mapping[str, Any], metrics: Mapping[str, Any]) -> str:
    """A record as a file of references has it."""
    record = {
        **{field: job[field] for field in records.FIELDS},
        "host": "reference",
        "step_s": [job.step_median_s],
        "metrics": metrics,
        "compared": place,
    }
    return json.dumps(record, default=_plain)


def _plain(value: Any) -> Any:
    """A number of NumPy's as Python's own."""
    return value.item() if hasattr(value, "item") else value
