"""A bar for the loops of a notebook that take minutes."""

import sys
from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

from .settings import quick

Item = TypeVar("Item")


def bar(items: Iterable[Item], **how: Any) -> Iterable[Item]:
    """tqdm's bar over `items`, on stdout: JupyterLab shows stderr in red, as if something had
    failed.
    """
    from tqdm import tqdm

    if quick() and isinstance(items, list | tuple) and len(items) > 2:
        items = [items[0], items[-1]]
    shown: Iterable[Item] = tqdm(items, file=sys.stdout, **how)
    return shown


def rounds(items: Sequence[Item], times: int = 3) -> Iterable[Item]:
    """Every item once a round, so that what disturbs the machine for a while disturbs them all."""
    return bar([*items] * (1 if quick() else times))
