"""What any fit asks of its points: counts and times (or rates) that are numbers, and enough."""

from typing import TYPE_CHECKING

from ..errors import ScaleoutError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float64]


FEWEST_COUNTS = 4  # two begin a law, two say how well it foretells


def count_points(n: "Array", y: "Array", what: str, where: str) -> int:
    """How many different counts there are."""
    import numpy as np

    if n.shape != y.shape or not (
        np.isfinite(y).all() and (y > 0).all() and np.isfinite(n).all() and (n >= 1).all()
    ):
        raise ScaleoutError(
            f"A fit needs one {what} above 0 for each number of {where}, which is 1 or more."
        )
    return len(np.unique(n))
