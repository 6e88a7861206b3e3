"""What a report's records show: the steps, the claim, the accuracy, the cost. All of it is computed
from the runs, once, and handed on as one value."""

import difflib
import math
import re
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace

from msgspec import structs

from ..comparisons.comparison import Comparison
from ..comparisons.intervals import ROUNDS, Ratio, difference
from .evidence import Evidence, Measured, Runs, Setting, Test

SMALLEST_S = 1e-3  # of a job's seconds beyond those of an empty one
COUNTED = re.compile(  # what is no time and no rate, right before its number
    r"\b(?:steps?|iter\w*|epochs?|evaluations?|calls|bytes|memory)\W*(?:\(|$)", re.IGNORECASE
)


@dataclass(frozen=True)
class Step:
    """One comparison of a report."""

    number: int
    entry: Measured
    found: Comparison

    @property
    def baseline(self) -> Setting:
        return self.setting(self.found.baseline)

    def setting(self, variant: str) -> Setting:
        """Return the command of a variant."""
        return self.entry.variants[variant]

    def cost(self, variant: str) -> tuple[float, int]:
        """Return a job's seconds, in the median, and the cores that it holds.

        The seconds are not a number where nobody knows them.
        """
        own = [r.wall_s for r in self.entry.rows if r.variant == variant and r.wall_s]
        held = _cores(self.entry, variant)
        return statistics.median(own) if own else math.nan, held


@dataclass(frozen=True)
class Claim:
    """What a report claims: the best of a comparison."""

    step: Step
    name: str

    @property
    def ratio(self) -> Ratio:
        return self.step.found.ratio(self.name)

    @property
    def setting(self) -> Setting:
        return self.step.setting(self.name)

    @property
    def changed(self) -> list[str]:
        return changes(self.step.baseline, self.setting)


@dataclass(frozen=True)
class Accuracy:
    """The best variant's figures against the baseline's, seed by seed."""

    base: str  # the variant, and what both are called
    baseline: str
    best: str
    seeds: list[str]
    difference: float
    low: float
    high: float
    lower: bool
    known: bool  # whether the commands tell the two apart


@dataclass(frozen=True)
class Clock:
    """The seconds of whole jobs, where they say something else than the script's own figure."""

    ratio: Ratio
    verdict: str


@dataclass(frozen=True)
class Findings:
    """All that a page shows and that a rule judges."""

    evidence: Evidence
    steps: list[Step]
    claim: Claim | None
    accuracy: Accuracy | None
    clock: Clock | None
    tried: int  # variants in all comparisons
    labels: dict[str, str]  # of the variants of the accuracy test
    figures: dict[str, dict[str, float]]  # of each of them, by seed
    jobs: int  # that the report rests on
    core_seconds: float  # that these took in all
    refusals: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()

    @property
    def judged(self) -> Claim:
        """The claim; where nothing is faster, what was tried first in the comparison of the claim."""
        step = judged(self.steps)
        return self.claim or Claim(step, step.found.variants[0])

    @property
    def story(self) -> bool:
        return any(step.entry.claim for step in self.steps)

    @property
    def shown(self) -> str:
        """The variant that the report is about: what it claims, or else the baseline."""
        return self.claim.name if self.claim else judged(self.steps).found.baseline


def find(evidence: Evidence) -> Findings:
    """Compute all that the records show."""
    every, test = steps(evidence), evidence.accuracy
    best, tried = claim(every), sum(one.tried for one in evidence.comparisons)
    called, rows = labels(test), test.rows if test else []
    figures = {n: {str(row.seed): row.value for row in rows if row.variant == n} for n in called}
    found = Findings(evidence, every, best, None, None, tried, called, figures, *_spent(evidence))
    tested = accuracy(test, found) if test and len(called) > 1 else None
    return replace(found, accuracy=tested, clock=clock(best, tried) if best else None)


def steps(evidence: Evidence) -> list[Step]:
    """List the comparisons, in the order in which they were measured.

    Their intervals are as wide as it takes for all variants of the report at once.
    """
    tried = sum(one.tried for one in evidence.comparisons)
    return [
        Step(number, one, Comparison(one.rows, one.lower, one.metric, compared=tried))
        for number, one in enumerate(evidence.comparisons, 1)
    ]


def claim(found: Sequence[Step]) -> Claim | None:
    """Find what a report claims; None where that is not shown to be faster.

    A story says which comparison it claims. Else it is the fastest variant that is faster than the
    first baseline, among those that were measured against it by the same metric.
    """
    first = judged(found)
    known = [
        Claim(step, step.found.best)
        for step in ([first] if first.entry.claim else found)
        if all(row.run_id for row in step.entry.rows)  # else no job was run
        and not changes(step.baseline, first.baseline)
        and step.found.metric == first.found.metric
        and step.found.best != step.found.baseline
    ]
    return max(known, key=lambda one: one.ratio.middle, default=None)


def judged(found: Sequence[Step]) -> Step:
    """Return the comparison that a story claims; where there is none, the first one."""
    return next((step for step in found if step.entry.claim), found[0])


def clock(best: Claim, tried: int) -> Clock | None:
    """Compare the claim's jobs by their whole seconds.

    None where these are what it is judged by, or a count is, where nobody knows them, and where they
    say the same, within the noise.
    """
    entry, own = best.step.entry, best.ratio
    timed = entry.metric != "wall_s" and not COUNTED.search(entry.metric)
    if not (timed and all(row.wall_s for row in entry.rows)):
        return None
    rows = [
        structs.replace(row, value=max(SMALLEST_S, (row.wall_s or 0.0) - row.start_s))
        for row in entry.rows
    ]
    found = Comparison(rows, lower=True, metric="wall_s", compared=tried)
    ratio, noise = found.ratio(best.name), max(found.noise, best.step.found.noise)
    alike = abs(math.log(own.middle / ratio.middle)) <= math.log1p(noise)
    if ratio.rounds < ROUNDS or alike or ratio.low <= own.middle <= ratio.high:
        return None
    return Clock(ratio, found.verdict(best.name))


def settings_of(setting: Setting) -> dict[str, str]:
    """Name all that a command fixes: its words, options, variables, ranks x threads."""
    found = {f"variable {name}": str(value) for name, value in setting.env.items()}
    found["ranks x threads"] = f"{setting.ranks} x {setting.threads}"
    found |= {f"--{name}": value for name, value in setting.placed.items()}
    option, number = "", 0
    for word in setting.words:
        if word == setting.script:
            found["the script"], option = word, ""
        elif re.match("-+[A-Za-z]", word):
            option, _, value = word.partition("=")
            found[option] = value
            option = "" if value else option
        elif option:
            found[option], option = word, ""
        else:
            number += 1
            later = "the argument" if setting.script else "the script"
            found[later if number > 1 else "the program"] = word
    return found


def changes(before: Setting, after: Setting) -> list[str]:
    """Name what differs between two commands."""
    one, other = settings_of(before), settings_of(after)
    found = [name for name in {**one, **other} if one.get(name) != other.get(name)]
    if before.text and after.text:  # what a file is called changes nothing
        found = [name for name in found if name != "the script"]
        found += ["the script"] * (before.text != after.text)
    return found


def diff(evidence: Evidence, before: Setting, after: Setting) -> list[str]:
    """Compare the texts of two commands' scripts, line by line; [] where they are not known."""
    texts = [evidence.texts.get(setting.text, "") for setting in (before, after)]
    if not all(texts):
        return []
    one, other = (text.splitlines() for text in texts)
    return list(difflib.unified_diff(one, other, before.script, after.script, lineterm=""))


def accuracy(test: Test, found: Findings) -> Accuracy | None:
    """Test the best's accuracy against the baseline's; None where no two seeds are of both."""
    base, best, known = ends(test, found.judged)
    first, last = found.figures[base], found.figures[best]
    seeds = [seed for seed in first if seed in last]
    if len(seeds) < 2:
        return None
    gap = difference((first[seed], last[seed]) for seed in seeds)
    return Accuracy(base, found.labels[base], found.labels[best], seeds, *gap, test.lower, known)


def ends(test: Test, about: Claim) -> tuple[str, str, bool]:
    """Find the variants of an accuracy test most like the baseline and most like the best.

    They are compared in what the claim changes; also tell whether that tells them apart.
    """
    first = about.step.found.baseline
    if test.own and {first, about.name} <= set(test.variants):
        return first, about.name, True  # the runs of the claim itself
    base, best = settings_of(about.step.baseline), settings_of(about.setting)

    def near(name: str) -> int:
        own = settings_of(test.variants[name])
        differ = about.changed
        return sum((own.get(k) == base.get(k)) - (own.get(k) == best.get(k)) for k in differ)

    like, unlike = max(test.variants, key=near), min(reversed(test.variants), key=near)
    return like, unlike, near(like) > near(unlike)


def untested(test: Test, about: Claim) -> list[str]:
    """Name what changes a training in the best, and not in the variant tested in its place."""
    best, own = settings_of(about.setting), settings_of(test.variants[ends(test, about)[1]])
    words = [key for key in about.changed if key.startswith("-") or key == "the script"]
    return [key for key in words if own.get(key) != best.get(key)]


def labels(test: Test | None) -> dict[str, str]:
    """Name each variant of an accuracy test by what it has that not all have."""
    if test is None or test.recorded:
        return {name: name for name in test.variants} if test else {}
    every = {name: settings_of(one) for name, one in test.variants.items()}
    shared = set.intersection(*(set(one.items()) for one in every.values()))
    found = {}
    for name, one in every.items():
        own = [
            value if key.startswith("the ") else f"{key.removeprefix('variable ')} {value}".strip()
            for key, value in one.items()
            if (key, value) not in shared
        ]
        found[name] = ", ".join(own) or " ".join(test.variants[name].words[1:])
    return found


def _cores(one: Runs, variant: str) -> int:
    """Count the cores that a job of a variant holds."""
    setting = one.variants[variant]
    return min(one.machine[1], setting.ranks * setting.threads)


def _spent(evidence: Evidence) -> tuple[int, float]:
    """Count the jobs that the report rests on, and the core-seconds that they took in all."""
    every: list[Runs] = [*evidence.comparisons]
    every += [evidence.accuracy] if evidence.accuracy else []
    jobs = {row.run_id: (row.wall_s or 0.0) * _cores(one, row.variant)
            for one in every for row in one.rows if row.run_id}  # fmt: skip
    return len(jobs), sum(jobs.values())
