"""Who else computed while a job ran: a rate measured beside others' work would mislead a sweep."""

import os
from dataclasses import dataclass

from ..machine import noise

# Shares of the CPUs' time
OTHERS = 0.10  # that others may take
ROOM = 0.25  # idle: with as much, others computed on cores that the job left free
STOLEN = 0.05  # that the host of a virtual machine may take


@dataclass(frozen=True)
class Load:
    """What others took of the CPUs' time, each from 0 to 1."""

    others: float = 0.0
    stolen: float = 0.0
    idle: float = 1.0

    @property
    def disturbs(self) -> bool:
        """Whether the job had to share what it computed on."""
        taken = self.others + self.stolen
        return self.stolen >= STOLEN or (taken >= OTHERS and self.idle < ROOM)


class Watch:
    """Counts from its making on; what this process and its children use is the job's own."""

    def __init__(self) -> None:
        self.ticks, self.own_s = noise.ticks(), _own_s()

    def load(self) -> Load:
        """What others have taken since; nothing where the system does not count it."""
        now = noise.ticks()
        total = now.total - self.ticks.total
        if total <= 0:
            return Load()
        own = (_own_s() - self.own_s) * os.sysconf("SC_CLK_TCK")
        idle, stolen = now.idle - self.ticks.idle, now.stolen - self.ticks.stolen
        others = max(0.0, total - idle - stolen - own)
        return Load(others / total, stolen / total, idle / total)


def _own_s() -> float:
    used = os.times()
    return used.user + used.system + used.children_user + used.children_system
