"""Read how much of the CPUs' time was spent, by whomever."""

from dataclasses import dataclass
from pathlib import Path

from .topology import read_text

STAT = Path("/proc/stat")


@dataclass(frozen=True)
class Ticks:
    """How the CPUs' time was spent since the machine started, in ticks of all CPUs."""

    total: int = 0
    idle: int = 0


def ticks(path: Path = STAT) -> Ticks:
    """The ticks so far; zeros where they are unknown."""
    first = read_text(path).partition("\n")[0].split()
    numbers = [int(text) for text in first[1:9] if text.isdecimal()]
    # user, nice, system, idle, iowait, irq, softirq, steal: see proc(5)
    return Ticks(sum(numbers), numbers[3] + numbers[4]) if len(numbers) == 8 else Ticks()
