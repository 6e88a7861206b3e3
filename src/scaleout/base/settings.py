"""What people and launchers say through SCALEOUT_* variables. They are read here, and nowhere else.

People set SCALEOUT_RESULTS, SCALEOUT_DATA, SCALEOUT_QUICK, SCALEOUT_LEASES, and SCALEOUT_FAIL_AT to
see a rank fail. A check sets SCALEOUT_IMAGES, a comparison SCALEOUT_ROUND. The launcher sets the
others for the processes of a job, and the same names stand in what `jobs.environment` gives to a
job."""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from .words import number

# carried by every process of a job, and how those that are left over are found
RUN_ID = "SCALEOUT_RUN_ID"
STACKS = "SCALEOUT_STACKS"  # given to the jobs of a check


def results_folder() -> Path | None:
    """Read SCALEOUT_RESULTS: where runs write to; None where it is not set."""
    return _path("SCALEOUT_RESULTS")


def data_folder() -> Path | None:
    """Read SCALEOUT_DATA: the folder that holds MNIST's files; None where it is not set."""
    return _path("SCALEOUT_DATA")


def images() -> int | None:
    """Read SCALEOUT_IMAGES: how many images `data.digits` gives to train on at most; None: all."""
    return number(os.environ.get("SCALEOUT_IMAGES", "")) or None


def says_where_it_stands() -> bool:
    """Tell by SCALEOUT_STACKS whether this rank, of a check's job, is to say where it stands.

    The variable is taken out, so that what a rank starts says nothing in the rank's name.
    """
    return os.environ.pop(STACKS, None) is not None


@contextlib.contextmanager
def in_round(number: int) -> Iterator[None]:
    """Tell all that is started meanwhile by SCALEOUT_ROUND in which round of a comparison it runs."""
    os.environ["SCALEOUT_ROUND"] = str(number)
    try:
        yield
    finally:
        os.environ.pop("SCALEOUT_ROUND", None)


def fail_at() -> int:
    """Read SCALEOUT_FAIL_AT: the step at which a lab's last rank fails on purpose; 0: none."""
    return number(os.environ.get("SCALEOUT_FAIL_AT", ""))


def leases_folder() -> Path | None:
    """Read SCALEOUT_LEASES: where jobs lock the cores that they hold; None where it is not set."""
    return _path("SCALEOUT_LEASES")


def quick() -> bool:
    """Tell by SCALEOUT_QUICK whether to do less of the same (fewer steps, fewer repeats)."""
    return os.environ.get("SCALEOUT_QUICK", "0") not in ("", "0")


def rounds(whole: int) -> int:
    """Return how many rounds to measure: so many, or at most those that SCALEOUT_QUICK says."""
    return min(whole, number(os.environ["SCALEOUT_QUICK"]) or 1) if quick() else whole


def quicken() -> None:
    """Set SCALEOUT_QUICK for this process and all that it starts.

    That is less of all, but the three rounds that a verdict takes.
    """
    if not quick():
        os.environ["SCALEOUT_QUICK"] = "3"


def run_id() -> str:
    """Read SCALEOUT_RUN_ID: the job that this process belongs to, "" outside of one."""
    return os.environ.get(RUN_ID, "")


def records_file() -> Path | None:
    """Read SCALEOUT_RECORDS: the file for this job's records; None outside of a job."""
    return _path("SCALEOUT_RECORDS")


def job_nodes() -> int:
    """Read SCALEOUT_NODES: on how many nodes this job runs; 1 outside of a job."""
    return number(os.environ.get("SCALEOUT_NODES", "")) or 1


def job_cores() -> int | None:
    """Read SCALEOUT_CORES: the cores of all the job's nodes together; None outside of a job."""
    return number(os.environ.get("SCALEOUT_CORES", "")) or None


def _path(name: str) -> Path | None:
    value = os.environ.get(name)
    return Path(value) if value else None
