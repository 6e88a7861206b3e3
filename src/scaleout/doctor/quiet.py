"""What the doctor concludes of a machine's noise: each function judges facts that it is handed."""

from .. import words
from ..machine import Machine
from ..machine.noise import Clock
from .checks import Check

BUSY = 0.25  # of the cores: above it, whoever computes besides is seen in every figure
STOLEN = 0.02
# These two choose the clock by need, whatever the governor is called.
BY_NEED = ("intel_pstate", "amd-pstate-epp")


def others(load: float, facts: Machine) -> Check:
    """Who else computes."""
    seen = f"{load:.1f} processes at work in the last minute"
    if load <= BUSY * facts.usable_cores:
        return Check("others", "ok", seen)
    return Check(
        "others",
        "warn",
        f"{seen}, on {words.count(facts.usable_cores, 'core')}",
        "measure when they have ended (`top` shows them), or ask for a node of your own",
    )


def stolen(share: float) -> Check:
    """What the machine under a virtual one took away, while the doctor looked."""
    seen = f"{100 * share:.1f} % of the time taken by the machine below"
    if share <= STOLEN:
        return Check("stolen time", "ok", seen)
    return Check(
        "stolen time",
        "warn",
        seen,
        "compare in rounds (`scaleout compare`), or take a machine that is not shared",
    )


def clock(facts: Clock) -> Check:
    """How the clock of the cores is chosen, and whether it may rise."""
    if not facts.governors:
        return Check("clock", "ok", "not shown here, as on most virtual machines")
    turbo = {True: ", turbo on: one busy core is faster than all", False: ", turbo off"}
    seen = f"governor {' and '.join(facts.governors)}"
    seen += f" ({facts.driver})" if facts.driver else ""
    seen += turbo.get(facts.turbo, "") if facts.turbo is not None else ""
    slow = {"powersave", "conservative", "ondemand"} & set(facts.governors)
    if (slow and facts.driver not in BY_NEED) or len(facts.governors) > 1:
        return Check("clock", "warn", seen, "sudo cpupower frequency-set -g performance")
    return Check("clock", "ok", seen)


def huge_pages(chosen: str) -> Check:
    """Whether large arrays may have pages of 2 MiB."""
    if chosen == "never":
        return Check(
            "huge pages",
            "warn",
            "never: a large array is looked up in pages of 4 KiB",
            "echo madvise | sudo tee /sys/kernel/mm/transparent_hugepage/enabled",
        )
    return Check("huge pages", "ok", chosen or "not shown here")


def numa(facts: Machine) -> Check:
    """How many memories there are, and what that asks of ranks."""
    if facts.numa_nodes < 2:
        return Check("NUMA", "ok", "one memory for all cores")
    return Check(
        "NUMA",
        "ok",
        f"{facts.numa_nodes} memories: the cores of a job are on one of them where it fits",
    )
