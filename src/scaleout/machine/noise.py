"""What makes equal runs differ: the clock of the cores, memory pages, and who else computes."""

import os
import re
from dataclasses import dataclass
from pathlib import Path

CPUS = Path("/sys/devices/system/cpu")
HUGE_PAGES = Path("/sys/kernel/mm/transparent_hugepage/enabled")
STAT = Path("/proc/stat")


@dataclass(frozen=True)
class Clock:
    """How the clock of the cores is chosen."""

    governors: tuple[str, ...] = ()
    driver: str = ""
    turbo: bool | None = None


@dataclass(frozen=True)
class Ticks:
    """How the CPUs' time was spent since the machine started, in ticks of all CPUs."""

    total: int = 0
    stolen: int = 0
    idle: int = 0

    def share(self, before: "Ticks") -> float:
        """The part that was stolen since then, from 0 to 1."""
        return (self.stolen - before.stolen) / max(1, self.total - before.total)


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8").strip()
    except OSError:
        return ""


def clock(cpus: Path = CPUS) -> Clock:
    """How the clock of this machine's cores is chosen."""
    found = sorted(cpus.glob("cpu[0-9]*/cpufreq/scaling_governor"))
    off, boost = _read(cpus / "intel_pstate/no_turbo"), _read(cpus / "cpufreq/boost")
    turbo = off == "0" if off else boost == "1" if boost else None
    return Clock(
        tuple(sorted({text for path in found if (text := _read(path))})),
        _read(found[0].parent / "scaling_driver") if found else "",
        turbo,
    )


def huge_pages(path: Path = HUGE_PAGES) -> str:
    """Who gets memory in pages of 2 MiB: "always", "madvise" (who asks), "never", or "" where that
    is unknown.
    """
    chosen = re.search(r"\[(\w+)\]", _read(path))
    return chosen[1] if chosen else ""


def ticks(path: Path = STAT) -> Ticks:
    """The ticks so far; zeros where they are unknown."""
    first = _read(path).partition("\n")[0].split()
    numbers = [int(text) for text in first[1:9] if text.isdecimal()]
    # user, nice, system, idle, iowait, irq, softirq, steal: see proc(5)
    if len(numbers) != 8:
        return Ticks()
    return Ticks(sum(numbers), stolen=numbers[7], idle=numbers[3] + numbers[4])


def load() -> float:
    """How many processes wanted to run, on average over the last minute."""
    return os.getloadavg()[0]
