"""`scaleout doctor`: what this machine and this environment have, what is wrong, and what mends
it."""

from .checks import Check
from .report import frame, main

__all__ = ["Check", "frame", "main"]
