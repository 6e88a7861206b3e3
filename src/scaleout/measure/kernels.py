"""The kernels of 01_onednn compared: which can run here, PyTorch beside them, and a summary beside
published figures.
"""

from collections.abc import Mapping
from math import nan
from typing import TYPE_CHECKING, Any

from .. import machine, settings
from ..comparisons.intervals import verdict
from ..comparisons.references import REFERENCE, Scripts, reference, whose
from .pytorch import missing, python

if TYPE_CHECKING:
    import pandas as pd

    from ..comparisons.comparison import Comparison


IN_BF16 = ("bf16", "mixed")  # kernels of 01_onednn that are not in fp32
# An Intel talk on deep learning at scale with distributed frameworks, 2019: ResNet-50, batch 16, a
# small cloud node.
DECK19 = {"default": 3.84, "MKL-DNN": 17.69}  # images/s
# PRACE, Best Practice Guide Deep Learning, 2019: the same network on 128 nodes, in 2018.
PRACE = {"Keras": 85.0, "TensorFlow": 18.0}  # seconds an epoch
# The same step by PyTorch, which 09's lab has, and what of 01 it is compared with.
_THEIRS = {"script": "../09_networks/runme.py", "framework": "torch", "side": 224, "batch": 16}
PYTORCH: dict[str, dict[str, Any]] = {
    "PyTorch": {**_THEIRS, "dtype": "float32"},
    "PyTorch bf16": {**_THEIRS, "dtype": "bfloat16"},
}
OURS = {"PyTorch": "oneDNN, fused", "PyTorch bf16": "bf16, fused"}
NAME = "kernels"  # of the comparison, as the reference machine's has it


def possible(
    variants: Mapping[str, Mapping[str, Any]], beside: Mapping[str, Mapping[str, Any]] | None = None
) -> dict[str, Mapping[str, Any]]:
    """The variants of 01_onednn that can be compared here; prints what this processor does in bf16.

    Without AVX-512 TensorFlow takes bf16 away from oneDNN, and what remains is no comparison. With
    SCALEOUT_QUICK=1 the variants in bf16 are left out, too, and so is PyTorch.
    """
    here = machine.facts()
    if machine.native_bf16(here.isa):
        print(f"{here.cpu} multiplies bf16 in hardware.")
    elif "avx512f" in here.isa:
        print(f"{here.cpu} has no instructions for bf16: oneDNN emulates them.")
    else:
        print(f"{here.cpu} has no AVX-512: TensorFlow keeps bf16 from oneDNN, and we leave it out.")
    wide = "avx512f" in here.isa and not settings.quick()
    interpreter = None if settings.quick() else python()
    theirs = {name: {**how, "python": interpreter} for name, how in (beside or {}).items()}
    baseline = next(iter(variants))
    every = {baseline: variants[baseline], **(theirs if interpreter else {}), **variants}
    return {name: how for name, how in every.items() if wide or not _is_bf16(how)}


def _is_bf16(how: Mapping[str, Any]) -> bool:
    return how.get("kernels") in IN_BF16 or how.get("dtype") == "bfloat16"


def best(result: "Comparison") -> str:
    """The fastest of 01's own variants that were shown to be faster than the baseline; without one,
    oneDNN with fused batch normalisation."""
    ours = [name for name in result.variants if name not in OURS]
    faster = [name for name in ours if result.verdict(name) == "faster"]
    return max(faster, key=lambda name: result.ratio(name).middle, default="oneDNN, fused")


def pytorch(result: "Comparison", lab: Scripts) -> None:
    """Says how fast the fused variants are beside PyTorch; where PyTorch was not measured, how fast
    they were on a reference machine.
    """
    found, rows = result, [name for name in OURS if name in result.variants]
    if not rows:
        rows = list(OURS)
        found = reference(lab.folder / REFERENCE, NAME, [*OURS, *OURS.values()], missing())
        whose(found.records, missing())
    for name in rows:
        ratio = found.between(OURS[name], name)
        said = verdict(ratio, found.noise, found.within)
        print(
            f"{OURS[name]}: {ratio.middle:.2f} times as fast as {name} ({ratio.low:.2f} to "
            f"{ratio.high:.2f}, {ratio.rounds} rounds): {said}."
        )


def summary(result: "Comparison", sgemm_gflops: float) -> "pd.DataFrame":
    """The executive summary of a comparison of kernels, then figures that others published."""
    import pandas as pd

    records = result.records.groupby("variant")
    flops = records["metrics.flops_per_image"].first()
    how = result.records.drop_duplicates("variant").set_index("variant")
    in_bf16 = {
        name: _is_bf16({"kernels": row["metrics.kernels"], "dtype": row.get("metrics.dtype")})
        for name, row in how.iterrows()
    }
    medians = result.table["median"]
    rows: list[tuple[object, ...]] = []
    for name in (result.baseline, *result.variants):
        line = result.table.loc[name]
        share = None if in_bf16[name] else line["median"] * flops[name] / 1e9 / sgemm_gflops
        interval = (None, None) if name == result.baseline else (line.low, line.high)
        of_pytorch = line["median"] / medians.get(
            "PyTorch bf16" if in_bf16[name] else "PyTorch", nan
        )
        rows.append(
            (name, line["median"], line.ratio, *interval, share, of_pytorch, "this machine")
        )
    for name, rate in DECK19.items():
        times = rate / DECK19["default"]
        place = "a small cloud node, 2019 [DECK19]"
        rows.append((f"{name}, 2019", rate, times, None, None, None, None, place))
    times = PRACE["Keras"] / PRACE["TensorFlow"]
    name = "TensorFlow against Keras, 2018"
    rows.append((name, None, times, *4 * [None], "128 nodes, 2018 [PRACE]"))
    names = ["environment", "images_per_s", "times", "low", "high"]
    names += ["of_sgemm", "of_pytorch", "where"]
    return pd.DataFrame(rows, columns=names).astype(dict.fromkeys(names[1:-1], float))
