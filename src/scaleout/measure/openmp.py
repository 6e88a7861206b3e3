"""Settings compared on either build of TensorFlow: ours, and the OpenMP one that `make intel`
brings to .side/intel.

Where that one is missing, a comparison that a reference machine made takes its place, and says so.
"""

import json
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from ..errors import ScaleoutError
from ..jobs.job import Run
from ..paths import show, side
from .compare import compare
from .comparison import Comparison

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "MISSING",
    "REFERENCE",
    "Reference",
    "Scripts",
    "keep",
    "on_openmp",
    "python",
    "reference",
]

REFERENCE = (
    "reference.jsonl"  # beside a lab's runme.py: records, each with its place in a comparison
)
MISSING = "The OpenMP build of TensorFlow is not here: type  make intel  in a terminal (370 MB, Python 3.11)."


class Scripts(Protocol):
    """What is needed of a lab: its folder, and what runs a job of it."""

    folder: Path

    def run(self, **how: Any) -> Run:
        """One job."""
        ...


class Reference(Comparison):
    """A comparison made on another machine, with the records of its jobs.

    Parameters
    ----------
    rows : list of dict
        A row each run, as `Comparison` takes them.
    kept : DataFrame
        What the jobs recorded, a row each.
    """

    def __init__(self, rows: "list[dict[str, Any]]", kept: "pd.DataFrame") -> None:
        super().__init__(rows)
        self._kept = kept

    @property
    def records(self) -> "pd.DataFrame":
        """What the jobs themselves recorded."""
        return self._kept


def python() -> str | None:
    """The path of its Python, for lab.run(python=...) and scaleout run --python; None when it is
    not here."""
    folder = side("intel")
    return show(folder / "bin" / "python") if folder else None


def on_openmp(
    lab: Scripts, variants: Mapping[str, Mapping[str, Any]], *, name: str, **how: Any
) -> Comparison:
    """Compares variants on the OpenMP build; where it is not here, gives the reference machine's
    comparison of that name and says whose it is.

    Parameters
    ----------
    lab : Scripts
    variants : mapping of name to arguments
        What `lab.run` takes in each variant; the first is the baseline.
    name : str
        Of the comparison, as the reference has it.
    **how
        Further arguments of `compare`, and those that all variants share.

    Returns
    -------
    Comparison

    Raises
    ------
    ScaleoutError
        Where neither the build nor such a comparison is here.
    """
    interpreter = python()
    if interpreter:
        return compare(lab.run, variants, name=name, python=interpreter, **how)
    found = reference(lab.folder / REFERENCE, name, list(variants), MISSING)
    first = found.records.iloc[0]
    print(
        f"{MISSING}\nWhat follows is from a reference machine, not yours: {first.cpu}, "
        f"{first.cores} cores, measured {first.utc[:10]}."
    )
    return found


def reference(file: Path, name: str, variants: list[str], missing: str) -> Reference:
    """The comparison of that name that a reference machine made.

    Parameters
    ----------
    file : Path
        Of references.
    name : str
    variants : list of str
        That it must have.
    missing : str
        What is missing here, for the error.

    Raises
    ------
    ScaleoutError
        There is no such comparison.
    """
    from .. import records

    every = records.read(file)
    compared = list(every.get("compared", []))
    mine = [at for at, place in enumerate(compared) if place["name"] == name]
    rows = [compared[at] for at in mine]
    if lost := [variant for variant in variants if variant not in {row["variant"] for row in rows}]:
        raise ScaleoutError(
            f"{missing} The reference machine, {show(file)}, has no runs of: {', '.join(lost)}."
        )
    kept = every.iloc[mine].reset_index(drop=True)
    return Reference(rows, kept.assign(variant=[row["variant"] for row in rows]))


def keep(found: Comparison, name: str, file: Path, without: Collection[str] = ()) -> None:
    """Puts a comparison into a file of references, in place of one of the same name.

    Parameters
    ----------
    found : Comparison
        Just made, with the records of its jobs still in results/.
    name : str
    file : Path
    without : collection of str
        Metrics that nobody needs of a reference.
    """
    from .. import records

    old = file.read_text(encoding="utf-8").splitlines() if file.is_file() else []
    lines = [line for line in old if json.loads(line).get("compared", {}).get("name") != name]
    placed = found.runs.set_index("run_id")
    for _, job in found.records.iterrows():
        place = placed.loc[job.run_id]
        metrics = {key: value for key, value in job.metrics.items() if key not in without}
        if "on_rank" in metrics:
            metrics["on_rank"] = [{**copy, "cpu_s": []} for copy in metrics["on_rank"]]
        record = {
            **{field: job[field] for field in records.FIELDS},
            "host": "reference",
            "step_s": [job.step_median_s],
            "metrics": metrics,
            "compared": {"name": name, "run_id": job.run_id, **place.to_dict()},
        }
        lines.append(json.dumps(record, default=_plain))
    file.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def _plain(value: Any) -> Any:
    """A number of NumPy's as Python's own."""
    return value.item() if hasattr(value, "item") else value
