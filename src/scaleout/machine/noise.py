"""Read what others take of this machine meanwhile."""

import re
from dataclasses import dataclass
from pathlib import Path

from .topology import read_text

HUGE_PAGES = Path("/sys/kernel/mm/transparent_hugepage/enabled")
STAT = Path("/proc/stat")


@dataclass(frozen=True)
class Ticks:
    """How the CPUs' time was spent since the machine started, in ticks of all CPUs."""

    total: int = 0
    stolen: int = 0
    idle: int = 0


def ticks(path: Path = STAT) -> Ticks:
    """The ticks so far; zeros where they are unknown."""
    first = read_text(path).partition("\n")[0].split()
    numbers = [int(text) for text in first[1:9] if text.isdecimal()]
    # user, nice, system, idle, iowait, irq, softirq, steal: see proc(5)
    if len(numbers) != 8:
        return Ticks()
    return Ticks(sum(numbers), stolen=numbers[7], idle=numbers[3] + numbers[4])


def huge_pages() -> str:
    """Who gets memory in pages of 2 MiB: "always", "madvise", "never", or "" where unknown."""
    chosen = re.search(r"\[(\w+)\]", read_text(HUGE_PAGES))
    return chosen[1] if chosen else ""
