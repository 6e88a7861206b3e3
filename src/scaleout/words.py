"""Numbers and names in words, as every table, figure and message writes them."""

import math
import re
from collections.abc import Mapping

__all__ = ["count", "listed", "rounded", "sort_key", "veiled"]

VEIL = "***"
SECRETS = {
    *("APIKEY", "AUTH", "CREDENTIAL", "CREDENTIALS", "KEY", "PASS", "PASSPHRASE", "PASSWD"),
    *("PASSWORD", "PAT", "SECRET", "SECRETS", "TOKEN", "TOKENS"),
}


def count(number: int, noun: str) -> str:
    """The number with its noun: 1 rank, 2 ranks, 0 ranks.

    Parameters
    ----------
    number : int
    noun : str
        In the singular; its plural adds an s.
    """
    return f"{number} {noun}{'' if number == 1 else 's'}"


def rounded(value: float) -> str:
    """Three significant digits, never as a power of ten: 0.0123, 24.6, 1,235.

    "-" for what is not a number, and no more than 12 digits after the point.
    """
    if math.isnan(value):
        return "-"
    if math.isinf(value):
        return f"{value:g}"
    digits = 2 - math.floor(math.log10(abs(value))) if value else 0
    return f"{value:,.{min(12, max(0, digits))}f}"


def listed(text: str) -> list[str]:
    """The values in "A,B"; or in "A;B", where values hold commas of their own."""
    return text.rstrip(";").split(";") if ";" in text else text.split(",")


def veiled(variables: Mapping[str, str]) -> dict[str, str]:
    """Variables as they may be kept in a file: what looks like a secret by its name is "***".

    Parameters
    ----------
    variables : Mapping
        {name: value}.
    """
    return {
        name: VEIL if SECRETS.intersection(re.split("[_0-9]+", name.upper())) else value
        for name, value in variables.items()
    }


def sort_key(value: int | str | None) -> tuple[float, str]:
    """For values in their natural order: what is unset, then numbers by size, then words."""
    if value is None or value == "unset":
        return -math.inf, ""
    try:
        return float(value), ""
    except ValueError:
        return math.inf, str(value)
