"""PyTorch, which `make torch` puts into .side/torch, and what is said where it is missing."""

from ..base.paths import show, side

MISSING = "PyTorch is not here: type  make torch  in a terminal (270 MB, Python 3.11)."


def python() -> str | None:
    """Return the path of PyTorch's Python, for lab.run(python=...); None when it is not here."""
    folder = side("torch")
    return show(folder / "bin" / "python") if folder else None


def missing() -> str:
    """Say why what a reference machine measured takes the place of PyTorch."""
    return "The short form leaves PyTorch out." if python() else MISSING
