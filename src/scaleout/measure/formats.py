"""Number formats: what they hold, and what they do to a sum."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import ScaleoutError

if TYPE_CHECKING:
    import pandas as pd

Array = np.ndarray[Any, Any]

# Exponent bits and mantissa bits (the leading 1 is not stored); int8 is not a floating format.
FORMATS: dict[str, tuple[int, int] | None] = {
    "fp32": (8, 23),
    "fp16": (5, 10),
    "bf16": (8, 7),
    "int8": None,
}


def round_to(x: "Array | float", name: str, scale: float | None = None) -> Array:
    """The nearest numbers that a format can hold; ties go to the even neighbour."""
    x = np.asarray(x, dtype=np.float64)
    bits = _bits(name)
    if bits is None:
        scale = scale or float(np.max(np.abs(x), initial=0.0)) / 127 or 1.0
        held: Array = np.clip(np.rint(x / scale), -127, 127) * scale
        return held
    exponent_bits, mantissa_bits = bits
    lowest, highest = 2 - 2 ** (exponent_bits - 1), 2 ** (exponent_bits - 1) - 1
    exponent = np.maximum(
        np.frexp(x)[1] - 1, lowest
    )  # below the lowest one, the spacing shrinks no more
    spacing = np.ldexp(1.0, exponent - mantissa_bits)
    rounded = np.rint(x / spacing) * spacing
    return np.where(np.abs(rounded) >= 2.0 ** (highest + 1), np.copysign(np.inf, x), rounded)


def _bits(name: str) -> tuple[int, int] | None:
    if name not in FORMATS:
        raise ScaleoutError(f"There is no format {name!r}; there are {', '.join(FORMATS)}.")
    return FORMATS[name]


def formats() -> "pd.DataFrame":
    """What each format can hold, from its bits: largest, smallest_normal, smallest, epsilon (the
    gap above 1)."""
    import pandas as pd

    rows = []
    for name, bits in FORMATS.items():
        if bits is None:
            rows.append((name, 8, 0, 7, 2.0**7 - 1, 1.0, 1.0, 1.0))
            continue
        exponent, mantissa = bits
        highest, lowest = 2 ** (exponent - 1) - 1, 2 - 2 ** (exponent - 1)
        largest = (2 - 2.0**-mantissa) * 2.0**highest
        limits = (largest, 2.0**lowest, 2.0 ** (lowest - mantissa), 2.0**-mantissa)
        rows.append((name, 1 + exponent + mantissa, exponent, mantissa, *limits))
    columns = [
        "format",
        "bits",
        "exponent",
        "mantissa",
        "largest",
        "smallest_normal",
        "smallest",
        "epsilon",
    ]
    return pd.DataFrame(rows, columns=columns).set_index("format")


def dot(x: Array, y: Array, name: str, accumulate: str = "fp32") -> Array:
    """The dot products of rows, as a processor forms them that multiplies in one format and adds up
    in another.
    """
    products = np.moveaxis(round_to(x, name) * round_to(y, name), -1, 0)  # (n, ...)
    if name == "int8":
        exact: Array = products.sum(axis=0)
        return exact
    total = np.zeros(products.shape[1:])
    for product in products:
        total = round_to(total + product, accumulate)
    return total


def dot_errors(lengths: Sequence[int], repeats: int = 20, seed: int = 0) -> "pd.DataFrame":
    """Relative errors of dot products of random numbers in [0, 1)."""
    import pandas as pd

    x, y = np.random.default_rng(seed).random((2, repeats, max(lengths)))
    rows = []
    for length in lengths:
        exact = np.sum(x[:, :length] * y[:, :length], axis=1)
        for name, total in (
            ("fp32", "fp32"),
            ("int8", "int32"),
            ("bf16", "fp32"),
            ("fp16", "fp16"),
            ("bf16", "bf16"),
        ):
            found = dot(x[:, :length], y[:, :length], name, total if total in FORMATS else "fp32")
            how = f"{name}, sum in {total}"
            rows += [(length, how, error) for error in np.abs(found - exact) / exact]
    return pd.DataFrame(rows, columns=["length", "how", "error"])
