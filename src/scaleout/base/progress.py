"""A bar for the loops of a notebook that take minutes."""

import sys
from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

from . import settings

Item = TypeVar("Item")


def bar(items: Iterable[Item], **how: Any) -> Iterable[Item]:
    """Show tqdm's bar while `items` are gone through, on stdout, as JupyterLab shows stderr in red.

    Parameters
    ----------
    items : iterable
        Where SCALEOUT_QUICK is set, of a list or a tuple only the first and the last.
    **how
        More arguments of tqdm, such as unit="run".

    Returns
    -------
    iterable
        The items; the bar leaves nothing behind.
    """
    from tqdm import tqdm

    if settings.quick() and isinstance(items, list | tuple) and len(items) > 2:
        items = [items[0], items[-1]]
    shown: Iterable[Item] = tqdm(items, file=sys.stdout, leave=False, **how)
    return shown


def rounds(items: Sequence[Item]) -> Iterable[Item]:
    """Repeat the items three times, once a round: what disturbs the machine disturbs all.

    Parameters
    ----------
    items : sequence
        Where SCALEOUT_QUICK is set, only the first and the last are taken, see `bar`.

    Returns
    -------
    iterable
        The items behind a `bar`.
    """
    return bar([*items] * settings.rounds(3))
