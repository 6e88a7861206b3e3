"""What a report's records show: the steps, the claim, the accuracy, the cost. All is computed here,
from the runs, whenever it is asked for."""

import math
import re
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..comparisons.comparison import Comparison
from ..comparisons.intervals import mean_interval
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
    """Find the fastest variant that is faster than the first baseline; None where there is none.

    It counts only where it was measured against that baseline, by the same metric.
    """
    first = found[0]
    known = [
        (step, step.found.best)
        for step in found
        if things(step.baseline) == things(first.baseline)
        and step.found.metric == first.found.metric
        and step.found.best != step.found.baseline
    ]
    return max(known, key=lambda one: one[0].found.ratio(one[1]).middle, default=None)


def things(setting: Mapping[str, Any]) -> dict[str, str]:
    """Name all that a command fixes: its words, options, variables, ranks x threads."""
    found = {f"variable {name}": str(value) for name, value in setting["env"].items()}
    found["ranks x threads"] = f"{setting['ranks']} x {setting['threads']}"
    option, number = "", 0
    for word in setting["words"]:
        if re.match("-+[A-Za-z]", word):
            option, _, value = word.partition("=")
            found[option] = value
            option = "" if value else option
        elif option:
            found[option], option = word, ""
        else:
            number += 1
            found["the script" if number > 1 else "the program"] = word
    return found


def changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """Name what differs between two commands."""
    one, other = things(before), things(after)
    return [name for name in {**one, **other} if one.get(name) != other.get(name)]


def accuracy(report: Entry, found: Sequence[Step]) -> Accuracy | None:
    """Test the best's accuracy against the baseline's.

    Where nothing is faster, it is that of what was tried first. None without two variants that two
    seeds were run with.

    Where nothing is faster, it is that of what was tried first.
    """
    test = report["accuracy"]
    if not test or len(test["variants"]) < 2:
        return None
    base, best, told = ends(test, claim(found) or (found[0], found[0].found.variants[0]))
    first, last = by_seed(test, base), by_seed(test, best)
    seeds = [seed for seed in first if seed in last]
    gaps = [last[seed] - first[seed] for seed in seeds]
    if len(gaps) < 2:
        return None
    middle, half = mean_interval(gaps)
    called = labels(test)[base], labels(test)[best]
    return Accuracy(*called, seeds, middle, middle - half, middle + half, test["lower"], told)


def ends(test: Entry, said: tuple[Step, str]) -> tuple[str, str, bool]:
    """Find the variants of an accuracy test most like the baseline and most like the best.

    They are compared in what the claim changes; also tell whether that tells them apart.
    """
    step, name = said
    base, best = things(step.baseline), things(step.setting(name))
    differ = changes(step.baseline, step.setting(name))

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
