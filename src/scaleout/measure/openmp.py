"""Settings compared on either build of TensorFlow: ours, and the OpenMP one that `make intel`
brings to .side/intel.

Where that one is missing, a comparison that a reference machine made takes its place, and says so.
"""

from collections.abc import Mapping
from typing import Any

from ..comparisons.compare import compare
from ..comparisons.comparison import Comparison
from ..comparisons.references import REFERENCE, Scripts, reference, whose
from ..paths import show, side

MISSING = "The OpenMP build of TensorFlow is not here: type  make intel  in a terminal (370 MB, Python 3.11)."


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
    """
    interpreter = python()
    if interpreter:
        return compare(lab.run, variants, name=name, python=interpreter, **how)
    found = reference(lab.folder / REFERENCE, name, list(variants), MISSING)
    whose(found.records, MISSING)
    return found
