"""What a report must hold to be believed. Each refusal names the rule, what was seen, and what to
type next."""

import dataclasses
import math
import shlex
import statistics
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from itertools import pairwise
from pathlib import Path

from ..base.words import count, percent
from ..comparisons.intervals import ROUNDS
from ..measuring.metric import Metric
from ..measuring.row import Compared
from ..sweeps.result import BUSY
from ..sweeps.sweep import duration
from . import findings
from .evidence import CLOCK_S, Evidence, Measured, Runs, Setting, Test, when
from .findings import Findings, Point, Step, changes

SEEDS = 5  # fewer say little about an accuracy
SAME_S = 1e-3  # the seconds of a run are kept to a thousandth
HARM = 0.02  # of an accuracy, on a scale from 0 to 1: what may be lost, with 95 % confidence
MOST_ROUNDS = 1000
SCALES = (1, 100)  # of a share, and of percent; of a count, which is larger, the largest is all
MORE = 0.1  # of the baseline's figure: what may be lost at most, of a loss what it may be more


def judge(evidence: Evidence) -> Findings:
    """Compute what the records show, what of it cannot be believed, and what a reader would ask."""
    report = findings.find(evidence)
    refused = [(row, text) for row, rule in RULES for text in rule(report)]
    remarks, texts = tuple(_remarks(report)), tuple(text for _, text in refused)
    judged = dataclasses.replace(report, refusals=texts, remarks=remarks)
    broken = {row for row, _ in refused}
    return dataclasses.replace(
        judged, points=tuple(_points(report, broken)) if report.story else ()
    )


def _points(report: Findings, broken: Container[str]) -> Iterator[Point]:
    """Give the points of a story that a check can give; each row has another one by eye."""
    unguessed = [
        str(step.number)
        for step in report.steps
        if not (findings.guessed(step) or step.measured.swept)
    ]
    rounds = report.claim.step.comparison.rounds if report.claim else 0
    tested, said = report.accuracy, [one.name for one in findings.unhelpful(report) if one.reason]
    seen = {
        PREDICTED: (not unguessed, f"no valid guess: comparison {', '.join(unguessed)}"
                    if unguessed else "each guess is older than its first run"),
        SHOWN: (rounds >= SEEDS, f"{count(rounds, 'round')} of a claim that is faster"
                if report.claim else "nothing is shown to be faster"),
        ONE_CHANGE: (True, "each step changes one thing, and begins with what was kept"),
        UNHARMED: (tested is not None and tested.known, f"{tested.metric}, seed by seed"
                   if tested else "it was not measured"),
        HONEST: (bool(said), f"did not help, and the notes say why: {', '.join(said)}" if said
                 else "the notes say of no step that did not help why"),
    }  # fmt: skip
    look = dict(LOOK)
    if not any(one.profile for one in report.judged.step.measured.variants.values()):
        look[PREDICTED] = "Where the time went is in no record: do their own words tell it?"
    if not (report.evidence.accuracy and any(row.worst for row in report.evidence.accuracy.rows)):
        look[UNHARMED] = "No record names the worst cases: do their own words?"
    for row, (given, why) in seen.items():
        what = "see what it still lacks" if row in broken else why
        yield Point(row, given and row not in broken, what, look[row])


def _remarks(report: Findings) -> Iterator[str]:
    """Yield what a careful reader would ask about, though no rule is broken."""
    if len(report.steps) > 1 and not findings.unhelpful(report):
        yield "All that was tried helped, which is rare: is a step that did not help left out?"
    for step in report.steps:
        if step.measured.late:
            yield (
                f"Comparison {step.number} has no valid guess: the one that it has was written down after "
                "what it is about was first measured. That cannot be mended, and the page says so."
            )
    yield from findings.attempts(report)
    rows = [(name, row) for name, one in _named(report.evidence) for row in one.rows]
    commits = {row.commit: name for name, row in reversed(rows) if row.commit}
    if len(commits) > 1:
        which = " and ".join(f"{name} at {commit[:7]}" for commit, name in commits.items())
        yield f"The workshop's commit is not the same in all runs: {which}."
    for name, row in [(name, row) for name, row in rows if row.others > BUSY][:1]:
        share = percent(row.others)
        yield f"Others took {share} of the CPUs' time in the run {row.run_id} of {name}."
    for step in report.steps:
        for name in step.comparison.variants:
            if work := "" if _by_time(report, step) else findings.work_differs(step, name):
                yield f"The work is not the same: {work}. So compare their rates alone."
    if other := findings.tested_otherwise(report):
        yield f"The accuracy was measured with other values of {' and '.join(other)} than the claim."
    for one in report.beside:
        if one.worse:
            yield (
                f"The mean hides something: {one.name} is shown to be worse, {one.before:.3g} before and "
                f"{one.after:.3g} after. Say in your notes why that is no harm, or take out the step."
            )


def _by_time(report: Findings, step: Step) -> bool:
    """Tell whether a comparison is the claim, judged by a time: then less work is refused."""
    return report.claim is not None and step is report.claim.step and step.comparison.lower


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


def _whole_rounds(report: Findings) -> Iterator[str]:
    for step in report.steps:
        one, size = step.measured, len(step.measured.variants) + 1
        runs = Counter(row.round for row in one.rows)
        there, last = [number for number in runs if runs[number] == size], max(runs)
        asked = max(min(one.least, one.rounds), last + (runs[last] == size))  # one may be begun
        gone = [n for n in range(asked) if runs[n] != size] if asked < MOST_ROUNDS else [0]
        if gone and not step.measured.swept:
            yield (
                f"All rounds count: of comparison {step.number} there are {count(len(there), 'round')}, and "
                f"round {gone[0] + 1} is not among them. Bring its rows back, or measure all of it again:  "
                f"{step.measured.line}"
            )
        ends = [(when(row.utc), row.run_id) for row in one.rows]
        for (before, first), (after, second) in [] if one.swept else pairwise(ends):
            if after < before - CLOCK_S:
                yield (
                    f"Figures follow from the runs: in comparison {step.number} the run {second} stands behind "
                    f"{first}, and ended before it. Leave each where it was measured, or measure all of it "
                    f"again:  {one.line}"
                )
                break


def _as_asked(report: Findings) -> Iterator[str]:
    """Refuse a run that was started otherwise than its variant says."""
    for where, one in _named(report.evidence):
        typed = isinstance(one, Measured) and one.typed and not one.swept
        for row in [row for row in one.rows if row.command]:
            setting = one.variants[row.variant]
            ran = {Path(word).name for word in row.command.replace("'", " ").split()}
            differ = ["ranks x threads"] * (
                row.ranks != setting.ranks or (row.threads or setting.threads) != setting.threads
            )
            files = {name for name in ran if name.endswith((".py", ".sh"))}
            if setting.script and files and Path(setting.script).name not in ran:
                differ.append("the script")
            named = set(setting.env) | (set(row.env) - {"PYTHONPATH"} if typed else set())
            given = {name: value for name, value in row.env.items() if name in named}
            differ += [f"variable {n}" for n, v in given.items() if v != setting.env.get(n, ...)]
            if differ:
                yield (
                    f"Figures follow from the runs: in {where} the run {row.run_id} of {row.variant} was started "
                    f"with another value of {differ[0]}. Make the report anew from its folder:  scaleout "
                    "report FOLDER"
                )
                break


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
        _by_value(what, step.setting(name))
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
        elif missing := [w for w in new if _by_value(w, step.setting(name)) not in alone]:
            yield (
                f"{at_once}{' and '.join(new)}, and nothing measures {' or '.join(missing)} alone. "
                f"Measure what {missing[0]} alone changes too, against {step.comparison.baseline}."
            )


def _by_value(what: str, setting: Setting) -> tuple[str, str]:
    """Return a change with the value that it ends with; of a text, which grows step by step, none."""
    text = what == "the script" and bool(setting.text) or what.startswith("the file ")
    return what, "" if text else findings.settings_of(setting).get(what, "not there")


def _story(report: Findings) -> Iterator[str]:
    """Refuse a step that does not begin with what was kept, and a claim that is not that of its steps."""
    taken = [step for step in report.steps if not step.measured.claim]
    if not report.story or not taken:
        return
    free = findings.free(report)
    back = {one.step.number for one in findings.taken_back(report)}

    def differ_by_value(before: Setting, after: Setting) -> list[str]:
        return [name for name in changes(before, after) if name not in free]

    kept, ends, reason = f"{taken[0].comparison.baseline} of comparison 1", [taken[0].baseline], ""
    for step in taken:
        compared = step.comparison
        lacking = [differ_by_value(end, step.baseline) for end in ends]
        if all(lacking) and not step.measured.swept:
            yield (
                f"Each step begins with what was kept: {compared.baseline} (comparison {step.number}) is not "
                f"{kept}, as it has another value of {' and '.join(lacking[0])}. Measure "
                f"{compared.variants[0]} against what was kept, with the same ranks, threads and variables."
                f"{reason}"
            )
        if compared.best != compared.baseline:
            if step.number in back:
                if findings.reason(report.evidence.notes, compared.best):
                    continue
                reason = (
                    f" Or did you take {compared.best} back? Then say why in your notes, behind its name "
                    f"in bold:  **{compared.best}** is taken back, as ..."
                )
            kept, ends = (
                f"{compared.best} of comparison {step.number}",
                [step.setting(compared.best)],
            )
        else:  # nobody knows yet whether it helps
            unclear = [name for name in compared.variants if compared.verdict(name) == "unclear"]
            ends += [step.setting(n) for n in unclear if compared.ratio(n).middle > 1]
    if report.claim is None:
        return
    step, name = report.claim.step, report.claim.name
    if differ := differ_by_value(taken[0].baseline, step.baseline):
        yield (
            f"The claim is that of its steps: {step.comparison.baseline} (comparison {step.number}) is not "
            f"what the first step began with, as it has another value of {' and '.join(differ)}. "
            "Measure the claim against the baseline of comparison 1, with the same ranks, threads and "
            "variables."
        )
    lacking = [differ_by_value(end, report.claim.setting) for end in ends]
    if all(lacking):
        texts = {one.text for each in taken for one in each.measured.variants.values()}
        why = "Nothing measured it so."
        if report.claim.setting.text not in texts:
            why = "A script of the claim is that of no step, so what it changes was not measured."
        yield (
            f"The claim is that of its steps: {name} (comparison {step.number}) is not what the last "
            f"step that helped ended with, {kept}, as it has another value of "
            f"{' and '.join(lacking[0])}. {why} Measure it as a step, or claim {kept}.{reason}"
        )


def _files(report: Findings) -> Iterator[str]:
    """Refuse what a script imports or reads, where it is not the same in all runs of the script."""
    known: dict[object, tuple[str, str, Setting]] = {}
    for where, one in _named(report.evidence):
        for name, setting in one.variants.items():
            for file in setting.unlike[:1]:
                yield (
                    f"What is read stays the same: {file} was not the same in all runs of {name} ({where}). "
                    f"Put it back, and measure again:  {_again(one)}"
                )
            ran = (setting.text, setting.script) if setting.text else tuple(setting.words)
            what = (ran, setting.env.get("PYTHONPATH"))  # which says where modules lie
            first = known.setdefault(what, (name, where, setting))
            both = [(file, digest) for file, digest in first[2].files.items()]
            differ = [f for f, digest in both if setting.files.get(f, digest) != digest]
            for file in differ[:1]:
                yield (
                    f"What is read stays the same: {file} of {name} ({where}) is not that of {first[0]} "
                    f"({first[1]}), and the script is the same. Measure both with the same file:  "
                    f"{_again(one)}"
                )


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
        read = {row.metric for row in one.rows if row.metric}
        reduced = {row.reduce or one.reduce for row in one.rows}
        if unlike := [*sorted(read)] * (len(read) > 1) or [*sorted(reduced)] * (len(reduced) > 1):
            yield (
                f"Figures follow from the runs: in {name} some are read by {unlike[0] or 'no --reduce'}, and "
                f"others by {unlike[1]}. Let all print the same figure, and measure again:  {again}"
            )
        timed = one.metric == "wall_s"
        lost = [row for row in one.rows if not (row.values or timed) or row.wall_s is None]
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


def _once(report: Findings) -> Iterator[str]:
    """Refuse a run that stands in several comparisons, as in a folder that was copied."""
    first: dict[str, int] = {}
    for step in report.steps:
        for row in [row for row in step.measured.rows if row.run_id]:
            if (other := first.setdefault(row.run_id, step.number)) != step.number:
                yield (
                    f"Each run counts once: the run {row.run_id} stands in comparison {other} and in "
                    f"comparison {step.number}. Leave one of them out, or measure it:  {step.measured.line}"
                )
                break


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


def _work(report: Findings) -> Iterator[str]:
    best = report.claim
    timed = best and best.step.comparison.lower  # less work takes less time
    if timed and best and (work := findings.work_differs(best.step, best.name)):
        yield (
            f"The same work for all: {work}. Let both do the same, and measure again, or judge them by a "
            f"rate:  {best.step.measured.line}"
        )


def _tested(report: Findings) -> Iterator[str]:
    """Refuse a test on what was trained on, or on other cases than the other command's."""
    test = report.evidence.accuracy
    if test is None:
        return
    cases: dict[str, tuple[str, set[str]]] = {}
    for row in test.rows:
        trained, tested = ({*map(str, each)} for each in (row.trained_on, row.tested_on))
        first = cases.setdefault(str(row.seed), (row.run_id, tested))
        if both := trained & tested:
            yield (
                f"The test is of others than it was trained on: in the run {row.run_id} of {row.variant} "
                f"{count(len(both), 'case')} of the test, such as {min(both)}, could be trained on. Make the "
                f"test's cases after the last step, and measure again:  {_again(test)}"
            )
            return
        if tested and first[1] and tested != first[1]:
            yield (
                f"The test is of the same cases: with seed {row.seed} the run {row.run_id} of {row.variant} was "
                f"tested on others than the run {first[0]}. Let both make the same ones from the seed, and "
                f"measure again:  {_again(test)}"
            )
            return


def _clocks(report: Findings) -> Iterator[str]:
    best, clock = report.claim, report.clock
    if best and clock and clock.verdict != "faster" and clock.ratio.middle < best.ratio.middle:
        slower = clock.ratio.high < 1 and not best.step.comparison.lower
        way = "Add  --lower  if less of it is better. " * slower
        yield (
            f"Two clocks must agree: by {best.step.comparison.metric} {best.name} is {best.ratio.middle:.2f} "
            f"times as fast, and by the seconds of the whole jobs {clock.ratio.middle:.2f} times "
            f"({clock.ratio.low:.2f} to {clock.ratio.high:.2f}). {way}Let the script's clock hold "
            "all that it does, or its job do so much that its start is no large part of it, or judge it by the whole "
            "job,  --metric wall_s , or by two lengths of it,  --work steps=40,80"
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
    elif apart := findings.tested_apart(test, best):
        yield (
            f"Faster is not enough: the two commands whose accuracy was measured differ in {' and '.join(apart)} "
            f"too, which {best.name} does not change. Measure both with the same seeds:  {more}"
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
    tenth = MORE * abs(statistics.fmean(report.figures[tested.base].values()))
    most = min(tenth, HARM * next((scale for scale in SCALES if largest <= scale), largest))
    lost, way = -tested.low, "below"
    if test.lower:
        most, lost, way = tenth, tested.high, "above"
    if lost > most:
        yield (
            f"The accuracy must be unharmed: that of {tested.best} may be {lost:.3g} {way} that of "
            f"{tested.baseline}, and {most:.3g} is the most. Take out the step that harms it, or show with "
            f"more seeds that none does:  {_seeded(test, 4 * SEEDS)}"
        )


PREDICTED, SHOWN, ONE_CHANGE = "predicted", "shown", "one change"
UNHARMED, HONEST = "unharmed", "honest"
LOOK = {  # what no check can see
    PREDICTED: "Does each guess follow from where the time went?",
    SHOWN: "Is it as many times as fast as the task asks for, and by which clock?",
    ONE_CHANGE: "Open each step's difference: is it one thing, with one purpose?",
    UNHARMED: "Were the worst cases looked at?",
    HONEST: "Does that sentence give a reason?",
}
RULES: tuple[tuple[str, Callable[[Findings], Iterator[str]]], ...] = (
    (SHOWN, _rounds),
    (SHOWN, _whole_rounds),
    (SHOWN, _as_asked),
    (SHOWN, _quick),
    (SHOWN, _machines),
    (ONE_CHANGE, _one_change),
    (ONE_CHANGE, _story),
    (ONE_CHANGE, _files),
    (SHOWN, _runs),
    (SHOWN, _once),
    (SHOWN, _copies),
    (SHOWN, _work),
    (SHOWN, _clocks),
    (UNHARMED, _tested),
    (UNHARMED, _accuracy),
)
