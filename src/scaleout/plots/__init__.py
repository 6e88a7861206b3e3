"""Pictures: one function a figure, axes with units, the ideal line dashed, single runs as points,
readable in grey."""

from .classroom import class_picture
from .onednn import operations
from .threads import rate_over_threads, thread_census

__all__ = [
    "class_picture",
    "operations",
    "rate_over_threads",
    "thread_census",
]
