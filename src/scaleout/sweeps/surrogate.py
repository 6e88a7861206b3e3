"""What the points measured so far say of those that were not: a Gaussian process over the grid.

Two points are alike as far as they share values, each axis by itself and all together; along an axis
of numbers neighbours are alike too (Rasmussen and Williams, "Gaussian Processes for Machine
Learning", 2006)."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float64]


LEVEL, EACH, TOGETHER = 1.0, 1.0, 0.5  # what is shared by all, by an axis' value, by a whole point
LEAST = 0.1  # spread of logarithms that is expected before points differ


def alike(some: "Array", points: "Array", sizes: Sequence[int], ordered: Sequence[bool]) -> "Array":
    """How much points have in common, (some, points)."""
    import numpy as np

    each, together = np.zeros((len(some), len(points))), np.ones((len(some), len(points)))
    for axis, (size, numbers) in enumerate(zip(sizes, ordered, strict=True)):
        apart = np.abs(some[:, axis, None] - points[None, :, axis])
        near = np.exp(-2 * apart / size) if numbers else (apart == 0).astype(float)
        each, together = each + near / len(sizes), together * near
    found: Array = LEVEL + EACH * each + TOGETHER * together
    return found


def promise(shared: "Array", seen: Sequence[int], values: "Array", noise: float) -> "Array":
    """How much better than the best so far each point can be expected to be, (points,)."""
    import numpy as np
    from scipy.special import ndtr

    scale = max(float(np.std(values)), LEAST)
    some = shared[:, seen] + (noise / scale) ** 2 * np.eye(len(seen))
    weights = np.linalg.solve(some, shared)  # (seen, points)
    mean = weights.T @ ((values - np.mean(values)) / scale)
    before = LEVEL + EACH + TOGETHER
    spread = np.sqrt(np.maximum(before - np.sum(weights * shared, axis=0), 1e-12))
    above = mean - float(np.max(mean[seen]))
    at = above / spread
    found: Array = above * ndtr(at) + spread * np.exp(-(at**2) / 2) / np.sqrt(2 * np.pi)
    return found
