"""What control groups allow this process."""

from collections.abc import Iterator
from pathlib import Path

from .files import ROOT, number, read_text


def _cgroup_folders(root: Path) -> Iterator[Path]:
    """This process's control groups and all above them, v1 and v2: a limit anywhere on the way up
    binds."""
    mounts = root / "sys/fs/cgroup"
    for line in read_text(root / "proc/self/cgroup").splitlines():
        _, controllers, path = (line.split(":", 2) + ["", ""])[:3]
        for name in {controllers, *controllers.split(",")} if controllers else ("", "unified"):
            # A container often shows the host's path here although its own group is mounted at the
            # top: that is why the folders above count too, and why missing ones do no harm.
            folder = mounts / name / path.strip("/")
            yield from (
                above for above in (folder, *folder.parents) if above.is_relative_to(mounts)
            )
    yield mounts


def cgroup_limits(root: Path = ROOT) -> tuple[float | None, float | None]:
    """CPUs and GiB that control groups (v1 or v2) allow; None where there is no limit."""
    cpus: list[float] = []
    gib: list[float] = []
    for folder in _cgroup_folders(root):
        quota, _, period = read_text(folder / "cpu.max").partition(" ")
        if not quota:
            quota, period = (
                read_text(folder / "cpu.cfs_quota_us"),
                read_text(folder / "cpu.cfs_period_us"),
            )
        if number(quota) > 0 and number(period) > 0:
            cpus.append(int(quota) / int(period))
        limit = number(
            read_text(folder / "memory.max") or read_text(folder / "memory.limit_in_bytes")
        )
        if 0 < limit < 2**60:  # v1 writes "no limit" as a number close to 2^63
            gib.append(round(limit / 2**30, 2))
    return min(cpus, default=None), min(gib, default=None)
