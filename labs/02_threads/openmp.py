"""Settings compared on the OpenMP build of TensorFlow, which `make intel`
brings to .side/intel.

Where it is missing, a comparison that a reference machine made takes its
place, and says so.
"""

from scaleout import compare
from scaleout.comparisons.references import REFERENCE, reference, whose
from scaleout.paths import show, side

MISSING = ("The OpenMP build of TensorFlow is not here: type  make intel  in "
           "a terminal (370 MB, Python 3.11).")


def python() -> str | None:
    """The path of its Python, for lab.run(python=...); None when it is not
    here."""
    folder = side("intel")
    return show(folder / "bin" / "python") if folder else None


def on_openmp(lab, variants, *, name: str, **how):
    """Compare variants on the OpenMP build; where it is not here, take the
    reference machine's comparison of that name and say whose it is."""
    interpreter = python()
    if interpreter:
        return compare(lab.run, variants, name=name, python=interpreter,
                       **how)
    found = reference(lab.folder / REFERENCE, name, list(variants), MISSING)
    whose(found.records, MISSING)
    return found
