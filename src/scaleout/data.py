"""What to learn from, offline first: handwritten digits, a photograph, random points; and the slice of each rank."""

import contextlib
import errno
import fcntl
import gzip
import hashlib
import http.client
import os
import shutil
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from .errors import ScaleoutError

if TYPE_CHECKING:
    import numpy as np

__all__ = ["digits", "fetch", "photo", "points", "quick", "save_quantised", "shard", "source"]

# The four files of MNIST (LeCun, Cortes, Burges, 1998) and their SHA-256.
MNIST = {
    "train-images-idx3-ubyte.gz": "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
    "train-labels-idx1-ubyte.gz": "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
    "t10k-images-idx3-ubyte.gz": "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
    "t10k-labels-idx1-ubyte.gz": "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6",
}
MNIST_URL = "https://ossci-datasets.s3.amazonaws.com/mnist/"
MODE = {200: "wb", 206: "ab"}  # a server that cannot go on sends the whole file again
Digits = tuple["np.ndarray", "np.ndarray", "np.ndarray", "np.ndarray"]


def quick() -> bool:
    """Whether SCALEOUT_QUICK asks for less of the same: fewer steps, fewer repeats."""
    return os.environ.get("SCALEOUT_QUICK", "0") not in ("", "0")


def shard(n: int, rank: int, ranks: int) -> slice:
    """The rows of `n` that belong to this rank: each row on exactly one rank, sizes differing by at most one.

    ScaleoutError when there is no such rank.
    """
    if not 0 <= rank < ranks:
        raise ScaleoutError(f"There is no rank {rank} of {ranks}: they are counted from 0, so the last is one less.")
    return slice(n * rank // ranks, n * (rank + 1) // ranks)


def digits() -> Digits:
    """Handwritten digits: x_train, y_train, x_test, y_test.

    x: (n, 28, 28, 1) float32 in [0, 1]; y: (n,) int64, 0 to 9. MNIST where it is found (60,000 / 10,000, or the test
    split alone as 8,500 / 1,500), else the 1,797 digits that scikit-learn brings, enlarged (1,500 / 297).
    `source()` says which, without loading them.
    """
    folder = _folder()
    if _whole(folder):
        return *_mnist(folder, "train"), *_mnist(folder, "t10k")
    if _test_split(folder):
        return _split(*_mnist(folder, "t10k"), 8500)
    return _split(*_embedded(), 1500)


def source() -> str:
    """Which digits `digits()` gives here, in words."""
    folder = _folder()
    if _whole(folder):
        return "MNIST, 60,000 images to train on and 10,000 to test"
    if _test_split(folder):
        return "MNIST's 10,000 test images, 8,500 to train on and 1,500 to test"
    return "scikit-learn's 1,797 digits enlarged to 28 x 28, 1,500 to train on and 297 to test"


def _folder() -> Path:
    """$SCALEOUT_DATA, else the cache of this user."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return Path(os.environ.get("SCALEOUT_DATA") or cache / "scaleout" / "mnist")


def _whole(folder: Path) -> bool:
    return all((folder / name).is_file() for name in MNIST)


def _test_split(folder: Path) -> bool:
    return all((folder / name).is_file() for name in MNIST if name.startswith("t10k"))


def _mnist(folder: Path, part: str) -> tuple["np.ndarray", "np.ndarray"]:
    """One split from its two IDX files, their SHA-256 checked first."""
    import numpy as np

    raw = []
    for name in (f"{part}-images-idx3-ubyte.gz", f"{part}-labels-idx1-ubyte.gz"):
        packed = (folder / name).read_bytes()
        if hashlib.sha256(packed).hexdigest() != MNIST[name]:
            raise ScaleoutError(f"{folder / name} is damaged: remove it and type  scaleout data fetch mnist")
        raw.append(gzip.decompress(packed))
    images = np.frombuffer(raw[0], np.uint8, offset=16).reshape(-1, 28, 28, 1)  # (n, 28, 28, 1)
    return images.astype(np.float32) / 255, np.frombuffer(raw[1], np.uint8, offset=8).astype(np.int64)


def _embedded() -> tuple["np.ndarray", "np.ndarray"]:
    """scikit-learn's digits, 8 x 8, enlarged three times and framed with two pixels as MNIST's are: 28 x 28."""
    import numpy as np
    from scipy.ndimage import zoom
    from sklearn.datasets import load_digits

    images, labels = load_digits(return_X_y=True)
    large = zoom(images.reshape(-1, 8, 8) / 16, (1, 3, 3), order=1)  # (n, 24, 24)
    framed = np.pad(large, ((0, 0), (2, 2), (2, 2)))[..., None]  # (n, 28, 28, 1)
    return framed.astype(np.float32), labels.astype(np.int64)


def _split(x: "np.ndarray", y: "np.ndarray", train: int) -> Digits:
    """The first `train` of the rows in a fixed random order, and the rest. The files go from easy to hard writers."""
    import numpy as np

    order = np.random.default_rng(0).permutation(len(x))
    return x[order[:train]], y[order[:train]], x[order[train:]], y[order[train:]]


def photo(scale: float = 1.0, path: str | Path | None = None) -> "np.ndarray":
    """A photograph, (h, w, 3) float32 in [0, 1]: scikit-learn's "china.jpg" (427 x 640), or the one in `path`.

    scale: enlarges (or shrinks) both sides. ScaleoutError says what is wrong with a file that is no picture.
    """
    import numpy as np
    from PIL import Image

    if not 0 < scale < 100:
        raise ScaleoutError(f"photo(scale) enlarges both sides by a factor between 0 and 100, not by {scale}.")
    if path is None:
        from sklearn.datasets import load_sample_image

        picture = Image.fromarray(load_sample_image("china.jpg"))
    else:
        try:
            picture = Image.open(path).convert("RGB")
        except (OSError, SyntaxError, Image.DecompressionBombError) as error:
            raise ScaleoutError(f"{path} cannot be read as a picture: {error}") from None
    if scale != 1.0:
        picture = picture.resize([max(1, round(side * scale)) for side in picture.size])
    return np.asarray(picture, dtype=np.float32) / 255


def save_quantised(folder: Path, shape: Sequence[int], palette: "np.ndarray", labels: "np.ndarray") -> None:
    """Writes quantised.png, each pixel in the colour that its label names, and palette.png, 32 pixels a colour.

    shape: of the picture, (h, w, 3).  palette: (k, 3) in [0, 1].  labels: (h * w,), row by row; where they end too
    early, the picture stays black.
    """
    import numpy as np
    from PIL import Image

    colours = np.rint(np.clip(palette, 0, 1) * 255).astype(np.uint8)  # (k, 3)
    pixels = np.zeros((shape[0] * shape[1], 3), np.uint8)
    pixels[: len(labels)] = colours[labels[: len(pixels)]]
    Image.fromarray(pixels.reshape(shape)).save(folder / "quantised.png")
    Image.fromarray(np.tile(colours.repeat(32, axis=0), (32, 1, 1))).save(folder / "palette.png")


def points(mine: slice, columns: int, seed: int = 0, dtype: str = "float32") -> "np.ndarray":
    """These rows out of an endless table of random numbers in [0, 1): (mine.stop - mine.start, columns).

    A row is the same whoever makes it, so that each rank makes its own alone and any number of ranks has one table.
    """
    import numpy as np

    rows = np.empty((mine.stop - mine.start, columns), dtype)
    numbers = np.random.Generator(np.random.PCG64(seed).advance(mine.start * columns))  # skips the rows before mine
    for block in np.array_split(rows, 1 + rows.size // 1_000_000):  # the generator makes float64, one block at a time
        block[:] = numbers.random(block.shape)
    return rows


def fetch(name: str) -> Path:
    """Brings MNIST's four files to this user's cache and returns the folder; goes on where it stopped.

    One process fetches at a time. Each file is checked by its SHA-256 before it takes its name. ScaleoutError says what
    to do when there is no network.
    """
    if name != "mnist":
        raise ScaleoutError(f"There is no data set called {name!r}: type  scaleout data fetch mnist")
    folder = _folder()
    if _whole(folder):
        return folder
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise _cannot_write(folder, error) from None
    with _only_one(folder / "fetch.lock"):
        for file, digest in MNIST.items():
            if not (folder / file).exists():
                _download(MNIST_URL + file, folder / file, digest)
    return folder


def _download(url: str, target: Path, digest: str) -> None:
    part = target.with_suffix(".part")
    have = part.stat().st_size if part.exists() else 0
    request = urllib.request.Request(url, headers={"Range": f"bytes={have}-"} if have else {})
    try:
        with urllib.request.urlopen(request, timeout=30) as answer, part.open(MODE.get(answer.status, "wb")) as file:
            shutil.copyfileobj(answer, file)
            missing = int(answer.headers.get("Content-Length", 0)) - file.tell() + (have if answer.status == 206 else 0)
    except urllib.error.HTTPError as error:
        if error.code != 416:  # 416: the part was whole already
            raise _no_network(url, error) from None
        missing = 0
    except (OSError, http.client.HTTPException) as error:
        if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EACCES, errno.EROFS):
            raise _cannot_write(part, error) from None
        raise _no_network(url, error) from None
    if missing > 0:
        raise ScaleoutError(
            f"{target.name} stopped coming {missing:,} bytes before its end: type  scaleout data fetch mnist  to go on."
        )
    if hashlib.sha256(part.read_bytes()).hexdigest() != digest:
        part.unlink()
        raise ScaleoutError(f"{target.name} arrived damaged and was dropped: type  scaleout data fetch mnist  again.")
    part.rename(target)


def _no_network(url: str, error: Exception) -> ScaleoutError:
    return ScaleoutError(
        f"{url} cannot be reached ({error}). The labs run without it, on scikit-learn's digits; or copy MNIST's files "
        "to a folder and type  export SCALEOUT_DATA=THAT_FOLDER"
    )


def _cannot_write(path: Path, error: OSError) -> ScaleoutError:
    return ScaleoutError(
        f"{path} cannot be written ({error.strerror}): make room, or type  export SCALEOUT_DATA=ANOTHER_FOLDER"
    )


@contextlib.contextmanager
def _only_one(path: Path) -> Iterator[None]:
    """Holds a lock file, so that thirty people on one machine fetch once. Waits for at most 10 minutes."""
    with open(path, "w") as file:
        for _ in range(600):
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                time.sleep(1)
        else:
            raise ScaleoutError(f"Another process has been fetching for 10 minutes; it holds {path}.")
        yield
