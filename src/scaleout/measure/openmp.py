"""Settings in turn, on either build of TensorFlow: ours, and the OpenMP one that `make intel`
brings to .side/intel.

Where that one is missing, runs of a reference machine take its place, and say so.
"""

import statistics
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from .. import progress
from ..errors import ScaleoutError
from ..jobs.job import Run
from ..paths import show, side

if TYPE_CHECKING:
    import pandas as pd


__all__ = ["MISSING", "REFERENCE", "Scripts", "python", "table", "turns"]

REFERENCE = "reference.jsonl"  # beside a lab's runme.py: records, each with the name of its arm
MISSING = "The OpenMP build of TensorFlow is not here: type  make intel  in a terminal (370 MB, Python 3.11)."


class Scripts(Protocol):
    """What is needed of a lab: its folder, and what runs a job of it."""

    folder: Path

    def run(self, **how: Any) -> Run:
        """One job."""
        ...


def python() -> str | None:
    """The path of its Python, for lab.run(python=...) and scaleout run --python; None when it is
    not here."""
    folder = side("intel")
    return show(folder / "bin" / "python") if folder else None


def turns(
    lab: Scripts,
    arms: Mapping[str, Mapping[str, Any]],
    repeat: int = 1,
    openmp: bool = False,
    quiet: bool = False,
) -> "pd.DataFrame":
    """Runs each arm once a round, so that what disturbs the machine disturbs all.

    Parameters
    ----------
    lab : Scripts
    arms : mapping of name to arguments
        What `lab.run` takes in each arm.
    repeat : int
        Rounds.
    openmp : bool
        On the OpenMP build; where it is not here, the reference machine's runs of these arms.
    quiet : bool
        Without a progress bar.

    Returns
    -------
    DataFrame
        The records, with a column `arm`; its attrs["where"] says on which machine they were
        measured.

    Raises
    ------
    ScaleoutError
        Neither the OpenMP build nor the reference machine's runs are here.
    """
    import pandas as pd

    interpreter = python() if openmp else "python"
    if interpreter is None:
        return _reference(lab.folder / REFERENCE, list(arms))
    plan = [name for _ in range(repeat) for name in arms]
    frames = []
    for name in progress.bar(plan, unit="job", disable=quiet):
        run = lab.run(**{"echo": False, "python": interpreter, **arms[name]})
        frames.append(run.records.assign(arm=name))
    found = pd.concat(frames, ignore_index=True)
    found.attrs["where"] = "this machine"
    return found


def _reference(file: Path, names: list[str]) -> "pd.DataFrame":
    from .. import records

    if not file.is_file():
        raise ScaleoutError(
            f"{MISSING} The reference machine's records, {show(file)}, are missing too."
        )
    kept = records.read(file)
    kept = kept[kept.arm.isin(names)]
    if lost := [name.replace("\n", " ") for name in names if name not in set(kept.arm)]:
        raise ScaleoutError(f"{MISSING} The reference machine has no runs of: {', '.join(lost)}")
    order = {name: place for place, name in enumerate(names)}
    kept = kept.sort_values("arm", key=lambda arms: arms.map(order), kind="stable").reset_index(
        drop=True
    )
    first = kept.iloc[0]
    kept.attrs["where"] = f"reference machine, not yours: {first.cpu}, {first.cores} cores"
    print(f"{MISSING}\nWhat follows is from a {kept.attrs['where']}, measured {first.utc[:10]}.")
    return kept


def table(frame: "pd.DataFrame") -> "pd.DataFrame":
    """The arms side by side: runs, images_per_s (the median run), lowest, highest, ratio to the
    first arm, verdict.

    verdict: "no difference here" where the runs of an arm and those of the first overlap, or where
    there are too few to tell (one run each); else "faster" or "slower"."""
    import pandas as pd

    groups = {name: group.rate.tolist() for name, group in frame.groupby("arm", sort=False)}
    base = next(iter(groups.values()))
    rows = {}
    for place, (name, rates) in enumerate(groups.items()):
        apart = (
            "faster"
            if min(rates) > max(base)
            else "slower"
            if max(rates) < min(base)
            else "no difference here"
        )
        few = min(len(rates), len(base)) < 2
        verdict = "" if place == 0 else "one run tells nothing" if few else apart
        ratio = statistics.median(rates) / statistics.median(base)
        rows[name] = (len(rates), statistics.median(rates), min(rates), max(rates), ratio, verdict)
    columns = ["runs", "images_per_s", "lowest", "highest", "ratio", "verdict"]
    return pd.DataFrame.from_dict(rows, orient="index", columns=columns)
