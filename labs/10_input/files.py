"""The files of 10_input: their paths and labels, and which of them is broken.

There is nothing to fill in here.
"""

import os
from pathlib import Path

import numpy as np
import tensorflow as tf
from crops import crops
from images import read_image

from scaleout import ScaleoutError
from scaleout.kit.flags import refuse

OWN = "SCALEOUT_CROPS"  # a folder of images of your own


def listed() -> list:
    """The paths of all images."""
    try:
        # Distributed: one rank writes them, the others wait until it has
        folder = os.environ.get(OWN) or crops()
    except ScaleoutError as error:
        refuse(str(error))
    paths = sorted(map(str, Path(folder).glob("*.jpg")))
    if not paths:
        refuse(f"There is no image in {folder}: it takes files that are "
               "called NUMBER-LABEL.jpg.")
    return paths


def examples(ranks: int) -> tuple:
    """The paths of all images, and their labels."""
    paths = listed()
    if len(paths) < ranks:
        refuse(f"{ranks} ranks are more than the {len(paths)} images: take "
               "fewer ranks.")
    labels = [Path(path).stem.rpartition("-")[2] for path in paths]
    for path, label in zip(paths, labels, strict=True):
        if label not in list("01234567"):
            refuse(f"{path} has no label from 0 to 7 at the end of its name.")
    return paths, np.array(labels, int)  # labels: (n,)


def explained(error: Exception) -> str:
    """One sentence, if it is because of a file; else the error once more."""
    for path in listed():
        try:
            read_image(tf.constant(path))
        except (tf.errors.OpError, ValueError):
            return (f"{path} is broken, or no JPEG picture of 128 x 128 "
                    "pixels: write it again, or remove it.")
    raise error
