"""The record: one JSON object a line, written by rank 0, read back as a pandas frame."""

import functools
import json
import os
import platform
import re
import socket
import statistics
import subprocess
import sys
import warnings
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import jsonlines, machine, settings
from .checkpoints import digest, keep_checkpoint, take_checkpoint
from .fields import FIELDS, wrong
from .paths import results, results_path, show

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "FIELDS",
    "digest",
    "folder",
    "gather",
    "keep_checkpoint",
    "read",
    "take_checkpoint",
    "write",
]


SCHEMA = 1
COMPUTED = ("step_median_s", "step_spread_s")
PACKAGES = (
    *("tensorflow-cpu", "intel-tensorflow", "horovod", "mpi4py", "mpich"),
    *("scikit-learn-intelex", "scikit-learn", "numpy"),
)


def write(
    *,
    lab: str,
    variant: str = "",
    ranks: int = 1,
    threads_per_rank: int | None = None,
    batch_per_rank: int | None = None,
    warmup_steps: int = 0,
    step_s: Sequence[float] = (),
    rate: float | None = None,
    rate_unit: str = "",
    metrics: Mapping[str, Any] | None = None,
    seed: int | None = None,
) -> dict[str, Any]:
    """Appends one record to $SCALEOUT_RECORDS, else to results/records.jsonl. Call it on rank 0
    alone.

    Parameters
    ----------
    lab, variant : str
        What was measured.
    ranks : int
    threads_per_rank : int, optional
        By default what the launcher set, OMP_NUM_THREADS.
    batch_per_rank : int, optional
    warmup_steps : int
    step_s : sequence of float
        Seconds of each timed step, warm-up left out, the slowest rank's.
    rate : float, optional
        Work per second of all ranks together, in rate_unit (such as "images/s").
    rate_unit : str
    metrics : Mapping, optional
        Anything else that was measured: numbers, text and lists of them.
    seed : int, optional

    Returns
    -------
    dict
        The record.
    """
    threads = re.match(
        r"\d+", str(threads_per_rank or os.environ.get("OMP_NUM_THREADS", ""))
    )  # it may be "4,2"
    record = {
        "schema": SCHEMA,
        "run_id": settings.run_id(),
        "utc": datetime.now(UTC).isoformat(timespec="seconds"),
        "lab": lab,
        "variant": variant,
        "ranks": ranks,
        "nodes": settings.job_nodes(),
        "threads_per_rank": int(threads[0]) if threads else None,
        "batch_per_rank": batch_per_rank,
        "batch_global": batch_per_rank and batch_per_rank * ranks,
        "warmup_steps": warmup_steps,
        "step_s": [float(s) for s in step_s],
        "rate": None if rate is None else float(rate),
        "rate_unit": rate_unit,
        "metrics": dict(metrics or {}),
        "seed": seed,
        "host": socket.gethostname(),
        "cpu": machine.cpu_model(),
        # A rank that is bound to one core sees one; the launcher saw all that the job had.
        "cores": settings.job_cores() or machine.usable_cores(),
        "mpi": _mpi(),
        "versions": _versions(),
        **_commit(),
    }
    _append(
        settings.records_file() or results() / "records.jsonl", json.dumps(record, default=_plain)
    )
    return record


def _plain(x: Any) -> Any:
    """NumPy's numbers and arrays as Python's own."""
    if hasattr(x, "tolist"):
        return x.tolist()
    raise TypeError(
        f"A record holds numbers, text and lists of them, not {x!r}: turn it into one of these "
        "first."
    )


def _append(path: Path, line: str) -> None:
    """Adds one line in a single write, so that two jobs that share a file never cut each other's
    lines."""
    with open(path, "a+b") as file:
        whole = file.tell() == 0 or os.pread(file.fileno(), 1, file.tell() - 1) == b"\n"
        file.write(
            f"{'' if whole else chr(10)}{line}\n".encode()
        )  # after a line that somebody left half-written


def gather(mine: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """What each rank notes for the record, as a list in the order of the ranks.

    All ranks call it, and each gets the whole list. It goes through the library that the lab has
    loaded, Horovod, PyTorch or mpi4py; where there is none, or Horovod or PyTorch's process group
    has not been started, a rank is alone.

    Parameters
    ----------
    mine : Mapping
        What this rank notes.

    Returns
    -------
    list of Mapping
    """
    if horovod := sys.modules.get("horovod.tensorflow"):
        return list(horovod.allgather_object(mine)) if horovod.is_initialized() else [mine]
    if torch := sys.modules.get("torch.distributed"):  # its process group
        if not torch.is_initialized():
            return [mine]
        everybody: list[Any] = [None] * torch.get_world_size()
        torch.all_gather_object(everybody, dict(mine))
        return everybody
    if mpi := sys.modules.get("mpi4py.MPI"):
        return list(mpi.COMM_WORLD.allgather(mine))
    return [mine]


def folder() -> Path:
    """Where rank 0 keeps what the job makes: the run's own folder, else a new one in `results/`."""
    if file := settings.records_file():
        return file.parent
    new = results() / f"{datetime.now(UTC):%Y%m%dT%H%M%S}-{os.getpid()}"
    new.mkdir()
    return new


def read(*paths: Path | str) -> "pd.DataFrame":
    """The records in these files, a row each.

    Parameters
    ----------
    *paths : Path or str
        Without any, all that `results/` holds. One that is missing has no records.

    Returns
    -------
    pandas.DataFrame
        Columns: FIELDS; `metrics.NAME` for each metric; step_median_s and step_spread_s (the
        distance between the quartiles of step_s, seconds), which are computed here and never
        stored. Of a file with damaged lines, or one that is no file, a warning names the first,
        and these are left out.
    """
    import pandas as pd

    files = [Path(p) for p in paths] or sorted(results_path().rglob("records.jsonl"))
    rows = [row for path in files for row in _rows(path)]
    return pd.DataFrame(
        [_flat(row) for row in rows], columns=None if rows else [*FIELDS, *COMPUTED]
    )


def _rows(path: Path) -> list[dict[str, Any]]:
    rows, left_out = jsonlines.read(path, wrong)
    if left_out:
        warnings.warn(f"{show(path)}{left_out}", stacklevel=3)
    return rows


def _flat(row: dict[str, Any]) -> dict[str, Any]:
    steps = row["step_s"]
    quartiles = (
        statistics.quantiles(steps, n=4, method="inclusive") if len(steps) > 1 else [0.0, 0.0, 0.0]
    )
    return {
        **row,
        "step_median_s": statistics.median(steps) if steps else None,
        "step_spread_s": quartiles[2] - quartiles[0],
        **{f"metrics.{name}": value for name, value in row["metrics"].items()},
    }


def _mpi() -> str | None:
    """What the MPI library in this process calls itself; mpi4py is asked only where the lab has
    loaded it."""
    loaded = sys.modules.get("mpi4py.MPI")
    return loaded.Get_library_version().strip("\0 \n").splitlines()[0] if loaded else None


@functools.cache
def _versions() -> dict[str, str]:
    return {"python": platform.python_version()} | machine.versions(PACKAGES)


@functools.cache
def _commit() -> dict[str, Any]:
    """The workshop's commit and whether files differ from it; unknown (None) where there is no
    git."""
    git = ["git", "--no-optional-locks", "-C", str(Path(__file__).parent)]
    try:
        commit = subprocess.run(
            [*git, "rev-parse", "HEAD"], capture_output=True, text=True, timeout=5, check=True
        )
        state = subprocess.run(
            [*git, "status", "--porcelain"], capture_output=True, text=True, timeout=5, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return {"commit": None, "dirty": None}
    return {"commit": commit.stdout.strip(), "dirty": bool(state.stdout)}
