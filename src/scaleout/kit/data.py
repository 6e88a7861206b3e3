"""Bring what to learn from, offline first: handwritten digits, a photograph, random points; and slice it
for each rank."""

import gzip
import hashlib
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..base.errors import ScaleoutError
from ..base.settings import images
from ..base.settings import quick as quick
from ..base.settings import rounds as rounds
from . import fetching
from .fetching import fetch as fetch

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, Any]
    Digits = tuple[Array, Array, Array, Array]


def shard(n: int, rank: int, ranks: int) -> slice:
    """Give this rank its rows: each row is on exactly one rank, and sizes differ by at most one.

    Parameters
    ----------
    n : int
        Rows in all.
    rank, ranks : int
        Which rank asks, counted from 0, and how many there are.

    Returns
    -------
    slice

    Raises
    ------
    ScaleoutError
        There is no such rank.
    """
    if not 0 <= rank < ranks:
        raise ScaleoutError(
            f"There is no rank {rank} of {ranks}: they are counted from 0, so the last is one less. "
            "Look at the lines that ask for the rank and for how many there are: are they swapped?"
        )
    return slice(n * rank // ranks, n * (rank + 1) // ranks)


def digits() -> "Digits":
    """Load handwritten digits, to train on and to test.

    MNIST where it is found (60,000 / 10,000, or the test split alone as 8,500 / 1,500), else the
    1,797 digits that scikit-learn brings, enlarged (1,500 / 297). `source` says which, without
    loading them. With SCALEOUT_IMAGES=N, no more than the first N of either.

    Returns
    -------
    x_train, y_train, x_test, y_test : ndarray
        x: (n, 28, 28, 1) float32 in [0, 1].  y: (n,) int64, 0 to 9.

    Raises
    ------
    ScaleoutError
        A file of MNIST's is damaged.

    Notes
    -----
    MNIST: LeCun, Bottou, Bengio and Haffner, "Gradient-based learning applied to document
    recognition", Proceedings of the IEEE 86 (11), 1998.
    """
    x_train, y_train, x_test, y_test = _all_digits()
    if most := images():  # a check's job takes few, so that it is short everywhere
        return x_train[:most], y_train[:most], x_test[:most], y_test[:most]
    return x_train, y_train, x_test, y_test


def _all_digits() -> "Digits":
    """Load the best digits that are here."""
    folder = fetching.cache()
    if fetching.whole(folder):
        return *_mnist(folder, "train"), *_mnist(folder, "t10k")
    if _test_split(folder):
        return _split(*_mnist(folder, "t10k"), 8500)
    return _split(*_embedded(), 1500)


def source() -> str:
    """Say which digits `digits` loads here, without loading them.

    Returns
    -------
    str
    """
    folder = fetching.cache()
    if fetching.whole(folder):
        return "MNIST, 60,000 images to train on and 10,000 to test"
    if _test_split(folder):
        return "MNIST's 10,000 test images, 8,500 to train on and 1,500 to test"
    return "scikit-learn's 1,797 digits enlarged to 28 x 28, 1,500 to train on and 297 to test"


def _test_split(folder: Path) -> bool:
    """Look whether MNIST's test split is here."""
    return all((folder / name).is_file() for name in fetching.MNIST if name.startswith("t10k"))


def _mnist(folder: Path, part: str) -> "tuple[Array, Array]":
    """Read one split from its two IDX files, their SHA-256 checked first."""
    import numpy as np

    raw = []
    for name in (f"{part}-images-idx3-ubyte.gz", f"{part}-labels-idx1-ubyte.gz"):
        packed = (folder / name).read_bytes()
        if hashlib.sha256(packed).hexdigest() != fetching.MNIST[name]:
            raise ScaleoutError(
                f"{folder / name} is damaged: remove it and type  scaleout data fetch mnist"
            )
        raw.append(gzip.decompress(packed))
    images = np.frombuffer(raw[0], np.uint8, offset=16).reshape(-1, 28, 28, 1)  # (n, 28, 28, 1)
    return images.astype(np.float32) / 255, np.frombuffer(raw[1], np.uint8, offset=8).astype(
        np.int64
    )


def _embedded() -> "tuple[Array, Array]":
    """Load scikit-learn's digits, 8 x 8, enlarged three times and framed with two pixels as MNIST's
    are: 28 x 28."""
    import numpy as np

    with gzip.open(_brought("data/digits.csv.gz"), "rt") as file:
        rows = np.loadtxt(file, delimiter=",")  # (n, 64 + 1), a label at each row's end
    images, labels = rows[:, :-1], rows[:, -1]
    large = _enlarged(images.reshape(-1, 8, 8) / 16, 24)
    framed = np.pad(large, ((0, 0), (2, 2), (2, 2)))[..., None]  # (n, 28, 28, 1)
    return framed.astype(np.float32), labels.astype(np.int64)


def _enlarged(images: "Array", side: int) -> "Array":
    """Enlarge (n, s, s) to (n, side, side), bilinear from corner to corner. scipy.ndimage.zoom gives
    the same, but loading it would take each rank a third of a second."""
    import numpy as np

    last = images.shape[1] - 1
    at = np.arange(side) * (last / (side - 1))
    before = np.minimum(at.astype(int), last - 1)
    share = at - before  # of the pixel behind it
    down = images[:, before] * (1 - share[:, None]) + images[:, before + 1] * share[:, None]
    large: Array = down[..., before] * (1 - share) + down[..., before + 1] * share
    return large


def _brought(name: str) -> Path:
    """Find a file that scikit-learn brings without loading it, which would take each rank a second."""
    package = find_spec("sklearn")
    assert package is not None and package.submodule_search_locations
    return Path(package.submodule_search_locations[0]) / "datasets" / name


def _split(x: "Array", y: "Array", train: int) -> "Digits":
    """Split the rows, in a fixed random order, into the first `train` and the rest. The files go from
    easy to hard writers."""
    import numpy as np

    order = np.random.default_rng(0).permutation(len(x))
    return x[order[:train]], y[order[:train]], x[order[train:]], y[order[train:]]


def photo(scale: float = 1.0, path: str | Path | None = None) -> "Array":
    """Load a photograph.

    Parameters
    ----------
    scale : float
        Enlarges (or shrinks) both sides; above 0, below 100.
    path : Path or str, optional
        The file; without it scikit-learn's "china.jpg", 427 x 640.

    Returns
    -------
    ndarray
        (h, w, 3) float32 in [0, 1].

    Raises
    ------
    ScaleoutError
        The scale is out of range, or the file is no picture.
    """
    import numpy as np
    from PIL import Image

    if not 0 < scale < 100:
        raise ScaleoutError(
            f"photo(scale) enlarges both sides by a factor between 0 and 100, not by {scale}."
        )
    try:
        picture = Image.open(path or _brought("images/china.jpg")).convert("RGB")
    except (OSError, SyntaxError, Image.DecompressionBombError) as error:
        raise ScaleoutError(f"{path} cannot be read as a picture: {error}") from None
    if scale != 1.0:
        picture = picture.resize([max(1, round(side * scale)) for side in picture.size])
    return np.asarray(picture, dtype=np.float32) / 255


def points(mine: slice, columns: int, seed: int = 0, dtype: str = "float32") -> "Array":
    """Make these rows of an endless table of random numbers in [0, 1).

    A row is the same whoever makes it, so that each rank makes its own alone and any number of
    ranks has one table.

    Parameters
    ----------
    mine : slice
        As `shard` gives it.
    columns, seed : int
    dtype : str
        "float32" or "float64".

    Returns
    -------
    ndarray
        (mine.stop - mine.start, columns), of NumPy's generator PCG64, advanced to the first row.
    """
    import numpy as np

    rows = np.empty((mine.stop - mine.start, columns), dtype)
    numbers = np.random.Generator(
        np.random.PCG64(seed).advance(mine.start * columns)
    )  # skips the rows before mine
    for block in np.array_split(
        rows, 1 + rows.size // 1_000_000
    ):  # the generator makes float64, one block at a time
        block[:] = numbers.random(block.shape)
    return rows
