"""A bar for the loops of a notebook that take minutes."""

import sys
from collections.abc import Iterable
from typing import Any, TypeVar

__all__ = ["bar"]

Item = TypeVar("Item")


def bar(items: Iterable[Item], **how: Any) -> Iterable[Item]:
    """tqdm's bar over `items`, on stdout: JupyterLab shows stderr in red, as if something had
    failed.

    Parameters
    ----------
    items : iterable
    **how
        As tqdm takes it, such as desc="jobs".

    Returns
    -------
    iterable
        The same items, one after another.
    """
    from tqdm import tqdm

    shown: Iterable[Item] = tqdm(items, file=sys.stdout, **how)
    return shown
