"""Keeps what 01 or 09 measured as that of the reference machine, for all who have no PyTorch.

    python tools/keep_reference.py RESULTS 01|09

After 01_onednn.ipynb or 09_networks.ipynb was run whole on a quiet machine with `make torch`;
RESULTS is the folder that it wrote to (results/). Then
scaleout exercises  copies the file to labs/."""

import json
import os
import sys
import warnings
from pathlib import Path

from scaleout import Comparison, lab, records
from scaleout.base.errors import ScaleoutError
from scaleout.course import references

SOLUTIONS = Path(__file__).resolve().parents[1] / "solutions"
KERNELS = SOLUTIONS / "01_onednn" / references.REFERENCE
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


def beside_pytorch(results: Path) -> None:
    """ResNet-50 in 01, all kinds that are compared below *Further*."""
    os.environ["SCALEOUT_RESULTS"] = str(results)
    kernels = lab("01_onednn", solution=True).module("kernels")
    jobs = map(records.read, sorted(results.glob("01_onednn/*/records.jsonl")))
    found = [job for job in jobs if {"onednn+fused", "torch"} <= set(job.variant)]
    if not found:
        raise ScaleoutError(f"{results} has no job of turns.py with PyTorch.")
    kept = kernels.Turns(found[-1])
    KERNELS.unlink(missing_ok=True)
    keep(kept, kernels.NAME, KERNELS)
    print(kept.summary)


if __name__ == "__main__":
    lessons = {"01": beside_pytorch, "09": both_frameworks}
    if len(sys.argv) != 3 or sys.argv[2] not in lessons:
        sys.exit(__doc__)
    try:
        lessons[sys.argv[2]](Path(sys.argv[1]))
    except ScaleoutError as error:
        sys.exit(f"{Path(__file__).name}: {error}")
