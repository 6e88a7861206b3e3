"""The kinds of 01_onednn compared: which can run here, in turns within one
job, and a summary beside published figures."""

from math import inf, nan
from statistics import geometric_mean

import pandas as pd

from scaleout import Comparison, machine, settings
from scaleout.course.pytorch import missing, python
from scaleout.course.references import REFERENCE, reference, whose

NAME = "kernels"  # of the comparison, as the reference machine's has it
# What turns.py calls a kind, and what a reader does.
NAMES = {
    "default": "default",
    "onednn": "oneDNN",
    "onednn+fused": "oneDNN, fused",
    "onednn+eager": "oneDNN, eager",
    "bf16": "bf16",
    "bf16+fused": "bf16, fused",
    "torch": "PyTorch",
    "torch+bf16": "PyTorch bf16",
    "torch+compiled": "PyTorch, compiled",
}
# An Intel talk on deep learning at scale with distributed frameworks, 2019:
# ResNet-50, batch 16, in images/s; the slide names no machine.
DECK19 = {"default": 3.84, "MKL-DNN": 17.69}
# PRACE, Best Practice Guide Deep Learning, 2019, table 13: one network, which
# it does not name, on 128 nodes, in seconds an epoch.
PRACE = {"Keras": 85.0, "TensorFlow": 18.0}
# What of 01 PyTorch is compared with.
OURS = {"PyTorch": "oneDNN, fused", "PyTorch bf16": "bf16, fused"}


class Turns(Comparison):
    """Kinds that took turns in one job, with the records of their turns."""

    def __init__(self, frame: pd.DataFrame) -> None:
        turns = frame.assign(rank=frame["metrics.rank"],
                             turn=frame["metrics.round"])
        turns["again"] = 0
        first = turns[turns["rank"] == 0].variant.iloc[0]
        twin = (turns["rank"] == 1) & (turns.variant == first)
        turns.loc[twin, "again"] = 1
        if not twin.any():
            # The short form has no twin: the first kind stands there twice.
            copy = turns[turns["rank"] == 0].assign(again=1, rank=0.5)
            turns = pd.concat([turns, copy])
        # Every second round ran backwards.
        turns["order"] = turns["rank"] * (1 - 2 * (turns.turn % 2))
        turns = turns.sort_values(["turn", "order"], ignore_index=True)
        turns["variant"] = turns.variant.map(NAMES)
        turns["run_id"] += [f"-{at}" for at in range(len(turns))]
        super().__init__([
            {"round": turn.turn, "place": place, "variant": turn.variant,
             "again": turn.again, "value": turn.rate, "unit": turn.rate_unit,
             "run_id": turn.run_id}
            for place, turn in enumerate(turns.itertuples())
        ])
        self._turns = turns

    @property
    def records(self) -> pd.DataFrame:
        """A row for each turn."""
        return self._turns


def in_turns(run, kinds: list[str], **how) -> Turns:
    """Compare kinds of a step, the first of them twice, in rounds within one
    job, in which they take turns; how: flags of turns.py."""
    ranks = kinds if settings.quick() else [kinds[0], *kinds]
    torch = any(kind.startswith("torch") for kind in kinds)
    done = run(script="turns.py", ranks=len(ranks), kinds=ranks,
               threads=machine.usable_cores(), bind="none", echo=False,
               torch=python() if torch else None, **how)
    return Turns(done.records)


def possible(kinds: list[str], beside: tuple = ()) -> list[str]:
    """Choose the kinds that can be compared here; beside: PyTorch's, where it
    is. With a kind in bf16, print what this processor does with it.

    Without AVX-512 TensorFlow takes bf16 away from oneDNN, and what remains
    is no comparison. With SCALEOUT_QUICK=1 the first two remain.
    """
    here = machine.facts()
    every = [*kinds, *beside] if python() else kinds
    if any("bf16" in kind for kind in every):
        print(_bf16(here))
    if settings.quick():
        every = kinds[:2]
    return [kind for kind in every
            if "avx512f" in here.isa or "bf16" not in kind]


def _bf16(here) -> str:
    """What a processor does in bf16."""
    if {"avx512_bf16", "amx_bf16"} & {*here.isa}:
        return f"{here.cpu} multiplies bf16 in hardware."
    if "avx512f" in here.isa:
        return (f"{here.cpu} has no instructions for bf16: oneDNN emulates "
                "them.")
    return (f"{here.cpu} has no AVX-512: TensorFlow keeps bf16 from oneDNN, "
            "and we leave it out.")


def pytorch(result, lab) -> None:
    """Say how fast the fused variants are beside PyTorch; where PyTorch was
    not measured, how fast they were on a reference machine."""
    rows = [name for name in OURS if name in result.variants]
    if not rows:
        rows = list(OURS)
        result = reference(lab.folder / REFERENCE, NAME,
                           [*OURS, *OURS.values()], missing())
        whose(result.records, missing())
    for name in rows:
        print(result.sentence(OURS[name], name))


def compiled(result) -> None:
    """Say what torch.compile brings, where PyTorch is."""
    if "PyTorch, compiled" in result.variants:
        print(result.sentence("PyTorch, compiled", "PyTorch"))
    else:
        print(missing())


def summary(result, gflops_of_roof: float):
    """Make the executive summary of a comparison of kernels, with figures
    that others published below it.

    A rate is that of the default kernels (its geometric mean) times the
    ratio, so that whoever divides gets the ratio that is printed.
    """
    jobs = result.records.drop_duplicates("variant").set_index("variant")
    runs = result.runs
    default = geometric_mean(runs[runs.variant == "default"].value)
    rows = []
    names = [result.baseline, *result.variants]
    for name in sorted(names, key=lambda name: name != "default"):
        job = jobs.loc[name]
        ratio, low, high = _beside_default(result, name)
        gflops = default * ratio * job["metrics.flops_per_image"] / 1e9
        rows.append({
            "environment": name,
            "Network": "ResNet-50",
            "Batch size": job.batch_per_rank,
            "images/s": default * ratio,
            "speed-up": ratio,
            "low": low,
            "high": high,
            "of the roof": gflops / gflops_of_roof,
            "where": "this machine",
        })
    for name, rate in DECK19.items():
        rows.append({"environment": f"{name}, 2019", "Network": "ResNet-50",
                     "Batch size": 16, "images/s": rate,
                     "speed-up": rate / DECK19["default"],
                     "where": "a machine without a name [DECK19]"})
    rows.append({"environment": "TensorFlow against Keras",
                 "speed-up": PRACE["Keras"] / PRACE["TensorFlow"],
                 "where": "128 nodes [PRACE]"})
    return pd.DataFrame(rows).astype({"Batch size": "Int64"})


def _beside_default(result, name: str) -> tuple[float, float, float]:
    """How many times as fast as the default kernels a kind is, with the ends
    of the interval; the default kernels may be a variant."""
    if name == "default":
        return 1.0, nan, nan
    if result.baseline == "default":
        found = result.ratio(name)
    elif name == result.baseline:
        found = result.ratio("default")
        # Few rounds may leave the interval without an end.
        high = 1 / found.low if found.low else inf
        return 1 / found.middle, 1 / found.high, high
    else:
        found = result.between(name, "default")
    return found.middle, found.low, found.high
