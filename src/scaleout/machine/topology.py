"""Read the cores and the processor of this machine from /proc and /sys.

`lscpu` would do, but it ends with a segmentation fault where a container shows half of /sys."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path("/")
SYSTEM = "sys/devices/system"
SPEEDS = "cpu_capacity", "cpufreq/cpuinfo_max_freq"
SLOW = 0.8


@dataclass(frozen=True)
class Core:
    """One physical core.

    Attributes
    ----------
    socket, numa_node : int
        Where it is; 0 where that is not known.
    cpus : tuple of int
        Its hardware threads, as logical CPU numbers.
    """

    socket: int
    numa_node: int
    cpus: tuple[int, ...]


def read_text(path: Path) -> str:
    """Read a file, without the white space around it; "" where it cannot be read."""
    try:
        return path.read_text(errors="replace").strip()
    except OSError:
        return ""


def to_int(text: str, default: int = -1) -> int:
    """Read the whole number that a text is."""
    try:
        return int(text)
    except ValueError:
        return default


def parse_cpu_list(text: str) -> list[int]:
    """Read CPU numbers in the kernel's list format: "0-2,8" is [0, 1, 2, 8]."""
    cpus: list[int] = []
    for part in text.split(","):
        first, _, last = part.strip().partition("-")
        if first.isdigit():
            cpus.extend(range(int(first), to_int(last, int(first)) + 1))
    return cpus


def parse_cpuinfo(text: str) -> dict[int, dict[str, str]]:
    """Read `/proc/cpuinfo` as {logical CPU: {field: value}}."""
    cpus: dict[int, dict[str, str]] = {}
    for block in text.split("\n\n"):
        pairs = [line.partition(":") for line in block.splitlines() if ":" in line]
        fields = {name.strip(): value.strip() for name, _, value in pairs}
        if fields.get("processor", "").isdigit():
            cpus[int(fields["processor"])] = fields
    return cpus


def slow_cores(cores: Sequence[Core], root: Path = ROOT) -> tuple[Core, ...]:
    """Find the cores that are slower than the fastest by a fifth and more.

    A few that may be clocked higher for a while make no two kinds.

    Parameters
    ----------
    cores : sequence of Core
    root : Path
        The folder that holds `sys`.

    Returns
    -------
    tuple of Core
        () where all are alike, or nobody says what they can.
    """
    speeds = {core: _speed(root / SYSTEM / f"cpu/cpu{core.cpus[0]}") for core in cores}
    fastest = max(speeds.values(), default=0)
    return tuple(core for core, speed in speeds.items() if 0 < speed < SLOW * fastest)


def _speed(folder: Path) -> int:
    """Read what the kernel's scheduler counts on of a CPU, else its largest frequency."""
    found = (to_int(read_text(folder / name), 0) for name in SPEEDS)
    return next(filter(None, found), 0)


def cpu_model(root: Path = ROOT) -> str:
    """Read the processor's name.

    Parameters
    ----------
    root : Path
        The folder that holds `proc`.

    Returns
    -------
    str
        As the kernel gives it, or "unknown".
    """
    cpus = parse_cpuinfo(read_text(root / "proc/cpuinfo")).values()
    return next((fields["model name"] for fields in cpus if "model name" in fields), "unknown")


def cache_kib(root: Path = ROOT) -> dict[int, int]:
    """Read the KiB of the first CPU's caches, by level; those for instructions alone are left out."""
    sizes: dict[int, int] = {}
    for folder in sorted((root / SYSTEM / "cpu/cpu0/cache").glob("index[0-9]*")):
        level, size = (read_text(folder / name) for name in ("level", "size"))
        kib = to_int(size.removesuffix("K"))
        if to_int(level) > 0 and kib > 0 and read_text(folder / "type") != "Instruction":
            sizes[to_int(level)] = kib
    return sizes


def read_cores(root: Path = ROOT, allowed: Iterable[int] = ()) -> tuple[tuple[Core, ...], str]:
    """Find all physical cores.

    Parameters
    ----------
    root : Path
        The folder that holds `proc` and `sys`.
    allowed : iterable of int
        Logical CPUs that are there although the system may not list them.

    Returns
    -------
    cores : tuple of Core
        By socket, then by CPU.
    source : str
        "sysfs" or "cpuinfo"; "unknown" where neither tells which CPUs share a core, and each then
        counts as one. The weakest counts, where CPUs differ.
    """
    cpuinfo = parse_cpuinfo(read_text(root / "proc/cpuinfo"))
    cpus = sorted({*(parse_cpu_list(read_text(root / SYSTEM / "cpu/online")) or cpuinfo), *allowed})
    siblings: dict[tuple[str | int, ...], list[int]] = {}
    sockets: dict[int, int] = {}
    for cpu in cpus:
        topology, known = root / SYSTEM / f"cpu/cpu{cpu}/topology", cpuinfo.get(cpu, {})
        socket = read_text(topology / "physical_package_id") or known.get("physical id", "")
        sockets[cpu] = max(0, to_int(socket))  # some virtual machines say -1 for their only one
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
        cpu: to_int(folder.name.removeprefix("node"))
        for folder in (root / SYSTEM / "node").glob("node[0-9]*")
        for cpu in parse_cpu_list(read_text(folder / "cpulist"))
    }
    layout = [
        Core(sockets[first], nodes.get(first, 0), (first, *others))
        for first, *others in siblings.values()
    ]
    sources = {core[0] for core in siblings}
    weakest = next((name for name in ("unknown", "cpuinfo", "sysfs") if name in sources), "unknown")
    return tuple(sorted(layout, key=lambda core: (core.socket, core.cpus))), weakest
