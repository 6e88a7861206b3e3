"""Values of a variable that are given as a range: 1..10, or 1..1024*2."""

import re
from collections.abc import Sequence

from ..base.errors import ScaleoutError
from ..base.words import listed

RANGE = re.compile(r"(\d{1,9})\.\.(\d{1,9})(?:\*(\d{1,9}))?")
# Where it is none, somebody has mistyped it: 1...10, 1..-2, 0.5..2.
LIKE_A_RANGE = re.compile(r"-?[\d.]*\d\.\.+([-\d]|$)")
KEY = re.compile(r"-*[A-Za-z_][\w.-]*[=:]")  # of a value such as granularity=fine
# Variables whose value is a list with commas:
LISTS = {
    *("UCX_TLS", "UCX_NET_DEVICES", "FI_PROVIDER", "I_MPI_PIN_PROCESSOR_LIST", "OMP_PLACES"),
    *("CUDA_VISIBLE_DEVICES", "ZE_AFFINITY_MASK"),
}
MOST = 1000  # values of a range


def named(text: str) -> tuple[str, list[str]]:
    """Split NAME=V1,V2, or NAME='V1;V2' where values hold commas, into its name and its values."""
    name, equals, values = text.partition("=")
    if not (name and equals):
        raise ScaleoutError(
            f"--env takes NAME=VALUE1,VALUE2, such as --env KMP_BLOCKTIME=0,1,200; not {text!r}."
        )
    if ";" not in values and _one(name, values.split(",")):
        raise ScaleoutError(
            f"{name}={values} may be one value with commas in it: type  --env '{name}={values};'  for one, "
            f"or a ; between several, as in  --env '{name}=A;B'"
        )
    return name, [value for each in listed(values) for value in spread(name, each)]


def _one(name: str, pieces: Sequence[str]) -> bool:
    """Tell whether what stands between commas looks like parts of one value."""
    if len(pieces) < 2 or all(piece.startswith("-") for piece in pieces):  # --a,--b=c
        return False
    keys = [KEY.match(piece) for piece in pieces]
    some = any(keys) and not all(keys)  # granularity=fine,compact,1,0
    each = all(keys) and len({key[0] for key in keys if key}) == len(keys)  # lr=0.1,batch=32
    torn = any(piece.count(a) != piece.count(b) for piece in pieces for a, b in ("{}", "[]", "()"))
    return some or each or torn or name in LISTS


def spread(name: str, text: str) -> list[str]:
    """List the values of 1..10 or of 1..1024*2, or the one value that it is."""
    asked = RANGE.fullmatch(text)
    if asked is None and not LIKE_A_RANGE.match(text):
        return [text]
    value, last = (int(asked[1]), int(asked[2])) if asked else (1, 0)
    factor = int(asked[3]) if asked and asked[3] else None
    values: list[str] = []
    if factor is None or (factor > 1 and value > 0):  # else it would never end
        while value <= last and len(values) <= MOST:
            values.append(str(value))
            value = value + 1 if factor is None else value * factor
    if not 0 < len(values) <= MOST:
        raise ScaleoutError(
            f"{name}={text} is no range of 1 to {MOST:,} values: type  {name}=1..10  for each "
            f"number between, or  {name}=1..1024*2  for 1, 2, 4 and so on."
        )
    return values
