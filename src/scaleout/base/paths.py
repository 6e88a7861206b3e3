"""Where things are: the workshop, its topics, and the results."""

import os
import re
import sys
from collections.abc import Iterable
from pathlib import Path

from .errors import ScaleoutError
from .settings import results_folder

WHOLE = ".whole"  # stands in a side environment once a job has run on what is in it


def programs() -> Path:
    """Return the folder of this environment's own programs, mpirun among them."""
    return Path(sys.prefix) / "bin"


def search_path() -> str:
    """Return the PATH of a job on this machine: this environment's programs come first."""
    return os.pathsep.join([str(programs()), os.environ.get("PATH", os.defpath)])


def give_libraries_a_folder() -> None:
    """Where the home cannot be written, as in many containers, give matplotlib a folder that lasts as
    long as this process: else it complains, among what people read."""
    top = os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")
    while top and not os.path.exists(top):
        top = os.path.dirname(top)
    if "MPLCONFIGDIR" not in os.environ and not os.access(top or "~", os.W_OK):
        import atexit  # these three only here: most homes can be written
        import shutil
        import tempfile

        os.environ["MPLCONFIGDIR"] = tempfile.mkdtemp(prefix="matplotlib-")
        atexit.register(shutil.rmtree, os.environ["MPLCONFIGDIR"], ignore_errors=True)


def home() -> Path:
    """Find the workshop's folder.

    It is the nearest one above the current folder that holds `labs/` and `notebooks/`, else the
    checkout.
    """
    if folder := _around(Path.cwd()) or _around(Path(__file__).resolve().parents[3]):
        return folder
    raise ScaleoutError("No workshop here: change to the folder that holds labs/ and notebooks/.")


def _around(here: Path) -> Path | None:
    return next(
        (f for f in [here, *here.parents] if (f / "labs").is_dir() and (f / "notebooks").is_dir()),
        None,
    )


def results_path(*inside: str) -> Path:
    """Return the folder where runs write to, for those who read: nothing is made.

    That is $SCALEOUT_RESULTS, else `results/` in the workshop around the current folder; outside a
    workshop `results/` in the current folder, so that anybody's project keeps its own.
    """
    here = Path.cwd()
    top = results_folder() or (_around(here) or here) / "results"
    return top.absolute().joinpath(*inside)


def results(*inside: str) -> Path:
    """Return the folder where runs write to, for those who write: it is made when it is missing.

    It is yours alone then, unless $SCALEOUT_RESULTS names it.
    """
    folder = results_path(*inside)
    try:
        if results_folder() is None:  # nobody said who may read it
            results_path().mkdir(mode=0o700, parents=True, exist_ok=True)
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise _not_writable(results_path(), error.strerror) from None
    if not os.access(folder, os.W_OK | os.X_OK):
        raise _not_writable(results_path(), "no permission")
    return folder


def _not_writable(folder: Path, why: str | None) -> ScaleoutError:
    own = "$HOME" if os.access(os.path.expanduser("~"), os.W_OK) else "/tmp"
    return ScaleoutError(
        f"Results cannot be written to {show(folder)} ({why}): "
        f"type  export SCALEOUT_RESULTS={own}/scaleout-results  and run again."
    )


def topic(name: str) -> str:
    """Return the topic's full name for `04_kmeans`, `04`, `4` or `kmeans`.

    ScaleoutError names the nearest when there is none.
    """
    files = [f for part in ("runme.py", "checks.py") for f in (home() / "labs").glob(f"*/{part}")]
    names = sorted({f.parent.name for f in files})
    if found := meant(name, names):
        return found
    import difflib  # only here: every command imports this module, and should start at once

    near = difflib.get_close_matches(str(name), names, n=1, cutoff=0.4)
    hint = f"Did you mean {near[0]}?" if near else f"There are {', '.join(names) or 'none'}."
    raise ScaleoutError(f"There is no lab called {name!r}. {hint}")


def meant(name: object, names: Iterable[str]) -> str | None:
    """Find which of these topics somebody means; None where it is none."""
    said = str(name)
    number = said.zfill(2) if said.isdecimal() else said
    return next((one for one in names if said in (one, one[3:]) or number == one[:2]), None)


def course_files(folder: Path, *patterns: str) -> list[Path]:
    """List the course's own files of these kinds in a folder that people open.

    What editors and Jupyter leave beside them is left out: .ipynb_checkpoints, runme-Copy1.py,
    .runme.py.swp, runme.py~.
    """
    found = {path for pattern in patterns for path in folder.glob(pattern)}
    return sorted(path for path in found if re.fullmatch(r"\w+\.\w+", path.name) and path.is_file())


def read_text(path: Path) -> str:
    """Read a master's or a lab's text; ScaleoutError names the file that cannot be read."""
    try:
        return path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise ScaleoutError(
            f"{show(path)} cannot be read: {getattr(error, 'strerror', None) or error}."
        ) from None


def side(name: str) -> Path | None:
    """Return the folder of a side environment, such as `intel` for `make intel`.

    None unless it is there and whole.
    """
    try:
        folder = home() / ".side" / name
    except ScaleoutError:  # outside of a workshop
        return None
    return folder if (folder / WHOLE).exists() else None


def show(path: Path) -> str:
    """Write the path as a person would type it from the current folder."""
    return os.path.relpath(path)
