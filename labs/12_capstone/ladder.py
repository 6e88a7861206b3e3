"""The steps from first.py to runme.py, each on top of the ones before, in
rounds and all in one job, by 05's tune.py and training.py here.

    found = cap.module("ladder").measure(cap.run, first, steps)
"""

import pandas as pd

from scaleout import Comparison, data, lab, progress


def measure(job, first: dict, steps: dict, rounds: int = 5) -> Comparison:
    """Compare epochs: of the first version, with the first step, with the
    second too, and so on. job: the lab's run."""
    if data.quick():
        steps = dict([*steps.items()][:3])
    variants = {"first.py": first}
    so_far = first
    for name, change in steps.items():
        so_far = {**so_far, **change}
        variants[f"+ {name}"] = so_far
    ranks = lab("06").module("steps").processes(variants)
    done = job(script="../05_horovod/tune.py", lab="12_capstone",
               ranks=ranks, threads=1, bind="none", echo=False,
               variants=variants, rounds=rounds, batch_per_rank=8)
    return Comparison(done.records["metrics.runs"].iloc[0],
                      metric="slices/s, all time counted")


def over_seeds(job, versions: dict, seeds: int = 5):
    """Run each version once with each seed, in turns; the records of all.

    The order changes from seed to seed, so that none is always the first.
    """
    if data.quick():
        seeds = 1
    found = []
    for seed in progress.bar(range(seeds), total=seeds, unit="seed"):
        names = list(versions)
        for name in names if seed % 2 == 0 else reversed(names):
            done = job(**versions[name], seed=seed, echo=False)
            found.append(done.records.assign(variant=name))
    return pd.concat(found, ignore_index=True)
