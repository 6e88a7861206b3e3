"""What a notebook says of itself: where and when its outputs were made."""

from datetime import UTC, datetime

from ..words import count
from .facts import facts, versions


def stamp() -> str:
    """A sentence with the processor, the cores that a job may fill, the versions of what computes,
    and the day: so that nobody takes a stored output for that of another machine.
    """
    here = facts()
    names = {"tensorflow": "TensorFlow", "tensorflow-cpu": "TensorFlow"}
    found = {names[package]: version for package, version in versions(names).items()}
    parts = [f"{name} {version}" for name, version in found.items()]
    if here.mpi_version:
        parts.append(f"{here.mpi} {here.mpi_version}")
    cores = count(here.usable_cores, "core")
    today = datetime.now(UTC)
    day = f"{today.day} {today:%B %Y}"
    return f"Run on {here.cpu}, {', '.join([cores, *parts])}, {day}."
