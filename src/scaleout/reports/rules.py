"""What a report must hold to be believed. Each refusal names the rule, what was seen, and what to
type next."""

import dataclasses
import math
import shlex
import statistics
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping

from ..base.words import count, percent
from ..comparisons.intervals import ROUNDS
from ..measuring.metric import Metric
from ..measuring.row import Compared
from ..sweeps.result import BUSY
from ..sweeps.sweep import duration
from . import findings
from .evidence import Evidence, Measured, Runs, Setting, Test
from .findings import Claim, Findings, changes

SEEDS = 5  # fewer say little about an accuracy
SAME_S = 1e-3  # the seconds of a run are kept to a thousandth
HARM = 0.02  # of an accuracy, on a scale from 0 to 1: what may be lost, with 95 % confidence
SCALES = (1, 100)  # of a share, and of percent; of a count, which is larger, the largest is all
MORE = 0.1  # of the baseline's loss: what the best's may be more
LEFT = 0.05  # of the images: what a last short step of another batch may leave out


def judge(evidence: Evidence) -> Findings:
    """Compute what the records show, what of it cannot be believed, and what a reader would ask."""
    report = findings.find(evidence)
    refused = tuple(text for rule in RULES for text in rule(report))
    return dataclasses.replace(report, refusals=refused, remarks=tuple(_remarks(report)))


def _remarks(report: Findings) -> Iterator[str]:
    """Yield what a careful reader would ask about, though no rule is broken."""
    tried = [
        step.comparison.verdict(name) for step in report.steps for name in step.comparison.variants
    ]
    if len(report.steps) > 1 and set(tried) == {"faster"}:
        yield "All that was tried helped, which is rare: is a step that did not help left out?"
    rows = [(name, row) for name, one in _named(report.evidence) for row in one.rows]
    commits = {row.commit: name for name, row in reversed(rows) if row.commit}
    if len(commits) > 1:
        which = " and ".join(f"{name} at {commit[:7]}" for commit, name in commits.items())
        yield f"The workshop's commit is not the same in all runs: {which}."
    for name, row in [(name, row) for name, row in rows if row.others > BUSY][:1]:
        share = percent(row.others)
        yield f"Others took {share} of the CPUs' time in the run {row.run_id} of {name}."
    if report.claim and not report.claim.step.comparison.lower:
        yield from _less_work(report.claim)


def _named(evidence: Evidence) -> list[tuple[str, Runs]]:
    """List all that was measured, each by its name in a sentence."""
    every: list[tuple[str, Runs]] = [
        (f"comparison {n}", one) for n, one in enumerate(evidence.comparisons, 1)
    ]
    return every + ([("the accuracy", evidence.accuracy)] if evidence.accuracy else [])


def _again(one: Runs) -> str:
    """Say how something is measured again."""
    if isinstance(one, Measured):
        return one.line
    return shlex.join(one.typed) if one.typed else "with the same command and the same seeds"


def _rounds(report: Findings) -> Iterator[str]:
    enough = any(step.comparison.rounds >= ROUNDS for step in report.steps)
    for step in report.steps:
        sweep, rounds = step.measured.swept, step.comparison.rounds
        if rounds < ROUNDS and not (sweep and enough):  # a sweep may only be a search
            left = (ROUNDS - rounds) * sum(
                step.cost(name)[0] for name, _ in step.comparison.columns
            )
            yield (
                f"One run is no measurement: comparison {step.number} has {count(rounds, 'round')}, "
                f"and an interval takes {ROUNDS}. Measure the baseline again, and the others with "
                f"it{'' if math.isnan(left) else f' ({duration(left)} or more)'}:  "
                f"{step.measured.line}"
                f"{f'  with  --repeat {ROUNDS}  before the --' if sweep else ''}"
            )


def _guesses(report: Findings) -> Iterator[str]:
    for step in report.steps:
        if step.measured.guess is not None and step.measured.guessed > step.measured.began:
            yield (
                f"A guess comes first: that of comparison {step.number} was written down after its first "
                "run. Measure it under another name, with the guess:  compare(..., name=..., guess=...)"
            )


def _quick(report: Findings) -> Iterator[str]:
    for name, one in _named(report.evidence):
        if any(row.quick for row in one.rows):
            yield (
                f"The short form is no measurement: {name} was run with SCALEOUT_QUICK. Take it away, and "
                f"measure again:  unset SCALEOUT_QUICK; {_again(one)}"
            )


def _machines(report: Findings) -> Iterator[str]:
    first, versions = report.evidence.machine, report.evidence.versions
    for name, one in _named(report.evidence):
        ran_on = {(row.cpu, row.cores) for row in one.rows if row.cpu} | {one.machine}
        for cpu, cores in sorted(ran_on - {(first.cpu, first.cores)}):
            yield (
                f"One report, one machine: {name} was measured on {cpu} with {count(cores, 'core')}, "
                f"and comparison 1 on {first.cpu} with {count(first.cores, 'core')}. Measure it on the "
                f"first machine, or put its folder aside:  {_again(one)}"
            )
        differ = ((row.versions, _differ(row.versions, versions)) for row in one.rows)
        for other, names in [pair for pair in differ if pair[0] and pair[1]][:1]:
            yield (
                f"One report, one installation: {name} ran with {_versions(other, names)}, and the first "
                f"run that tells it with {_versions(versions, names)}. Measure it anew with one of "
                f"them, or put its folder aside:  {_again(one)}"
            )


def _differ(one: Mapping[str, str], other: Mapping[str, str]) -> list[str]:
    """Name what two runs have in other versions; older records do not tell ours."""
    untold = {"scaleout"} - (one.keys() & other.keys())
    return [n for n in {**one, **other} if one.get(n) != other.get(n) and n not in untold]


def _versions(versions: Mapping[str, str], names: Iterable[str]) -> str:
    return ", ".join(f"{name} {versions.get(name, 'none')}" for name in names)


def _one_change(report: Findings) -> Iterator[str]:
    variants = [(step, name) for step in report.steps for name in step.comparison.variants]
    changed = {
        (step.number, name): changes(step.baseline, step.setting(name)) for step, name in variants
    }
    alone = {
        what
        for step, name in variants
        for what in changed[step.number, name]
        # a grid has each value with all values of the others
        if len(changed[step.number, name]) == 1 or step.measured.swept
    }
    for step, name in variants:
        new = changed[step.number, name]
        at_once = f"One change at a time: {name} (comparison {step.number}) changes "
        if not new and step.setting(name).text:
            yield (
                f"Something must change: comparison {step.number} compares a script with itself, as "
                f"{name} has the text and the settings of {step.comparison.baseline}. Save the change in its "
                f"file, or take it out of that of {step.comparison.baseline} if it was there before, and "
                f"measure again:  {step.measured.line}"
            )
        if report.story and len(new) > 1 and not (step.measured.claim or step.measured.swept):
            yield (
                f"{at_once}{' and '.join(new)} at once, so that nobody knows which of them it was. "
                f"Measure first what {new[0]} alone changes, against {step.comparison.baseline}."
            )
        elif missing := [what for what in new if what not in alone]:
            yield (
                f"{at_once}{' and '.join(new)}, and nothing measures {' or '.join(missing)} alone. "
                f"Measure what {missing[0]} alone changes too, against {step.comparison.baseline}."
            )


def _story(report: Findings) -> Iterator[str]:
    """Refuse a claim that does not begin and end where its steps do."""
    taken = [step for step in report.steps if not step.measured.claim]
    if report.claim is None or not report.story or not taken:
        return
    step, name = report.claim.step, report.claim.name
    if differ := _differ_by_value(taken[0].baseline, step.baseline):
        yield (
            f"The claim is that of its steps: {step.comparison.baseline} (comparison {step.number}) is not "
            f"what the first step began with, as it has another value of {' and '.join(differ)}. "
            "Measure the claim against the baseline of comparison 1, with the same ranks, threads and "
            "variables."
        )
    ends, kept = [taken[0].baseline], taken[0].comparison.baseline
    for one in taken:
        best = one.comparison.best
        if best != one.comparison.baseline:
            ends, kept = [one.setting(best)], f"{best} of comparison {one.number}"
        else:  # nobody knows yet whether it helps
            tried = {other: one.comparison.verdict(other) for other in one.comparison.variants}
            open_ = [other for other, verdict in tried.items() if verdict == "unclear"]
            ends += [one.setting(o) for o in open_ if one.comparison.ratio(o).middle > 1]
    lacking = [_differ_by_value(end, report.claim.setting) for end in ends]
    if all(lacking):
        texts = {one.text for each in taken for one in each.measured.variants.values()}
        why = "Nothing measured it so."
        if report.claim.setting.text not in texts:
            why = "A script of the claim is that of no step, so what it changes was not measured."
        yield (
            f"The claim is that of its steps: {name} (comparison {step.number}) is not what the last "
            f"step that helped ended with, {kept}, as it has another value of "
            f"{' and '.join(lacking[0])}. {why} Measure it as a step, or claim {kept}."
        )


def _differ_by_value(before: Setting, after: Setting) -> list[str]:
    """Name what differs between two commands, their options left out: a claim may train longer."""
    kinds = ("variable ", "ranks x", "the script", "the program", "--nodes", "--bind")
    return [name for name in changes(before, after) if name.startswith(kinds)]


def _runs(report: Findings) -> Iterator[str]:
    """Refuse what rests on no run; recompute each figure from what its ranks gave, once each."""
    for name, one in _named(report.evidence):
        again = _again(one)
        if any(not row.run_id for row in one.rows):
            yield (
                f"Each run left something: no job was run for {name}, whose figures came from a function. "
                "Let it return the run that it started, as  scaleout.run(...)  gives it, or compare "
                "commands:  scaleout compare -- A :: B"
            )
        many = Counter(row.run_id for row in one.rows if row.run_id)
        if twice := [run_id for run_id, number in many.items() if number > 1]:
            more = f"Measure the others:  {again}"
            if isinstance(one, Test) and one.recorded and not one.own:  # nobody knows the line
                more = "Put all other jobs aside, and report the rest:  scaleout report FOLDER"
            yield (
                f"Each run counts once: in {name} the run {twice[0]} stands {many[twice[0]]} times. "
                + more
            )
        timed = one.metric == "wall_s"
        lost = [row for row in one.rows if not (row.values or timed and row.wall_s)]
        if lost := [row for row in lost if row.run_id]:
            yield (
                f"Each run left something: of the run {lost[0].run_id} in {name} nothing is there that "
                f"gives its figure. Bring its folder back, or measure it again:  {again}"
            )
        if wrong := [row for row in one.rows if not _follows(row, one)]:
            yield (
                f"Figures follow from the runs: in {name} the run {wrong[0].run_id} gave another "
                f"figure than {wrong[0].value:g}. Make the report anew from its folder:  "
                "scaleout report FOLDER"
            )


def _follows(row: Compared, one: Runs) -> bool:
    """Tell whether a figure is what its ranks' figures make, as it was when it was measured."""
    if one.metric == "wall_s" and row.wall_s:
        return math.isclose(row.value, row.wall_s, abs_tol=SAME_S)
    given = {rank: figures for rank, figures in row.values.items() if figures}
    if not given:
        return True
    reduce = row.reduce or one.reduce
    judge = Metric("rate", one.lower, reduce)
    copies = row.copies and not reduce
    value = judge.of_copies(given) if copies else judge.combine(given, row.ranks)
    return math.isclose(row.value, value, rel_tol=1e-9)


def _copies(report: Findings) -> Iterator[str]:
    if report.claim is None:
        return
    step, names = report.claim.step, (report.claim.step.comparison.baseline, report.claim.name)
    for row in [row for row in step.measured.rows if row.copies and row.variant in names][:1]:
        yield (
            f"A claim is of one job: {row.variant} (comparison {step.number}) ran as copies. {row.copies} "
            f"Let its ranks share the work, or start one rank, and measure again:  {step.measured.line}"
        )


def _less_work(best: Claim) -> Iterator[str]:
    """Say that the claim's variants did not do the same work."""
    step, before, after = best.step, best.step.baseline.work, best.setting.work
    known = {name for name in before if name in after}
    differ = [name for name in known - {"steps", "batch"} if before[name] != after[name]]
    if before.get("batch") == after.get("batch"):
        differ += [name for name in known & {"steps"} if before[name] != after[name]]
    elif {"steps", "batch"} <= known:
        before, after = ({**w, "steps x batch": w["steps"] * w["batch"]} for w in (before, after))
        share = after["steps x batch"] / max(1, before["steps x batch"])
        differ += ["steps x batch"] * (abs(share - 1) > LEFT)
    for name in sorted(differ)[:1]:
        yield (
            f"The same work for all: by their records a job of {step.comparison.baseline} did {name}: "
            f"{before[name]:g}, and one of {best.name} {after[name]:g} (comparison {step.number}). Let "
            "both do the same, and measure again, or judge them by a rate."
        )


def _work(report: Findings) -> Iterator[str]:
    if report.claim and report.claim.step.comparison.lower:  # less work takes less time
        yield from _less_work(report.claim)


def _clocks(report: Findings) -> Iterator[str]:
    best, clock = report.claim, report.clock
    if best and clock and clock.verdict != "faster" and clock.ratio.middle < best.ratio.middle:
        yield (
            f"Two clocks must agree: by {best.step.comparison.metric} {best.name} is {best.ratio.middle:.2f} "
            f"times as fast, and by the seconds of the whole jobs {clock.ratio.middle:.2f} times "
            f"({clock.ratio.low:.2f} to {clock.ratio.high:.2f}). Let the script's clock hold all that it "
            "does, or its job do so much that its start is no large part of it, or judge it by the whole "
            "job:  --metric wall_s"
        )


def _accuracy(report: Findings) -> Iterator[str]:
    best, test = report.claim, report.evidence.accuracy
    if best is None:  # nothing is claimed
        return
    more = _seeded(test, SEEDS)
    if test is None:
        yield (
            "Faster is not enough: no run says how accurate the training is. Train the baseline and "
            f"the best with {SEEDS} seeds each:  {more}"
        )
        return
    called = report.labels
    if len(called) < 2:
        yield (
            f"Faster is not enough: the accuracy of {next(iter(called.values()))} alone was measured. "
            f"Measure the other command with the same seeds:  {more}"
        )
    elif lost := findings.untested(test, best):
        yield (
            f"Faster is not enough: the accuracy was measured without {' and '.join(lost)}, which "
            f"{best.name} has. Measure it with the same seeds:  {more}"
        )
    elif not findings.ends(test, best)[2]:
        yield (
            f"Faster is not enough: no command tells which of {' and '.join(called.values())} is as "
            f"accurate as {best.name}. Train the baseline and the best with {SEEDS} seeds each:  {more}"
        )
    yield from _harm(test, report)
    for name, label in called.items():
        figures = report.figures[name]
        runs = sum(row.variant == name for row in test.rows)
        line = shlex.join(test.variants[name].typed) or more
        missing = [seed for seed in test.seeds if seed not in figures]
        if len(figures) < runs or runs > 1 == len(set(figures.values())):
            same, digits = "share seeds", ""
            if len(figures) == runs:
                same, digits = "all gave the same figure", " and print the figure with more digits"
            yield (
                f"Seeds differ: the {count(runs, 'run')} of {label} {same}, so that their spread says "
                f"nothing. Give each run its own seed, and let the script take it{digits}:  {line}"
            )
        elif missing:
            yield (
                f"As many runs as stated: {label} was to have {count(len(test.seeds), 'seed')}, and "
                f"lacks seed {', '.join(missing)}. The same line runs what is missing:  {line}"
            )
    if len(test.seeds) < SEEDS:
        yield (
            f"As many runs as stated: {count(len(test.seeds), 'seed')} say little about an "
            f"accuracy. Take {SEEDS} or more:  {more}"
        )


def _seeded(test: Test | None, number: int) -> str:
    """Say how the accuracy of two commands is measured with so many seeds."""
    if test and test.own:
        return (
            f"measure the claim again with  --rounds {number} --least {number}  (in Python rounds={number}, "
            f"least={number}), and a script that takes SCALEOUT_ROUND for its seed"
        )
    by = ["--metric", "accuracy: ([0-9.]+)"]
    if test and not test.recorded:
        by = ["--metric", test.metric, *(["--reduce", test.reduce] if test.reduce else [])]
        by += ["--lower"] if test.lower and not Metric(test.metric).lower else []
    return (
        f"scaleout sweep --env SEED=1..{number} {shlex.join(by)} -- COMMAND --seed {{SEED}}  for the "
        "baseline's command and for the best's, each with the ranks, threads and variables that it has"
    )


def _harm(test: Test, report: Findings) -> Iterator[str]:
    """Refuse an accuracy that may have lost more than a little."""
    tested = report.accuracy
    if tested is None or not tested.known:
        return
    largest = max(abs(row.value) for row in test.rows)
    most = HARM * next((scale for scale in SCALES if largest <= scale), largest)
    lost, way = -tested.low, "below"
    if test.lower:
        most, lost, way = (
            MORE * abs(statistics.fmean(report.figures[tested.base].values())),
            tested.high,
            "above",
        )
    if lost > most:
        yield (
            f"The accuracy is unharmed: that of {tested.best} may be {lost:.3g} {way} that of "
            f"{tested.baseline}, and {most:.3g} is the most. Take out the step that harms it, or show with "
            f"more seeds that none does:  {_seeded(test, 4 * SEEDS)}"
        )


RULES: tuple[Callable[[Findings], Iterator[str]], ...] = (
    _rounds,
    _guesses,
    _quick,
    _machines,
    _one_change,
    _story,
    _runs,
    _copies,
    _work,
    _clocks,
    _accuracy,
)
