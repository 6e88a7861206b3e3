"""Keeps two comparisons of 02 as those of the reference machine, for all who have no OpenMP build.

    python tools/keep_reference.py [RESULTS]

After 02_threads.ipynb was run whole on a quiet machine with `make intel`; RESULTS is the folder
that it wrote to (results/). Then  scaleout exercises  copies the file to labs/."""

import os
import sys
from pathlib import Path

from scaleout import Comparison, openmp
from scaleout.errors import ScaleoutError

FILE = Path(__file__).resolve().parents[1] / "solutions/02_threads" / openmp.REFERENCE


def main(results: Path) -> None:
    """Reads both before it writes one."""
    os.environ["SCALEOUT_RESULTS"] = str(results)
    made = {name: Comparison.read(results / "compare" / name) for name in ("knobs", "kmp")}
    FILE.unlink(missing_ok=True)
    for name, found in made.items():
        openmp.keep(found, name, FILE)
        print(f"{name}: {found.summary}")


if __name__ == "__main__":
    try:
        main(Path(sys.argv[1] if len(sys.argv) > 1 else "results"))
    except ScaleoutError as error:
        sys.exit(f"{Path(__file__).name}: {error}")
