"""Write the record, one JSON object a line, on rank 0; read it back as a pandas frame."""

import contextlib
import functools
import json
import os
import platform
import re
import resource
import socket
import statistics
import subprocess
import sys
import warnings
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import zip_longest
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

from .. import __version__, machine
from ..base import jsonlines, settings
from ..base.paths import results, results_path, show
from .checkpoints import digest as digest
from .checkpoints import keep_checkpoint as keep_checkpoint
from .checkpoints import take_checkpoint as take_checkpoint
from .fields import FIELDS as FIELDS
from .fields import wrong

if TYPE_CHECKING:
    import pandas as pd

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
    """Append one record to $SCALEOUT_RECORDS, else to results/records.jsonl, on rank 0 alone.

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

    Raises
    ------
    TypeError
        A metric is nothing that JSON can hold.
    ScaleoutError
        Outside of a job, results cannot be written.
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
        "versions": _software(),
        **_commit(),
    }
    jsonlines.append(
        settings.records_file() or results() / "records.jsonl", json.dumps(record, default=_as_json)
    )
    return record


def _as_json(x: Any) -> Any:
    """Turn NumPy's numbers and arrays into Python's own."""
    if hasattr(x, "tolist"):
        return x.tolist()
    raise TypeError(
        f"A record holds numbers, text and lists of them, not {x!r}: turn it into one of these "
        "first."
    )


def gather(mine: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Gather what each rank notes for the record, as a list in the order of the ranks.

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


class Books:
    """Keep the books of one rank while a lab runs, and write one record of all ranks at its end.

    Every rank makes one, and calls `write`; rank 0 writes.

    Parameters
    ----------
    lab : str
    rank, ranks : int
        Which rank this is, of how many.
    warmup : int
        Steps that are left out of the times.
    rows : int
        How many rows the data have: the record then tells how often each was seen.
    weights : iterable of arrays or variables
        Their fingerprints are noted now and at the end, so that a check can compare the ranks'.
    """

    def __init__(
        self,
        lab: str,
        rank: int = 0,
        ranks: int = 1,
        *,
        warmup: int = 5,
        rows: int = 0,
        weights: Iterable[Any] = (),
    ) -> None:
        self.lab, self.rank, self.ranks, self.warmup = lab, rank, ranks, warmup
        self._all_rows, self._weights = rows, list(weights)
        self.step_s: list[float] = []
        self._rows: list[Any] = []  # of each step
        self._work: list[float] = []  # of each step
        self._seconds: dict[str, list[float]] = defaultdict(list)
        self._logged: dict[str, list[Any]] = defaultdict(list)
        self._notes: dict[str, Any] = {"start": digest(self._weights)} if self._weights else {}
        self._begin = perf_counter()

    @contextlib.contextmanager
    def step(
        self, rows: Sequence[int] = (), work: float | None = None, **values: Any
    ) -> Iterator[None]:
        """Time a step of this rank.

        Parameters
        ----------
        rows : sequence of int
            The numbers of the rows that it works on.
        work : float, optional
            How much it does, where that is not the number of its rows.
        **values
            What else to keep of each step, as lists in the metrics.

        Raises
        ------
        RuntimeError
            On the last rank, at the step that SCALEOUT_FAIL_AT names.
        """
        if self.rank == self.ranks - 1 and len(self.step_s) + 1 == settings.fail_at():
            raise RuntimeError(
                f"Rank {self.rank} fails at step {settings.fail_at()}, as SCALEOUT_FAIL_AT asked."
            )
        started = perf_counter()
        yield
        self.step_s.append(perf_counter() - started)
        self._rows.append(rows)
        self._work.append(len(rows) if work is None else work)
        for name, value in values.items():
            self._logged[name].append(value)

    @contextlib.contextmanager
    def time(self, what: str) -> Iterator[None]:
        """Time something else; its seconds are noted as `WHAT_s`, without the first of several.

        Parameters
        ----------
        what : str
            Its name.
        """
        started = perf_counter()
        yield
        self._seconds[what].append(perf_counter() - started)

    def log(self, **values: Any) -> float:
        """Append to lists in the metrics, with the seconds so far as `at_s`.

        Parameters
        ----------
        **values
            One value for each list.

        Returns
        -------
        float
            Seconds since these books were opened.
        """
        at_s = perf_counter() - self._begin
        for name, value in {**values, "at_s": at_s}.items():
            self._logged[name].append(value)
        return at_s

    def note(self, **values: Any) -> None:
        """Note what this rank alone knows: its share of the metric `shares`.

        Parameters
        ----------
        **values
            Numbers, text and lists of them, by name; a later one takes the place of an earlier.
        """
        self._notes.update(values)

    def keep_checkpoint(self, folder: Path | str, number: int) -> None:
        """Keep the weights in a checkpoint of this number, and note that this rank wrote it.

        Parameters
        ----------
        folder : Path or str
        number : int

        Raises
        ------
        ScaleoutError
            The folder or the file cannot be written.
        """
        name = keep_checkpoint(folder, self._weights, number)
        self._notes.setdefault("wrote", []).append(name)

    def write(
        self,
        *,
        variant: str = "",
        threads_per_rank: int | None = None,
        batch_per_rank: int | None = None,
        seed: int | None = None,
        rate: float | None = None,
        rate_unit: str = "rows/s",
        **metrics: Any,
    ) -> dict[str, Any]:
        """Gather what all ranks have noted, and write the record.

        The slowest rank counts in each step, and a step with less work than the largest, such as
        the last of an epoch, is not timed. The rate is that work over the median step, unless the
        lab gives its own: the rates of copies that do not wait for each other add up.

        Parameters
        ----------
        variant, threads_per_rank, batch_per_rank, seed
            As of `records.write`.
        rate : float, optional
            The lab's own rate, in rate_unit.
        rate_unit : str
        **metrics
            Anything else that was measured.

        Returns
        -------
        dict
            The record, on rank 0; empty on the others.
        """
        import numpy as np

        end = {"end": digest(self._weights), "wrote": []} if self._weights else {}
        spent = {f"{what}_s": sum(s[1:] or s) for what, s in self._seconds.items()}
        peak_mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        steps = {"steps": len(self.step_s), "peak_mib": peak_mib}
        shares = gather({**end, **spent, **steps, **self._notes})
        seen = np.concatenate(self._rows) if self._rows else np.empty(0)
        dealt = [b["rows"] for b in gather({"rows": seen.astype(int)})]
        timed, warmup, most = self._timed()
        if rate is None and most:
            rate = most / statistics.median(timed[warmup:])
        if self.rank != 0:
            return {}
        if self._all_rows:
            times = np.bincount(np.concatenate(dealt), minlength=self._all_rows)
            metrics["seen"] = [times.min(), times.max()]
            metrics["dealt"] = [rows[:5] for rows in dealt]
        return write(
            lab=self.lab,
            variant=variant,
            ranks=self.ranks,
            threads_per_rank=threads_per_rank,
            batch_per_rank=batch_per_rank,
            seed=seed,
            warmup_steps=warmup,
            step_s=timed[warmup:],
            rate=rate,
            rate_unit="" if rate is None else rate_unit,
            metrics={**self._logged, **metrics, "shares": shares},
        )

    def slowest_s(self) -> list[float]:
        """Return the seconds of each timed step, on the slowest rank.

        Every rank calls it and gets them.

        Returns
        -------
        list of float
            Without the warm-up.
        """
        timed, warmup, _ = self._timed()
        return timed[warmup:]

    def _timed(self) -> tuple[list[float], int, float]:
        """Take the slowest rank's seconds of each whole step.

        Also return how many of them are warm-up, and how much work a whole step is.
        """
        books = gather({"step_s": self.step_s, "work": self._work})
        slowest_s = [max(s) for s in zip_longest(*(b["step_s"] for b in books), fillvalue=0.0)]
        work = [sum(w) for w in zip_longest(*(b["work"] for b in books), fillvalue=0.0)]
        most = max(work, default=0.0)
        timed = [s for s, done in zip(slowest_s, work, strict=True) if done == most]
        return timed, max(0, min(self.warmup, len(timed) - 1)), most


def folder() -> Path:
    """Return the folder where rank 0 keeps what the job makes.

    Returns
    -------
    Path
        The run's own folder; outside of a job a new one in `results/`.
    """
    if file := settings.records_file():
        return file.parent
    new = results() / f"{datetime.now(UTC):%Y%m%dT%H%M%S}-{os.getpid()}"
    new.mkdir()
    return new


def read(*paths: Path | str) -> "pd.DataFrame":
    """Read the records in these files, a row each.

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
    """Read one file's records, with a warning for what is left out."""
    rows, left_out = jsonlines.read(path, wrong)
    if left_out:
        warnings.warn(f"{show(path)}{left_out}", stacklevel=3)
    return rows


def _flat(row: dict[str, Any]) -> dict[str, Any]:
    """Put a record's metrics, and what is computed from its steps, beside its fields."""
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
    """Ask the MPI library in this process for its name.

    mpi4py is asked only where the lab has loaded it.
    """
    loaded = sys.modules.get("mpi4py.MPI")
    return loaded.Get_library_version().strip("\0 \n").splitlines()[0] if loaded else None


@functools.cache
def _software() -> dict[str, str]:
    """Look up the versions of Python, of ourselves, and of the packages that compute."""
    ours = {"python": platform.python_version(), "scaleout": __version__}
    return ours | machine.versions(PACKAGES)


@functools.cache
def _commit() -> dict[str, Any]:
    """Read the workshop's commit and whether files differ from it; None where there is no git."""
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
