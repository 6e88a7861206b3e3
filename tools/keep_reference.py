"""Keeps what 02 or 09 measured as that of the reference machine, for all who have no OpenMP build or
no PyTorch.

    python tools/keep_reference.py [RESULTS [02|09]]

After 02_threads.ipynb was run whole on a quiet machine with `make intel`, or 09_networks.ipynb
with `make torch`; RESULTS is the folder that it wrote to (results/). Then
scaleout exercises  copies the file to labs/."""

import json
import os
import sys
import warnings
from pathlib import Path

from scaleout import Comparison, records
from scaleout.base.errors import ScaleoutError
from scaleout.course import references

SOLUTIONS = Path(__file__).resolve().parents[1] / "solutions"
FILE = SOLUTIONS / "02_threads" / references.REFERENCE
FRAMEWORKS = SOLUTIONS / "09_networks" / references.REFERENCE


def keep(found: Comparison, name: str, file: Path) -> None:
    """Puts a comparison into a file of references, in place of one of the same name."""
    old = file.read_text(encoding="utf-8").splitlines() if file.is_file() else []
    lines = [text for text in old if json.loads(text).get("compared", {}).get("name") != name]
    placed = found.runs.set_index("run_id")
    for _, job in found.records.iterrows():
        metrics = dict(job.metrics)
        if "shares" in metrics:
            metrics["shares"] = [
                {name: value for name, value in share.items() if name != "cpu_s"}
                for share in metrics["shares"]
            ]
        where = {"name": name, "run_id": job.run_id, **placed.loc[job.run_id].to_dict()}
        lines.append(references.line(job, where, metrics))
    file.write_text("".join(f"{text}\n" for text in lines), encoding="utf-8")


def both_frameworks(results: Path) -> None:
    """One file of all that 09 has kept."""
    parts = sorted((results / "frameworks").glob("*.jsonl"))
    FRAMEWORKS.write_text("".join(part.read_text(encoding="utf-8") for part in parts))
    warnings.simplefilter("error")  # a line that nobody could read
    records.read(FRAMEWORKS)
    print(f"{', '.join(part.stem for part in parts)}: kept.")


def main(results: Path) -> None:
    """Which knob is real in the OpenMP build, and its own six sets of settings."""
    os.environ["SCALEOUT_RESULTS"] = str(results)
    made = {name: Comparison.read(results / "compare" / name) for name in ("knobs", "kmp")}
    FILE.unlink(missing_ok=True)
    for name, found in made.items():
        keep(found, name, FILE)
        print(f"{name}: {found.summary}")


if __name__ == "__main__":
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "results")
    try:
        (both_frameworks if sys.argv[2:] == ["09"] else main)(folder)
    except ScaleoutError as error:
        sys.exit(f"{Path(__file__).name}: {error}")
