"""What a report's records show: the steps, the claim, the accuracy, the cost. All of it is computed
from the runs, once, and handed on as one value."""

import ast
import difflib
import math
import re
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from msgspec import structs

from ..base.words import count
from ..comparisons.comparison import Comparison
from ..comparisons.intervals import ROUNDS, Ratio, difference
from .evidence import Evidence, Measured, Runs, Setting, Test, less_is_better

PLACED = {"--nodes", "--bind"}
LEFT_OUT = 0.05  # of the images: what a last short step of another batch may leave out
SMALLEST_S = 1e-3  # of a job's seconds beyond those of an empty one
COUNTED = re.compile(  # what is no time and no rate, right before its number
    r"\b(?:steps?|iter\w*|epochs?|evaluations?|calls|bytes|memory)\W*(?:\(|$)", re.IGNORECASE
)


@dataclass(frozen=True)
class Step:
    """One comparison of a report."""

    number: int
    measured: Measured
    comparison: Comparison

    @property
    def baseline(self) -> Setting:
        return self.setting(self.comparison.baseline)

    def setting(self, variant: str) -> Setting:
        """Return the command of a variant."""
        return self.measured.variants[variant]

    def cost(self, variant: str) -> tuple[float, int]:
        """Return a job's seconds, in the median, and the cores that it holds.

        The seconds are not a number where nobody knows them.
        """
        seconds = [r.wall_s for r in self.measured.rows if r.variant == variant and r.wall_s]
        held = _cores(self.measured, variant)
        return statistics.median(seconds) if seconds else math.nan, held


@dataclass(frozen=True)
class Claim:
    """What a report claims: the best of a comparison."""

    step: Step
    name: str

    @property
    def ratio(self) -> Ratio:
        return self.step.comparison.ratio(self.name)

    @property
    def setting(self) -> Setting:
        return self.step.setting(self.name)

    @property
    def changed(self) -> list[str]:
        return changes(self.step.baseline, self.setting)


@dataclass(frozen=True)
class Accuracy:
    """The best variant's figures against the baseline's, seed by seed."""

    metric: str
    base: str  # the variants, and what both are called
    other: str
    baseline: str
    best: str
    seeds: list[str]
    difference: float
    low: float
    high: float
    lower: bool
    known: bool  # whether the commands tell the two apart


@dataclass(frozen=True)
class Unhelpful:
    """A variant that is not shown to be faster or was taken back, and what the notes say of it."""

    step: Step
    name: str
    reason: str
    taken_back: bool


@dataclass(frozen=True)
class Beside:
    """A further figure of the accuracy's test, in the mean, and its difference seed by seed."""

    name: str
    before: float
    after: float
    difference: float
    low: float
    high: float

    @property
    def worse(self) -> bool:
        """Whether it is shown to be worse."""
        return self.low > 0 if less_is_better(self.name) else self.high < 0


@dataclass(frozen=True)
class Clock:
    """The seconds of whole jobs, where they say something else than the script's own figure."""

    ratio: Ratio
    verdict: str
    outside: tuple[float, ...]  # seconds that the baseline's and the best's own leave out, if times


@dataclass(frozen=True)
class Point:
    """A row of the points that a story is worth: one by the check, one by eye."""

    name: str
    given: bool
    why: str  # what the check saw
    look: str  # where to look for the other


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
    beside: tuple[Beside, ...] = ()
    refusals: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()
    points: tuple[Point, ...] = ()  # of a story

    @property
    def judged(self) -> Claim:
        """The claim; where nothing is faster, what was tried first in the comparison of the claim."""
        step = judged(self.steps)
        return self.claim or Claim(step, step.comparison.variants[0])

    @property
    def story(self) -> bool:
        return any(step.measured.claim for step in self.steps)

    @property
    def shown(self) -> str:
        """The variant that the report is about: what it claims, or else the baseline."""
        return self.claim.name if self.claim else judged(self.steps).comparison.baseline


def find(evidence: Evidence) -> Findings:
    """Compute all that the records show."""
    every, test = steps(evidence), evidence.accuracy
    best, tried = claim(every), variants_tried(evidence)
    called, rows = labels(test), test.rows if test else []
    figures = {n: {str(row.seed): row.value for row in rows if row.variant == n} for n in called}
    report = Findings(evidence, every, best, None, None, tried, called, figures, *_spent(evidence))
    tested = accuracy(test, report) if test and len(called) > 1 else None
    return replace(
        report,
        accuracy=tested,
        beside=tuple(beside(test, tested)) if test and tested else (),
        clock=clock(best, tried) if best else None,
    )


def variants_tried(evidence: Evidence) -> int:
    """Count the variants that there were to choose from, each as often as it was measured."""
    return sum(one.tried * (1 + one.before) for one in evidence.comparisons)


def steps(evidence: Evidence) -> list[Step]:
    """List the comparisons, in the order in which they were measured.

    Their intervals are as wide as it takes for all variants of the report at once.
    """
    tried = variants_tried(evidence)
    return [
        Step(number, one, Comparison(one.rows, one.lower, one.metric, compared=tried))
        for number, one in enumerate(evidence.comparisons, 1)
    ]


def claim(every: Sequence[Step]) -> Claim | None:
    """Find what a report claims; None where that is not shown to be faster.

    A story says which comparison it claims. Else it is the fastest variant that is faster than the
    report's baseline, among those that were measured against it by the same metric.
    """
    first = judged(every)
    known = [
        Claim(step, step.comparison.best)
        for step in ([first] if first.measured.claim else every)
        if all(row.run_id for row in step.measured.rows)  # else no job was run
        and not changes(step.baseline, first.baseline)
        and step.comparison.metric == first.comparison.metric
        and step.comparison.best != step.comparison.baseline
    ]
    return max(known, key=lambda one: one.ratio.middle, default=None)


def judged(every: Sequence[Step]) -> Step:
    """Return the comparison whose baseline is the report's.

    It is the one that a story claims; else the first in which somebody named a baseline. A sweep
    has its default for one, and counts where nothing was compared.
    """
    claimed = [step for step in every if step.measured.claim]
    compared = [step for step in every if not step.measured.swept]
    return next(iter([*claimed, *compared, *every]))


def elsewhere(report: Findings) -> list[Claim]:
    """List the best of comparisons that begin with another baseline than the report's.

    Of a story none: there each step begins with what the one before it ended with.
    """
    base = report.judged.step.baseline
    best = [Claim(step, step.comparison.best) for step in report.steps if not report.story]
    return [
        one
        for one in best
        if one.name != one.step.comparison.baseline and changes(one.step.baseline, base)
    ]


def clock(best: Claim, tried: int) -> Clock | None:
    """Compare the claim's jobs by their whole seconds.

    None where these are what it is judged by, or a count is, where nobody knows them, and where they
    say the same, within the noise.
    """
    runs, by_script = best.step.measured, best.ratio
    timed = runs.metric != "wall_s" and not COUNTED.search(runs.metric)
    if not (timed and all(row.wall_s for row in runs.rows)):
        return None
    rows = [
        structs.replace(row, value=max(SMALLEST_S, (row.wall_s or 0.0) - runs.rows[0].start_s))
        for row in runs.rows
    ]
    by_jobs = Comparison(rows, lower=True, metric="wall_s", compared=tried)
    ratio, noise = by_jobs.ratio(best.name), max(by_jobs.noise, best.step.comparison.noise)
    alike = abs(math.log(by_script.middle / ratio.middle)) <= math.log1p(noise)
    if ratio.rounds < ROUNDS or alike or ratio.low <= by_script.middle <= ratio.high:
        return None
    names = (best.step.comparison.baseline, best.name)
    gaps = [[(r.wall_s or 0.0) - r.value for r in runs.rows if r.variant == n] for n in names]
    timed = runs.lower and all(
        r.unit in ("s", "") and r.value <= (r.wall_s or 0) for r in runs.rows
    )
    outside = tuple(map(statistics.median, gaps)) if timed else ()
    return Clock(ratio, by_jobs.verdict(best.name), outside)


def work_differs(step: Step, name: str) -> str:
    """Say how the work of a variant differs from its baseline's, by their records; "" where not."""
    before, after = step.baseline.work, step.setting(name).work
    known = {what for what in before if what in after}
    differ = [what for what in known - {"steps", "batch"} if before[what] != after[what]]
    if before.get("batch") == after.get("batch"):
        differ += [what for what in known & {"steps"} if before[what] != after[what]]
    elif {"steps", "batch"} <= known:
        before, after = ({**w, "steps x batch": w["steps"] * w["batch"]} for w in (before, after))
        share = after["steps x batch"] / max(1, before["steps x batch"])
        differ += ["steps x batch"] * (abs(share - 1) > LEFT_OUT)
    for what in sorted(differ)[:1]:
        return (
            f"by their records a job of {step.comparison.baseline} did {what}: {before[what]:g}, and one "
            f"of {name} {after[what]:g} (comparison {step.number})"
        )
    return ""


def unhelpful(report: Findings) -> list[Unhelpful]:
    """List what was tried and did not help, and what was faster and taken back."""
    back = [(one.step.number, one.name) for one in taken_back(report)]
    return [
        Unhelpful(step, name, reason(report.evidence.notes, name), (step.number, name) in back)
        for step in report.steps
        for name in step.comparison.variants
        if step.comparison.verdict(name) != "faster" or (step.number, name) in back
    ]


def taken_back(report: Findings) -> list[Claim]:
    """List the steps of a story that were faster and that nothing after them begins or ends with."""
    if not report.story:
        return []
    same = free(report)
    taken = [step for step in report.steps if not step.measured.claim]
    whole = [step for step in report.steps if step.measured.claim]
    last = [step.setting(name) for step in whole for name in step.comparison.variants]
    best = [Claim(step, step.comparison.best) for step in taken]
    return [
        one
        for number, one in enumerate(best, 1)
        if one.name != one.step.comparison.baseline
        and all(
            set(changes(one.setting, after)) - same
            for after in [*(step.baseline for step in taken[number:]), *last]
        )
    ]


def free(report: Findings) -> set[str]:
    """Name the options that no comparison changes: a proof may train longer than its steps."""
    every = [setting for step in report.steps for setting in step.measured.variants.values()]
    names = {name for setting in every for name in settings_of(setting)}
    changed = {
        name
        for step in report.steps
        for variant in step.comparison.variants
        for name in changes(step.baseline, step.setting(variant))
    }
    return {n for n in names - changed if n == "the argument" or n[:1] == "-"} - PLACED


def reason(notes: str, name: str) -> str:
    """Find what the notes say of a variant: the item or paragraph that begins with its name in bold."""
    for part in re.split(r"\n(?=[ \t]*(?:[-*+]|\d+\.)[ \t])|\n[ \t]*\n", notes):
        item = re.sub(r"^[ \t]*(?:[-*+]|\d+\.)[ \t]+", "", part.strip())
        bold = re.match(r"\*\*(.+?)\*\*", item)
        if bold and bold[1].strip(" :.").casefold() == name.casefold():
            return " ".join(item[bold.end() :].replace("**", "").split()).lstrip(":. ")
    return ""


def guessed(step: Step) -> bool:
    """Tell whether a comparison has a guess that is older than the first run of what it is about."""
    return step.measured.guess is not None and not step.measured.late


def attempts(report: Findings) -> list[str]:
    """Say what was measured of these programs besides, so that nobody shows the best of several."""
    said = [
        f"Comparison {step.number} was measured {count(step.measured.before, 'time')} before, to the end; "
        "the last one is shown, and all count in the intervals."
        for step in report.steps
        if step.measured.before
    ]
    if left := report.evidence.left:
        names = ", ".join(one.name for one in left)
        said.append(
            f"Of the same programs the folder holds {count(len(left), 'comparison')} that this page "
            f"leaves out: {names}."
        )
    return said


def settings_of(setting: Setting) -> dict[str, str]:
    """Name all that a command fixes: its words, options, variables, ranks x threads."""
    settings = {f"variable {name}": str(value) for name, value in setting.env.items()}
    settings["ranks x threads"] = f"{setting.ranks} x {setting.threads}"
    settings |= {f"--{name}": value for name, value in setting.placed.items()}
    option, number = "", 0
    for word in setting.words:
        if word == setting.script:
            settings["the script"], option = word, ""
        elif re.match("-+[A-Za-z]", word):
            option, _, value = word.partition("=")
            settings[option] = value
            option = "" if value else option
        elif option:
            settings[option], option = word, ""
        else:
            number += 1
            later = "the argument" if setting.script else "the script"
            settings[later if number > 1 else "the program"] = word
    return settings


def changes(before: Setting, after: Setting) -> list[str]:
    """Name what differs between two commands."""
    one, other = settings_of(before), settings_of(after)
    differ = [name for name in {**one, **other} if one.get(name) != other.get(name)]
    if before.text and after.text:  # what a file is called changes nothing
        differ = [name for name in differ if name != "the script"]
        differ += ["the script"] * (before.text != after.text)
    unlike = {name for name in before.files if after.files.get(name, before.files[name])
              != before.files[name]}  # fmt: skip
    code = {name for name in unlike if name.endswith(".py")}
    differ += ["the script"] * (bool(code) and "the script" not in differ)  # with what it imports
    return differ + [f"the file {name}" for name in sorted(unlike - code)]


def diff(evidence: Evidence, before: Setting, after: Setting) -> list[str]:
    """Compare the texts of two commands' scripts, line by line; [] where they are not known."""
    texts = [evidence.texts.get(setting.text, "") for setting in (before, after)]
    if not all(texts):
        return []
    one, other = (text.splitlines() for text in texts)
    return list(difflib.unified_diff(one, other, before.script, after.script, lineterm=""))


def touched(texts: Mapping[str, str], before: Setting, after: Setting) -> str:
    """Name the functions and classes that two commands' scripts differ in; "" where nobody knows."""
    try:
        one, other = (_parts(texts[setting.text]) for setting in (before, after))
    except (KeyError, SyntaxError, ValueError, RecursionError):
        return ""
    return ", ".join(name for name in {**one, **other} if one.get(name) != other.get(name))


def _parts(text: str) -> dict[str, list[str]]:
    """Take a script apart at its outermost functions and classes."""
    parts: dict[str, list[str]] = {}
    for part in ast.parse(text).body:
        other = "imports" if isinstance(part, (ast.Import, ast.ImportFrom)) else "other lines"
        parts.setdefault(getattr(part, "name", other), []).append(ast.dump(part))
    return parts


def accuracy(test: Test, report: Findings) -> Accuracy | None:
    """Test the best's accuracy against the baseline's; None where no two seeds are of both."""
    base, best, known = ends(test, report.judged)
    first, last = report.figures[base], report.figures[best]
    seeds = [seed for seed in first if seed in last]
    if len(seeds) < 2:
        return None
    looks = 1 + (report.judged.step.measured.before if test.own else 0)
    gap = difference(((first[seed], last[seed]) for seed in seeds), looks)
    called = (report.labels[base], report.labels[best])
    return Accuracy(test.metric, base, best, *called, seeds, *gap, test.lower, known)


def beside(test: Test, tested: Accuracy) -> Iterator[Beside]:
    """Compare the further figures of the test, by the same runs."""
    every = {(row.variant, str(row.seed)): row.beside for row in test.rows}
    pairs = [(every.get((tested.base, s), {}), every.get((tested.other, s), {}))
             for s in tested.seeds]  # fmt: skip
    for name in dict.fromkeys(name for one, _ in pairs for name in one):
        each = [(one[name], other[name]) for one, other in pairs if name in one and name in other]
        if len(each) > 1:
            before, after = (statistics.fmean(side) for side in zip(*each, strict=True))
            yield Beside(name, before, after, *difference(each))


def ends(test: Test, about: Claim) -> tuple[str, str, bool]:
    """Find the variants of an accuracy test most like the baseline and most like the best.

    They are compared in what the claim changes; also tell whether that tells them apart.
    """
    first = about.step.comparison.baseline
    if test.own and {first, about.name} <= set(test.variants):
        return first, about.name, True  # the runs of the claim itself
    base, best = settings_of(about.step.baseline), settings_of(about.setting)

    def near(name: str) -> int:
        this = settings_of(test.variants[name])
        differ = about.changed
        return sum((this.get(k) == base.get(k)) - (this.get(k) == best.get(k)) for k in differ)

    like, unlike = max(test.variants, key=near), min(reversed(test.variants), key=near)
    return like, unlike, near(like) > near(unlike)


def untested(test: Test, about: Claim) -> list[str]:
    """Name what changes a training in the best, and not in the variant tested in its place."""
    other = test.variants[ends(test, about)[1]]
    best, tested = settings_of(about.setting), settings_of(other)
    texts = {about.setting.text, other.text}
    lost = [key for key in about.changed if tested.get(key) != best.get(key)]
    return lost + ["the text of its script"] * (len(texts) == 2 and "" not in texts)


def tested_apart(test: Test, about: Claim) -> list[str]:
    """Name what the two commands tested differ in besides, and the claim does not change."""
    base, best = (test.variants[name] for name in ends(test, about)[:2])
    return [] if test.recorded else [w for w in changes(base, best) if w not in about.changed]


def tested_otherwise(report: Findings) -> list[str]:
    """Name what the accuracy's runs have otherwise than the claim's, and the claim does not change."""
    test, best = report.evidence.accuracy, report.claim
    if test is None or best is None or test.own or test.recorded:
        return []
    tested = test.variants[ends(test, best)[0]]
    return [what for what in changes(best.step.baseline, tested) if what not in best.changed]


def labels(test: Test | None) -> dict[str, str]:
    """Name each variant of an accuracy test by what it has that not all have."""
    if test is None or test.recorded:
        return {name: name for name in test.variants} if test else {}
    every = {name: settings_of(one) for name, one in test.variants.items()}
    shared = set.intersection(*(set(one.items()) for one in every.values()))
    called = {}
    for name, one in every.items():
        alone = [
            value if key.startswith("the ") else f"{key.removeprefix('variable ')} {value}".strip()
            for key, value in one.items()
            if (key, value) not in shared
        ]
        called[name] = ", ".join(alone) or " ".join(test.variants[name].words[1:])
    return called


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
