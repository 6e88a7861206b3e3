"""One machine as several: oneDNN with fewer and fewer instructions, in several number formats.

climbed = ladder.climb(lab("08").run)
climbed.table                                    # instruction sets x number formats
climbed.numbers("AVX512_CORE", "GEMM")           # fp32 against the others, on one step
climbed.steps("GEMM int8")                       # the lowest step against the others
climbed.counted()                                # the product beside its instructions
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from statistics import median
from typing import TYPE_CHECKING, Any

from .. import machine, settings
from ..comparisons.comparison import Comparison
from ..errors import ScaleoutError

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


# What ONEDNN_MAX_CPU_ISA takes, from few instructions to many, and the flag of a processor that has
# them.
STEPS = {
    "AVX2": "avx2",
    "AVX512_CORE": "avx512f",
    "AVX512_CORE_VNNI": "avx512_vnni",
    "AVX512_CORE_BF16": "avx512_bf16",
    "AVX512_CORE_AMX": "amx_tile",
}
NUMBERS = ("fp32", "bf16", "int8")
OF_TFLITE = ("TFLite", "TFLite-1")  # in int8: with all threads, and with one
# Multiplications and additions of an instruction that multiplies, for fp32, bf16 and int8. Without
# VNNI a product in int8 takes two of them (and one that adds). One of AMX takes 16 cycles.
COUNTED = {
    "AVX2": (16, None, 64 / 2),
    "AVX512_CORE": (32, None, 128 / 2),
    "AVX512_CORE_VNNI": (32, None, 128),
    "AVX512_CORE_BF16": (32, 64, 128),
    "AVX512_CORE_AMX": (32, 16_384 / 16, 32_768 / 16),
}


def steps(isa: Collection[str] | None = None) -> list[str]:
    """The steps that a processor has, the lowest first."""
    have = machine.facts().isa if isa is None else isa
    return [step for step, flag in STEPS.items() if flag in have]


class Ladder:
    """Rates of jobs that differ in the instructions that oneDNN might use."""

    def __init__(self, jobs: "Sequence[pd.DataFrame]") -> None:
        self._rows = list(_rows(jobs))
        if not self._rows:
            raise ScaleoutError("There is nothing on this ladder: measure at least one round.")
        self.units = {row["variant"].split()[0]: row["unit"] for row in self._rows}

    @property
    def table(self) -> "pd.DataFrame":
        """The median rates: a row for each step, also those that this machine lacks, and a column
        such as "GEMM int8". Nothing (nan) stands where nothing could be measured."""
        import pandas as pd

        rows = pd.DataFrame(self._rows)
        wide = rows.pivot_table("value", "step", "variant", "median")
        there = {row["variant"] for row in self._rows}
        names = [f"{what} {number}" for what in self.units for number in NUMBERS]
        names = [name for name in names if name in there]
        return wide.reindex(index=list(STEPS), columns=names)

    def numbers(self, step: str, what: str) -> Comparison:
        """fp32 against the other formats, on one step."""
        found = [
            {**row, "number": row["variant"].split()[1]}
            for row in self._rows
            if row["step"] == step and row["twin"] == 0 and row["variant"].split()[0] == what
        ]
        return _compared(found, "number", self.units[what])

    def steps(self, column: str) -> Comparison:
        """The lowest step against the others, in one format."""
        found = [
            {**row, "again": row["twin"]}
            for row in self._rows
            if row["variant"] == column and row["again"] == 0
        ]
        return _compared(found, "step", self.units[column.split()[0]])

    def counted(self) -> "pd.DataFrame":
        """The large product beside what the instructions let expect, as times fp32 on the lowest step.

        TFLite's product in int8 stands below, with all threads and with one, beside the instructions
        of the highest step: its library does not know ONEDNN_MAX_CPU_ISA.
        """
        import pandas as pd

        table = self.table
        there = table.dropna(how="all")
        first = there["GEMM fp32"].iloc[0]
        rows = []
        for step in there.index:
            for number, operations in zip(NUMBERS, COUNTED[str(step)], strict=True):
                if f"GEMM {number}" in there:
                    by_count = None if operations is None else operations / COUNTED["AVX2"][0]
                    rate = there.loc[step, f"GEMM {number}"]
                    rows.append((step, number, operations, by_count, rate / first, rate))
        for number in OF_TFLITE:
            rates = [row["value"] for row in self._rows if row["variant"] == f"GEMM {number}"]
            if rates:
                operations, rate = COUNTED[str(there.index[-1])][2], median(rates)
                by_count = operations / COUNTED["AVX2"][0] if number == OF_TFLITE[0] else None
                rows.append(("any", number, operations, by_count, rate / first, rate))
        names = ["step", "number", "operations", "by_count", "measured", "giga_per_s"]
        shown = pd.DataFrame(rows, columns=names).astype(dict.fromkeys(names[2:], float))
        return shown.dropna(how="all", subset=names[2:]).set_index(names[:2])

    def plot(self, guess: float | None = None) -> "Figure":
        """The table as a heat map; white where this machine lacks a step."""
        from .. import plots

        return plots.ladder(self.table, self.units, guess)


def _rows(jobs: "Sequence[pd.DataFrame]") -> Iterator[dict[str, Any]]:
    """A row for each rate: round, place, step, twin, variant, again, value, unit."""
    first = 0
    for job in jobs:
        longest = 0
        for record in job.to_dict("records"):
            rates = record["metrics.rates"]
            longest = max(longest, len(rates))
            for again, values in enumerate((rates, record["metrics.again"])):
                for round_, rate in enumerate(values):
                    yield {
                        "round": first + round_,
                        "step": record["metrics.step"],
                        "twin": record["metrics.twin"],
                        "variant": record["variant"],
                        "again": again,
                        "value": rate,
                        "unit": record["rate_unit"],
                    }
        first += longest


def _compared(rows: list[dict[str, Any]], by: str, unit: str) -> Comparison:
    """The first against the others, as far as whole rounds go."""
    names = list(dict.fromkeys(row[by] for row in rows))
    every = {(row["round"], row[by], row["again"]): row for row in rows}
    kept: list[dict[str, Any]] = []
    wanted = [(names[0], 0), (names[0], 1), *((name, 0) for name in names[1:])] if names else []
    for round_ in sorted({row["round"] for row in rows}):
        if all((round_, *column) in every for column in wanted):
            for column in wanted:
                row = every[(round_, *column)]
                kept.append({**row, "variant": column[0], "place": len(kept), "unit": unit})
    return Comparison(kept, metric=unit)


def climb(job: Callable[..., Any], rounds: int = 7, **how: Any) -> Ladder:
    """Runs ladder.py with a rank for each step that this machine has, and two for the lowest.

    The ranks take turns: what the two lowest differ by is the noise between processes.
    """
    here = steps()
    if not here:
        raise ScaleoutError("This processor lacks AVX2, the lowest step of the ladder.")
    if settings.quick():
        rounds, here = 1, list(dict.fromkeys((here[0], here[-1])))
    ranks = [here[0], *here]
    asked = {"threads": machine.usable_cores(), "bind": "none", "echo": False, **how}
    done = job(script="ladder.py", ranks=len(ranks), steps=ranks, rounds=rounds, **asked)
    return Ladder([done.records])
