"""Keeps what 09 measured as that of the reference machine, for all who have no PyTorch.

    python tools/keep_reference.py RESULTS

After 09_networks.ipynb was run whole on a quiet machine with `make torch`; RESULTS is the folder that
it wrote to (results/). Then  scaleout exercises  copies the file to labs/."""

import sys
import warnings
from pathlib import Path

from scaleout import records
from scaleout.course import references

FRAMEWORKS = Path(__file__).resolve().parents[1] / "solutions/09_networks" / references.REFERENCE


def main(results: Path) -> None:
    """One file of all that 09 has kept."""
    parts = sorted((results / "frameworks").glob("*.jsonl"))
    FRAMEWORKS.write_text("".join(part.read_text(encoding="utf-8") for part in parts))
    warnings.simplefilter("error")  # a line that nobody could read
    records.read(FRAMEWORKS)
    print(f"{', '.join(part.stem for part in parts)}: kept.")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(Path(sys.argv[1]))
