"""What this machine has, and what this process may use of it.

All is read from `/proc`, `/sys` and the environment's own `mpirun`. Containers often hide pieces: then a field
says "unknown" or None, and nothing raises. What reads files takes the root folder, what parses takes the text.
"""

import os
import re
import sys
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

__all__ = [
    "Cache",
    "Core",
    "Machine",
    "cgroup_limits",
    "copy_gb_per_s",
    "cpu_model",
    "facts",
    "memory_gib",
    "mpirun_path",
    "native_bf16",
    "parse_cpu_list",
    "parse_cpuinfo",
    "parse_mpi_version",
    "read_caches",
    "read_cores",
    "sgemm_gflops",
    "usable_cores",
    "versions",
]

ROOT = Path("/")
SYSTEM = "sys/devices/system"
# Instruction sets that change which kernels oneDNN and oneDAL pick, from old to new, as Linux spells them.
ISA = (
    *("sse4_2", "avx", "avx2", "fma", "avx_vnni"),
    *("avx512f", "avx512_vnni", "avx512_bf16", "avx512_fp16"),
    *("amx_tile", "amx_int8", "amx_bf16"),
)
KIB = {"K": 1, "M": 1024, "G": 1024**2}
MPI_FLAVOURS = {
    "Intel MPI": r"Intel\(R\) MPI Library.*?Version\s+([\d.]+(?:\s+Update\s+\d+)?)",
    "Open MPI": r"(?:Open MPI|OpenRTE)\)?\s+v?(\d\S*)",
    "MPICH": r"HYDRA build details:\s+Version:\s+(\S+)",
}


@dataclass(frozen=True)
class Core:
    """One physical core. cpus: its logical CPUs (two when hyper-threaded).

    cache_group: the lowest logical CPU that shares its last level of cache, -1 where unknown.
    """

    socket: int
    numa_node: int
    cpus: tuple[int, ...]
    cache_group: int


@dataclass(frozen=True)
class Cache:
    """One kind of cache: KiB of each instance, the logical CPUs that share one, how many there are."""

    level: int
    kind: str
    kib: int
    shared_by: int
    instances: int


@dataclass(frozen=True)
class Machine:
    """The facts about this machine.

    layout: all its physical cores; cores: how many of them this process may run on; hardware_threads: all its
    logical CPUs; allowed: those that this process may run on.  cgroup_cpus and memory_limit_gib: what control
    groups allow, None without a limit.  usable_cores: how many cores a job should fill.  isa: the instruction
    sets in ISA that it has.  layout_source: "sysfs", "cpuinfo", or "unknown" (then each CPU is taken as a core).
    """

    host: str
    cpu: str
    arch: str
    sockets: int
    numa_nodes: int
    cores: int
    hardware_threads: int
    allowed: tuple[int, ...]
    cgroup_cpus: float | None
    usable_cores: int
    isa: tuple[str, ...]
    caches: tuple[Cache, ...]
    memory_gib: float | None
    memory_limit_gib: float | None
    mpirun: str
    mpi: str
    mpi_version: str
    layout: tuple[Core, ...]
    layout_source: str


def _read(path: Path) -> str:
    try:
        return path.read_text(errors="replace").strip()
    except OSError:
        return ""


def _number(text: str, default: int = -1) -> int:
    try:
        return int(text)
    except ValueError:
        return default


def parse_cpu_list(text: str) -> list[int]:
    """CPU numbers in the kernel's list format: "0-2,8" is [0, 1, 2, 8]; what cannot be read is left out."""
    cpus: list[int] = []
    for part in text.split(","):
        first, _, last = part.strip().partition("-")
        if first.isdigit():
            cpus.extend(range(int(first), _number(last, int(first)) + 1))
    return cpus


def parse_cpuinfo(text: str) -> dict[int, dict[str, str]]:
    """`/proc/cpuinfo` as {logical CPU: {field: value}}."""
    cpus: dict[int, dict[str, str]] = {}
    for block in text.split("\n\n"):
        pairs = [line.partition(":") for line in block.splitlines() if ":" in line]
        fields = {name.strip(): value.strip() for name, _, value in pairs}
        if fields.get("processor", "").isdigit():
            cpus[int(fields["processor"])] = fields
    return cpus


def parse_mpi_version(text: str) -> tuple[str, str]:
    """Flavour and version in what `mpirun --version` prints: ("MPICH", "4.3.2"), or "unknown" twice."""
    for flavour, pattern in MPI_FLAVOURS.items():
        if found := re.search(pattern, text):
            return flavour, found[1]
    return "unknown", "unknown"


def native_bf16(flags: Collection[str]) -> bool:
    """Whether these ISA flags multiply bfloat16 in hardware; elsewhere oneDNN emulates it, slower than fp32."""
    return "avx512_bf16" in flags or "amx_bf16" in flags


def cpu_model(root: Path = ROOT) -> str:
    """The processor's name as the kernel gives it, or "unknown"."""
    cpus = parse_cpuinfo(_read(root / "proc/cpuinfo")).values()
    return next((fields["model name"] for fields in cpus if "model name" in fields), "unknown")


def memory_gib(field: str = "MemTotal", root: Path = ROOT) -> float | None:
    """One field of `/proc/meminfo` in GiB, or None where it is missing."""
    found = re.search(rf"^{field}:\s+(\d+) kB", _read(root / "proc/meminfo"), re.MULTILINE)
    return round(int(found[1]) / 1024**2, 2) if found else None


def _cgroup_folders(root: Path) -> Iterator[Path]:
    """This process's control groups and all above them, v1 and v2: a limit anywhere on the way up binds."""
    mounts = root / "sys/fs/cgroup"
    for line in _read(root / "proc/self/cgroup").splitlines():
        _, controllers, path = (line.split(":", 2) + ["", ""])[:3]
        for name in {controllers, *controllers.split(",")} if controllers else ("", "unified"):
            # A container often shows the host's path here although its own group is mounted at the top:
            # that is why the folders above count too, and why missing ones do no harm.
            folder = mounts / name / path.strip("/")
            yield from (above for above in (folder, *folder.parents) if above.is_relative_to(mounts))
    yield mounts


def cgroup_limits(root: Path = ROOT) -> tuple[float | None, float | None]:
    """CPUs and GiB that control groups (v1 or v2) allow; None where there is no limit."""
    cpus: list[float] = []
    gib: list[float] = []
    for folder in _cgroup_folders(root):
        quota, _, period = _read(folder / "cpu.max").partition(" ")
        if not quota:
            quota, period = _read(folder / "cpu.cfs_quota_us"), _read(folder / "cpu.cfs_period_us")
        if _number(quota) > 0 and _number(period) > 0:
            cpus.append(int(quota) / int(period))
        limit = _number(_read(folder / "memory.max") or _read(folder / "memory.limit_in_bytes"))
        if 0 < limit < 2**60:  # v1 writes "no limit" as a number close to 2^63
            gib.append(round(limit / 2**30, 2))
    return min(cpus, default=None), min(gib, default=None)


def _cache_instances(root: Path, cpus: Iterable[int]) -> Iterator[tuple[int, str, int, tuple[int, ...]]]:
    """(level, kind, KiB, CPUs that share it) of every cache that one of these CPUs uses, each once."""
    covered: set[tuple[str, int]] = set()
    for cpu in cpus:
        for folder in (root / SYSTEM / f"cpu/cpu{cpu}/cache").glob("index[0-9]*"):
            if (folder.name, cpu) in covered:
                continue
            shared = tuple(parse_cpu_list(_read(folder / "shared_cpu_list"))) or (cpu,)
            covered.update((folder.name, other) for other in shared)
            size, level = _read(folder / "size"), _number(_read(folder / "level"))
            kib = _number(size[:-1]) * KIB.get(size[-1:], 0)
            if level > 0 and kib > 0:
                yield level, _read(folder / "type").lower() or "unknown", kib, shared


def read_caches(root: Path = ROOT, cpus: Iterable[int] = ()) -> tuple[Cache, ...]:
    """The caches of these logical CPUs, level by level; empty where the system does not tell."""
    instances = [(level, kind, kib, len(shared)) for level, kind, kib, shared in _cache_instances(root, cpus)]
    return tuple(Cache(*cache, instances=instances.count(cache)) for cache in sorted(set(instances)))


def read_cores(root: Path = ROOT, allowed: Iterable[int] = ()) -> tuple[tuple[Core, ...], str]:
    """All physical cores, and where that is known from: "sysfs", "cpuinfo" or "unknown".

    `allowed` CPUs count as present even where a container's lists leave them out.
    """
    cpuinfo = parse_cpuinfo(_read(root / "proc/cpuinfo"))
    cpus = sorted({*(parse_cpu_list(_read(root / SYSTEM / "cpu/online")) or cpuinfo), *allowed})
    siblings: dict[tuple[str | int, ...], list[int]] = {}
    sockets: dict[int, int] = {}
    for cpu in cpus:
        topology, known = root / SYSTEM / f"cpu/cpu{cpu}/topology", cpuinfo.get(cpu, {})
        socket = _read(topology / "physical_package_id") or known.get("physical id", "")
        sockets[cpu] = max(0, _number(socket))  # some virtual machines say -1 for their only one
        together = _read(topology / "core_cpus_list") or _read(topology / "thread_siblings_list")
        if members := parse_cpu_list(together):
            core = ("sysfs", *members)
        elif "core id" in known:
            core = ("cpuinfo", socket, known["core id"])
        else:
            core = ("unknown", cpu)
        siblings.setdefault(core, []).append(cpu)
    nodes = {
        cpu: _number(folder.name.removeprefix("node"))
        for folder in (root / SYSTEM / "node").glob("node[0-9]*")
        for cpu in parse_cpu_list(_read(folder / "cpulist"))
    }
    # Lower levels come first, so that the last one stays.
    groups = {cpu: min(shared) for *_, shared in sorted(_cache_instances(root, cpus)) for cpu in shared}
    layout = [
        Core(sockets[first], nodes.get(first, 0), (first, *others), groups.get(first, -1))
        for first, *others in siblings.values()
    ]
    sources = {core[0] for core in siblings}
    weakest = next((name for name in ("unknown", "cpuinfo", "sysfs") if name in sources), "unknown")
    return tuple(sorted(layout, key=lambda core: (core.socket, core.cpus))), weakest


def _affinity() -> tuple[int, ...]:
    return tuple(sorted(os.sched_getaffinity(0)))


def _cores_with(layout: Iterable[Core], allowed: Collection[int]) -> int:
    return sum(any(cpu in allowed for cpu in core.cpus) for core in layout)


def _fill(cores: int, cgroup_cpus: float | None) -> int:
    return max(1, cores if cgroup_cpus is None else min(cores, int(cgroup_cpus)))


def usable_cores(root: Path = ROOT, allowed: Collection[int] | None = None) -> int:
    """How many cores a job should fill: the allowed physical ones, no more than the cgroup's quota, at least 1."""
    mine = _affinity() if allowed is None else allowed
    return _fill(_cores_with(read_cores(root, mine)[0], mine), cgroup_limits(root)[0])


def mpirun_path(prefix: str | Path = "") -> Path:
    """Where the `mpirun` of this Python's own environment is, or should be."""
    return Path(prefix or sys.prefix) / "bin" / "mpirun"


def _ask_version(mpirun: Path) -> str:
    import subprocess

    ask = [str(mpirun), "--version"]
    try:
        return subprocess.run(ask, capture_output=True, text=True, timeout=5, stdin=subprocess.DEVNULL).stdout
    except (OSError, UnicodeDecodeError, subprocess.TimeoutExpired):
        return ""


def facts(root: Path = ROOT, allowed: Collection[int] | None = None, mpirun: Path | None = None) -> Machine:
    """Looks at this machine; `allowed` defaults to the CPUs that this process may run on (its affinity)."""
    mine = _affinity() if allowed is None else tuple(sorted(allowed))
    mpirun = mpirun or mpirun_path()
    layout, source = read_cores(root, mine)
    cores = _cores_with(layout, mine)
    cgroup_cpus, limit_gib = cgroup_limits(root)
    total_gib = memory_gib(root=root)
    if limit_gib and total_gib and limit_gib >= total_gib:
        limit_gib = None
    flags = next(iter(parse_cpuinfo(_read(root / "proc/cpuinfo")).values()), {}).get("flags", "").split()
    flavour, version = parse_mpi_version(_ask_version(mpirun))
    return Machine(
        host=os.uname().nodename,
        cpu=cpu_model(root),
        arch=os.uname().machine,
        sockets=len({core.socket for core in layout}),
        numa_nodes=len({core.numa_node for core in layout}),
        cores=cores,
        hardware_threads=sum(len(core.cpus) for core in layout),
        allowed=mine,
        cgroup_cpus=cgroup_cpus,
        usable_cores=_fill(cores, cgroup_cpus),
        isa=tuple(flag for flag in ISA if flag in flags),
        caches=read_caches(root, [cpu for core in layout for cpu in core.cpus]),
        memory_gib=total_gib,
        memory_limit_gib=limit_gib,
        mpirun=str(mpirun),
        mpi=flavour,
        mpi_version=version,
        layout=layout,
        layout_source=source,
    )


def _rates(work: Callable[[], object], amount: float, repeats: int) -> tuple[float, list[float]]:
    """Median and single rates (amount / 1e9 per second) of timed calls, after one untimed call to warm up."""
    from statistics import median
    from time import perf_counter

    from .data import quick

    rates = []
    work()
    for _ in range(min(repeats, 3) if quick() else repeats):
        start = perf_counter()
        work()
        rates.append(amount / (perf_counter() - start) / 1e9)
    return median(rates), rates


def sgemm_gflops(n: int = 2048, repeats: int = 5, threads: int | None = None) -> tuple[float, list[float]]:
    """Multiplies two n x n float32 matrices with NumPy: median and single rates, in GFLOP/s (1e9 flops/s).

    Counted are 2 n^3 flops: n multiplications and n additions for each of n^2 results. `threads` defaults to the
    usable cores. With SCALEOUT_QUICK=1 at most three repeats, of the same size.
    """
    import numpy as np
    from threadpoolctl import threadpool_limits

    left, right = np.random.default_rng(0).random((2, n, n), dtype=np.float32)
    result = np.empty_like(left)
    with threadpool_limits(threads or usable_cores(), user_api="blas"):
        return _rates(lambda: np.matmul(left, right, out=result), 2 * n**3, repeats)


def copy_gb_per_s(mib: int = 256, repeats: int = 5, threads: int | None = None) -> tuple[float, list[float]]:
    """Copies a float32 array of `mib` MiB with NumPy: median and single rates, in GB/s (1e9 bytes/s).

    Counted are the bytes read plus the bytes written, so twice the array; not the lines that a cache fetches
    before it writes them. `threads` (default: the usable cores) copy a part each. Keep `mib` well above the last
    level of cache, or you measure that. With SCALEOUT_QUICK=1 at most three repeats, of the same size.
    """
    from concurrent.futures import ThreadPoolExecutor

    import numpy as np

    threads = threads or usable_cores()
    source = np.ones(mib * 2**18, dtype=np.float32)
    target = np.empty_like(source)
    parts = np.array_split(target, threads), np.array_split(source, threads)
    with ThreadPoolExecutor(threads) as pool:
        # NumPy lets go of the interpreter lock while it copies, so the threads do work side by side.
        return _rates(lambda: list(pool.map(np.copyto, *parts)), 2 * source.nbytes, repeats)


def versions(packages: Iterable[str]) -> dict[str, str]:
    """{package: version} of those that are installed in this environment."""
    import contextlib
    from importlib import metadata

    found = {}
    for name in packages:
        with contextlib.suppress(metadata.PackageNotFoundError):
            found[name] = metadata.version(name)
    return found
