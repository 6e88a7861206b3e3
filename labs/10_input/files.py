"""The files of 10_input: their paths and labels, and which of them is broken.

There is nothing to fill in here.
"""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import tensorflow as tf
from crops import crops

from scaleout import ScaleoutError
from scaleout.flags import refuse


def examples(folder: str | None, ranks: int,
             read: Callable | None = None) -> tuple:
    """The paths of all images, their labels, and how many were left out.

    With `read`, those that it cannot read are left out.
    """
    if folder is None:
        try:
            # Distributed: one rank writes them, the others wait until it has
            folder = crops()
        except ScaleoutError as error:
            refuse(str(error))
    paths = sorted(map(str, Path(folder).glob("*.jpg")))
    if not paths:
        refuse(f"There is no image in {folder}: it takes files that are "
               "called NUMBER-LABEL.jpg.")
    bad = broken(paths, read) if read else []
    paths = [path for path in paths if path not in bad]
    if len(paths) < ranks:
        refuse(f"{ranks} ranks are more than the {len(paths)} images in "
               f"{folder}: take fewer ranks.")
    labels = []
    for path in paths:
        label = Path(path).stem.rpartition("-")[2]
        if label not in list("01234567"):
            refuse(f"{path} has no label from 0 to 7 at the end of its name.")
        labels.append(int(label))
    return paths, np.array(labels), len(bad)  # labels: (n,)


def broken(paths: list, read: Callable) -> list:
    """Those that cannot be read."""
    bad = []
    for path in paths:
        try:
            read(tf.constant(path))
        except (tf.errors.OpError, ValueError):
            bad.append(path)
    return bad


def explained(error: Exception, folder: str | None, read: Callable) -> str:
    """One sentence, if it is because of a file; else the error once more."""
    paths = sorted(map(str, Path(folder or crops()).glob("*.jpg")))
    bad = broken(paths, read)
    if not bad:
        raise error
    return (f"{bad[0]} is broken, or no JPEG picture of 128 x 128 pixels: "
            "write it again, or leave it out by --skip-broken.")
