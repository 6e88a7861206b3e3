"""The kinds of 01_onednn compared: in turns within one job, what bounds their
gain, and a summary beside published figures."""

from math import inf, nan
from statistics import geometric_mean

import pandas as pd

from scaleout import compare, machine, settings
from scaleout.course.pytorch import missing, python

# What turns.py calls a kind, and what a reader does.
NAMES = {
    "default": "default",
    "onednn": "oneDNN",
    "onednn+fused": "oneDNN, fused",
    "onednn+eager": "oneDNN, eager",
    "torch": "PyTorch",
    "torch+channels_first": "PyTorch, channels first",
    "torch+compiled": "PyTorch, compiled",
}
# An Intel talk on deep learning at scale with distributed frameworks, 2019:
# ResNet-50, batch 16, in images/s; the slide names no machine.
DECK19 = {"default": 3.84, "MKL-DNN": 17.69}
# PRACE, Best Practice Guide Deep Learning, 2019, table 13: one network, which
# it does not name, on 128 nodes, in seconds an epoch.
PRACE = {"Keras": 85.0, "TensorFlow": 18.0}


class Starts:
    """turns.py, which is started anew for each round of a comparison."""

    def __init__(self, lab, kinds: list[str]) -> None:
        self.name, self.folder = lab.name, lab.folder
        self.script = lab.folder / "side" / "turns.py"
        self.lab, self.kinds = lab, kinds
        self.turns = {kind: [] for kind in kinds}
        self.count = 0

    def turn(self, kind: str, **how) -> pd.DataFrame:
        """What a turn of this kind gave, of this start or of the next."""
        if not self.turns[kind]:
            self._start(how)
        return self.turns[kind].pop()

    def _start(self, how: dict) -> None:
        """Give each kind a turn, and the first of them two."""
        twice = settings.rounds(2) == 2
        ranks = [self.kinds[0], *self.kinds] if twice else [*self.kinds]
        # Every second start runs backwards.
        ranks = ranks[::-1] if self.count % 2 else ranks
        torch = any(kind.startswith("torch") for kind in ranks)
        done = self.lab.run(
            script="side/turns.py", ranks=len(ranks), kinds=ranks, bind="none",
            threads=machine.usable_cores(), echo=False,
            torch=python() if torch else None, **how)
        self.count += 1
        rates = done.records[["variant", "rate", "rate_unit"]]
        for kind in self.kinds:
            own = rates[rates.variant == kind]
            self.turns[kind] = [own.iloc[[row]] for row in range(len(own))]


def in_turns(lab, kinds: list[str], rounds: int = 5, name: str = "", **how):
    """Compare kinds of a step, the first of them twice a round. A round is a
    start of turns.py, so that an interval knows how starts scatter, too.

    name: of the comparison; how: flags of turns.py.
    """
    variants = {NAMES[kind]: {"kind": kind} for kind in kinds}
    return compare(Starts(lab, kinds).turn, variants, rounds=rounds,
                   name=name, **how)


def with_pytorch(kinds: list[str], torch: list[str]) -> list[str]:
    """Add PyTorch's kinds where it is; else say how to get it."""
    if python() and not settings.quick():
        return [*kinds, *torch]
    print(missing())
    return kinds


def of_the_roof(rate: float, job, gflops: float) -> float:
    """What share of the roof's speed a rate takes; job: a record."""
    return rate * job["metrics.flops_per_image"] / 1e9 / gflops


def room(used: float, gflops: float) -> str:
    """Say how far the default kernels are from the roof."""
    told = (f"The default kernels use {used:.2f} of the roof, "
            f"{gflops:,.0f} GFLOP/s: ")
    if used >= 1:
        return f"{told}other programs were busy meanwhile. Measure it again."
    return f"{told}kernels at the roof would be {1 / used:.1f} times as fast."


def beside_2019(used: float) -> str:
    """Say whether a gain of 2019 can come again, where the default kernels
    use this share of the roof."""
    if used >= 1:
        return ""
    then = DECK19["MKL-DNN"] / DECK19["default"]
    if used * then > 1:
        return (f"[DECK19] gained {then:.1f}. That cannot be repeated here: "
                "these default kernels use more of the roof than those of "
                "2019 did.")
    return f"[DECK19] gained {then:.1f}, and there is room for that here."


def moved(table) -> str:
    """Say what the reorders of a step take, and what they move."""
    if table.empty:
        return "This step needed no reorder."
    told = f"Reorders take {100 * table.share.sum():.1f} % of oneDNN's time. "
    if "images" in set(table.moved):
        return f"{told}Some move images: not all these kernels read NHWC."
    return (f"{told}They move weights alone, and no image: these kernels read "
            "NHWC as it is.")


def two_networks(small, used: float, summary, eigen: float) -> str:
    """Say what oneDNN brings the small network and ResNet-50.

    small: how many times as fast as the default kernels, which use this share
    of the roof; eigen: its share of a step of ResNet-50 with oneDNN.
    """
    kinds = summary.set_index("environment")
    large, fused = kinds.loc["oneDNN"], kinds.loc["oneDNN, fused"]
    told = (f"oneDNN makes the small network {small.middle:.2f} times as "
            f"fast, and ResNet-50 {large['speed-up']:.2f} times.")
    if small.low > large["high"]:
        told += (f" In ResNet-50, Eigen still runs {100 * eigen:.0f} % of a "
                 "step; in the small network its share was not measured.")
    told += (f" With oneDNN, the small network uses "
             f"{used * small.middle:.2f} of the roof, ResNet-50 "
             f"{large['of the roof']:.2f}, and with your layer "
             f"{fused['of the roof']:.2f}")
    left = f"{1 / fused['of the roof']:.1f}"
    if float(left) > 1:
        told += f": the roof leaves room for another {left}"
    return f"{told}."


def beside_bound(gain, most: float) -> str:
    """Say how a measured gain stands to the most that the profile allows."""
    if gain.low > most:
        return (f"That is more than the {most:.2f} of the profile: your "
                "layer computes the ReLU behind it, too.")
    if gain.high < most:
        low, middle, high = (100 * (1 - 1 / ratio) for ratio in
                             (gain.low, gain.middle, gain.high))
        return (f"That saves {middle:.0f} % of a step ({low:.0f} to "
                f"{high:.0f}), of the {100 * (1 - 1 / most):.0f} % that batch "
                "normalisation took: the rest is your operation's own time. "
                "(The profile ran operations one by one, this comparison does "
                "not.)")
    return f"The {most:.2f} of the profile lies in the interval."


def pytorch(result) -> None:
    """Say what was found of PyTorch, where it took part."""
    for name, other in (("PyTorch", "oneDNN"),
                        ("PyTorch, channels first", "PyTorch"),
                        ("PyTorch, compiled", "PyTorch")):
        if name in result.variants:
            print(result.sentence(name, other))


def summary(result, job, gflops: float):
    """Make the executive summary of a comparison of kernels, with figures
    that others published below it; job: a record of the same network.

    A rate is that of the default kernels (its geometric mean) times the
    ratio, so that whoever divides gets the ratio that is printed.
    """
    runs = result.runs
    default = geometric_mean(runs[runs.variant == "default"].value)
    rows = []
    names = [result.baseline, *result.variants]
    for name in sorted(names, key=lambda name: name != "default"):
        ratio, low, high = _beside_default(result, name)
        rows.append({
            "environment": name,
            "Network": "ResNet-50",
            "Batch size": job.batch_per_rank,
            "images/s": default * ratio,
            "speed-up": ratio,
            "low": low,
            "high": high,
            "of the roof": of_the_roof(default * ratio, job, gflops),
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
