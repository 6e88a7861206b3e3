"""The photograph of 04_kmeans: open it, and save it in its new colours.

runme.py imports this; there is nothing to fill in here.
"""

import numpy as np
from mpi4py import MPI
from PIL import Image

from scaleout import data, records
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


def saved(picture: np.ndarray, palette: np.ndarray, inertia: float,
          labels: np.ndarray) -> dict:
    """Save quantised.png, each pixel in the colour of its label, and
    palette.png, 32 pixels of each colour; return how good they are.

    picture: (h, w, 3); palette: (k, 3), 0 to 1; labels: (h * w,), row by row.
    Where the labels end too early, the picture stays black.
    """
    folder = records.folder()
    colours = np.rint(np.clip(palette, 0, 1) * 255).astype(np.uint8)  # (k, 3)
    pixels = np.zeros((picture.size // 3, 3), np.uint8)  # (h * w, 3)
    pixels[:len(labels)] = colours[labels[:len(pixels)]]
    Image.fromarray(pixels.reshape(picture.shape)).save(
        folder / "quantised.png")
    bar = np.tile(colours.repeat(32, axis=0), (32, 1, 1))  # (32, 32 * k, 3)
    Image.fromarray(bar).save(folder / "palette.png")
    # The mean squared error of values from 0 to 1, in dB, at most 120.
    error = max(inertia / picture.size, 1e-12)
    return {"psnr_db": -10 * np.log10(error),
            "count": np.bincount(labels, minlength=len(palette))}  # (k,)
