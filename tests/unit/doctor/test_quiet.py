"""Each source of noise: faked, judged, and told with what to type."""

from dataclasses import replace

import pytest

from scaleout import machine
from scaleout.doctor import quiet
from scaleout.doctor.checks import Check
from scaleout.machine.noise import Clock


def said(check: Check) -> tuple[str, bool]:
    """Its status, and whether it names what to type."""
    return check.status, bool(check.fix)


def test_others_who_compute() -> None:
    facts = replace(machine.facts(), usable_cores=4)
    assert said(quiet.others(0.9, facts)) == ("ok", False)
    busy = quiet.others(3.5, facts)
    assert said(busy) == ("warn", True)
    assert busy.seen == "3.5 processes at work in the last minute, on 4 cores"


def test_time_that_was_taken() -> None:
    assert said(quiet.stolen(0.01)) == ("ok", False)
    taken = quiet.stolen(0.153)
    assert said(taken) == ("warn", True)
    assert taken.seen == "15.3 % of the time taken by the machine below"


@pytest.mark.parametrize(
    ("clock", "status", "seen"),
    [
        (Clock(), "ok", "not shown here, as on most virtual machines"),
        (Clock(("performance",), "acpi-cpufreq"), "ok", "governor performance (acpi-cpufreq)"),
        (
            Clock(("powersave",), "intel_pstate", turbo=True),
            "ok",
            "governor powersave (intel_pstate), turbo on: one busy core is faster than all",
        ),
        (
            Clock(("powersave",), "acpi-cpufreq", turbo=False),
            "warn",
            "governor powersave (acpi-cpufreq), turbo off",
        ),
        (Clock(("performance", "powersave"), "intel_pstate"), "warn", "performance and powersave"),
    ],
)
def test_the_clock(clock: Clock, status: str, seen: str) -> None:
    found = quiet.clock(clock)
    assert said(found) == (status, status == "warn") and seen in found.seen
    assert not found.fix or "cpupower frequency-set -g performance" in found.fix


@pytest.mark.parametrize(
    ("chosen", "status"), [("always", "ok"), ("madvise", "ok"), ("", "ok"), ("never", "warn")]
)
def test_huge_pages(chosen: str, status: str) -> None:
    assert said(quiet.huge_pages(chosen)) == (status, status == "warn")


def test_numa() -> None:
    one = replace(machine.facts(), numa_nodes=1)
    assert quiet.numa(one).seen == "one memory for all cores"
    assert quiet.numa(replace(one, numa_nodes=4)).seen.startswith("4 memories: ")
