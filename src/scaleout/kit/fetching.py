"""MNIST's four files, brought to this machine once: checked, and each whole or not there."""

import hashlib
import http.client
import os
import urllib.request
from pathlib import Path

from ..base import jsonlines
from ..base.errors import ScaleoutError
from ..base.settings import data_folder

# The four files of MNIST (LeCun, Cortes, Burges, 1998) and their SHA-256.
MNIST = {
    "train-images-idx3-ubyte.gz": "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
    "train-labels-idx1-ubyte.gz": "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
    "t10k-images-idx3-ubyte.gz": "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
    "t10k-labels-idx1-ubyte.gz": "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6",
}
MNIST_URL = "https://ossci-datasets.s3.amazonaws.com/mnist/"
MOST_BYTES = 50_000_000  # no file of MNIST is larger


def cache() -> Path:
    """Return the folder of MNIST's files: $SCALEOUT_DATA, else the cache of this user."""
    mine = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return data_folder() or mine / "scaleout" / "mnist"


def whole(folder: Path) -> bool:
    """Tell whether all four files are there."""
    return all((folder / name).is_file() for name in MNIST)


def fetch() -> Path:
    """Bring MNIST to the folder of SCALEOUT_DATA, else to this user's cache.

    What is there is not brought again, and a file takes its name once its SHA-256 is right.

    Returns
    -------
    Path
        The folder.

    Raises
    ------
    ScaleoutError
        The folder cannot be written, the network is not reached, or a file arrived damaged.
    """
    folder = cache()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for file, digest in MNIST.items():
            if not (folder / file).exists():
                _download(MNIST_URL + file, folder / file, digest)
    except OSError as error:
        raise ScaleoutError(
            f"{folder} cannot be written ({error.strerror}): make room, or type  export "
            "SCALEOUT_DATA=ANOTHER_FOLDER"
        ) from None
    return folder


def _download(url: str, target: Path, digest: str) -> None:
    try:
        with urllib.request.urlopen(url, timeout=30) as answer:
            content = answer.read(MOST_BYTES)
    except (OSError, http.client.HTTPException) as error:
        raise ScaleoutError(
            f"{url} cannot be reached ({error}). The labs run without it, on scikit-learn's digits; "
            "or copy MNIST's files to a folder and type  export SCALEOUT_DATA=THAT_FOLDER"
        ) from None
    if hashlib.sha256(content).hexdigest() != digest:
        raise ScaleoutError(
            f"{target.name} arrived damaged and was dropped: type  scaleout data fetch mnist  "
            "again."
        )
    jsonlines.write(target, content)
