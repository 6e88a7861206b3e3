"""How often the intervals held what was true, on tables that were made up so that it is known.

`calibration.csv` is written by `tools/calibrate_scaling.py --write`; a test makes it anew and
compares."""

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd


FILE = Path(__file__).with_name("calibration.csv")


def calibration() -> "pd.DataFrame":
    """A row a kind of trouble, and the first for all of them."""
    import pandas as pd

    return pd.read_csv(FILE, index_col="kind", comment="#")
