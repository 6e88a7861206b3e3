"""Name what makes a network slower, or wrong, on a processor like this one: as the rows of the lessons
prove it.

Nothing here looks at the machine (examine.py does). A row is of a processor like this one where the
same instructions count, whatever else the two are.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from .. import machine
from ..base.words import day, percent
from ..comparisons import elsewhere
from ..comparisons.comparison import Other
from ..comparisons.elsewhere import Headline
from .checks import Check

# What ONEDNN_MAX_CPU_ISA calls the instructions that count for short numbers, from few to many: the
# flag of a processor that has them, and their name.
STEPS = {
    "AVX2": ("avx2", "AVX2"),
    "AVX512_CORE": ("avx512f", "AVX-512"),
    "AVX512_CORE_VNNI": ("avx512_vnni", "AVX-512 with VNNI"),
    "AVX512_CORE_BF16": ("avx512_bf16", "AVX-512 with BF16"),
    "AVX512_CORE_AMX": ("amx_tile", "AMX"),
}
BETWEEN = {  # what else it may say: the step that it allows, "" for less than any
    **{"SSE41": "", "AVX": "", "AVX2_VNNI": "AVX2", "AVX2_VNNI_2": "AVX2"},
    **{"AVX512_CORE_FP16": "AVX512_CORE_BF16", "AVX10_1_512": "AVX512_CORE_BF16"},
}
# What a comparison is of, by the beginning of its name; its end is the step.
KINDS = {"network": ("a network", "networks"), "product": ("a product of matrices", "products")}
WRONG = "wrong_sums"  # a fact: the share of sums that are wrong
MOST_NAMED = 3  # machines


@dataclass(frozen=True)
class Case:
    """A comparison of short numbers with fp32, on a machine."""

    source: str  # the file
    kind: str
    step: str
    where: str  # the machine, and the day
    other: Other

    def times(self, variant: str) -> float:
        return self.other.found.ratio(variant).middle

    def verdict(self, variant: str) -> str:
        return self.other.found.verdict(variant)

    def wrong_sums(self, variant: str) -> float:
        return self.other.facts.get(variant, {}).get(WRONG, 0.0)


def step(isa: Iterable[str], limit: str = "") -> str:
    """Return the step of STEPS that counts on a processor; "" where it has none.

    `limit` is what ONEDNN_MAX_CPU_ISA says; oneDNN passes over a word that it does not know.
    """
    flags, names, said = set(isa), list(STEPS), limit.strip().upper()
    allowed = BETWEEN.get(said, said)
    if allowed in names:
        names = names[: names.index(allowed) + 1]
    elif said in BETWEEN:
        return ""
    return next((name for name in reversed(names) if STEPS[name][0] in flags), "")


def found(files: Mapping[str, Sequence[Headline]], here: str) -> Iterator[Check]:
    """Make a check of each trap that the rows of these files prove where the step `here` counts."""
    cases = [case for path, rows in files.items() for case in _cases(path, rows)]
    for variant in dict.fromkeys(name for case in cases for name in case.other.found.variants):
        there = [case for case in cases if variant in case.other.found.variants]
        like = [case for case in there if case.step == here]
        told = [_slower(variant, like, there), _wrong(variant, like)]
        if seen := "; ".join(filter(None, told)):
            sources = ", ".join(dict.fromkeys(case.source for case in like))
            yield Check(variant, "ok", f"{seen}. Source: {sources}")


def _cases(source: str, rows: Sequence[Headline]) -> Iterator[Case]:
    """Yield what the rows of a file compare, by machine."""
    for name in dict.fromkeys(row.comparison for row in rows):
        kind, _, its_step = name.partition("-")
        if kind not in KINDS or its_step not in STEPS:
            continue
        own = [row for row in rows if row.comparison == name]
        for other in elsewhere.others(own):
            isa = next(r.machine.isa for r in own if other.name.startswith(r.machine.name))
            flags = [flag for flag, _ in list(STEPS.values())[: list(STEPS).index(its_step) + 1]]
            held = "" if isa == machine.best_isa(flags) else f", held to {STEPS[its_step][1]}"
            yield Case(source, kind, its_step, f"{other.name}{held}, {day(other.date)}", other)


def _slower(variant: str, like: Sequence[Case], there: Sequence[Case]) -> str:
    """Say where a variant is slower on each processor like this one; "" where it is on none."""
    kinds = [kind for kind in KINDS if any(case.kind == kind for case in like)]
    own = {kind: [case for case in like if case.kind == kind] for kind in kinds}
    bad = {
        kind: cases
        for kind, cases in own.items()
        if all(case.verdict(variant) == "slower" for case in cases)
    }
    if not bad:
        return ""
    clauses: list[str] = []
    for kind, cases in bad.items():
        more = [c for c in there if c.kind == kind and c.verdict(variant) == "faster"]
        best = max(more, key=lambda case: case.times(variant), default=None)
        first = "" if clauses else f" its speed in {cases[0].other.found.baseline}"
        better = f" (with {STEPS[best.step][1]}: {_times([best], variant)})" if best else ""
        ran = "" if clauses else " ran"
        clauses.append(f"{KINDS[kind][0]}{ran} at {_times(cases, variant)} times{first}{better}")
    never = f"never {variant} here"
    if len(bad) < len(own):
        never = f"no {variant} in {' or '.join(KINDS[kind][1] for kind in bad)} here"
    cases = [case for each in bad.values() for case in each]
    return f"{never}: on {_places(cases)} {', and '.join(clauses)}"


def _wrong(variant: str, like: Sequence[Case]) -> str:
    """Say how many sums of a variant are wrong on processors like this one; "" where none is."""
    cases = [case for case in like if case.wrong_sums(variant) > 0]
    if not cases:
        return ""
    shares = [
        percent(share) if share >= 0.001 else "less than 0.1 %"
        for share in sorted(case.wrong_sums(variant) for case in cases)
    ]
    share = " to ".join(dict.fromkeys([shares[0], shares[-1]]))
    return f"{variant} gives wrong sums: {share} of them on {_places(cases)}"


def _places(cases: Sequence[Case]) -> str:
    """Write which processors like this one were measured, and when."""
    names = list(dict.fromkeys(case.where for case in cases))
    more = f"; and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    like = "a processor" if len(names) == 1 else f"{len(names)} processors"
    return f"{like} like this ({'; '.join(names[:MOST_NAMED])}{more})"


def _times(cases: Sequence[Case], variant: str) -> str:
    """Write a ratio in two digits; of several the smallest and the largest."""
    values = sorted(case.times(variant) for case in cases)
    told = [f"{value:.2g}" if value < 99.5 else f"{value:.0f}" for value in values]
    return " to ".join(dict.fromkeys([told[0], told[-1]]))
