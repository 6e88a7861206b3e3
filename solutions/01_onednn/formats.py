"""Number formats: what they hold, and what they do to a sum."""

import numpy as np
import pandas as pd

from scaleout import ScaleoutError

# Bits of the exponent and of the mantissa (the leading 1 is not stored);
# int8 is not a floating format.
FORMATS = {
    "fp32": (8, 23),
    "fp16": (5, 10),
    "bf16": (8, 7),
    "int8": None,
}


def round_to(x, name: str, scale: float | None = None):
    """Round to the nearest numbers that a format can hold; ties go to the
    even neighbour."""
    if name not in FORMATS:
        raise ScaleoutError(f"There is no format {name!r}; there are "
                            f"{', '.join(FORMATS)}.")
    x = np.asarray(x, dtype=np.float64)
    if name == "int8":
        scale = scale or float(np.max(np.abs(x), initial=0)) / 127 or 1.0
        return np.clip(np.rint(x / scale), -127, 127) * scale
    exponent_bits, mantissa_bits = FORMATS[name]
    highest = 2 ** (exponent_bits - 1) - 1
    # Below the lowest exponent the spacing shrinks no more.
    exponent = np.maximum(np.frexp(x)[1] - 1, 1 - highest)
    spacing = np.ldexp(1.0, exponent - mantissa_bits)
    rounded = np.rint(x / spacing) * spacing
    too_large = np.abs(rounded) >= 2.0 ** (highest + 1)
    return np.where(too_large, np.copysign(np.inf, x), rounded)


def formats():
    """Tell what each format can hold, from its bits alone.

    epsilon is the gap above 1.
    """
    rows = {}
    for name, bits in FORMATS.items():
        if bits is None:
            rows[name] = (8, 0, 7, 127.0, 1.0, 1.0, 1.0)
            continue
        exponent, mantissa = bits
        highest = 2 ** (exponent - 1) - 1
        epsilon = 2.0**-mantissa
        normal = 2.0 ** (1 - highest)
        rows[name] = (1 + exponent + mantissa, exponent, mantissa,
                      (2 - epsilon) * 2.0**highest, normal, normal * epsilon,
                      epsilon)
    columns = ["bits", "exponent", "mantissa", "largest", "smallest_normal",
               "smallest", "epsilon"]
    table = pd.DataFrame.from_dict(rows, "index", columns=columns)
    return table.rename_axis("format")


def dot(x, y, name: str, accumulate: str = "fp32"):
    """Form the dot products of rows, as a processor does that multiplies in
    one format and adds up in another."""
    products = round_to(x, name) * round_to(y, name)  # (..., n)
    if name == "int8":
        return products.sum(axis=-1)
    total = np.zeros(products.shape[:-1])
    for product in np.moveaxis(products, -1, 0):
        total = round_to(total + product, accumulate)
    return total
