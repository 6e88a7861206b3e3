"""A kind of machine: what is measured on two of the same kind is one measurement."""

import re
from collections import Counter
from collections.abc import Sequence
from typing import Self

import msgspec

from .. import machine
from ..base.words import count, kibibytes
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


def names(kinds: Sequence[Kind]) -> list[str]:
    """Name each of several kinds as no other is named: where that needs it, by its caches."""
    called = [kind.name for kind in kinds]
    for level, sizes in (("L2", [k.l2_kib for k in kinds]), ("L3", [k.l3_kib for k in kinds])):
        differ = {
            name
            for name in called
            if len({size for other, size in zip(called, sizes, strict=True) if other == name}) > 1
        }
        called = [
            f"{name}, {level} {kibibytes(size)}" if name in differ else name
            for name, size in zip(called, sizes, strict=True)
        ]
    seen: Counter[str] = Counter()
    for at, name in enumerate(called):
        seen[name] += 1
        if seen[name] > 1:
            called[at] = f"{name} ({seen[name]})"
    return called
