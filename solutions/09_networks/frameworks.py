"""TensorFlow and PyTorch side by side: networks in rounds, 05's training by
both, and what the papers would print of them.

PyTorch is in .side/torch, after `make torch`. Where it is missing, what a
reference machine measured takes its place, and says so.
"""

import shutil
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
BESIDE = "copies beside the thread"
ROUNDS = 5  # of runme.py
EPOCHS = 90  # of ImageNet, as papers train ResNet-50
IMAGENET = 1_281_167  # images to train on
LONG_S = 1800  # of deep networks on a slow machine
NO_SLIP = "none"
STEPS = (1, 2, 10, 100)  # of the twins; from the second, momentum counts
MOVES = 3  # of 05, each to other neighbours of its weights
DIFFER = "weights differ by"
MOVED = "05, moved, differs by"
EXPLAINED = 100  # times as far apart as a moved 05: no more is rounding
LEAP = 1e-5  # so far apart, a decision has turned
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
    if framework == "tensorflow":
        print("Copies run beside Horovod's thread here: what it takes is not "
              "in together / copies.")
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


def in_rounds(row: pd.Series) -> Comparison:
    """Compare the three ways of a job of runme.py, in the rounds in which
    they took turns: copies, copies beside Horovod's thread, and together."""
    columns = {("copies", 0): row["metrics.copies_s"],
               ("copies", 1): row["metrics.copies_s"],
               (BESIDE, 0): row["metrics.beside_s"],
               ("together", 0): row["step_s"]}
    rows = []
    for (name, again), steps in columns.items():
        for number, part in enumerate(np.array_split(steps, ROUNDS)):
            # Every other step of the copies is their null pair.
            own = part[again::2] if name == "copies" else part
            value = float(np.median(own if len(own) else part))
            rows.append({"round": number, "place": number, "variant": name,
                         "again": again, "value": value, "unit": "s"})
    rows.sort(key=lambda each: each["round"])
    return Comparison(rows, lower=True)


def together(lab, batch: int, cycles_ms) -> dict:
    """Let two ranks train the small network, with each of these times between
    two questions of Horovod's thread."""
    return {
        f"{cycle:g} ms": in_rounds(lab.run(
            ranks=2, threads=1, batch=batch, steps=60, echo=False,
            env={"HOROVOD_CYCLE_TIME": f"{cycle:g}"}).records.iloc[0])
        for cycle in cycles_ms
    }


def kept(found: dict) -> pd.DataFrame:
    """Show what is kept of the copies' rate beside the thread, of that in the
    exchange, and in all, with 95 % intervals."""
    def said(ratio) -> str:
        return f"{ratio.middle:.2f} ({ratio.low:.2f} to {ratio.high:.2f})"

    return pd.DataFrame([
        {"thread asks every": cycle,
         "copies beside the thread / copies": said(one.ratio(BESIDE)),
         "together / copies beside it": said(one.between("together", BESIDE)),
         "together / copies": said(one.ratio("together"))}
        for cycle, one in found.items()
    ]).set_index("thread asks every")


def where_lost(one: Comparison) -> str:
    """Say which of the two takes more, or that neither is shown to."""
    thread, exchange = one.ratio(BESIDE), one.between("together", BESIDE)
    if one.verdict("together") != "slower" and one.verdict(BESIDE) == "slower":
        return (f"The thread alone leaves {thread.middle:.2f} of it. What the "
                "exchange takes is lost in the noise.")
    if one.verdict("together") != "slower":
        return "No loss is shown."
    if thread.high < exchange.low:
        return "The thread costs more than the exchange."
    if exchange.high < thread.low:
        return "The exchange costs more than the thread."
    return "Thread and exchange are not told apart."


def exchange(lab, rows: pd.DataFrame) -> scaling.Network:
    """Measure alpha and beta of an average over two ranks, by the framework
    of these records: alpha + beta n seconds for n bytes."""
    framework = rows["metrics.framework"].iloc[0]
    threads = max(1, machine.usable_cores() // 2)
    row = lab.other("exchange.py").run(
        ranks=2, threads=threads, bind="none", echo=False, env=SHORT_STEPS,
        **_by(framework)).records.iloc[0]
    n = np.array(row["metrics.bytes"], float)
    seconds = np.median(row["metrics.seconds"], axis=1)
    # The line whose largest shares of error are the smallest in squares.
    beta, alpha = np.polyfit(n, seconds, 1, w=1 / seconds)
    return scaling.Network(NAMES[framework], max(float(alpha), 0.0),
                           float(beta))


def of_link(link: scaling.Network) -> str:
    """Say alpha and beta of an average."""
    return (f"{link.name}: alpha {1e6 * link.alpha_s:.0f} us, beta "
            f"{1e9 * link.beta_s:.2f} ns/byte.")


def days(rows: pd.DataFrame) -> None:
    """Say how long ImageNet would take at the rate of the last record."""
    row = rows.iloc[-1]
    long = EPOCHS * IMAGENET / row["rate"] / 86_400
    print(f"{row['metrics.network']} at {row['metrics.side']} pixels, "
          f"{row['rate']:.1f} images/s: {EPOCHS} epochs of ImageNet's "
          f"{IMAGENET / 1e6:.2f} million images take {long:,.0f} days.")


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
    """Train 1 to 100 steps of 05 by Horovod and by DistributedDataParallel,
    from the same weights; by Horovod three times more, from weights that were
    moved by one rounding; and one step with a learning rate off by 1 %.

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
        return _apart(kept["metrics.twins"].iloc[0])
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        begin = beginning(horovod, folder)
        moved = [move(begin, str(Path(folder, f"moved-{n}")), n)
                 for n in range(MOVES)]
        for steps in STEPS:
            brief = {**BRIEF, "env": {"SCALEOUT_IMAGES": f"{64 * steps}"}}
            ours, end = _steps_of_05(horovod, begin, brief, folder)
            ends = [_steps_of_05(horovod, other, brief, folder)[1]
                    for other in moved]
            twin = {"begin": begin, "end": end, "python": python()}
            script = ddp.other("twin.py")
            theirs = script.run(**twin, **brief).records
            row = _pair(steps, "the same", ours, theirs)
            rows.append({**row, MOVED: [apart(each, end) for each in ends]})
            if steps == 1:
                wrong = script.run(lr=0.0101, **twin, **brief).records
                rows.append(_pair(steps, "1 % higher", ours, wrong))
    place = {"run_id": theirs["run_id"].iloc[0], "variant": "twins"}
    keep("twins", theirs[:1].assign(metrics=[{"twins": rows}]),
         pd.DataFrame([place]))
    return _apart(rows)


def _pair(steps: int, rate: str, ours: pd.DataFrame,
          theirs: pd.DataFrame) -> dict:
    """What one pair of jobs ended with."""
    equal = all(len({each["end"] for each in job["metrics.shares"].iloc[0]})
                == 1 for job in (ours, theirs))
    return {"steps": steps, "learning rate of DDP": rate,
            "loss, Horovod": float(theirs["metrics.loss"].iloc[1]),
            "loss, DDP": float(theirs["metrics.losses"].iloc[0][-1]),
            DIFFER: float(theirs["metrics.apart"].iloc[1]),
            "ranks equal": equal}


def _apart(rows: list) -> pd.DataFrame:
    """The pairs as a table, in steps."""
    shown = pd.DataFrame(rows).set_index("steps")
    if "loss, DDP" in shown:
        by = (shown["loss, Horovod"] - shown["loss, DDP"]).abs()
        shown.insert(3, "losses differ by", by.map("{:.0e}".format))
        shown[DIFFER] = shown[DIFFER].map("{:.0e}".format)
        if MOVED in shown:
            shown[MOVED] = [f"{min(far):.0e} to {max(far):.0e}"
                            if isinstance(far, list) else ""
                            for far in shown[MOVED]]
    return shown


def grown(pair: pd.DataFrame) -> str:
    """Say whether the twins come apart no more than rounding explains."""
    if MOVED not in pair:
        return "What rounding alone does was not measured there."
    same = pair[pair[MOVED] != ""]
    far = same[DIFFER].astype(float)
    most = same[MOVED].str.split(" to ").str[-1].astype(float)
    last = same.index[-1]
    said = (f"After {last} steps the twins differ by {same[DIFFER].iloc[-1]}, "
            f"and 05 from its moved selves by {same[MOVED].iloc[-1]}. ")
    # In between, it is chance who has leapt.
    times = (far / most)[[step for step in same.index if step in (1, 2, last)]]
    if times.max() > EXPLAINED:
        return said + (f"But at step {times.idxmax()} the twins are "
                       f"{times.max():,.0f} times as far apart: look there.")
    said += ("Rounding alone takes 05 as far. What clears the twins is the "
             "rows of one and two steps.")
    for step in same.index[(far > LEAP) != (most > LEAP)]:
        who = "the twins" if far[step] > LEAP else "a moved 05"
        said += f" After {step} steps only {who} had leapt."
    return said


def apart(one: str, other: str) -> float:
    """The largest difference of a weight between two checkpoints of 05, as a
    share of the largest weight."""
    pairs = [*zip(_weights(one), _weights(other), strict=True)]
    most = max(float(np.abs(a - b).max()) for a, b in pairs)
    return most / max(float(np.abs(b).max()) for _, b in pairs)


def move(begin: str, folder: str, seed: int) -> str:
    """A checkpoint whose weights are neighbours of these among the numbers of
    32 bits: the next larger or the next smaller one, by chance."""
    arrays = _arrays(begin)
    draw = np.random.default_rng(seed)
    ways = np.float32([-np.inf, np.inf])
    for at in range(1, 1 + (len(arrays) - 3) // 2):
        toward = draw.choice(ways, arrays[at].shape)
        arrays[at] = np.nextafter(arrays[at], toward)
    Path(folder).mkdir()
    return str(Path(folder, records.keep_checkpoint(folder, arrays, 0)))


def _arrays(file: str) -> list:
    """What a checkpoint of 05 holds: epochs; the weights; of the optimizer
    its steps, its learning rate, and a momentum for each weight."""
    with np.load(file) as kept:
        return [kept[f"arr_{n}"] for n in range(len(kept.files))]


def _weights(file: str) -> list:
    """The weights of a checkpoint of 05."""
    arrays = _arrays(file)
    return arrays[1:1 + (len(arrays) - 3) // 2]


def _steps_of_05(horovod, begin: str, brief: dict, folder: str) -> tuple:
    """The records of an epoch of 05 from this checkpoint, and where the
    checkpoint after it is."""
    own = tempfile.mkdtemp(dir=folder)
    shutil.copy(begin, own)
    job = horovod.run(script="side/resume.py", checkpoint=own, **brief)
    return job.records, str(Path(own, "checkpoint-000001.npz"))


class Slips:
    """One table of slips: it grows with each that is tried."""

    def __init__(self, ddp) -> None:
        self.ddp = ddp
        self.rows = {}

    def tried(self, *slips: str) -> "Slips":
        """Train for two epochs on two ranks, with each slip of broken.py;
        without any, by ddp.py as it stands. All so far are shown."""
        found = slipped(self.ddp, *slips)
        self.rows |= {row.name: row for _, row in found.iterrows()}
        return self

    @property
    def table(self) -> pd.DataFrame:
        """What the ranks did, a row for each slip."""
        rows = sorted(self.rows.values(), key=lambda row: row.name != NO_SLIP)
        return pd.DataFrame(rows).rename_axis("slip")

    def marked(self, left: str = "* ", right: str = "") -> pd.DataFrame:
        """The table, in which every value that is wrong has a mark."""
        shown = self.table.astype(str)
        for slip, row in self.table.iterrows():
            for name in broken(row):
                shown.loc[slip, name] = f"{left}{row[name]}{right}"
        return shown

    def _repr_html_(self) -> str:
        mark = '<b style="background:#e9c7c9;color:black">* '
        return self.marked(mark, "</b>").to_html(escape=False)

    def __repr__(self) -> str:
        return self.marked().to_string()

    def highest(self) -> None:
        """Say whose accuracy is the highest, and how far all are apart."""
        right = self.table["accuracy of rank 0"].str.rstrip("%").astype(float)
        best = right[right == right.max()].index
        images = len(data.digits()[2])
        few = (right.max() - right.min()) / 100 * images
        whose_best = [name.replace(NO_SLIP, "no slip") for name in best]
        print(f"The highest accuracy, {right.max():.1f} %, is that of "
              f"{' and '.join(whose_best)}; without a slip it is "
              f"{right[NO_SLIP]:.1f} %. "
              f"All lie within {few:.0f} of {images:,} test images.")


def broken(row: pd.Series) -> list[str]:
    """The columns whose value tells of a mistake."""
    wrong = []
    if row["times each image was seen"] != "1 to 1":
        wrong += ["steps of an epoch", "times each image was seen"]
    different, epochs = row["different orders"].split(" of ")
    if different != epochs:
        wrong.append("different orders")
    return wrong + [name for name in ("begin equal", "end equal")
                    if not row[name]]


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
    images = len(data.digits()[2])
    rows = [{"images": mine.get("images", "own digits"),
             "rank": mine.get("rank", at), "weights": mine["weights"][:6],
             "moving averages": mine["moving"][:6],
             "alone": _right(mine["alone"], images),
             "averaged": _right(mine["averaged"], images)}
            for at, mine in enumerate(found)]
    print(_norm_in_words(found))
    return pd.DataFrame(rows).set_index(["images", "rank"])


def _norm_in_words(found: list) -> str:
    """What rank 0 gains by averaging, and by shuffled images in addition."""
    first, *others = [mine for mine in found if mine.get("rank", 0) == 0]
    gain = 100 * (first["averaged"] - first["alone"])
    said = f"Averaging its averages brings rank 0 {gain:+.1f} points"
    mixed = [mine for mine in others if mine.get("images") == "shuffled"]
    if not mixed:
        return said + "."
    more = 100 * (mixed[0]["averaged"] - first["averaged"])
    return f"{said}; shuffled images bring it {more:+.1f} more."


def _right(share: float, images: int) -> str:
    """A share of test images, with what chance could make of it."""
    within = 196 * (share * (1 - share) / images) ** 0.5
    return f"{share:.1%} +- {within:.1f}"


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


def overlap(one: Comparison) -> None:
    """Say whether DDP gains on one message for all gradients, and why."""
    times = one.between("DDP", "all at once")
    bound = one.between("no averages", "all at once")
    print(f"Against all at once, no way can be more than {bound.middle:.2f} "
          f"times as fast; DDP is {times.middle:.2f} times as fast "
          f"({times.low:.2f} to {times.high:.2f}).")
    said = one.sentence("DDP", "all at once")
    if said.startswith("DDP: faster"):
        saved = (1 - 1 / times.middle) / (1 - 1 / bound.middle)
        print(f"It saves {saved:.0%} of what averaging costs. By messages "
              "that left early, or by less to\ncopy and to allocate? These "
              "ways do not tell.")
    elif said.startswith("DDP: slower"):
        print("Its buckets cost more than they save.")
    else:
        print("No overlap is shown: the gain on one by one is that of fewer "
              "messages.")


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
        arrays = _arrays(str(Path(brief, "checkpoint-000001.npz")))
    weights = (len(arrays) - 3) // 2
    at_rest = [np.zeros_like(array) for array in arrays]
    at_rest[1:1 + weights] = arrays[1:1 + weights]
    at_rest[weights + 2] = arrays[weights + 2]
    return str(Path(folder, records.keep_checkpoint(folder, at_rest, 0)))
