"""The kernels of 01_onednn compared: which can run here, and a summary beside published figures."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from .. import machine, settings

if TYPE_CHECKING:
    import pandas as pd

    from .comparison import Comparison

__all__ = ["DECK19", "IN_BF16", "PRACE", "possible", "summary"]

IN_BF16 = ("bf16", "mixed")  # kernels of 01_onednn that are not in fp32
# An Intel talk on deep learning at scale with distributed frameworks, 2019: ResNet-50, batch 16, a
# small cloud node.
DECK19 = {"default": 3.84, "MKL-DNN": 17.69}  # images/s
# PRACE, Best Practice Guide Deep Learning, 2019: the same network on 128 nodes, in 2018.
PRACE = {"Keras": 85.0, "TensorFlow": 18.0}  # seconds an epoch


def possible(variants: Mapping[str, Mapping[str, Any]]) -> dict[str, Mapping[str, Any]]:
    """The variants of 01_onednn that can be compared here; prints what this processor does in bf16.

    Without AVX-512 TensorFlow takes bf16 away from oneDNN, and what remains is no comparison. With
    SCALEOUT_QUICK=1 the variants in bf16 are left out, too.

    Parameters
    ----------
    variants : mapping of name to arguments
        Those of the lab's run, with `kernels`.
    """
    here = machine.facts()
    if machine.native_bf16(here.isa):
        print(f"{here.cpu} multiplies bf16 in hardware.")
    elif "avx512f" in here.isa:
        print(f"{here.cpu} has no instructions for bf16: oneDNN emulates them.")
    else:
        print(f"{here.cpu} has no AVX-512: TensorFlow keeps bf16 from oneDNN, and we leave it out.")
    wide = "avx512f" in here.isa and not settings.quick()
    return {
        name: how for name, how in variants.items() if wide or how.get("kernels") not in IN_BF16
    }


def summary(result: "Comparison", sgemm_gflops: float) -> "pd.DataFrame":
    """The executive summary of a comparison of kernels, then figures that others published.

    Parameters
    ----------
    result : Comparison
        Of runs of 01_onednn, the baseline first.
    sgemm_gflops : float
        What this machine reaches in SGEMM. An fp32 variant is given as a share of it; one in bf16
        is not, as its peak is another one.

    Returns
    -------
    DataFrame
        environment, images_per_s (the median run), times (as fast as the baseline), low and high
        (of its interval), of_sgemm, where.
    """
    import pandas as pd

    records = result.records.groupby("variant")
    flops = records["metrics.flops_per_image"].first()
    in_bf16 = records["metrics.kernels"].first().isin(IN_BF16)
    rows: list[tuple[object, ...]] = []
    for name in (result.baseline, *result.variants):
        line = result.table.loc[name]
        share = None if in_bf16[name] else line["median"] * flops[name] / 1e9 / sgemm_gflops
        interval = (None, None) if name == result.baseline else (line.low, line.high)
        rows.append((name, line["median"], line.ratio, *interval, share, "this machine"))
    for name, rate in DECK19.items():
        times = rate / DECK19["default"]
        place = "a small cloud node, 2019 [DECK19]"
        rows.append((f"{name}, 2019", rate, times, None, None, None, place))
    times = PRACE["Keras"] / PRACE["TensorFlow"]
    name = "TensorFlow against Keras, 2018"
    rows.append((name, None, times, None, None, None, "128 nodes, 2018 [PRACE]"))
    names = ["environment", "images_per_s", "times", "low", "high", "of_sgemm", "where"]
    return pd.DataFrame(rows, columns=names).astype(dict.fromkeys(names[1:-1], float))
