"""scaleout: make training fast on the cores of one machine, then run it on many."""

from .errors import ScaleoutError
from .launch import lab

__all__ = ["ScaleoutError", "lab"]
__version__ = "0.1.0"
