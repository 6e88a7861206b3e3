"""One machine as several: what the ranks of ladder.py measured, compared.

    climbed = prec.module("isa").climb(prec.run)
    climbed.table                            # instruction sets x formats
    climbed.numbers("AVX512_CORE", "GEMM")   # fp32 against the others
    climbed.steps("GEMM int8")               # the lowest step against others
    climbed.counted()                        # the product by its instructions
    isa.ladders(climbed, prec.elsewhere)     # the product, here and elsewhere
    isa.most()                               # what int8 could bring here
"""

import math
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from scaleout import Comparison, ScaleoutError, data, machine
from scaleout.base.words import percent
from scaleout.measuring.kind import Kind

# What ONEDNN_MAX_CPU_ISA takes, from few instructions to many, and the flag
# of a processor that has them.
STEPS = {
    "AVX2": "avx2",
    "AVX512_CORE": "avx512f",
    "AVX512_CORE_VNNI": "avx512_vnni",
    "AVX512_CORE_BF16": "avx512_bf16",
    "AVX512_CORE_AMX": "amx_tile",
}
LOWEST = "AVX2"
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

    def products(self) -> Comparison:
        """Compare the large product on every step and in every format with
        fp32 on the lowest step."""
        rows = [{**row, "again": row["twin"],
                 "name": f"{row['step']} {row['variant'].split()[1]}"}
                for row in self._rows
                if row["variant"].startswith("GEMM ") and row["again"] == 0]
        return _compared(rows, "name")

    @property
    def noise(self) -> str:
        """How far the two ranks on the lowest step differ, in words."""
        return ("Two identical ranks could differ by "
                f"{percent(self.products().noise)}.")

    @property
    def wrong(self) -> dict[str, float]:
        """The share of sums of the int8 product that are wrong, such as
        {"AVX2 int8": 1.0}."""
        return {f"{step} int8": share for step, share in self._wrong.items()}

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


class Rung(NamedTuple):
    """A large product in one format on one step of one machine."""

    step: str
    number: str
    times: tuple  # low, middle, high: as fast as fp32 on the lowest step
    wrong: float | None = None  # the share of sums that are; None: not told


def ladders(climbed: Ladder, elsewhere) -> dict[str, list[Rung]]:
    """The large product on each step, here and on other kinds of machine."""
    found = {"This machine": _rungs(climbed.products(), climbed.wrong)}
    names = ["fp32-by-step", "int8-by-step", *(f"product-{s}" for s in STEPS)]
    rows, wrong = {}, {}
    here = Kind.here().name
    for name in names:
        for other in elsewhere(name):
            if other.name == here:
                continue
            key = f"{other.name}, {other.date}"
            own = rows.setdefault(key, {})
            facts = wrong.setdefault(key, {})
            for row in other.found.runs.to_dict("records"):
                whose = _column(name, row["variant"])
                at = row["round"], whose, row["again"]
                if not row["again"] or whose == f"{LOWEST} fp32":
                    own.setdefault(at, {**row, "variant": whose})
            facts |= {_column(name, variant): fact["wrong_sums"]
                      for variant, fact in other.facts.items()
                      if "wrong_sums" in fact}
    for key, own in rows.items():
        # The first is what all others are compared with.
        first = sorted(own, key=lambda at: (at[0], at[1] != f"{LOWEST} fp32"))
        if first[0][1] == f"{LOWEST} fp32":
            table = Comparison([own[at] for at in first])
            found[key] = _rungs(table, wrong[key])
    kept = pd.read_json(Path(__file__).with_name("ladder.jsonl"), lines=True)
    found["Xeon with AMX, 2026-11-25: medians alone, sums not looked at"] = [
        Rung(row["step"], row["number"], (math.nan, row["times"], math.nan))
        for row in kept.to_dict("records") if row["work"] == "GEMM"]
    return found


def _column(name: str, variant: str) -> str:
    """The step and the format of a variant of a headline comparison."""
    first, _, last = name.partition("-")
    return (f"{last} {variant}" if first == "product" else
            f"{variant} {first}")


def _rungs(found: Comparison, wrong: dict) -> list[Rung]:
    """Each step and format of a comparison, the steps in their order."""
    every = [Rung(*found.baseline.split(), (math.nan, 1.0, math.nan))]
    for name in found.variants:
        ratio = found.ratio(name)
        every.append(Rung(*name.split(), (ratio.low, ratio.middle,
                                          ratio.high), wrong.get(name)))
    return sorted(every, key=lambda one: (list(STEPS).index(one.step),
                                          NUMBERS.index(one.number)))


def vnni() -> bool:
    """Whether this processor has instructions for sums of int8 products."""
    return any("vnni" in flag for flag in machine.facts().isa)


def most() -> None:
    """Say what int8 could bring here, if instructions alone counted."""
    print("This processor has VNNI: an int8 instruction does four times as "
          "many\nmultiplications and additions as one for fp32. "
          "By this count: 4 times as fast." if vnni() else
          "This processor has no VNNI, so TFLite's library widens int8 to 16 "
          "bits before it\nmultiplies. " + WIDENED[wide()])


def wide() -> bool:
    """Whether this processor has AVX-512."""
    return "avx512f" in machine.facts().isa


WIDENED = {
    False: "For 3 rows x 8 columns x 8 products its source for AVX2 has 34\n"
           "instructions, loads left out [XNNPACK]; fp32 needs 192 / 8 = 24. "
           "By this count:\n24 / 34 = 0.71 times as fast.",
    True: "Two instructions then do as many products as two in\nfp32, and "
          "the widening comes on top. By this count: less than 1.",
}


def always(said: str) -> dict[str, str]:
    """For explain(): this sentence, whatever was found."""
    return dict.fromkeys(("faster", "slower", "same", "unclear"), said)


def reasons() -> dict[str, str]:
    """For explain(): int8 beside fp32 in one library, with its mechanism."""
    said = "In TFLite, int8 is {ratio} times as fast as fp32 ({low} to {high})"
    rest = "\nThis cell does not tell what else takes part."
    if vnni():
        texts = always(said + ", of 4 by count." + rest)
    else:
        count = "less than 1" if wide() else "0.71"
        texts = {
            "slower": said + f", by count {count}:\nthe widening to 16 bits "
                             "costs more than 8 bits gain." + rest,
            "same": said + "." + rest,
            "faster": said + ",\nmore than its instructions promise." + rest}
    return {**texts,
            "unclear": said + ":\nthe interval is too wide for a reason."}


def told(climbed: Ladder, step: str) -> dict[str, str]:
    """For explain(): the int8 product of a step, its count and its sums."""
    fp32, _, int8 = COUNTED[step]
    wrong = climbed.wrong.get(f"{step} int8")
    sums = ("no sum is wrong" if not wrong else "EVERY SUM IS WRONG"
            if wrong == 1 else f"{100 * wrong:.5g} % OF ITS SUMS ARE WRONG")
    return always(f"{step}: the int8 product is {{ratio}} times as fast as "
                  "fp32 ({low} to {high};\n"
                  f"  by count {int8 / fp32:.2f}), and {sums}.")


def tiny() -> dict[str, str]:
    """For explain(): the tiny network in int8, and why it does not gain."""
    said = ("Tiny network: int8 is {ratio} times as fast as fp32 "
            "({low} to {high})")
    slower = (". Perhaps:\n  layers of 16 numbers give the instructions next "
              "to nothing to do, and each layer has\n  to turn its input "
              "into int8.")
    return {**always(said + "."), "slower": said + slower}


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


def climb(run, rounds: int = 7, **how) -> Ladder:
    """Run ladder.py with a rank for each step that this machine has, and two
    for the lowest.

    The ranks take turns: what the two lowest differ by is the noise between
    processes. how: other flags of ladder.py.
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
               echo=False, **how)
    return Ladder(done.records)
