"""The rate that one process reached in 01: the bar that 02 begins with."""

from scaleout import records
from scaleout.base.paths import results_path
from scaleout.base.words import count, rounded

# The small network trained by oneDNN, as 01's runme.py calls it.
VARIANT = "cnn onednn keras"


def in_01():
    """The records of the last day on which 01 measured this job, at its
    longest and with all its threads; None when there are none here."""
    files = list(results_path("01_onednn").glob("*/records.jsonl"))
    # Without a file, records.read would take all there are.
    found = records.read(*files) if files else None
    if found is None or "variant" not in found:
        return None
    own = found[(found.variant == VARIANT) & (found.ranks == 1)
                & (found.batch_per_rank == 64) & found.rate.notna()]
    own = own.assign(day=own.utc.str[:10], steps=own.step_s.str.len(),
                     threads=own.threads_per_rank.fillna(0))
    for most in ("threads", "steps", "day"):
        own = own[own[most] == own[most].max()]
    return own if len(own) else None


def beside(frame) -> str:
    """One run of this lab beside the rate of 01, where it is known."""
    here = f"Here, in one run: {rounded(frame.rate.iloc[0])} images/s."
    before = in_01()
    if before is None:
        return f"{here} (01 has not measured this job in this folder.)"
    return (f"In 01: {rounded(before.rate.median())} images/s, the median of "
            f"{count(len(before), 'run')}. {here}")
