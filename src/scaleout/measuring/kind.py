"""A kind of machine: what is measured on two of the same kind is one measurement."""

import re
from typing import Self

import msgspec

from .. import machine
from ..base.words import count
from .row import Count, Share, Some

NO_NAME = re.compile(
    r"\((?:R|TM)\)|\b(?:Intel|AMD|CPU|Processor|\d+-Core)\b|@.*$", re.IGNORECASE
)  # what a processor is called beside its name


class Kind(msgspec.Struct, frozen=True, kw_only=True):
    """A kind of machine: two of the same kind are one."""

    cpu: str
    isa: str  # the best of its instruction sets, as a stamp has it
    cores: Some  # that a job may fill
    l2_kib: Count = 0  # 0 where nobody knows
    l3_kib: Count = 0
    memory_gib: Share = 0.0

    @classmethod
    def here(cls) -> Self:
        """Return the kind of this machine."""
        facts, caches = machine.facts(), machine.cache_kib()
        return cls(
            cpu=facts.cpu,
            isa=machine.best_isa(facts.isa),
            cores=facts.usable_cores,
            l2_kib=caches.get(2, 0),
            l3_kib=caches.get(3, 0),
            memory_gib=round(facts.memory_limit_gib or facts.memory_gib or 0.0),
        )

    @property
    def name(self) -> str:
        """Such as "Xeon, AMX, 2 cores"."""
        short = " ".join(NO_NAME.sub(" ", self.cpu).split()) or self.cpu
        return ", ".join(filter(None, [short, self.isa, count(self.cores, "core")]))

    def same(self, other: "Kind") -> bool:
        """Tell whether another is of the same kind, however much memory each has."""
        return msgspec.structs.replace(self, memory_gib=0.0) == msgspec.structs.replace(
            other, memory_gib=0.0
        )
