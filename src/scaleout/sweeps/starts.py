"""Where a search begins: settings that 02 and 05 found good on several machines, as far as the grid
holds them."""

import math
from collections.abc import Mapping, Sequence

from ..words import sort_key
from .points import Choices, Value

GOOD: Mapping[str, str] = {
    "HOROVOD_CYCLE_TIME": "4",  # ms: 05
    "KMP_AFFINITY": "granularity=fine,compact,1,0",
    "KMP_BLOCKTIME": "1",  # ms
    "OMP_PROC_BIND": "close",
    "TF_ENABLE_ONEDNN_OPTS": "1",
    "TF_NUM_INTEROP_THREADS": "1",
}


def starts(choices: Choices, cores: int) -> list[tuple[Value, ...]]:
    """A rank for each core, and one rank with all cores; each variable as it is usually good, or
    else unset, or else in the middle.
    """
    found = []
    for ranks in (cores, 1):
        layout = {"ranks": ranks, "threads": cores // ranks}
        found.append(
            tuple(
                _nearest(values, layout[axis]) if axis in layout else _usual(axis, values)
                for axis, values in choices.items()
            )
        )
    return list(dict.fromkeys(found))


def _nearest(values: Sequence[Value], wish: int) -> Value:
    """By how many times as many; of two, the smaller."""
    return min(values, key=lambda value: (abs(math.log(int(value or 1) / wish)), int(value or 1)))


def _usual(axis: str, values: Sequence[Value]) -> Value:
    good = GOOD.get(axis)
    if good in values:
        return good
    if good is not None and good.isdigit():
        numbers = [value for value in values if value is not None and str(value).isdigit()]
        if numbers:
            return min(numbers, key=lambda value: abs(int(str(value)) - int(good)))
    if None in values:
        return None
    return sorted(values, key=sort_key)[len(values) // 2]
