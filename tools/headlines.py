"""The headline comparisons of each lesson, as short as an interval allows: what `make elsewhere` measures.

A function a lesson, which yields its comparisons one by one. Ranks go up to all cores: 1, 2, 4 and so on.
Rows know the scripts that ran, not what stands here: what does other work has another name.
"""

import functools
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from scaleout import Comparison, compare, lab, machine, scaling
from scaleout.base.paths import results

if TYPE_CHECKING:
    import pandas as pd

ROUNDS = 5
FEW = 3  # rounds of what takes long
MIB = 2**20
RUNME = ("runme.py",)


class Headline(NamedTuple):
    """A comparison, the scripts that it rests on, and what else was found of a variant."""

    name: str  # as `compare(name=)` takes it
    found: Comparison
    scripts: tuple[str, ...] = RUNME
    facts: Mapping[str, Mapping[str, float]] = {}


Headlines = Iterator[Headline]
CORES = machine.usable_cores()


def steps(first: int = 1) -> list[int]:
    """The numbers of ranks: powers of two, and all cores; two on a single core, too."""
    most = max(2, CORES)
    return [n for n in (1, 2, 4, 8, 16, 32, 64, 128) if first <= n < most] + [most]


def ranks(number: int) -> str:
    return "1 rank" if number == 1 else f"{number} ranks"


def welcome() -> Headlines:
    variants = {ranks(n): {"ranks": n} for n in steps()}
    run = lab("00", solution=True).run
    yield Headline("pi", compare(run, variants, rounds=ROUNDS, threads=1, strips=40_000_001))


def onednn() -> Headlines:
    one = lab("01", solution=True)
    in_turns = one.module("kernels").in_turns
    kinds = {"default": {"kernels": "default"}, "oneDNN": {"kernels": "onednn"}}
    yield Headline("kernels", compare(one.run, kinds, rounds=FEW, warmup=10, steps=50))
    few = {"rounds": FEW, "batch": 16, "warmup": 5, "steps": 40}
    found = in_turns(one, ["onednn+eager", "onednn"], **few)
    yield Headline("graph", found, ("side/turns.py",))
    deep = {"network": "resnet50", "rounds": FEW + 1, "batch": 8, "warmup": 1, "steps": 2}
    found = in_turns(one, ["onednn", "default", "onednn+fused"], **deep)
    yield Headline("resnet50", found, ("side/turns.py",))


def threads() -> Headlines:
    many = max(2, CORES)
    variants = {
        "1 rank x 1 thread": {"ranks": 1, "intra": 1, "threads": 1},
        f"1 rank x {many} threads": {"ranks": 1, "intra": many, "threads": many},
        f"{many} copies x 1 thread": {"ranks": many, "intra": 1, "threads": 1},
    }
    run = lab("02", solution=True).run
    yield Headline("threads", compare(run, variants, rounds=FEW + 1, inter=1, pin=True))
    share = {"OMP_NUM_THREADS": str(max(1, CORES // 2))}
    jobs = {
        "a fair share": {"env": share},
        "threads sleep": {"env": {"OMP_WAIT_POLICY": "passive"}},
        "by default": {},
    }
    how = {"script": "side/crowd.py", "ranks": 2, "threads": CORES, "bind": "none"}
    yield Headline("crowd", compare(run, jobs, rounds=ROUNDS, **how), ("side/crowd.py",))


def spmd() -> Headlines:
    run = lab("03", solution=True).run
    yield messages(run)
    ways = {
        way: {"algorithm": way.replace(" and ", "-")}
        for way in ("gather and broadcast", "ring", "mpi")
    }
    for mib in (4, 16):
        found = compare(
            run,
            ways,
            rounds=ROUNDS,
            ranks=max(2, CORES),
            threads=1,
            sizes=[mib * MIB // 4],
            metric="step_median_s",
            lower=True,
        )
        yield Headline(f"allreduce-{mib}MiB", found)


def messages(run: Callable[..., Any]) -> Headline:
    """A message of one byte against longer ones, and the alpha and beta that fit all of them."""
    rows: list[dict[str, Any]] = []
    seconds: dict[int, list[float]] = {}
    for job in range(2 * ROUNDS):
        for record in run(
            ranks=2, threads=1, script="pingpong.py", echo=False
        ).records.itertuples():
            size = int(record.metrics["bytes"])
            seconds.setdefault(size, []).append(record.step_median_s)
            if job % 2 == 0 and size in (1, 4**8, 4**11) or size == 1:
                name = "1 byte" if size == 1 else f"{size:,} bytes"
                again = job % 2 if size == 1 else 0
                rows.append(
                    {
                        "round": job // 2,
                        "variant": name,
                        "again": again,
                        "value": record.step_median_s,
                        "unit": "s",
                    }
                )
    fit = scaling.fit_alpha_beta([*seconds], [np.median(each) for each in seconds.values()])
    facts = {"1 byte": {"alpha_us": 1e6 * fit.alpha_s, "beta_ns": 1e9 * fit.beta_s}}
    return Headline("message", Comparison(rows, lower=True), ("pingpong.py",), facts)


def kmeans() -> Headlines:
    km = lab("04", solution=True)
    sides = {"1 rank": {"ranks": 1, "threads": 1}}
    sides |= {f"{n} threads": {"ranks": 1, "threads": n} for n in steps(2)}
    sides |= {f"{n} ranks": {"ranks": n, "threads": 1} for n in steps(2)}
    size = {"rows": 1_000_000, "columns": 3, "colours": 64, "iterations": 20}
    found = compare(km.run, sides, rounds=FEW, script="modes.py", mode="distributed", **size)
    yield Headline("k-means", found, ("modes.py",))
    many = max(2, CORES)
    ways = {
        "scikit-learn": {"way": "scikit-learn", "threads": many},
        "daal4py (threads)": {"way": "daal4py", "threads": many},
        "daal4py (ranks)": {"way": "daal4py", "ranks": many, "threads": 1},
    }
    how = {"rows": 1_000_000, "iterations": 10, "script": "fourways.py"}
    found = compare(km.run, ways, rounds=FEW, metric="step_median_s", **how)
    yield Headline("four-ways", found, ("fourways.py",))


def tuned(variants: Mapping[str, Mapping[str, Any]], processes: int, **how: Any) -> Comparison:
    """What 05's tune.py measures, in one job."""
    job = lab("05", solution=True).run(
        ranks=processes,
        threads=1,
        bind="none",
        script="side/tune.py",
        echo=False,
        variants=dict(variants),
        timeout=1200,
        **how,
    )
    return Comparison(job.records["metrics.runs"].iloc[0])


def horovod() -> Headlines:
    variants: dict[str, dict[str, Any]] = {"1 rank": {"ranks": 1, "apart": True}}
    for n in steps(2):
        variants[f"{n} ranks, apart"] = {"ranks": n, "apart": True}
        for ms in (1, 4):
            variants[f"{n} ranks, cycle {ms} ms"] = {"ranks": n, "cycle_ms": ms}
    rounds = ROUNDS if CORES <= 4 else FEW
    found = tuned(variants, max(2, CORES), rounds=rounds, steps=30)
    yield Headline("efficiency", found, ("side/tune.py", "side/training.py"))


def tuning() -> Headlines:
    many = max(2, CORES)
    first = {"ranks": 2, "threads": many, "bind": "none", "cycle_ms": 1}
    first |= {"evaluation": "predict", "evaluate_every": 5}
    last = {"threads": 1, "cycle_ms": 4, "evaluation": "shared", "evaluate_every": 10}
    variants = {"first written": first, "tuned": {**last, "ranks": many}}
    found = tuned(variants, 2 + many, lab="06_tuning", rounds=FEW)
    yield Headline("whole-job", found, ("training.py", "runme.py"))


def weak() -> Headlines:
    sc = lab("07", solution=True)
    variants: dict[str, dict[str, Any]] = {"1 rank": {"ranks": 1}}
    variants |= {f"{n} ranks": {"ranks": n, "mode": "weak"} for n in steps(2)}
    found = compare(sc.run, variants, threads=1, steps=20, rounds=ROUNDS)
    yield Headline("weak-scaling", found, RUNME, exchanges(found))


def exchanges(found: Comparison) -> dict[str, dict[str, float]]:
    """The time of the exchange in each variant of weak scaling, and what the ring's formula says."""
    facts = {}
    for variant, rows in found.records.groupby("variant"):
        if variant != found.baseline:
            facts[str(variant)] = {
                "exchange_ms": 1e3 * float(np.median([_exchange_s(each) for each in rows.metrics])),
                "ring_ms": 1e3 * float(np.median([each["ring_s"] for each in rows.metrics])),
            }
    return facts


def _exchange_s(metrics: Mapping[str, Any]) -> float:
    return max(float(share["exchange_s"]) for share in metrics["shares"])


def precision() -> Headlines:
    prec = lab("08", solution=True)
    isa = prec.module("isa")
    if not isa.steps():
        return
    climbed = isa.climb(functools.partial(prec.run, work=["GEMM", "CNN"]), rounds=ROUNDS)
    scripts = ("ladder.py",)
    counted = climbed.counted()
    top = isa.steps()[-1]
    wrong = {
        step: float(counted.loc[(step, "int8"), "wrong_sums"])
        for step in isa.steps()
        if (step, "int8") in counted.index
    }
    for step in dict.fromkeys([isa.steps()[0], top]):
        facts = {"int8": {"wrong_sums": wrong[step]}} if step in wrong else {}
        for name, what, more in (("product", "GEMM", facts), ("network", "CNN", {})):
            known = [f"{what} {number}" for number in isa.NUMBERS]
            if climbed.table.loc[step].reindex(known).count() > 1:
                found = climbed.numbers(step, what)
                yield Headline(f"{name}-{step}", found, scripts, more)
    if len(isa.steps()) > 1:
        for number in ("fp32", "int8"):
            facts = {step: {"wrong_sums": wrong[step]} for step in wrong if number == "int8"}
            yield Headline(f"{number}-by-step", climbed.steps(f"GEMM {number}"), scripts, facts)


def networks() -> Headlines:
    nw = lab("09", solution=True)
    frameworks = nw.module("frameworks")
    for network, steps_ in (("cnn", 100), ("resnet50", 20)):
        for n in steps(2):
            job = nw.run(
                network=network, ranks=n, threads=1, batch=8 * n, side=96, steps=steps_,
                env=frameworks.SHORT_STEPS, echo=False, timeout=1200,
            )  # fmt: skip
            found = frameworks.in_rounds(job.records.iloc[0])
            yield Headline(f"together-{network}-{n}", found)
    if frameworks.python():
        variants = {name: frameworks._by(framework) for framework, name in frameworks.NAMES.items()}
        cell = {"network": "cnn", "batch": 32, "steps": 60, "ranks": 1, "threads": CORES}
        yield Headline("frameworks", compare(nw.run, variants, rounds=FEW, **cell))


def pipelines() -> Headlines:
    job = lab("10", solution=True).run(
        ranks=1, threads=max(2, CORES), script="compare_pipelines.py", rounds=ROUNDS, echo=False,
        pipelines=["naive", "parallel+batch+cache+prefetch"],
    )  # fmt: skip
    found = Comparison(job.records["metrics.runs"].iloc[0])
    yield Headline("pipeline", found, ("compare_pipelines.py",))


def crossing() -> Headlines:
    job = lab("11", solution=True).run(
        ranks=max(2, CORES), threads=1, script="which.py", repeats=ROUNDS, echo=False
    )
    yield from crossings(job.records)


def crossings(records: "pd.DataFrame") -> Headlines:
    """A comparison for each batch of a job of which.py."""
    for part, rows in records.groupby("metrics.ratio"):
        times = rows.set_index("variant")["step_s"]
        columns = [("data", 0, "data"), ("data", 1, "data again"), ("tensor", 0, "tensor")]
        runs = [
            {"round": k, "variant": name, "again": again, "value": times[own][k], "unit": "s"}
            for k in range(len(times["data"]))
            for name, again, own in columns
        ]
        found = Comparison(runs, lower=True)
        yield Headline(f"crossing-{part:g}", found, ("which.py",))


def capstone() -> Headlines:
    cap = lab("12", solution=True)
    text = cap.script.read_text(encoding="utf-8")
    edited = cap.module("ours/edit").edited
    steps_taken = [f"ours/{step}.py" for step in ("evaluation", "gather", "fused")]
    for step in steps_taken:
        text = edited(text, (cap.folder / step).read_text(encoding="utf-8"))
    script = results("elsewhere") / "tuned.py"
    script.write_text(text, encoding="utf-8")
    ours = {"script": str(script), "env": {"TF_ENABLE_ONEDNN_OPTS": "1"}}
    variants = {"first written": {"ranks": 1, "threads": CORES}}
    variants["tuned, 1 rank"] = {**ours, "ranks": 1, "threads": CORES}
    variants |= {f"tuned, {n} ranks": {**ours, "ranks": n, "threads": 1} for n in steps(2)}
    short = {"epochs": 2, "patients": 18, "metric": "train_s", "rounds": FEW}
    yield Headline("training", compare(cap.run, variants, **short), (*RUNME, *steps_taken))


LESSONS: dict[str, Callable[[], Headlines]] = {
    "00": welcome,
    "01": onednn,
    "02": threads,
    "03": spmd,
    "04": kmeans,
    "05": horovod,
    "06": tuning,
    "07": weak,
    "08": precision,
    "09": networks,
    "10": pipelines,
    "11": crossing,
    "12": capstone,
}
