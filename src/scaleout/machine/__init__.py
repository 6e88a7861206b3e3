"""Find out what this machine has, and what this process may use of it.

All is read from `/proc`, `/sys` and the environment's own `mpirun`. Containers often hide pieces:
then a field says "unknown" or None, and nothing raises. What reads files takes the root folder,
what parses takes the text."""

from .facts import (
    Machine,
    best_isa,
    cgroup_limits,
    facts,
    lost_s,
    memory_gib,
    parse_mpi_version,
    stamp,
    usable_cores,
    versions,
)
from .limits import Pace, copy_gb_per_s, pace, sgemm_gflops, speed_limits
from .topology import Core, cache_kib, cpu_model, read_cores

__all__ = [
    "Core",
    "Machine",
    "Pace",
    "best_isa",
    "cache_kib",
    "cgroup_limits",
    "copy_gb_per_s",
    "cpu_model",
    "facts",
    "lost_s",
    "memory_gib",
    "pace",
    "parse_mpi_version",
    "read_cores",
    "sgemm_gflops",
    "speed_limits",
    "stamp",
    "usable_cores",
    "versions",
]
