"""MNIST's four files, brought to this machine once: resumed, checked, one process at a time."""

import errno
import hashlib
import http.client
import os
import urllib.error
import urllib.request
from pathlib import Path

from .errors import ScaleoutError
from .locks import held
from .settings import data_folder

# The four files of MNIST (LeCun, Cortes, Burges, 1998) and their SHA-256.
MNIST = {
    "train-images-idx3-ubyte.gz": "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
    "train-labels-idx1-ubyte.gz": "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
    "t10k-images-idx3-ubyte.gz": "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
    "t10k-labels-idx1-ubyte.gz": "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6",
}
MNIST_URL = "https://ossci-datasets.s3.amazonaws.com/mnist/"
MODE = {200: "wb", 206: "ab"}  # a server that cannot go on sends the whole file again
MOST_BYTES = 50_000_000  # no file of MNIST is larger
WAIT_S = 600.0  # so that thirty people on one machine fetch once


def cache() -> Path:
    """Where MNIST's files are: $SCALEOUT_DATA, else the cache of this user."""
    mine = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return data_folder() or mine / "scaleout" / "mnist"


def whole(folder: Path) -> bool:
    """Whether all four files are there."""
    return all((folder / name).is_file() for name in MNIST)


def fetch(name: str) -> Path:
    """Brings a data set to this user's cache, and goes on where it stopped.

    One process fetches at a time. Each file is checked by its SHA-256 before it takes its name.
    """
    if name != "mnist":
        raise ScaleoutError(
            f"There is no data set called {name!r}: type  scaleout data fetch mnist"
        )
    folder = cache()
    if whole(folder):
        return folder
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise _cannot_write(folder, error) from None
    lock = folder / "fetch.lock"
    with held(lock, WAIT_S) as mine:
        if not mine:
            raise ScaleoutError(
                f"Another process has been fetching for 10 minutes; it holds {lock}."
            )
        for file, digest in MNIST.items():
            if not (folder / file).exists():
                _download(MNIST_URL + file, folder / file, digest)
    return folder


def _download(url: str, target: Path, digest: str) -> None:
    part = target.with_suffix(".part")
    have = part.stat().st_size if part.exists() else 0
    request = urllib.request.Request(url, headers={"Range": f"bytes={have}-"} if have else {})
    try:
        with (
            urllib.request.urlopen(request, timeout=30) as answer,
            part.open(MODE.get(answer.status, "wb")) as file,
        ):
            while (block := answer.read(2**16)) and file.tell() <= MOST_BYTES:
                file.write(block)
            said = answer.headers.get("Content-Length", "")
            before = have if answer.status == 206 else 0
            missing = int(said) + before - file.tell() if said.isdecimal() and len(said) < 16 else 0
    except urllib.error.HTTPError as error:
        if error.code != 416:  # 416: the part was whole already
            raise _no_network(url, error) from None
        missing = 0
    except (OSError, http.client.HTTPException) as error:
        if isinstance(error, OSError) and error.errno in (
            errno.ENOSPC,
            errno.EDQUOT,
            errno.EACCES,
            errno.EROFS,
        ):
            raise _cannot_write(part, error) from None
        raise _no_network(url, error) from None
    if missing > 0:
        raise ScaleoutError(
            f"{target.name} stopped coming {missing:,} bytes before its end: type  scaleout data "
            "fetch mnist  to go on."
        )
    if hashlib.sha256(part.read_bytes()).hexdigest() != digest:
        part.unlink()
        raise ScaleoutError(
            f"{target.name} arrived damaged and was dropped: type  scaleout data fetch mnist  "
            "again."
        )
    part.rename(target)


def _no_network(url: str, error: Exception) -> ScaleoutError:
    return ScaleoutError(
        f"{url} cannot be reached ({error}). The labs run without it, on scikit-learn's digits; or "
        "copy MNIST's files "
        "to a folder and type  export SCALEOUT_DATA=THAT_FOLDER"
    )


def _cannot_write(path: Path, error: OSError) -> ScaleoutError:
    return ScaleoutError(
        f"{path} cannot be written ({error.strerror}): make room, or type  export "
        "SCALEOUT_DATA=ANOTHER_FOLDER"
    )
