"""TensorFlow and PyTorch side by side: networks in rounds, 05's training by
both, and what the papers would print of them.

PyTorch is in .side/torch, after `make torch`. Where it is missing, what a
reference machine measured takes its place, and says so.
"""

import tempfile
from pathlib import Path

import numpy as np
import pandas as pd

from scaleout import (
    Comparison,
    ScaleoutError,
    compare,
    data,
    machine,
    records,
    scaling,
)
from scaleout.base.paths import results, show
from scaleout.course import references
from scaleout.course.pytorch import MISSING, missing, python
from scaleout.course.references import REFERENCE, reference, whose

NAMES = {"tensorflow": "TensorFlow", "torch": "PyTorch"}
# How often Horovod looks for gradients, in ms: 05 finds that 3 to 4 suit a
# short step. It looks while its rank sleeps, too, and takes a core for that.
SHORT_STEPS = {"HOROVOD_CYCLE_TIME": "3.5"}
DRAWS = 2000  # of a bootstrap
LONG_S = 1800  # of deep networks on a slow machine
NO_SLIP = "none"
BRIEF = {"ranks": 2, "threads": 1, "schedule": "constant", "epochs": 1,
         "echo": False}


def _by(framework: str) -> dict:
    """Name the framework of a job, and the Python that has it."""
    own = {"python": python()} if framework == "torch" else {}
    return {"framework": framework, **own}


def turns(lab, networks, batches, framework: str, **how) -> pd.DataFrame:
    """Let one process with all cores and two that share them take turns: a
    record for each network and batch (turns.py)."""
    if data.quick():
        networks = ["vgg16"]  # the fewest layers
        batches = batches[:1]
        how = {**how, "rounds": 1, "side": 32}
    return lab.other("turns.py").run(
        ranks=3, threads=machine.usable_cores(), bind="none", echo=False,
        networks=networks, batches=batches, env=SHORT_STEPS,
        **_by(framework), **how).records


def quick_to_build() -> str:
    """PyTorch where it is there, as it builds a deep network in less time."""
    framework = "torch" if python() and not data.quick() else "tensorflow"
    print(f"Measured with {NAMES[framework]}.")
    return framework


def networks(lab, names, batch: int = 8, side: int = 96,
             large: int = 224) -> pd.DataFrame:
    """Train each network, in rounds; and the first of them once more on large
    images, as papers measure it."""
    framework = quick_to_build()
    how = {"memory": True, "timeout": LONG_S}
    jobs = [turns(lab, names, [batch], framework, side=side, **how)]
    if not data.quick():
        jobs.append(turns(lab, names[:1], [batch], framework, side=large,
                          **how))
    return pd.concat(jobs, ignore_index=True)


def one_or_several(lab, names, batches, side: int) -> dict:
    """Compare one process with all cores with two copies and with two that
    train together, for each network and batch."""
    rows = turns(lab, names, batches, quick_to_build(), side=side,
                 timeout=LONG_S)
    return {f"{row['metrics.network']}, {row['metrics.batch']} images":
            Comparison(row["metrics.runs"], metric="images/s")
            for _, row in rows.iterrows()}


def table(rows: pd.DataFrame) -> pd.DataFrame:
    """Show what a paper would print of each network; also written to
    results/frameworks/ as table.csv and table.md."""
    giga = rows["metrics.flops_per_image"] / 1e9
    kept = [Comparison(runs, metric="images/s").between("together", "copies")
            for runs in rows["metrics.runs"]]
    shown = pd.DataFrame({
        "network": rows["metrics.network"],
        "framework": rows["metrics.framework"].map(NAMES),
        "pixels": rows["metrics.side"],
        "images/s": rows["rate"].round(1),
        "GFLOP of an image": giga.round(3),
        "GFLOP/s": (rows["rate"] * giga).round(0),
        "efficiency": [f"{one.middle:.2f} ({one.low:.2f} to {one.high:.2f})"
                       for one in kept],
        "million parameters": (rows["metrics.parameters"] / 1e6).round(2),
        "MiB": rows["metrics.peak_mib"].round(),
    })
    folder = results("frameworks")
    shown.to_csv(folder / "table.csv", index=False)
    lines = [shown.columns, ["---"] * shown.shape[1], *shown.to_numpy()]
    text = "".join(f"| {' | '.join(map(str, line))} |\n" for line in lines)
    (folder / "table.md").write_text(text, encoding="utf-8")
    return shown.set_index(["network", "framework"])


def efficiency(rows: pd.DataFrame) -> tuple[float, float, float]:
    """Find what is left of the rate of independent copies when ranks train
    together, with its 95 % interval."""
    row = rows.iloc[0]
    together = np.array(row["step_s"])
    copies = np.array(row["metrics.copies_s"])
    drawn = np.random.default_rng(0).integers(
        0, len(together), (DRAWS, len(together)))
    ratios = (np.median(copies[drawn], axis=1)
              / np.median(together[drawn], axis=1))
    low, high = np.quantile(ratios, [0.025, 0.975])
    return float(row["metrics.efficiency"]), float(low), float(high)


def on_many_nodes(rows: pd.DataFrame, names, links) -> dict:
    """Take the steps of networks that were measured on one node to nodes with
    each of these links between them."""
    # One row for each network: the images of which there are all networks.
    own = rows[rows["metrics.side"] == rows["metrics.side"].iloc[0]]
    own = own.set_index("metrics.network")
    return {
        name: [
            scaling.Step(
                compute_s=float(own.loc[name, "metrics.batch"]
                                / own.loc[name, "rate"]),
                gradient_bytes=4.0 * float(
                    own.loc[name, "metrics.parameters"]),
                network=scaling.NETWORKS[link],
            )
            for link in links
        ]
        for name in names if name in own.index
    }


def characterise(lab, cells, rounds: int = 5) -> dict:
    """Compare both frameworks in each cell, as one rank with all cores and as
    two ranks that share them.

    The effective batch is the same in all four. The baseline is TensorFlow on
    one rank. With SCALEOUT_QUICK=1, and without PyTorch, it is what a
    reference machine measured.
    """
    cores = machine.usable_cores()
    shapes = {"1 rank": {"ranks": 1, "threads": cores},
              "2 ranks": {"ranks": 2, "threads": max(1, cores // 2)}}
    variants = {
        f"{NAMES[framework]}, {name}": {**_by(framework), **shape,
                                        "env": SHORT_STEPS}
        for framework in NAMES for name, shape in shapes.items()
    }
    if data.quick() or not python():
        found = {cell: reference(lab.folder / REFERENCE, cell,
                                 list(variants), missing())
                 for cell in cells}
        whose(next(iter(found.values())).records, missing())
        return found
    found = {}
    for cell, how in cells.items():
        one = compare(lab.run, variants, **{"rounds": rounds, **how})
        keep(cell, one.records, one.runs)
        found[cell] = one
    return found


def keep(name: str, rows: pd.DataFrame, places: pd.DataFrame) -> None:
    """Keep records in results/frameworks/, each with its place, as a file of
    references has them: tools/keep_reference.py makes such a file of them."""
    of_run = {place["run_id"]: {"name": name, **place}
              for place in places.to_dict("records")}
    lines = [references.line(row, of_run[row.run_id], row["metrics"])
             for _, row in rows.iterrows()]
    file = f"{name.replace(' ', '-').replace(',', '')}.jsonl"
    (results("frameworks") / file).write_text(
        "".join(f"{line}\n" for line in lines), encoding="utf-8")


def twins(horovod, ddp) -> pd.DataFrame:
    """Train an epoch of 05 by Horovod and by DistributedDataParallel, from
    the same weights.

    Both losses come from one piece of code: that of ddp.py. twin.py gives it
    Horovod's weights, and the order in which 05 sees the images. With
    SCALEOUT_QUICK=1, and without PyTorch, it is what a reference machine
    found.
    """
    if data.quick() or not python():
        file = ddp.folder / REFERENCE
        kept = references.named(file, "twins")
        if kept.empty:
            raise ScaleoutError(f"{MISSING} The reference machine, "
                                f"{show(file)}, has no 'twins'.")
        whose(kept, missing())
        return pd.DataFrame(
            kept["metrics.twins"].iloc[0]).set_index("framework")
    # 05 drops what does not fill a step of two ranks with 32 images each.
    whole = {"SCALEOUT_IMAGES": str(len(data.digits()[0]) // 64 * 64)}
    with tempfile.TemporaryDirectory() as folder:
        begin = beginning(horovod, folder)
        ours = horovod.run(script="side/resume.py", checkpoint=folder,
                           env=whole, **BRIEF).records
        end = str(Path(folder, "checkpoint-000001.npz"))
        theirs = ddp.other("twin.py").run(
            begin=begin, end=end, python=python(), env=whole,
            **BRIEF).records
    rows = []
    for name, job, loss in (
            ("Horovod", ours, theirs["metrics.loss"].iloc[1]),
            ("DDP", theirs, theirs["metrics.losses"].iloc[0][-1])):
        shares = job["metrics.shares"].iloc[0]
        rows.append({"framework": name, "loss": loss,
                     "steps": shares[0]["steps"],
                     "equal": len({each["end"] for each in shares}) == 1})
    place = {"run_id": theirs["run_id"].iloc[0], "variant": "twins"}
    keep("twins", theirs[:1].assign(metrics=[{"twins": rows}]),
         pd.DataFrame([place]))
    return pd.DataFrame(rows).set_index("framework")


def slipped(ddp, *slips: str) -> pd.DataFrame:
    """Train for two epochs on two ranks: what the ranks did, a row for each
    slip of broken.py; without any, ddp.py as it stands.

    Without PyTorch it is what a reference machine found.
    """
    if not python():
        return slips_kept(ddp, slips or [NO_SLIP])
    rows = [trained(ddp, slip) for slip in slips or [NO_SLIP]]
    return pd.DataFrame(rows).set_index("slip")


def trained(ddp, slip: str) -> dict:
    """What the record of one such job tells."""
    how = {"ranks": 2, "threads": 1, "schedule": "constant", "echo": False,
           "python": python(), "epochs": 2}
    script = ddp
    if slip != NO_SLIP:
        script = ddp.other("broken.py")
        how["slip"] = slip
    with tempfile.TemporaryDirectory() as folder:
        if slip == "checkpoint":  # there must be one to go on from
            how["checkpoint"] = folder
            ddp.run(**{**how, "slip": None, "epochs": 1})
        job = script.run(**how).records
    metrics = job["metrics"].iloc[0]
    shares = metrics["shares"]
    epochs = len(metrics["accuracy"])
    firsts = np.reshape(metrics["firsts"], (epochs, -1))
    fewest, most = (times / epochs for times in metrics["seen"])
    row = {"slip": slip, "steps of an epoch": firsts.shape[1],
           "times each image was seen": f"{fewest:g} to {most:g}",
           "different orders":
               f"{len({tuple(one) for one in firsts})} of {epochs}",
           "begin equal": len({each["start"] for each in shares}) == 1,
           "end equal": len({each["end"] for each in shares}) == 1,
           "accuracy of rank 0": f"{metrics['accuracy'][-1]:.1%}"}
    place = {"run_id": job["run_id"].iloc[0], "variant": slip}
    keep(f"slip {slip}", job[:1].assign(metrics=[{"slips": [row]}]),
         pd.DataFrame([place]))
    return row


def batch_norm(ddp) -> pd.DataFrame:
    """Train a network with batch normalisation on two ranks: their weights,
    their moving averages, and the share of test images that they get right.

    Without PyTorch it is what a reference machine found.
    """
    if python():
        job = ddp.other("batch_norm.py").run(
            ranks=2, threads=1, echo=False, python=python()).records
        found = job["metrics.found"].iloc[0]
        place = {"run_id": job["run_id"].iloc[0], "variant": "batch norm"}
        keep("batch norm", job[:1].assign(metrics=[{"found": found}]),
             pd.DataFrame([place]))
    else:
        kept = references.named(ddp.folder / REFERENCE, "batch norm")
        whose(kept, missing())
        found = kept["metrics.found"].iloc[0]
    rows = [{"rank": rank, "weights": mine["weights"][:6],
             "moving averages": mine["moving"][:6],
             "alone": f"{mine['alone']:.1%}",
             "averaged": f"{mine['averaged']:.1%}"}
            for rank, mine in enumerate(found)]
    return pd.DataFrame(rows).set_index("rank")


def buckets(ddp) -> Comparison:
    """Compare when and how the gradients of a step are averaged (buckets.py).

    Without PyTorch it is what a reference machine found.
    """
    if python():
        rows = ddp.other("buckets.py").run(
            ranks=2, threads=1, echo=False, python=python()).records
        place = {"run_id": rows["run_id"].iloc[0], "variant": "buckets"}
        keep("buckets", rows, pd.DataFrame([place]))
    else:
        rows = references.named(ddp.folder / REFERENCE, "buckets")
        whose(rows, missing())
    return Comparison(rows["metrics.runs"].iloc[0], metric="steps/s")


def slips_kept(ddp, slips) -> pd.DataFrame:
    """What a reference machine found for these slips."""
    file = ddp.folder / REFERENCE
    kept = [references.named(file, f"slip {slip}") for slip in slips]
    whose(kept[0], missing())
    rows = [one["metrics.slips"].iloc[0][0] for one in kept]
    return pd.DataFrame(rows).set_index("slip")


def beginning(horovod, folder: str) -> str:
    """Make a checkpoint of 05 to begin with: the weights that a few steps
    have left, no epoch done, and an optimizer at rest."""
    with tempfile.TemporaryDirectory() as brief:
        horovod.run(script="side/resume.py", checkpoint=brief,
                    env={"SCALEOUT_IMAGES": "128"}, **BRIEF)
        with np.load(Path(brief, "checkpoint-000001.npz")) as kept:
            arrays = [kept[f"arr_{n}"] for n in range(len(kept.files))]
    # Epochs; the weights; of the optimizer its steps, its learning rate, and
    # a momentum for each weight.
    weights = (len(arrays) - 3) // 2
    at_rest = [np.zeros_like(array) for array in arrays]
    at_rest[1:1 + weights] = arrays[1:1 + weights]
    at_rest[weights + 2] = arrays[weights + 2]
    return str(Path(folder, records.keep_checkpoint(folder, at_rest, 0)))
