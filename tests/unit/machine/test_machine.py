"""The facts of machines that are not this one: folders laid out like their /proc and /sys."""

import os
import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from scaleout import machine
from scaleout.base.paths import programs
from scaleout.doctor import checks
from scaleout.machine.topology import cache_kib

CPU = """processor\t: {cpu}
model name\t: Some CPU @ 2.10GHz
physical id\t: {socket}
core id\t\t: {core}
flags\t\t: fpu sse4_2 avx avx2 fma avx512f avx512_vnni
"""
MEMORY = "MemTotal:       33554432 kB\nMemAvailable:   16777216 kB\n"


def lay(root: Path, files: Mapping[str, str]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text + "\n")
    return root


def topology(cpu: int, socket: int, siblings: str) -> dict[str, str]:
    """One logical CPU in /sys."""
    here = f"sys/devices/system/cpu/cpu{cpu}/topology"
    return {f"{here}/physical_package_id": str(socket), f"{here}/core_cpus_list": siblings}


def two_sockets(root: Path) -> Path:
    """2 sockets x 2 cores x 2 threads; CPU n and n + 4 share a core, as Linux numbers them."""
    files = {"sys/devices/system/cpu/online": "0-7", "proc/meminfo": MEMORY}
    files["proc/cpuinfo"] = "\n".join(
        CPU.format(cpu=n, socket=n % 4 // 2, core=n % 2) for n in range(8)
    )
    for n in range(8):
        socket, core = n % 4 // 2, n % 4
        files |= topology(n, socket, f"{core},{core + 4}")
    for node, cpus in enumerate(("0-1,4-5", "2-3,6-7")):
        files[f"sys/devices/system/node/node{node}/cpulist"] = cpus
    return lay(root, files)


def plain(root: Path, cpus: int = 8) -> Path:
    """One socket, one thread a core."""
    files = {"sys/devices/system/cpu/online": f"0-{cpus - 1}", "proc/meminfo": MEMORY}
    files["proc/cpuinfo"] = "\n".join(CPU.format(cpu=n, socket=0, core=n) for n in range(cpus))
    for n in range(cpus):
        files |= topology(n, 0, str(n))
    return lay(root, files)


def test_hyper_threads_are_not_cores(tmp_path: Path) -> None:
    facts = machine.facts(two_sockets(tmp_path), allowed=range(8), mpirun=tmp_path / "none")
    assert (facts.sockets, facts.cores, facts.hardware_threads) == (2, 4, 8)
    assert facts.usable_cores == 4 and machine.usable_cores(tmp_path, allowed=(0, 1, 4)) == 2
    assert [core.cpus for core in facts.layout] == [(0, 4), (1, 5), (2, 6), (3, 7)]
    assert facts.layout_source == "sysfs"
    assert facts.cpu == "Some CPU @ 2.10GHz"
    assert facts.isa == ("sse4_2", "avx", "avx2", "fma", "avx512f", "avx512_vnni")


def test_affinity_of_three_of_eight(tmp_path: Path) -> None:
    facts = machine.facts(plain(tmp_path), allowed=(5, 1, 2), mpirun=tmp_path / "none")
    assert facts.allowed == (1, 2, 5)
    assert (facts.cores, facts.usable_cores, len(facts.layout)) == (3, 3, 8)


@pytest.mark.parametrize(
    "files",
    [
        {"proc/self/cgroup": "0::/", "sys/fs/cgroup/cpu.max": "150000 100000"},
        {"proc/self/cgroup": "0::/a/b", "sys/fs/cgroup/a/cpu.max": "150000 100000"},
        {
            "proc/self/cgroup": "4:cpu,cpuacct:/docker/abc",
            "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us": "75000",
            "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us": "50000",
        },
        {
            "proc/self/cgroup": "4:cpuacct,cpu:/docker/abc",
            "sys/fs/cgroup/cpu/docker/abc/cpu.cfs_quota_us": "150000",
            "sys/fs/cgroup/cpu/docker/abc/cpu.cfs_period_us": "100000",
            "sys/fs/cgroup/cpu/docker/cpu.cfs_quota_us": "-1",
            "sys/fs/cgroup/cpu/docker/cpu.cfs_period_us": "100000",
        },
    ],
    ids=["v2", "v2 above", "v1 at the mount", "v1 in its path"],
)
def test_quota_of_one_and_a_half_cpus(tmp_path: Path, files: dict[str, str]) -> None:
    facts = machine.facts(lay(plain(tmp_path), files), allowed=range(8), mpirun=tmp_path / "none")
    assert facts.cgroup_cpus == 1.5
    assert (facts.cores, facts.usable_cores) == (8, 1), "a quota pays for whole cores only"


@pytest.mark.parametrize(
    ("limit", "gib"),
    [("4294967296", 4.0), ("max", None), ("99999999999999", None)],
)
def test_memory_limit(tmp_path: Path, limit: str, gib: float | None) -> None:
    files = {"proc/self/cgroup": "0::/", "sys/fs/cgroup/memory.max": limit}
    facts = machine.facts(lay(plain(tmp_path), files), allowed=(0,), mpirun=tmp_path / "none")
    assert facts.memory_gib == 32.0
    assert facts.memory_limit_gib == gib
    assert machine.memory_gib("MemAvailable", tmp_path) == 16.0


def test_no_sysfs_falls_back_to_cpuinfo(tmp_path: Path) -> None:
    text = "\n".join(CPU.format(cpu=n, socket=0, core=n % 2) for n in range(4))
    facts = machine.facts(
        lay(tmp_path, {"proc/cpuinfo": text}), allowed=(0,), mpirun=tmp_path / "none"
    )
    assert [core.cpus for core in facts.layout] == [(0, 2), (1, 3)]
    assert facts.layout_source == "cpuinfo"


def test_nothing_to_read_says_unknown(tmp_path: Path) -> None:
    facts = machine.facts(tmp_path, allowed=(0, 3), mpirun=tmp_path / "none")
    assert (facts.cpu, facts.layout_source, facts.mpi, facts.mpi_version) == ("unknown",) * 4
    assert (facts.cores, facts.usable_cores, facts.sockets) == (2, 2, 1)
    assert facts.memory_gib is facts.memory_limit_gib is facts.cgroup_cpus is None
    assert facts.isa == ()


def test_nonsense_in_the_files_is_no_crash(tmp_path: Path) -> None:
    root = plain(tmp_path)
    for path in root.rglob("*"):
        if path.is_file():
            path.write_bytes(b"\xff\xfe nonsense: \x00\n")
    assert machine.facts(root, allowed=(0, 1), mpirun=tmp_path / "none").usable_cores == 2


@pytest.mark.parametrize(
    ("text", "flavour", "version"),
    [
        (
            "HYDRA build details:\n    Version:                                 4.3.2\n",
            "MPICH",
            "4.3.2",
        ),
        (
            "Intel(R) MPI Library for Linux* OS, Version 2021.13 Build 20240515",
            "Intel MPI",
            "2021.13",
        ),
        ("mpirun (Open MPI) 4.1.4\n\nReport bugs to ...", "Open MPI", "4.1.4"),
        ("mpirun (PRRTE) 3.0.2", "unknown", "unknown"),
    ],
)
def test_parse_mpi_version(text: str, flavour: str, version: str) -> None:
    assert machine.parse_mpi_version(text) == (flavour, version)


def caches(root: Path, **sizes: str) -> Path:
    """The first CPU's caches in /sys: L1d="32K", L1i="64K", L2="512K"."""
    kinds = {"d": "Data", "i": "Instruction"}
    for number, (name, size) in enumerate(sizes.items()):
        here = f"sys/devices/system/cpu/cpu0/cache/index{number}"
        kind = kinds.get(name[2:], "Unified")
        lay(root, {f"{here}/level": name[1], f"{here}/size": size, f"{here}/type": kind})
    return root


def test_a_stamp_names_instructions_caches_and_memory(tmp_path: Path) -> None:
    root = caches(plain(tmp_path), L1d="32K", L1i="64K", L2="512K", L3="33792K")
    assert cache_kib(root) == {1: 32, 2: 512, 3: 33792}
    stamp = machine.stamp(root)
    assert re.fullmatch(
        r"Run on Some CPU @ 2\.10GHz, AVX-512, \d+ cores?, 512 KiB of L2 cache, 33 MiB of L3 cache, "
        r"32 GiB of memory, .*\d+ [A-Z][a-z]+ \d{4}\.",
        stamp,
    ), stamp


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        ("sse4_2 avx avx2 fma", "AVX2"),
        ("avx2 avx512f avx512_vnni", "AVX-512"),
        ("avx2 avx512f avx512_bf16", "AVX-512 with BF16"),
        ("avx2 avx512f avx512_bf16 amx_tile amx_bf16", "AMX"),
    ],
)
def test_two_processors_of_one_name_have_two_stamps(tmp_path: Path, flags: str, words: str) -> None:
    text = f"processor\t: 0\nmodel name\t: AMD EPYC\nflags\t\t: {flags}\n"
    stamp = machine.stamp(lay(tmp_path, {"proc/cpuinfo": text}))
    assert stamp.startswith(f"Run on AMD EPYC, {words}, ")


def test_a_stamp_leaves_out_what_is_unknown(tmp_path: Path) -> None:
    stamp = machine.stamp(caches(tmp_path, L2="", L3="0K"))
    assert re.match(r"Run on unknown, \d+ cores?, ", stamp)
    assert "cache" not in stamp and "memory" not in stamp and ", ," not in stamp


def test_this_machine() -> None:
    facts = machine.facts()
    assert set(facts.allowed) == os.sched_getaffinity(0)
    assert 1 <= facts.usable_cores <= facts.cores <= len(facts.layout) <= facts.hardware_threads
    assert facts.mpi != "unknown" and Path(facts.mpirun) == programs() / "mpirun"


@pytest.mark.parametrize(
    ("files", "lost"),
    [
        ({"proc/stat": "cpu  9 9 9 9 9 9 9 250 0 0\ncpu0 1"}, (2.5, 0)),
        ({"sys/fs/cgroup/cpu.stat": "nr_throttled 3\nthrottled_usec 1500000\n"}, (0, 1.5)),
        ({"sys/fs/cgroup/cpu/cpu.stat": "nr_periods 1\nthrottled_time 2000000000\n",
          "proc/self/cgroup": "4:cpu,cpuacct:/a"}, (0, 2)),
        ({"proc/stat": "cpu  9 9"}, (0, 0)),
        ({}, (0, 0)),
    ],
)  # fmt: skip
def test_time_that_was_lost_is_read(
    tmp_path: Path, files: dict[str, str], lost: tuple[float, float]
) -> None:
    lay(tmp_path, files)
    assert machine.lost_s(tmp_path) == lost


@pytest.mark.parametrize(
    ("speeds", "slow"),
    [
        ({"cpu_capacity": ["1024", "1024", "610", "610"]}, 2),
        ({"cpufreq/cpuinfo_max_freq": ["4700000", "4700000", "3500000", "3500000"]}, 2),
        ({"cpufreq/cpuinfo_max_freq": ["4900000", "4700000", "4700000", "4700000"]}, 0),
        ({}, 0),
    ],
)
def test_slow_cores_are_told_from_fast_ones(
    tmp_path: Path, speeds: dict[str, list[str]], slow: int
) -> None:
    root = plain(tmp_path, cpus=4)
    for name, each in speeds.items():
        lay(root, {f"sys/devices/system/cpu/cpu{n}/{name}": text for n, text in enumerate(each)})
    facts = machine.facts(root, allowed=range(4), mpirun=tmp_path / "none")
    assert [core.cpus[0] for core in facts.slow] == [2, 3][:slow]
    found = checks.cores(facts)
    assert (found.status, "2 fast and 2 slow" in found.seen) == (
        ("warn", True) if slow else ("ok", False)
    )
    assert "taskset -cp 0,1 " in found.fix or not slow
