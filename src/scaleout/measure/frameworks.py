"""TensorFlow and PyTorch side by side: networks in rounds, and 05's training by both.

PyTorch is in .side/torch, after `make torch`. Where it is missing, what a reference machine
measured takes its place, and says so.
"""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import machine, settings
from ..comparisons.compare import compare
from ..comparisons.comparison import Comparison
from ..comparisons.references import REFERENCE, Scripts, reference, whose
from ..jobs.environment import SHORT_STEPS
from ..paths import results
from ..traces import onednn
from .pytorch import MISSING, missing, note, python
from .twins import twins  # noqa: F401

if TYPE_CHECKING:
    import pandas as pd


NAMES = {"tensorflow": "TensorFlow", "torch": "PyTorch"}
WORDS = {
    "forward_training": "forward",
    "backward_data": "back, inputs",
    "backward_weights": "back, weights",
}
DRAWS = 2000  # of a bootstrap


def _of(framework: str) -> dict[str, Any]:
    """The arguments of a job by this framework."""
    own = {"python": python()} if framework == "torch" else {}
    return {"framework": framework, **own}


def characterise(
    lab: Scripts, cells: Mapping[str, Mapping[str, Any]], rounds: int = 3
) -> dict[str, Comparison]:
    """Each cell by both frameworks, as one rank with all cores and as two ranks that share them.

    The effective batch is the same in all four, and Horovod looks for gradients every 3.5 ms. The
    baseline is TensorFlow on one rank. With SCALEOUT_QUICK=1, and without PyTorch, it is what a
    reference machine measured.
    """
    cores = machine.usable_cores()
    half = max(1, cores // 2)
    shapes = {"1 rank": {"ranks": 1, "threads": cores}, "2 ranks": {"ranks": 2, "threads": half}}
    variants = {
        f"{NAMES[framework]}, {name}": {**_of(framework), **shape, "env": SHORT_STEPS}
        for framework in NAMES
        for name, shape in shapes.items()
    }
    if settings.quick() or not python():
        file = lab.folder / REFERENCE
        found: dict[str, Comparison] = {
            cell: reference(file, cell, list(variants), missing()) for cell in cells
        }
        whose(next(iter(found.values())).records, missing())
        return found
    found = {}
    for cell, how in cells.items():
        found[cell] = compare(lab.run, variants, **{"rounds": rounds, **how})
        runs = found[cell].runs.set_index("run_id")
        places = [{"run_id": at, **row.to_dict()} for at, row in runs.iterrows()]
        note(cell, found[cell].records, places)
    return found


def networks(lab: Scripts, names: Iterable[str], **how: Any) -> "pd.DataFrame":
    """Each network once by each framework, on one rank with all cores.

    With SCALEOUT_QUICK=1 one step of VGG-16 alone, which has the fewest layers, in TensorFlow;
    without PyTorch TensorFlow alone is measured.
    """
    import pandas as pd

    chosen = ["vgg16"] if settings.quick() else list(names)
    frameworks = ["tensorflow", *(["torch"] if python() and not settings.quick() else [])]
    if not python():
        print(f"{MISSING} So this is TensorFlow alone.")
    asked = {**how, "steps": 1} if settings.quick() else how
    rows = [
        lab.run(network=name, echo=False, **_of(framework), **asked).records
        for name in chosen
        for framework in frameworks
    ]
    return pd.concat(rows, ignore_index=True)


def profiles(lab: Scripts, **how: Any) -> "dict[str, pd.DataFrame]":
    """What oneDNN itself says of a training step in each framework, on one rank with all cores.

    Without PyTorch it is TensorFlow alone; with SCALEOUT_QUICK=1 it is PyTorch alone where that is
    here.
    """
    chosen = list(NAMES)
    if not python():
        print(f"{MISSING} So this is TensorFlow alone.")
        chosen.remove("torch")
    elif settings.quick():
        chosen.remove("tensorflow")
    found = {}
    for framework in chosen:
        run = lab.run(env={"ONEDNN_VERBOSE": "1"}, echo=False, **_of(framework), **how)
        said = onednn.parse(run.lines)
        steps = how["warmup"] + how["steps"]
        primitive = said["primitive"].replace({"convolution": "conv"})
        op = primitive + " " + said["prop_kind"].replace(WORDS)
        told = said.assign(op=op.str.strip(), library="oneDNN", time_ms=said["time_ms"] / steps)
        told.attrs = {"step_ms": 1000 * float(run.records["step_median_s"].iloc[0])}
        found[NAMES[framework]] = told
    return found


def efficiency(records: "pd.DataFrame") -> tuple[float, float, float]:
    """What is left of the rate of independent copies when ranks train together."""
    row = records.iloc[0]
    together, copies = np.array(row["step_s"]), np.array(row["metrics.copies_s"])
    rng = np.random.default_rng(0)
    drawn = rng.integers(0, len(together), (DRAWS, len(together)))
    ratios = np.median(copies[drawn], axis=1) / np.median(together[drawn], axis=1)
    low, high = np.quantile(ratios, [0.025, 0.975])
    return float(row["metrics.efficiency"]), float(low), float(high)


def table(records: "pd.DataFrame") -> "pd.DataFrame":
    """What a paper would show of each network; also written to results/frameworks/ as table.csv and
    table.md.
    """
    import pandas as pd

    cores = records["ranks"] * records["threads_per_rank"]
    shown = pd.DataFrame(
        {
            "network": records["metrics.network"],
            "framework": records["metrics.framework"].map(NAMES),
            "images/s": records["rate"].round(1),
            "images/s per core": (records["rate"] / cores).round(1),
            "MiB of a rank": [round(max(mib)) for mib in records["metrics.peak_mib"]],
            "million parameters": (records["metrics.parameters"] / 1e6).round(2),
            "GFLOP of an image": (records["metrics.flops_per_image"] / 1e9).round(3),
            "GFLOP/s": (records["metrics.flops_per_s"] / 1e9).round(0),
        }
    )
    lines = [list(shown.columns), ["---"] * shown.shape[1], *shown.to_numpy().tolist()]
    folder = results("frameworks")
    shown.to_csv(folder / "table.csv", index=False)
    text = "".join("| " + " | ".join(map(str, line)) + " |\n" for line in lines)
    (folder / "table.md").write_text(text, encoding="utf-8")
    return shown.set_index(["network", "framework"])
