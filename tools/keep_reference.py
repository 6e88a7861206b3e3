"""Keeps what 01, 02 or 09 measured as that of the reference machine, for all who have no OpenMP
build or no PyTorch.

    python tools/keep_reference.py [RESULTS [01|02|09]]

After 02_threads.ipynb was run whole on a quiet machine with `make intel`, or 01_onednn.ipynb or
09_networks.ipynb with `make torch`; RESULTS is the folder that it wrote to (results/). Then
scaleout exercises  copies the file to labs/."""

import os
import sys
from pathlib import Path

from scaleout import Comparison, lab, records
from scaleout.comparisons import references
from scaleout.errors import ScaleoutError

SOLUTIONS = Path(__file__).resolve().parents[1] / "solutions"
FILE = SOLUTIONS / "02_threads" / references.REFERENCE
KERNELS = SOLUTIONS / "01_onednn" / references.REFERENCE
FRAMEWORKS = SOLUTIONS / "09_networks" / references.REFERENCE


def both_frameworks(results: Path) -> None:
    """One file of all that 09 has kept."""
    parts = sorted((results / "frameworks").glob("*.jsonl"))
    FRAMEWORKS.write_text("".join(part.read_text(encoding="utf-8") for part in parts))
    print(f"{', '.join(part.stem for part in parts)}: kept.")


def beside_pytorch(results: Path) -> None:
    """ResNet-50 in 01, all kinds."""
    os.environ["SCALEOUT_RESULTS"] = str(results)
    kernels = lab("01_onednn", solution=True).module("kernels")
    jobs = map(records.read, sorted(results.glob("01_onednn/*/records.jsonl")))
    found = [job for job in jobs if {"default", "torch"} <= set(job.variant)]
    if not found:
        raise ScaleoutError(f"{results} has no job of turns.py with PyTorch.")
    kept = kernels.Turns(found[-1])
    KERNELS.unlink(missing_ok=True)
    references.keep(kept, kernels.NAME, KERNELS)
    print(kept.summary)


def main(results: Path) -> None:
    """Which knob is real, in both builds."""
    os.environ["SCALEOUT_RESULTS"] = str(results)
    made = {name: Comparison.read(results / "compare" / name) for name in ("knobs",)}
    FILE.unlink(missing_ok=True)
    for name, found in made.items():
        references.keep(found, name, FILE)
        print(f"{name}: {found.summary}")


if __name__ == "__main__":
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "results")
    try:
        others = {"01": beside_pytorch, "09": both_frameworks}
        others.get(" ".join(sys.argv[2:]), main)(folder)
    except ScaleoutError as error:
        sys.exit(f"{Path(__file__).name}: {error}")
