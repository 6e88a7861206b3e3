"""One machine as several: what the ranks of ladder.py measured, compared.

    climbed = prec.module("isa").climb(prec.run)
    climbed.table                            # instruction sets x formats
    climbed.numbers("AVX512_CORE", "GEMM")   # fp32 against the others
    climbed.steps("GEMM int8")               # the lowest step against others
    climbed.counted()                        # the product by its instructions
    isa.reference()                          # a machine with all the steps
"""

from pathlib import Path

import pandas as pd

from scaleout import Comparison, ScaleoutError, data, machine

# What ONEDNN_MAX_CPU_ISA takes, from few instructions to many, and the flag
# of a processor that has them.
STEPS = {
    "AVX2": "avx2",
    "AVX512_CORE": "avx512f",
    "AVX512_CORE_VNNI": "avx512_vnni",
    "AVX512_CORE_BF16": "avx512_bf16",
    "AVX512_CORE_AMX": "amx_tile",
}
NUMBERS = ("fp32", "bf16", "int8")
# Multiplications and additions of an instruction, for fp32, bf16 and int8.
# Without VNNI a product in int8 takes three: one multiplies, one widens, one
# adds. One of AMX takes 16 cycles.
COUNTED = {
    "AVX2": (16, None, 64 / 3),
    "AVX512_CORE": (32, None, 128 / 3),
    "AVX512_CORE_VNNI": (32, None, 128),
    "AVX512_CORE_BF16": (32, 64, 128),
    "AVX512_CORE_AMX": (32, 16_384 / 16, 32_768 / 16),
}


def steps(isa=None) -> list[str]:
    """Name the steps that a processor has, the lowest first."""
    have = machine.facts().isa if isa is None else isa
    return [step for step, flag in STEPS.items() if flag in have]


class Ladder:
    """The rates of jobs that differ in the instructions they may use."""

    def __init__(self, job) -> None:
        self._rows = list(_rates(job))
        self._wrong = {record["metrics.step"]: record["metrics.wrong"]
                       for record in job.to_dict("records")
                       if record["variant"] == "GEMM int8"}
        self.units = {row["variant"].split()[0]: row["unit"]
                      for row in self._rows}

    @property
    def table(self) -> pd.DataFrame:
        """The median rates: a row for each step, also those that this machine
        lacks, and a column such as "GEMM int8"; nan where there is none."""
        rows = pd.DataFrame(self._rows)
        wide = rows.pivot_table("value", "step", "variant", "median")
        names = [f"{what} {number}" for what in self.units
                 for number in NUMBERS]
        return wide.reindex(
            index=list(STEPS),
            columns=[name for name in names if name in wide.columns])

    def numbers(self, step: str, what: str) -> Comparison:
        """Compare fp32 with the other formats, on one step."""
        rows = [{**row, "number": row["variant"].split()[1]}
                for row in self._rows
                if row["step"] == step and row["twin"] == 0
                and row["variant"].split()[0] == what]
        return _compared(rows, "number")

    def steps(self, column: str) -> Comparison:
        """Compare the lowest step with the others, in one format."""
        rows = [{**row, "again": row["twin"]} for row in self._rows
                if row["variant"] == column and row["again"] == 0]
        return _compared(rows, "step")

    def counted(self) -> pd.DataFrame:
        """Put the large product beside what the instructions let expect, as
        times fp32 on the lowest step; and the share of wrong sums in int8.
        """
        there = self.table.dropna(how="all")
        first = there["GEMM fp32"].iloc[0]
        rows = []
        for step in there.index:
            for number, count in zip(NUMBERS, COUNTED[step], strict=True):
                if f"GEMM {number}" in there:
                    rate = there.loc[step, f"GEMM {number}"]
                    wrong = self._wrong.get(step) if number == "int8" else None
                    rows.append((step, number, count, count, rate, wrong))
        names = ["operations", "by_count", "giga_per_s", "wrong_sums"]
        found = pd.DataFrame(rows, columns=["step", "number", *names])
        found = found.astype(dict.fromkeys(names, float))
        found["by_count"] /= COUNTED["AVX2"][0]
        found.insert(4, "measured", found["giga_per_s"] / first)
        found = found.dropna(how="all", subset=[*names[:3], "measured"])
        return found.set_index(["step", "number"])


def reference() -> pd.DataFrame:
    """What ladder.jsonl keeps: rates as times fp32 on the lowest step."""
    print("Intel Xeon with AMX, 2 cores, TensorFlow 2.18.1, "
          "25 November 2026:")
    file = Path(__file__).with_name("ladder.jsonl")
    rows = pd.read_json(file, lines=True)
    rows["column"] = rows["work"] + " " + rows["number"]
    wide = rows.pivot_table("times", "step", "column", sort=False)
    names = [f"{what} {number}" for what in rows["work"].unique()
             for number in NUMBERS]
    wide = wide[[name for name in names if name in wide]]
    return wide.astype(object).fillna("").rename_axis(columns=None)


def _rates(job):
    """Yield a row for each rate."""
    for record in job.to_dict("records"):
        twice = (record["metrics.rates"], record["metrics.again"])
        for again, values in enumerate(twice):
            for round_, rate in enumerate(values):
                yield {"round": round_, "step": record["metrics.step"],
                       "twin": record["metrics.twin"],
                       "variant": record["variant"], "again": again,
                       "value": rate, "unit": record["rate_unit"]}


def _compared(rows, by: str) -> Comparison:
    """Compare the first with the others, as far as whole rounds go."""
    names = list(dict.fromkeys(row[by] for row in rows))
    found = {(row["round"], row[by], row["again"]): row for row in rows}
    wanted = [(name, 0) for name in names]
    wanted[1:1] = [(name, 1) for name in names[:1]]
    kept = []
    for round_ in sorted({row["round"] for row in rows}):
        if all((round_, *column) in found for column in wanted):
            kept += [{**found[round_, *column], "variant": column[0]}
                     for column in wanted]
    whole = [{**row, "place": place} for place, row in enumerate(kept)]
    return Comparison(whole, metric=rows[0]["unit"] if rows else "")


def climb(run, rounds: int = 7) -> Ladder:
    """Run ladder.py with a rank for each step that this machine has, and two
    for the lowest.

    The ranks take turns: what the two lowest differ by is the noise between
    processes.
    """
    here = steps()
    if not here:
        raise ScaleoutError(
            "This processor lacks AVX2, the lowest step of the ladder.")
    if data.quick():
        rounds = 1
        here = list(dict.fromkeys((here[0], here[-1])))
    ranks = [here[0], *here]
    done = run(script="ladder.py", ranks=len(ranks), steps=ranks,
               rounds=rounds, threads=machine.usable_cores(), bind="none",
               echo=False)
    return Ladder(done.records)
