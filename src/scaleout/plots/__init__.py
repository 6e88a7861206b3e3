"""Draw figures: one function a figure, axes with units, the ideal line dashed, single runs as points,
readable in grey.

`look` holds what all figures share, `primitives` what they are put together from."""

from . import look, primitives

__all__ = [
    "look",
    "primitives",
]
