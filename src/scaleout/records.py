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

from . import machine
from .checkpoints import digest, keep_checkpoint, take_checkpoint
from .paths import results, show

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["FIELDS", "digest", "folder", "keep_checkpoint", "read", "take_checkpoint", "write"]

SCHEMA = 1
FIELDS = (
    "schema",
    "run_id",
    "utc",
    "lab",
    "variant",
    "ranks",
    "nodes",
    "threads_per_rank",
    "batch_per_rank",
    "batch_global",
    "warmup_steps",
    "step_s",
    "rate",
    "rate_unit",
    "metrics",
    "seed",
    "host",
    "cpu",
    "cores",
    "mpi",
    "versions",
    "commit",
    "dirty",
)
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
    """Appends one record to $SCALEOUT_RECORDS (else results/records.jsonl) and returns it. Call it on rank 0 alone.

    step_s: seconds of each timed step, warm-up left out, the slowest rank's.  rate: work per second of all ranks
    together, in rate_unit (such as "images/s").  metrics: anything else that was measured, JSON-able.
    threads_per_rank: by default what the launcher set, OMP_NUM_THREADS.
    """
    threads = re.match(r"\d+", str(threads_per_rank or os.environ.get("OMP_NUM_THREADS", "")))  # it may be "4,2"
    record = {
        "schema": SCHEMA,
        "run_id": os.environ.get("SCALEOUT_RUN_ID", ""),
        "utc": datetime.now(UTC).isoformat(timespec="seconds"),
        "lab": lab,
        "variant": variant,
        "ranks": ranks,
        "nodes": int(os.environ.get("SCALEOUT_NODES", 1)),
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
        "cores": int(os.environ.get("SCALEOUT_CORES") or machine.usable_cores()),
        "mpi": _mpi(),
        "versions": _versions(),
        **_commit(),
    }
    _append(Path(os.environ.get("SCALEOUT_RECORDS") or results() / "records.jsonl"), json.dumps(record, default=_plain))
    return record


def _plain(x: Any) -> Any:
    """NumPy's numbers and arrays as Python's own."""
    if hasattr(x, "tolist"):
        return x.tolist()
    raise TypeError(f"A record holds numbers, text and lists of them, not {x!r}: turn it into one of these first.")


def _append(path: Path, line: str) -> None:
    """Adds one line in a single write, so that two jobs that share a file never cut each other's lines."""
    with open(path, "a+b") as file:
        whole = file.tell() == 0 or os.pread(file.fileno(), 1, file.tell() - 1) == b"\n"
        file.write(f"{'' if whole else chr(10)}{line}\n".encode())  # after a line that somebody left half-written


def folder() -> Path:
    """Where rank 0 keeps what the job makes: the run's own folder, else a new one in `results/`."""
    if "SCALEOUT_RECORDS" in os.environ:
        return Path(os.environ["SCALEOUT_RECORDS"]).parent
    new = results() / f"{datetime.now(UTC):%Y%m%dT%H%M%S}-{os.getpid()}"
    new.mkdir()
    return new


def read(*paths: Path | str) -> "pd.DataFrame":
    """The records in these files, a row each; without a path, all that `results/` holds.

    Columns: FIELDS; `metrics.NAME` for each metric; step_median_s and step_spread_s (the distance between the quartiles
    of step_s, seconds), which are computed here and never stored. A damaged line is left out with a warning.
    """
    import pandas as pd

    files = [Path(p) for p in paths] or sorted(results().rglob("records.jsonl"))
    rows = [row for path in files if path.exists() for row in _rows(path)]
    return pd.DataFrame([_flat(row) for row in rows], columns=None if rows else [*FIELDS, *COMPUTED])


def _rows(path: Path) -> list[dict[str, Any]]:
    rows = []
    for number, line in enumerate(path.read_text(encoding="utf-8", errors="replace").splitlines(), 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
            missing = [name for name in FIELDS if name not in row]
        except (ValueError, TypeError):
            missing = ["a whole line"]
        if missing:
            warnings.warn(f"{show(path)}, line {number}: no record ({missing[0]} is missing); left out", stacklevel=3)
        else:
            rows.append(row)
    return rows


def _flat(row: dict[str, Any]) -> dict[str, Any]:
    steps = row["step_s"]
    quartiles = statistics.quantiles(steps, n=4, method="inclusive") if len(steps) > 1 else [0.0, 0.0, 0.0]
    return {
        **row,
        "step_median_s": statistics.median(steps) if steps else None,
        "step_spread_s": quartiles[2] - quartiles[0],
        **{f"metrics.{name}": value for name, value in row["metrics"].items()},
    }


def _mpi() -> str | None:
    """What the MPI library in this process calls itself; mpi4py is asked only where the lab has loaded it."""
    loaded = sys.modules.get("mpi4py.MPI")
    return loaded.Get_library_version().strip("\0 \n").splitlines()[0] if loaded else None


@functools.cache
def _versions() -> dict[str, str]:
    return {"python": platform.python_version()} | machine.versions(PACKAGES)


@functools.cache
def _commit() -> dict[str, Any]:
    """The workshop's commit and whether files differ from it; unknown (None) where there is no git."""
    git = ["git", "--no-optional-locks", "-C", str(Path(__file__).parent)]
    try:
        commit = subprocess.run([*git, "rev-parse", "HEAD"], capture_output=True, text=True, timeout=5, check=True)
        state = subprocess.run([*git, "status", "--porcelain"], capture_output=True, text=True, timeout=5, check=True)
    except (OSError, subprocess.SubprocessError):
        return {"commit": None, "dirty": None}
    return {"commit": commit.stdout.strip(), "dirty": bool(state.stdout)}
