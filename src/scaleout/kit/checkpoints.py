"""Keep checkpoints, each whole or not at all, with the one before it beside it; take the newest, and
name and pass over what is damaged."""

import hashlib
import os
import zipfile
import zlib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from ..base.errors import ScaleoutError
from ..base.paths import show

KEPT = 2


def keep_checkpoint(folder: Path | str, arrays: Sequence[Any], number: int) -> str:
    """Write the arrays to checkpoint-NUMBER.npz, whole or not at all, and keep the one that was
    written before it; older ones go.

    Parameters
    ----------
    folder : Path or str
        It is made when it is missing.
    arrays : sequence of arrays or variables
    number : int
        Such as that of the step or the epoch; `take_checkpoint` begins with the highest.

    Returns
    -------
    str
        The name of the file.

    Raises
    ------
    ScaleoutError
        The folder or the file cannot be written.
    """
    import numpy as np

    place = Path(folder)
    partial, whole = place / f"{_mine()}{os.getpid()}.npz", place / f"checkpoint-{number:06d}.npz"
    try:
        place.mkdir(parents=True, exist_ok=True)
        with open(partial, "wb") as file:
            np.savez(file, *map(np.asarray, arrays))
            file.flush()
            os.fsync(file.fileno())
        partial.rename(whole)  # a file of this name is whole, whenever the machine stops
        others = [path for path in _highest_first(place) if path != whole]
        for old in sorted(others, key=_written, reverse=True)[KEPT - 1 :]:
            old.unlink(missing_ok=True)
    except OSError as error:
        raise ScaleoutError(
            f"No checkpoint can be kept in {show(place)} ({error.strerror}): make room, or choose "
            "another folder."
        ) from None
    return whole.name


def take_checkpoint(folder: Path | str, variables: Sequence[Any]) -> str | None:
    """Assign to the variables, or NumPy arrays, what the newest whole checkpoint holds.

    It prints that one's name, and that of each damaged one (or another network's) that it passes
    over. What a save left behind that was killed goes.

    Parameters
    ----------
    folder : Path or str
    variables : sequence of variables or arrays
        In the order in which they were kept, each of the same shape.

    Returns
    -------
    str or None
        The name of the checkpoint; None where there is none to take.
    """
    import numpy as np

    _clear(Path(folder))
    for path in _highest_first(Path(folder)):
        try:
            with np.load(path) as kept:
                arrays = [kept[f"arr_{i}"] for i in range(len(kept.files))]
        except (OSError, EOFError, KeyError, ValueError, zipfile.BadZipFile, zlib.error) as error:
            why = getattr(error, "strerror", None) or "it cannot be read to its end"
            print(f"{path.name} is damaged ({why}): it is passed over.", flush=True)
            continue
        if [array.shape for array in arrays] != [tuple(variable.shape) for variable in variables]:
            print(f"{path.name} is of another network: it is passed over.", flush=True)
            continue
        for variable, array in zip(variables, arrays, strict=True):
            if isinstance(variable, np.ndarray):
                variable[...] = array
            else:
                variable.assign(array)
        print(f"Going on from {path.name}.", flush=True)
        return path.name
    return None


def digest(values: Iterable[Any]) -> str:
    """Make a short text of arrays or variables, equal for equal ones: bit for bit.

    Parameters
    ----------
    values : iterable of arrays or variables

    Returns
    -------
    str
        The first 16 hexadecimal digits of the SHA-256 of all their bytes.
    """
    import numpy as np

    return hashlib.sha256(b"".join(np.asarray(value).tobytes() for value in values)).hexdigest()[
        :16
    ]


def _mine() -> str:
    """Return the start of the names that this machine gives to half-written checkpoints."""
    return f"partial-{os.uname().nodename}-"


def _clear(folder: Path) -> None:
    """Remove half-written checkpoints whose process is gone.

    Those of other machines stay: their processes may be alive.
    """
    for path in folder.glob(f"{_mine()}*.npz"):
        writer = path.stem.removeprefix(_mine())
        if writer.isdecimal() and not Path("/proc", writer).exists():
            path.unlink(missing_ok=True)


def _written(path: Path) -> int:
    """Return when a file was written, in nanoseconds; 0 where it is gone."""
    try:
        return path.stat().st_mtime_ns
    except FileNotFoundError:
        return 0


def _highest_first(folder: Path) -> list[Path]:
    """List a folder's checkpoints, the highest number first."""
    return sorted(
        folder.glob("checkpoint-*.npz"), key=lambda path: (len(path.name), path.name), reverse=True
    )
