"""The kernels of 01_onednn compared: which can run here, PyTorch beside
them, and a summary beside published figures."""

from math import nan
from statistics import geometric_mean

import pandas as pd

from scaleout import machine, settings
from scaleout.comparisons.intervals import verdict
from scaleout.comparisons.references import REFERENCE, reference, whose
from scaleout.jobs.side import missing, python

NAME = "kernels"  # of the comparison, as the reference machine's has it
# An Intel talk on deep learning at scale with distributed frameworks, 2019:
# ResNet-50, batch 16, in images/s; the slide names no machine.
DECK19 = {"default": 3.84, "MKL-DNN": 17.69}
# PRACE, Best Practice Guide Deep Learning, 2019, table 13: one network, which
# it does not name, on 128 nodes, in seconds an epoch.
PRACE = {"Keras": 85.0, "TensorFlow": 18.0}
# The same step by PyTorch, which 09's lab has.
_THEIRS = {"script": "../09_networks/runme.py", "framework": "torch",
           "side": 224, "batch": 16}
PYTORCH = {
    "PyTorch": {**_THEIRS, "dtype": "float32"},
    "PyTorch bf16": {**_THEIRS, "dtype": "bfloat16"},
}
# What the fused layer is compared with.
KERAS = {"oneDNN, fused": "oneDNN", "bf16, fused": "bf16"}
# What of 01 PyTorch is compared with.
OURS = {"PyTorch": "oneDNN, fused", "PyTorch bf16": "bf16, fused"}


def possible(variants, beside=None):
    """Choose the variants that can be compared here, and print what this
    processor does in bf16.

    Without AVX-512 TensorFlow takes bf16 away from oneDNN, and what remains
    is no comparison. With SCALEOUT_QUICK=1 bf16 and PyTorch are left out.
    """
    here = machine.facts()
    if machine.native_bf16(here.isa):
        print(f"{here.cpu} multiplies bf16 in hardware.")
    elif "avx512f" in here.isa:
        print(f"{here.cpu} has no instructions for bf16: oneDNN emulates "
              "them.")
    else:
        print(f"{here.cpu} has no AVX-512: TensorFlow keeps bf16 from "
              "oneDNN, and we leave it out.")
    quick = settings.quick()
    torch = None if quick else python()
    baseline = next(iter(variants))
    every = {baseline: variants[baseline]}
    if torch:
        for name, how in (beside or {}).items():
            every[name] = {**how, "python": torch}
    every.update(variants)
    wide = "avx512f" in here.isa and not quick
    return {name: how for name, how in every.items()
            if wide or not _in_bf16(how.get("kernels"), how.get("dtype"))}


def _in_bf16(kernels, dtype) -> bool:
    return kernels in ("bf16", "mixed") or dtype == "bfloat16"


def best(result) -> str:
    """Name the fastest of 01's own variants that were shown to be faster
    than the baseline; without one, oneDNN with fused batch
    normalisation."""
    faster = [name for name in result.variants
              if name not in OURS and result.verdict(name) == "faster"]
    return max(faster, key=lambda name: result.ratio(name).middle,
               default="oneDNN, fused")


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
        _say(result, OURS[name], name)


def fused(result) -> None:
    """Say what the fused layer alone brings, in fp32 and in bf16."""
    for name, keras in KERAS.items():
        if {name, keras} <= set(result.variants):
            _say(result, name, keras)


def _say(result, name: str, other: str) -> None:
    ratio = result.between(name, other)
    found = verdict(ratio, result.noise, result.within)
    print(f"{name}: {ratio.middle:.2f} times as fast as {other} "
          f"({ratio.low:.2f} to {ratio.high:.2f}, {ratio.rounds} "
          f"rounds): {found}.")


def summary(result, sgemm_gflops):
    """Make the executive summary of a comparison of kernels, with figures
    that others published below it.

    A rate is the baseline's (its geometric mean) times the ratio, so that
    whoever divides gets the ratio that is printed. `of_sgemm` is the share
    of the fastest of several matrix products.
    """
    jobs = result.records.drop_duplicates("variant").set_index("variant")
    first = result.runs[result.runs.variant == result.baseline].value
    baseline = geometric_mean(first)
    rows = []
    for name in (result.baseline, *result.variants):
        job = jobs.loc[name]
        line = result.table.loc[name]
        in_bf16 = _in_bf16(job["metrics.kernels"], job.get("metrics.dtype"))
        rate = baseline * line.ratio
        gflops = rate * job["metrics.flops_per_image"] / 1e9
        rows.append({
            "environment": name,
            "network": "ResNet-50",
            "batch": job.batch_per_rank,
            "images_per_s": rate,
            "times": line.ratio,
            "low": line.low,
            "high": line.high,
            "of_sgemm": nan if in_bf16 else gflops / max(sgemm_gflops),
            "where": "this machine",
        })
    for name, rate in DECK19.items():
        rows.append({"environment": f"{name}, 2019", "network": "ResNet-50",
                     "batch": 16, "images_per_s": rate,
                     "times": rate / DECK19["default"],
                     "where": "a machine without a name [DECK19]"})
    rows.append({"environment": "TensorFlow against Keras",
                 "times": PRACE["Keras"] / PRACE["TensorFlow"],
                 "where": "128 nodes [PRACE]"})
    print(f"SGEMM: {min(sgemm_gflops):.0f} to {max(sgemm_gflops):.0f} "
          f"GFLOP/s. The {result.baseline} kernels reach "
          f"{rows[0]['of_sgemm']:.2f} of the highest.")
    return pd.DataFrame(rows).astype({"batch": "Int64"})
