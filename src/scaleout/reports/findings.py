"""What a report's records show: the steps, the claim, the accuracy, the cost. All is computed here,
from the runs, whenever it is asked for."""

import difflib
import math
import re
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..comparisons.comparison import Comparison
from ..comparisons.intervals import difference
from .evidence import Entry, compared


@dataclass(frozen=True)
class Step:
    """One comparison of a report."""

    number: int
    entry: Entry
    found: Comparison

    @property
    def baseline(self) -> Entry:
        return self.setting(self.found.baseline)

    def setting(self, variant: str) -> Entry:
        """Return the command of a variant."""
        found: Entry = self.entry["variants"][variant]
        return found


Claim = tuple[Step, str] | None


@dataclass(frozen=True)
class Accuracy:
    """The best variant's figures against the baseline's, seed by seed."""

    baseline: str
    best: str
    seeds: list[str]
    difference: float
    low: float
    high: float
    lower: bool
    told: bool  # whether the commands tell the two apart


def steps(report: Entry) -> list[Step]:
    """List the comparisons, in the order in which they were measured."""
    return [
        Step(number, entry, compared(entry))
        for number, entry in enumerate(report["comparisons"], 1)
    ]


def claim(found: Sequence[Step]) -> Claim:
    """Find what a report claims; None where that is not shown to be faster.

    A story says which comparison it claims. Else it is the fastest variant that is faster than the
    first baseline, among those that were measured against it by the same metric.
    """
    first = judged(found)
    told = "claim" in first.entry
    known = [
        (step, step.found.best)
        for step in ([first] if told else found)
        if not changes(step.baseline, first.baseline)
        and step.found.metric == first.found.metric
        and step.found.best != step.found.baseline
    ]
    return max(known, key=lambda one: one[0].found.ratio(one[1]).middle, default=None)


def judged(found: Sequence[Step]) -> Step:
    """Return the comparison that a story claims; where there is none, the first one."""
    return next((step for step in found if "claim" in step.entry), found[0])


def things(setting: Mapping[str, Any]) -> dict[str, str]:
    """Name all that a command fixes: its words, options, variables, ranks x threads."""
    found = {f"variable {name}": str(value) for name, value in setting["env"].items()}
    found["ranks x threads"] = f"{setting['ranks']} x {setting['threads']}"
    found |= {f"--{name}": value for name, value in setting.get("placed", {}).items()}
    script, option, number = setting.get("script"), "", 0
    for word in setting["words"]:
        if word == script:
            found["the script"], option = word, ""
        elif re.match("-+[A-Za-z]", word):
            option, _, value = word.partition("=")
            found[option] = value
            option = "" if value else option
        elif option:
            found[option], option = word, ""
        else:
            number += 1
            later = "the argument" if script else "the script"
            found[later if number > 1 else "the program"] = word
    return found


def changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """Name what differs between two commands."""
    one, other = things(before), things(after)
    found = [name for name in {**one, **other} if one.get(name) != other.get(name)]
    texts = [setting.get("text") for setting in (before, after)]
    if all(texts):  # what a file is called changes nothing
        found = [name for name in found if name != "the script"]
        found += ["the script"] * (texts[0] != texts[1])
    return found


def diff(report: Entry, before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """Compare the texts of two commands' scripts, line by line; [] where they are not known."""
    texts = [report.get("texts", {}).get(setting.get("text"), "") for setting in (before, after)]
    if not all(texts):
        return []
    one, other = (text.splitlines() for text in texts)
    names = str(before["script"]), str(after["script"])
    return list(difflib.unified_diff(one, other, *names, lineterm=""))


def size(lines: Sequence[str]) -> tuple[int, int]:
    """Count the lines that a diff adds, and those that it removes."""
    own = [line[:1] for line in lines[2:]]  # the first two name the files
    return own.count("+"), own.count("-")


def accuracy(report: Entry, found: Sequence[Step]) -> Accuracy | None:
    """Test the best's accuracy against the baseline's.

    Where nothing is faster, it is that of what was tried first. None without two variants that two
    seeds were run with.
    """
    test = report["accuracy"]
    if not test or len(test["variants"]) < 2:
        return None
    step = judged(found)
    base, best, told = ends(test, claim(found) or (step, step.found.variants[0]))
    first, last = by_seed(test, base), by_seed(test, best)
    seeds = [seed for seed in first if seed in last]
    if len(seeds) < 2:
        return None
    gap = difference((first[seed], last[seed]) for seed in seeds)
    called = labels(test)[base], labels(test)[best]
    return Accuracy(*called, seeds, *gap, test["lower"], told)


def ends(test: Entry, said: tuple[Step, str]) -> tuple[str, str, bool]:
    """Find the variants of an accuracy test most like the baseline and most like the best.

    They are compared in what the claim changes; also tell whether that tells them apart.
    """
    step, name = said
    base, best = things(step.baseline), things(step.setting(name))
    differ = changes(step.baseline, step.setting(name))
    if "own" in test and {step.found.baseline, name} <= set(test["variants"]):
        return step.found.baseline, name, True  # the runs of the claim itself

    def near(name: str) -> int:
        own = things(test["variants"][name])
        return sum((own.get(k) == base.get(k)) - (own.get(k) == best.get(k)) for k in differ)

    first, last = max(test["variants"], key=near), min(reversed(test["variants"]), key=near)
    return first, last, near(first) > near(last)


def untested(test: Entry, said: tuple[Step, str]) -> list[str]:
    """Name what changes a training in the best, and not in the variant tested in its place."""
    step, name = said
    best, own = things(step.setting(name)), things(test["variants"][ends(test, said)[1]])
    differ = changes(step.baseline, step.setting(name))
    words = [key for key in differ if key.startswith("-") or key == "the script"]
    return [key for key in words if own.get(key) != best.get(key)]


def by_seed(test: Entry, variant: str) -> dict[str, float]:
    """Return {seed: figure} of a variant."""
    return {row["seed"]: row["value"] for row in test["rows"] if row["variant"] == variant}


def labels(test: Entry) -> dict[str, str]:
    """Name each variant of an accuracy test by what it has that not all have."""
    if not test["line"]:  # records have named them
        return {name: name for name in test["variants"]}
    every = {name: things(one) for name, one in test["variants"].items()}
    shared = set.intersection(*(set(one.items()) for one in every.values()))
    found = {}
    for name, one in every.items():
        own = [
            value if key.startswith("the ") else f"{key.removeprefix('variable ')} {value}".strip()
            for key, value in one.items()
            if (key, value) not in shared
        ]
        found[name] = ", ".join(own) or " ".join(test["variants"][name]["words"][1:])
    return found


def cores(report: Entry, setting: Mapping[str, Any]) -> int:
    """Count the cores that a job of this setting holds."""
    return int(min(report["machine"]["cores"], setting["ranks"] * setting["threads"]))


def seconds(step: Step, variant: str) -> float:
    """Return the seconds of a job of a variant, in the median; not a number where nobody knows."""
    own = [r["wall_s"] for r in step.entry["rows"] if r["variant"] == variant and r["wall_s"]]
    return statistics.median(own) if own else math.nan


def core_seconds(report: Entry) -> tuple[int, float]:
    """Count the jobs that the report rests on, and the core-seconds that they took in all."""
    jobs: dict[object, float] = {}
    for entry in [*report["comparisons"], *filter(None, [report["accuracy"]])]:
        for row in entry["rows"]:
            held = cores(report, entry["variants"][row["variant"]])
            jobs[row["run_id"] or len(jobs)] = (row["wall_s"] or 0.0) * held
    return len(jobs), sum(jobs.values())
