"""Read the cores, caches and processor of this machine from /proc and /sys.

`lscpu` would do, but it ends with a segmentation fault where a container shows half of /sys."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path("/")
SYSTEM = "sys/devices/system"
KIB = {"K": 1, "M": 1024, "G": 1024**2}


@dataclass(frozen=True)
class Core:
    """One physical core."""

    socket: int
    numa_node: int
    cpus: tuple[int, ...]
    cache_group: int


@dataclass(frozen=True)
class Cache:
    """One kind of cache."""

    level: int
    kind: str
    kib: int
    shared_by: int
    instances: int


def read_text(path: Path) -> str:
    """What a file holds, without the white space around it; "" where it cannot be read."""
    try:
        return path.read_text(errors="replace").strip()
    except OSError:
        return ""


def number(text: str, default: int = -1) -> int:
    """The whole number that a text is."""
    try:
        return int(text)
    except ValueError:
        return default


def parse_cpu_list(text: str) -> list[int]:
    """CPU numbers in the kernel's list format: "0-2,8" is [0, 1, 2, 8]."""
    cpus: list[int] = []
    for part in text.split(","):
        first, _, last = part.strip().partition("-")
        if first.isdigit():
            cpus.extend(range(int(first), number(last, int(first)) + 1))
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


def cpu_model(root: Path = ROOT) -> str:
    """The processor's name as the kernel gives it, or "unknown"."""
    cpus = parse_cpuinfo(read_text(root / "proc/cpuinfo")).values()
    return next((fields["model name"] for fields in cpus if "model name" in fields), "unknown")


def cache_instances(
    root: Path, cpus: Iterable[int]
) -> Iterator[tuple[int, str, int, tuple[int, ...]]]:
    """Every cache that one of these CPUs uses, each once."""
    covered: set[tuple[str, int]] = set()
    for cpu in cpus:
        for folder in (root / SYSTEM / f"cpu/cpu{cpu}/cache").glob("index[0-9]*"):
            if (folder.name, cpu) in covered:
                continue
            shared = tuple(parse_cpu_list(read_text(folder / "shared_cpu_list"))) or (cpu,)
            covered.update((folder.name, other) for other in shared)
            size, level = read_text(folder / "size"), number(read_text(folder / "level"))
            kib = number(size[:-1]) * KIB.get(size[-1:], 0)
            if level > 0 and kib > 0:
                yield level, read_text(folder / "type").lower() or "unknown", kib, shared


def read_caches(root: Path = ROOT, cpus: Iterable[int] = ()) -> tuple[Cache, ...]:
    """The caches of these logical CPUs, level by level."""
    instances = [
        (level, kind, kib, len(shared)) for level, kind, kib, shared in cache_instances(root, cpus)
    ]
    return tuple(
        Cache(*cache, instances=instances.count(cache)) for cache in sorted(set(instances))
    )


def read_cores(root: Path = ROOT, allowed: Iterable[int] = ()) -> tuple[tuple[Core, ...], str]:
    """All physical cores, and where that is known from."""
    cpuinfo = parse_cpuinfo(read_text(root / "proc/cpuinfo"))
    cpus = sorted({*(parse_cpu_list(read_text(root / SYSTEM / "cpu/online")) or cpuinfo), *allowed})
    siblings: dict[tuple[str | int, ...], list[int]] = {}
    sockets: dict[int, int] = {}
    for cpu in cpus:
        topology, known = root / SYSTEM / f"cpu/cpu{cpu}/topology", cpuinfo.get(cpu, {})
        socket = read_text(topology / "physical_package_id") or known.get("physical id", "")
        sockets[cpu] = max(0, number(socket))  # some virtual machines say -1 for their only one
        together = read_text(topology / "core_cpus_list") or read_text(
            topology / "thread_siblings_list"
        )
        core: tuple[str | int, ...]
        if members := parse_cpu_list(together):
            core = ("sysfs", *members)
        elif "core id" in known:
            core = ("cpuinfo", socket, known["core id"])
        else:
            core = ("unknown", cpu)
        siblings.setdefault(core, []).append(cpu)
    nodes = {
        cpu: number(folder.name.removeprefix("node"))
        for folder in (root / SYSTEM / "node").glob("node[0-9]*")
        for cpu in parse_cpu_list(read_text(folder / "cpulist"))
    }
    # Lower levels come first, so that the last one stays.
    groups = {
        cpu: min(shared) for *_, shared in sorted(cache_instances(root, cpus)) for cpu in shared
    }
    layout = [
        Core(sockets[first], nodes.get(first, 0), (first, *others), groups.get(first, -1))
        for first, *others in siblings.values()
    ]
    sources = {core[0] for core in siblings}
    weakest = next((name for name in ("unknown", "cpuinfo", "sysfs") if name in sources), "unknown")
    return tuple(sorted(layout, key=lambda core: (core.socket, core.cpus))), weakest


def example_cores(sockets: int = 2, cores: int = 24, threads: int = 2) -> tuple[Core, ...]:
    """The cores of a machine that is not here, for pictures: CPUs are counted as Linux usually
    counts them, the first hardware thread of every core before the second of any.
    """
    whole = sockets * cores
    return tuple(
        Core(
            core // cores,
            core // cores,
            tuple(core + whole * thread for thread in range(threads)),
            core // cores * cores,
        )
        for core in range(whole)
    )
