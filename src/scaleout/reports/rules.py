"""What a report must hold to be believed. Each refusal names the rule, what was seen, and what to
type next."""

import math
import shlex
import statistics
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from ..base.words import count, percent
from ..comparisons.intervals import ROUNDS
from ..sweeps.result import BUSY
from ..sweeps.sweep import duration
from . import findings
from .evidence import Entry
from .findings import Accuracy, Step

SEEDS = 5  # fewer say little about an accuracy
SAME = 2e-3  # the seconds of a run are kept to a thousandth
HARM = 0.02  # of an accuracy, on a scale from 0 to 1: what may be lost, with 95 % confidence
SCALES = (1, 100)  # of a share, and of percent; of a count, which is larger, the largest is all


def refusals(report: Entry) -> list[str]:
    """List every rule that a report breaks."""
    found = findings.steps(report)
    every = (_rounds(found), _guesses(found), _quick(report), _machines(report), _one_thing(found))
    both = (_values(report), _accuracy(report, found))
    return [one for broken in (*every, *both) for one in broken]


def remarks(report: Entry) -> list[str]:
    """List what a careful reader would ask about, though no rule is broken."""
    found, said = findings.steps(report), []
    tried = [step.found.verdict(name) for step in found for name in step.found.variants]
    if len(found) > 1 and set(tried) == {"faster"}:
        said.append(
            "All that was tried helped, which is rare: is a step that did not help left out?"
        )
    rows = [(name, row) for name, entry in _entries(report) for row in entry["rows"]]
    commits = {row["commit"]: name for name, row in reversed(rows) if row.get("commit")}
    if len(commits) > 1:
        told = " and ".join(f"{name} at {commit[:7]}" for commit, name in commits.items())
        said.append(f"The workshop's commit is not the same in all runs: {told}.")
    for name, row in [one for one in rows if (one[1].get("others") or 0) > BUSY][:1]:
        share = percent(row["others"])
        said.append(f"Others took {share} of the CPUs' time in the run {row['run_id']} of {name}.")
    steps = [step for step in found if "claim" not in step.entry]
    known = {one.get("text") for step in steps for one in step.entry["variants"].values()}
    last = findings.judged(found)
    ends = {last.setting(name).get("text") for name in (last.found.baseline, last.found.best)}
    if any(known) and ends - known - {None}:
        said.append(
            "A script of the claim is that of no step, so what it changes was not measured."
        )
    return said


def _guesses(found: list[Step]) -> Iterator[str]:
    for step in found:
        began = min(str(row["utc"]) for row in step.entry["rows"])
        if "guess" in step.entry and str(step.entry.get("guessed", "")) > began:
            yield (
                f"A guess comes first: that of comparison {step.number} was written down after its first "
                "run. Measure it under another name, with the guess:  compare(..., name=..., guess=...)"
            )


def _rounds(found: list[Step]) -> Iterator[str]:
    enough = any(step.found.rounds >= ROUNDS for step in found)
    for step in found:
        sweep, rounds = step.entry["kind"] == "sweep", step.found.rounds
        if rounds < ROUNDS and not (sweep and enough):  # a sweep may only be a search
            left = (ROUNDS - rounds) * sum(findings.seconds(step, n) for n, _ in step.found.columns)
            yield (
                f"One run is no measurement: comparison {step.number} has {count(rounds, 'round')}, "
                f"and an interval takes {ROUNDS}. Measure the baseline again, and the others with "
                f"it{'' if math.isnan(left) else f' ({duration(left)} or more)'}:  "
                f"{step.entry['line']}"
                f"{f'  with  --repeat {ROUNDS}  before the --' if sweep else ''}"
            )


def _quick(report: Entry) -> Iterator[str]:
    for name, entry in _entries(report):
        if any(row.get("quick") for row in entry["rows"]):
            yield (
                f"The short form is no measurement: {name} was run with SCALEOUT_QUICK. Take it away, and "
                f"measure again:  unset SCALEOUT_QUICK; {entry['line']}"
            )


def _machines(report: Entry) -> Iterator[str]:
    first = (report["machine"]["cpu"], report["machine"]["cores"])
    for name, entry in _entries(report):
        own = {tuple(row.get("machine") or entry["machine"]) for row in entry["rows"]}
        for cpu, cores in sorted((own | {tuple(entry["machine"])}) - {first}):
            yield (
                f"One report, one machine: {name} was measured on {cpu} with {count(cores, 'core')}, "
                f"and comparison 1 on {first[0]} with {count(first[1], 'core')}. Measure it on the "
                f"first machine, or put its folder aside:  {entry['line']}"
            )
        told = [row["versions"] for row in entry["rows"] if row.get("versions")]
        differ = ((other, _differ(other, report["versions"])) for other in told)
        for other, names in [found for found in differ if found[1]][:1]:
            yield (
                f"One report, one installation: {name} ran with {_told(other, names)}, and the first run "
                f"that tells it with {_told(report['versions'], names)}. Measure it anew with one of "
                f"them, or put its folder aside:  {entry['line']}"
            )


def _differ(one: Mapping[str, str], other: Mapping[str, str]) -> list[str]:
    """Name what two runs have in other versions; older records do not tell ours."""
    untold = {"scaleout"} - (one.keys() & other.keys())
    return [n for n in {**one, **other} if one.get(n) != other.get(n) and n not in untold]


def _told(versions: Mapping[str, str], names: Iterable[str]) -> str:
    return ", ".join(f"{name} {versions.get(name, 'none')}" for name in names)


def _entries(report: Entry) -> list[tuple[str, Entry]]:
    every = [(f"comparison {n}", one) for n, one in enumerate(report["comparisons"], 1)]
    return every + ([("the accuracy", report["accuracy"])] if report["accuracy"] else [])


def _one_thing(found: list[Step]) -> Iterator[str]:
    story = any("claim" in step.entry for step in found)
    variants = [(step, name) for step in found for name in step.found.variants]
    changed = {
        (step.number, name): findings.changes(step.baseline, step.setting(name))
        for step, name in variants
    }
    alone = {
        what
        for step, name in variants
        for what in changed[step.number, name]
        # a grid has each value with all values of the others
        if len(changed[step.number, name]) == 1 or step.entry["kind"] == "sweep"
    }
    for step, name in variants:
        own = changed[step.number, name]
        if not own and step.setting(name).get("text"):
            yield (
                f"Something must change: comparison {step.number} compares a script with itself, as "
                f"{name} has the text and the settings of {step.found.baseline}. Save the change in its "
                f"file, or take it out of that of {step.found.baseline} if it was there before, and "
                f"measure again:  {step.entry['line']}"
            )
        if story and len(own) > 1 and "claim" not in step.entry and step.entry["kind"] != "sweep":
            yield (
                f"One change at a time: {name} (comparison {step.number}) changes {' and '.join(own)} at "
                f"once, so that nobody knows which of them it was. Measure {own[0]} first:  "
                f"{_alone(step, name, own[0])}"
            )
        elif missing := [what for what in own if what not in alone]:
            yield (
                f"One change at a time: {name} (comparison {step.number}) changes "
                f"{' and '.join(own)}, and nothing measures "
                f"{' or '.join(missing)} alone. Change {missing[0]} alone too:  "
                f"{_alone(step, name, missing[0])}"
            )


def _alone(step: Step, name: str, what: str) -> str:
    """Write the line that changes one thing of a variant alone."""
    words = shlex.join(step.baseline["words"])
    value = findings.things(step.setting(name)).get(what, "")
    kind, _, variable = what.partition(" ")
    if kind == "variable":
        old = step.baseline["env"].get(variable) or ""
        return f"scaleout compare --env {shlex.quote(f'{variable}={old},{value}')} -- {words}"
    if what == "ranks x threads":
        before, after = ({key: one[key] for key in ("ranks", "threads")}
                         for one in (step.baseline, step.setting(name)))  # fmt: skip
        return f"compare(run, {{'before': {before}, 'after': {after}}})"
    other = f"{words} {what} {shlex.quote(value) if value else ''}".rstrip()
    other = other if what.startswith("-") else "python A-SCRIPT-WITH-THAT-ALONE.py"
    return f"scaleout compare -- {words} :: {other}"


def _values(report: Entry) -> Iterator[str]:
    """Recompute each figure from what its ranks gave; a run counts once."""
    for name, entry in _entries(report):
        again = f"Measure the others:  {entry['line']}"
        if not entry["line"]:  # nobody knows what was typed
            again = "Put all other jobs aside, and report the rest:  scaleout report FOLDER"
        many = Counter(row["run_id"] for row in entry["rows"] if row["run_id"])
        if twice := [run_id for run_id, number in many.items() if number > 1]:
            yield (
                f"Each run counts once: in {name} the run {twice[0]} stands {many[twice[0]]} times. "
                + again
            )
        lost = [row for row in entry["rows"] if row["run_id"] and not _kept(row, entry["metric"])]
        if lost:
            yield (
                f"Each run left something: of the run {lost[0]['run_id']} in {name} nothing is there that "
                f"gives its figure. Bring its folder back, or measure it again:  {entry['line']}"
            )
        if wrong := [row for row in entry["rows"] if not _holds(row, entry["metric"])]:
            yield (
                f"Figures follow from the runs: in {name} the run {wrong[0]['run_id']} gave another "
                f"figure than {wrong[0]['value']:g}. Make the report anew from its folder:  "
                "scaleout report FOLDER"
            )


def _kept(row: Entry, metric: str) -> bool:
    return bool(row["given"]) or (metric == "wall_s" and bool(row["wall_s"]))


def _holds(row: Entry, metric: str) -> bool:
    if metric == "wall_s" and row["wall_s"]:
        return math.isclose(row["value"], row["wall_s"], rel_tol=SAME)
    each = [statistics.median(given) for given in row["given"].values() if given]
    ways = (sum, max, statistics.median, statistics.fmean)
    return not each or any(math.isclose(row["value"], way(each), rel_tol=1e-9) for way in ways)


def _accuracy(report: Entry, found: list[Step]) -> Iterator[str]:
    said, test = findings.claim(found), report["accuracy"]
    if said is None:  # nothing is claimed
        return
    best = _seeded(test, SEEDS, said)
    if not test:
        yield (
            "Faster is not enough: no run says how accurate the training is. Train the baseline and "
            f"the best with {SEEDS} seeds each:  {best}"
        )
        return
    called = findings.labels(test)
    if len(called) < 2:
        yield (
            f"Faster is not enough: the accuracy of {next(iter(called.values()))} alone was measured. "
            f"Measure the other command with the same seeds:  {best}"
        )
    elif lost := findings.untested(test, said):
        yield (
            f"Faster is not enough: the accuracy was measured without {' and '.join(lost)}, which "
            f"{said[1]} has. Measure it with the same seeds:  {best}"
        )
    elif not findings.ends(test, said)[2]:
        yield (
            f"Faster is not enough: no command tells which of {' and '.join(called.values())} is as "
            f"accurate as {said[1]}. Train the baseline and the best with {SEEDS} seeds each:  {best}"
        )
    yield from _harm(test, findings.accuracy(report, found), _seeded(test, 4 * SEEDS, said))
    for name, label in called.items():
        figures = findings.by_seed(test, name)
        runs = sum(row["variant"] == name for row in test["rows"])
        line = test["variants"][name].get("line", best)
        missing = [seed for seed in test["seeds"] if seed not in figures]
        if len(figures) < runs or runs > 1 == len(set(figures.values())):
            same, more = "share seeds", ""
            if len(figures) == runs:
                same, more = "all gave the same figure", " and print the figure with more digits"
            yield (
                f"Seeds differ: the {count(runs, 'run')} of {label} {same}, so that their spread says "
                f"nothing. Give each run its own seed, and let the script take it{more}:  {line}"
            )
        elif missing:
            yield (
                f"As many runs as stated: {label} was to have {count(len(test['seeds']), 'seed')}, and "
                f"lacks seed {', '.join(missing)}. The same line runs what is missing:  {line}"
            )
    if len(test["seeds"]) < SEEDS:
        yield (
            f"As many runs as stated: {count(len(test['seeds']), 'seed')} say little about an "
            f"accuracy. Take {SEEDS} or more:  {best}"
        )


def _seeded(test: Entry, number: int, said: tuple[Step, str]) -> str:
    """Write the line that measures the accuracy of what is claimed, with so many seeds."""
    if "own" not in test:
        step, best = said[0], said[0].setting(said[1])
        differ = findings.changes(step.baseline, best)
        words = ["--env", f"SEED=1..{number}"]
        for what in differ:
            if what.startswith("variable "):
                name = what.removeprefix("variable ")
                words += ["--env", f"{name}={best['env'].get(name) or ''}"]
        if "ranks x threads" in differ:
            words += ["-n", str(best["ranks"]), "-t", str(best["threads"])]
        words += ["--metric", test["metric"] if test else "accuracy: ([0-9.]+)"]
        return f"scaleout sweep {shlex.join(words)} -- {shlex.join(best['words'])} --seed {{SEED}}"
    typed, dashes, rest = str(test["own"]).partition(" -- ")
    more = (
        f" --rounds {number} --least {number}"
        if dashes
        else f" with rounds={number}, least={number}"
    )
    return f"{typed}{more}{dashes}{rest}, whose script takes SCALEOUT_ROUND for its seed"


def _harm(test: Entry, told: Accuracy | None, more: str) -> Iterator[str]:
    """Refuse an accuracy that may have lost more than a little."""
    figures = [abs(row["value"]) for row in test["rows"]]
    if told is None or not told.told or test["lower"]:  # of a loss nobody knows what is little
        return
    largest = max(figures)
    most = HARM * next((scale for scale in SCALES if largest <= scale), largest)
    if told.low < -most:
        yield (
            f"The accuracy is unharmed: that of {told.best} may be {-told.low:.3g} below that of "
            f"{told.baseline}, and {most:g} is the most. Take out the step that harms it, or show with more "
            f"seeds that none does:  {more}"
        )
