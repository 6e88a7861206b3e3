"""The photograph of 04_kmeans: open it, and save it in its new colours.

runme.py imports this; there is nothing to fill in here.
"""

from pathlib import Path

import numpy as np
from mpi4py import MPI
from PIL import Image

from scaleout import data
from scaleout.kit.flags import refuse


def opened(path: str | None, colours: int) -> tuple[np.ndarray, int]:
    """Open the picture, (h, w, 3), on every rank; the colours to find.

    A picture with few colours needs no larger palette.
    """
    # Distributed: everybody who takes part
    comm = MPI.COMM_WORLD
    picture = None
    problem = ""
    try:
        picture = data.photo(path=path)
    except Exception as error:
        problem = str(error)
    # Distributed: a rank that ended alone would leave the others waiting
    problems = comm.allgather(problem)
    if any(problems):
        refuse(max(problems))

    pixels = picture.reshape(-1, 3)  # (n, 3)
    # One whole number for each colour, from its red, green and blue, 0 to 1.
    codes = np.rint(pixels * 255) @ (65536, 256, 1)  # (n,)
    k = min(colours, len(np.unique(codes)))
    fewest = len(pixels) // comm.size
    if fewest < k:
        refuse(f"{k} colours need {k} pixels on each rank, and one has only "
               f"{fewest}: take fewer ranks or fewer --colours.")
    return picture, k


def save(folder: Path, shape: tuple[int, ...], palette: np.ndarray,
         labels: np.ndarray) -> None:
    """Save quantised.png, each pixel in the colour of its label, and
    palette.png, 32 pixels of each colour.

    shape: (h, w, 3); palette: (k, 3), 0 to 1; labels: (h * w,), row by row.
    Where the labels end too early, the picture stays black.
    """
    colours = np.rint(np.clip(palette, 0, 1) * 255).astype(np.uint8)  # (k, 3)
    pixels = np.zeros((shape[0] * shape[1], 3), np.uint8)  # (h * w, 3)
    pixels[:len(labels)] = colours[labels[:len(pixels)]]
    Image.fromarray(pixels.reshape(shape)).save(folder / "quantised.png")
    bar = np.tile(colours.repeat(32, axis=0), (32, 1, 1))  # (32, 32 * k, 3)
    Image.fromarray(bar).save(folder / "palette.png")
