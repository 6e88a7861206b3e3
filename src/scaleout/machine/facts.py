"""Gather all facts about this machine in one object, and what this process may use of it."""

import os
import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from ..base.paths import programs
from ..base.words import count, day, kibibytes
from .topology import (
    ROOT,
    Core,
    cache_kib,
    cpu_model,
    parse_cpuinfo,
    read_cores,
    read_text,
    slow_cores,
    to_int,
)

# Instruction sets that change which kernels oneDNN and oneDAL pick, from old to new, as Linux
# spells them.
ISA = (
    *("sse4_2", "avx", "avx2", "fma", "avx_vnni"),
    *("avx512f", "avx512_vnni", "avx512_bf16", "avx512_fp16"),
    *("amx_tile", "amx_int8", "amx_bf16"),
)

# What a stamp calls the best of them, from new to old.
INSTRUCTIONS = {
    "amx_tile": "AMX",
    "avx512_bf16": "AVX-512 with BF16",
    "avx512f": "AVX-512",
    "avx2": "AVX2",
}

MPI_FLAVOURS = {
    "Intel MPI": r"Intel\(R\) MPI Library.*?Version\s+([\d.]+(?:\s+Update\s+\d+)?)",
    "Open MPI": r"(?:Open MPI|OpenRTE)\)?\s+v?(\d\S*)",
    "MPICH": r"HYDRA build details:\s+Version:\s+(\S+)",
}


@dataclass(frozen=True)
class Machine:
    """The facts about this machine; `facts` makes it. What is not known is "unknown" or None.

    Attributes
    ----------
    host, cpu : str
        The machine's name, and the processor's as the kernel gives it.
    sockets, cores, hardware_threads : int
        How many there are: `cores` are the physical ones that this process may use, the others
        those of the whole machine.
    allowed : tuple of int
        The logical CPUs that this process may run on.
    cgroup_cpus : float or None
        How many CPUs control groups allow; None: no limit.
    usable_cores : int
        How many cores a job should fill, as `usable_cores` says.
    isa : tuple of str
        The instruction sets, of ISA, as Linux spells them.
    memory_gib, memory_limit_gib : float or None
        GiB of the machine, and what control groups allow where that is less.
    mpirun, mpi, mpi_version : str
        The environment's `mpirun`, its flavour ("MPICH", "Open MPI", "Intel MPI") and version.
    layout : tuple of Core
        All physical cores.
    layout_source : str
        "sysfs", "cpuinfo" or "unknown": the weakest source that was needed for the layout.
    slow : tuple of Core
        Those of the allowed ones that are slower than the others, of which many laptops have some.
    """

    host: str
    cpu: str
    sockets: int
    cores: int
    hardware_threads: int
    allowed: tuple[int, ...]
    cgroup_cpus: float | None
    usable_cores: int
    isa: tuple[str, ...]
    memory_gib: float | None
    memory_limit_gib: float | None
    mpirun: str
    mpi: str
    mpi_version: str
    layout: tuple[Core, ...]
    layout_source: str
    slow: tuple[Core, ...] = ()


def parse_mpi_version(text: str) -> tuple[str, str]:
    """Find flavour and version in what `mpirun --version` prints.

    Parameters
    ----------
    text : str

    Returns
    -------
    flavour, version : str
        Such as ("MPICH", "4.3.2"); ("unknown", "unknown") for any other text.
    """
    for flavour, pattern in MPI_FLAVOURS.items():
        if found := re.search(pattern, text):
            return flavour, found[1]
    return "unknown", "unknown"


def memory_gib(field: str = "MemTotal", root: Path = ROOT) -> float | None:
    """Read one field of `/proc/meminfo`.

    Parameters
    ----------
    field : str
        Such as "MemTotal" or "MemAvailable".
    root : Path
        The folder that holds `proc`.

    Returns
    -------
    float or None
        GiB (2**30 bytes); None where the field is not there.
    """
    found = re.search(rf"^{field}:\s+(\d+) kB", read_text(root / "proc/meminfo"), re.MULTILINE)
    return round(int(found[1]) / 1024**2, 2) if found else None


def _cgroup_folders(root: Path) -> Iterator[Path]:
    """List this process's control groups and all above them, v1 and v2: a limit anywhere on the way
    up binds."""
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
    """Read what control groups (v1 or v2) allow this process.

    Parameters
    ----------
    root : Path
        The folder that holds `proc` and `sys`.

    Returns
    -------
    cpus, gib : float or None
        CPUs' worth of time, and GiB (2**30 bytes) of memory; None where there is no limit.
    """
    cpus: list[float] = []
    gib: list[float] = []
    for folder in _cgroup_folders(root):
        quota, _, period = read_text(folder / "cpu.max").partition(" ")
        if not quota:
            quota, period = (
                read_text(folder / "cpu.cfs_quota_us"),
                read_text(folder / "cpu.cfs_period_us"),
            )
        if to_int(quota) > 0 and to_int(period) > 0:
            cpus.append(int(quota) / int(period))
        limit = to_int(
            read_text(folder / "memory.max") or read_text(folder / "memory.limit_in_bytes")
        )
        if 0 < limit < 2**60:  # v1 writes "no limit" as a number close to 2^63
            gib.append(round(limit / 2**30, 2))
    return min(cpus, default=None), min(gib, default=None)


def lost_s(root: Path = ROOT) -> tuple[float, float]:
    """Read how long CPUs wanted to run and could not, since this machine began.

    Parameters
    ----------
    root : Path
        The folder that holds `proc` and `sys`.

    Returns
    -------
    stolen, held : float
        Seconds of all CPUs together: in which the host ran other virtual machines, and in which the
        limit of a control group held its processes back; 0 where nobody tells.
    """
    ticks = read_text(root / "proc/stat").partition("\n")[0].split()
    stolen = (
        to_int(ticks[8]) if len(ticks) > 8 else 0
    )  # user, nice, system, idle, iowait, irq, softirq
    held = [0.0]
    for folder in _cgroup_folders(root):
        told = dict(line.split()[:2] for line in read_text(folder / "cpu.stat").splitlines())
        held.append(to_int(told.get("throttled_usec", "")) / 1e6)
        held.append(to_int(told.get("throttled_time", "")) / 1e9)  # v1
    return max(stolen, 0) / os.sysconf("SC_CLK_TCK"), max(held)


def _affinity() -> tuple[int, ...]:
    """List the logical CPUs that this process may run on."""
    return tuple(sorted(os.sched_getaffinity(0)))


def _cores_with(layout: Iterable[Core], allowed: Collection[int]) -> int:
    """Count the cores of which at least one CPU is allowed."""
    return sum(any(cpu in allowed for cpu in core.cpus) for core in layout)


def _fill(cores: int, cgroup_cpus: float | None) -> int:
    """Round a quota of CPUs down to whole cores, at least 1, of those that there are."""
    return max(1, cores if cgroup_cpus is None else min(cores, int(cgroup_cpus)))


def usable_cores(root: Path = ROOT, allowed: Collection[int] | None = None) -> int:
    """Count the cores that a job should fill: the physical ones that this process may use, no more
    than the control groups' quota, at least 1.

    Parameters
    ----------
    root : Path
        The folder that holds `proc` and `sys`.
    allowed : collection of int, optional
        Logical CPUs; by default those that this process may run on.

    Returns
    -------
    int
    """
    mine = _affinity() if allowed is None else allowed
    return _fill(_cores_with(read_cores(root, mine)[0], mine), cgroup_limits(root)[0])


def _ask_version(mpirun: Path) -> str:
    """Ask an `mpirun` for its version; "" where it does not answer within 5 seconds."""
    import subprocess

    ask = [str(mpirun), "--version"]
    try:
        return subprocess.run(
            ask, capture_output=True, text=True, timeout=5, stdin=subprocess.DEVNULL
        ).stdout
    except (OSError, UnicodeDecodeError, subprocess.TimeoutExpired):
        return ""


def facts(
    root: Path = ROOT, allowed: Collection[int] | None = None, mpirun: Path | None = None
) -> Machine:
    """Look at this machine.

    Parameters
    ----------
    root : Path
        The folder that holds `proc` and `sys`.
    allowed : collection of int, optional
        Logical CPUs; by default those that this process may run on.
    mpirun : Path, optional
        By default that of this Python's own environment.

    Returns
    -------
    Machine
        What cannot be read is "unknown" or None; nothing raises.
    """
    mine = _affinity() if allowed is None else tuple(sorted(allowed))
    mpirun = mpirun or programs() / "mpirun"
    layout, source = read_cores(root, mine)
    cores = _cores_with(layout, mine)
    cgroup_cpus, limit_gib = cgroup_limits(root)
    total_gib = memory_gib(root=root)
    if limit_gib and total_gib and limit_gib >= total_gib:
        limit_gib = None
    flags = (
        next(iter(parse_cpuinfo(read_text(root / "proc/cpuinfo")).values()), {})
        .get("flags", "")
        .split()
    )
    flavour, version = parse_mpi_version(_ask_version(mpirun))
    return Machine(
        host=os.uname().nodename,
        cpu=cpu_model(root),
        sockets=len({core.socket for core in layout}),
        cores=cores,
        hardware_threads=sum(len(core.cpus) for core in layout),
        allowed=mine,
        cgroup_cpus=cgroup_cpus,
        usable_cores=_fill(cores, cgroup_cpus),
        isa=tuple(flag for flag in ISA if flag in flags),
        memory_gib=total_gib,
        memory_limit_gib=limit_gib,
        mpirun=str(mpirun),
        mpi=flavour,
        mpi_version=version,
        layout=layout,
        layout_source=source,
        slow=slow_cores([core for core in layout if {*core.cpus} & {*mine}], root),
    )


def best_isa(isa: Collection[str]) -> str:
    """Name the best of a processor's instruction sets.

    Parameters
    ----------
    isa : collection of str
        As `Machine.isa` has them.

    Returns
    -------
    str
        "AVX2", "AVX-512", "AVX-512 with BF16" or "AMX"; "" where it is older than these.
    """
    return next((words for flag, words in INSTRUCTIONS.items() if flag in isa), "")


def versions(packages: Iterable[str]) -> dict[str, str]:
    """Look up which of these packages are installed in this environment.

    Parameters
    ----------
    packages : iterable of str
        Names as pip has them.

    Returns
    -------
    dict
        {package: version}, without those that are missing.
    """
    import contextlib
    from importlib import metadata

    found = {}
    for name in packages:
        with contextlib.suppress(metadata.PackageNotFoundError):
            found[name] = metadata.version(name)
    return found


def stamp(root: Path = ROOT) -> str:
    """Write the sentence that stands above stored outputs, so that nobody takes them for those of
    another machine.

    Parameters
    ----------
    root : Path
        The folder that holds `proc` and `sys`.

    Returns
    -------
    str
        The processor, its instructions, the cores that a job may fill, caches, memory, the versions
        of what computes, and the day (UTC).
    """
    here = facts(root)
    parts = [best_isa(here.isa)]
    parts.append(count(here.usable_cores, "core"))
    caches = cache_kib(root)
    parts += [
        f"{kibibytes(caches[level])} of L{level} cache" for level in (2, 3) if level in caches
    ]
    if gib := here.memory_limit_gib or here.memory_gib:
        parts.append(f"{gib:.0f} GiB of memory")
    names = {
        "tensorflow": "TensorFlow",
        "tensorflow-cpu": "TensorFlow",
        "scikit-learn-intelex": "scikit-learn-intelex",
    }
    found = {names[package]: version for package, version in versions(names).items()}
    parts += [f"{name} {version}" for name, version in found.items()]
    if here.mpi_version:
        parts.append(f"{here.mpi} {here.mpi_version}")
    parts.append(day(datetime.now(UTC).date().isoformat()))
    return f"Run on {here.cpu}, {', '.join(part for part in parts if part)}."
