"""A bar for the loops of a notebook that take minutes."""

import sys
from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

from . import settings

Item = TypeVar("Item")


def bar(items: Iterable[Item], **how: Any) -> Iterable[Item]:
    """Show tqdm's bar while `items` are gone through. On stdout, as JupyterLab shows stderr in red."""
    from tqdm import tqdm

    if settings.quick() and isinstance(items, list | tuple) and len(items) > 2:
        items = [items[0], items[-1]]
    shown: Iterable[Item] = tqdm(items, file=sys.stdout, leave=False, **how)
    return shown


def rounds(items: Sequence[Item]) -> Iterable[Item]:
    """Every item three times, once a round: what disturbs the machine for a while disturbs them all."""
    return bar([*items] * settings.rounds(3))
