"""Rows of headline comparisons as `make elsewhere` leaves them, made up."""

from collections.abc import Mapping
from pathlib import Path

from scaleout.comparisons.elsewhere import FILE, Headline, Kind, line

EPYC = Kind(cpu="AMD EPYC 7B13", isa="AVX2", cores=2, l2_kib=512, l3_kib=32768, memory_gib=8)
XEON = Kind(
    cpu="Intel(R) Xeon(R) Platinum 8488C", isa="AMX", cores=2, l2_kib=2048, l3_kib=107520,
    memory_gib=16,
)  # fmt: skip


def measured(
    comparison: str,
    times: Mapping[str, float],
    machine: Kind = EPYC,
    date: str = "2026-11-28",
    baseline: str = "fp32",
    facts: Mapping[str, Mapping[str, float]] | None = None,
    **more: object,
) -> list[Headline]:
    """Five rounds, in which each variant is so many times as fast as the baseline."""

    def row(variant: str, ratio: float) -> Headline:
        again = [100.0 + 2 * (n % 2) for n in range(5)] if variant == baseline else []
        return Headline(
            schema=1,
            comparison=comparison,
            variant=variant,
            baseline=baseline,
            values=[ratio * (100.0 + n % 3) for n in range(5)],
            again=again,
            unit="images/s",
            facts=dict((facts or {}).get(variant, {})),
            machine=machine,
            date=date,
            **more,  # type: ignore[arg-type]
        )

    return [row(variant, ratio) for variant, ratio in {baseline: 1.0, **times}.items()]


def keep(lesson: Path, *comparisons: list[Headline]) -> Path:
    """Write them beside a lesson."""
    lesson.mkdir(parents=True, exist_ok=True)
    path = lesson / FILE
    path.write_text("".join(line(row) + "\n" for rows in comparisons for row in rows))
    return path
