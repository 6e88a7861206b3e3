"""The figures of 08_precision: few bits, small gradients, instruction sets
and number formats, requests that arrive at several processes."""

from textwrap import fill

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np

from scaleout import Comparison
from scaleout.base.words import rounded
from scaleout.plots import look, primitives


@look.style
def few_bits(records, guess: float | None = None):
    """Draw how many digits are right, and how far off the weights are, over
    the bits of whole numbers."""
    part = records[records["metrics.part"] == "int8"].set_index("variant")
    plain = 100 * float(part.loc["fp32", "metrics.accuracy"])
    figure, (left, right) = plt.subplots(1, 2, figsize=(8, 4))
    fewest = {}  # bits, and how many points below fp32
    for nth, per in enumerate(("tensor", "channel")):
        own = part[part.index.str.endswith(per)]
        bits = [int(name.split()[0]) for name in own.index]
        percent = 100 * own["metrics.accuracy"].astype(float)
        off = 100 * own["metrics.off"].map(np.mean)
        primitives.line(left, bits, percent, f"per {per}", nth)
        primitives.line(right, bits, off, f"per {per}", nth)
        enough = [(b, plain - p) for b, p in zip(bits, percent, strict=True)
                  if p > plain - 5]
        if enough:
            fewest[per] = min(enough)
    primitives.ideal(left, [min(bits), max(bits)], [plain] * 2,
                     f"fp32: {plain:.1f} %")
    look.guess_line(left, guess, upright=True, unit="bits")
    for axes in (left, right):
        axes.set_xlabel("bits per number")
        axes.set_xticks(bits)
        axes.invert_xaxis()
    left.set(ylabel="digits classified correctly (%)", ylim=(0, 103))
    right.set(ylabel="error of the weights\n(% of their spread)",
              yscale="log")
    ends = " and ".join(f"{n} bits per {per} ({less:.1f} points less)"
                        for per, (n, less) in fewest.items())
    title = "No width tried comes within five points of fp32."
    if fewest:
        title = f"Within five points of fp32: down to {ends}."
    return look.finish(figure, title, legend=4)


@look.style
def loss_curves(records, guess: float | None = None):
    """Draw the loss over the steps in each number format, and how many test
    images are right with each seed."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(8, 4),
                                         width_ratios=[1.5, 1])
    names = []
    found = []
    for nth, (_, row) in enumerate(records.iterrows()):
        losses = np.array(row["metrics.losses"], float)  # (seeds, steps)
        width = max(1, losses.shape[1] // 30)
        smooth = np.array([np.convolve(each, np.ones(width) / width, "valid")
                           for each in losses])
        steps = np.arange(smooth.shape[1]) + width
        primitives.line(left, steps, smooth.mean(axis=0), row["metrics.how"],
                        nth, marker="", linewidth=2)
        own = look.LINES[nth % len(look.LINES)]
        left.fill_between(steps, smooth.min(axis=0), smooth.max(axis=0),
                          color=own["color"], alpha=0.15, linewidth=0)
        percent = 100 * np.array(row["metrics.accuracy"], float)
        right.plot([nth] * len(percent), percent,
                   **{**own, "linestyle": "", "alpha": 0.8})
        if nth == 0:
            first = percent
            title = (f"fp32: {spread(percent, '.1f')} % of the test images "
                     "right. " + ("Compared seed by seed, "
                                  if len(percent) > 1 else "With one seed, "))
        else:
            verb = "by" if found else "differs by"
            found.append(f"{row['metrics.how']} {verb} "
                         f"{spread(percent - first, '+.1f')}")
        lost = row.get("metrics.lost")
        zeros = "" if lost is None else f"{100 * lost:.0f} %\nbecame 0"
        names.append(f"{fill(row['metrics.how'], 9)}\n{zeros}".strip())
    if guess is not None:
        look.guess_star(right, min(2, len(names) - 1), guess, f"{guess:g} %")
    left.set(xlabel="training step", ylabel="loss (cross-entropy)",
             ylim=(0, None))
    right.set_xticks(range(len(names)), names, fontsize=8)
    right.set(ylabel="test accuracy (%)", xlim=(-0.5, len(names) - 0.5))
    title += f"{'; '.join(found)} points."
    return look.finish(figure, title, legend=4)


def spread(values: np.ndarray, digits: str) -> str:
    """From the lowest to the highest; one number where they are equal."""
    return " to ".join(dict.fromkeys(f"{end:{digits}}" for end in
                                     (values.min(), values.max())))


@look.style
def calibrations(records, guess: float | None = None):
    """Draw how many test images are right in fp32 and, calibrated in several
    ways, in int8."""
    part = records[records["metrics.part"] == "models"]
    part = part.set_index("variant")
    percent = 100 * part["metrics.accuracy"].astype(float)
    kib = part["metrics.bytes"] / 1024
    names = [f"{name} ({size:,.0f} KiB)" for name, size in kib.items()]
    figure, axes = plt.subplots(figsize=(7.5, 3.6))
    fp32 = percent.iloc[0]
    looks = [{"color": look.GREY}, *(
        look.FILLS[1 if value > fp32 - 5 else 3] for value in percent[1:])]
    primitives.bars(axes, dict(zip(names, [[p] for p in percent],
                                   strict=True)),
                    lambda value, first: f"{value:.1f} %", looks=looks,
                    flat=True)
    axes.axvline(fp32, color=look.GREY, linestyle="--", linewidth=1)
    axes.axvline(10, color=look.GREY, linestyle=":", linewidth=1.5,
                 label="one digit for all images: about 10 %")
    if guess is not None:
        dark = look.find_name(names, "100 times") or 0
        look.guess_star(axes, guess, dark, f"{guess:g} %",
                        color=look.MIDDLE)
    axes.set(xlabel="test images right (%)", xlim=(0, 112))
    axes.tick_params(axis="y", labelsize=9)
    broken = [f"{name.removeprefix('int8, ')}: {value:.1f} % right"
              for name, value in percent.items() if value < fp32 - 5]
    title = f"fp32: {fp32:.1f} % right. "
    title += (f"Broken by calibration: {'; '.join(broken)}." if broken
              else "No calibration costs five points.")
    each = "; ".join(f"{name}: {value:.1f} %"
                     for name, value in zip(names, percent, strict=True))
    return look.finish(figure, title, f"Test images right: {each}.",
                       legend=2)


NUMBERS = {  # of the ladder: how each format is drawn
    "fp32": {"color": look.DARK},
    "bf16": {"color": look.LIGHT},
    "int8": {"color": look.GOLD},
    "int8, sums wrong": {"color": "white", "hatch": "xxxx"},
    "int8, sums not looked at": {"color": look.PALE, "hatch": ".."},
}


@look.style
def ladder(machines, guess: float | None = None):
    """Draw a large product on each step of each machine, as times fp32 on its
    lowest step; hatched where its sums are wrong.

    machines: {name: rungs}, the reader's own first; see isa.ladders.
    """
    bars = {name: len(rungs) + 1 for name, rungs in machines.items()}
    figure, panels = plt.subplots(
        len(bars), 1, figsize=(7.5, 1.6 + 0.24 * sum(bars.values())),
        sharex=True, squeeze=False, height_ratios=list(bars.values()))
    told = []
    for axes, (name, rungs) in zip(panels[:, 0], machines.items(),
                                   strict=True):
        middles = {}
        for at, rung in enumerate(rungs):
            low, times, high = rung.times
            kind = _kind(rung)
            axes.barh(at, times, 0.75, edgecolor=look.DARK, label=kind,
                      **NUMBERS[kind])
            if np.isfinite([low, high]).all():
                axes.errorbar(times, at, xerr=[[times - low], [high - times]],
                              color="black", capsize=3, linewidth=1)
            words = f"{rung.number} {times:.1f}x{_how_wrong(rung)}"
            axes.annotate(words, (high if np.isfinite(high) else times, at),
                          (5, 0), textcoords="offset points", va="center",
                          fontsize=9)
            told.append(f"{name}, {rung.step} {words}")
            middles.setdefault(rung.step, []).append(at)
        axes.set_yticks([np.mean(own) for own in middles.values()],
                        list(middles), fontsize=9)
        axes.set_ylim(len(rungs) - 0.4, -0.6)
        axes.set_title(name, loc="left", fontsize=10)
        axes.grid(axis="y", visible=False)
    own = next(iter(machines.values()))
    top = _top(own)
    if guess is not None:
        look.guess_star(panels[0, 0], guess, own.index(top), f"{guess:g}x",
                        color=look.MIDDLE)
    panels[-1, 0].set_xlabel("times as fast as fp32 on the lowest step "
                             "of the same machine")
    panels[-1, 0].set_xlim(0, 1.15 * np.nanmax(
        [guess or 0, *(min(end, 2 * rung.times[1])
                       for rungs in machines.values() for rung in rungs
                       for end in rung.times)]))
    title = (f"{top.step}: int8 is {_times(top)} as fast as fp32 "
             f"on {own[0].step}{_how_wrong(top, long=True)}.")
    right = [_top(rungs) for rungs in list(machines.values())[1:]]
    right = [rung for rung in right if rung.wrong == 0]
    if top.wrong and right:
        title += (f" Elsewhere, {right[0].step}: {_times(right[0])}, and no "
                  "sum is wrong.")
    return look.finish(figure, title, f"{'; '.join(told)}.", legend=3)


def _top(rungs):
    """The int8 product on the highest step."""
    return [rung for rung in rungs if rung.number == "int8"][-1]


def _times(rung) -> str:
    """How many times as fast, with its interval where there is one."""
    low, middle, high = rung.times
    about = f" ({low:.1f} to {high:.1f})" if np.isfinite(high) else ""
    return f"{middle:.1f} times{about}"


def _kind(rung) -> str:
    """Which look a product has."""
    if rung.number != "int8" or rung.wrong == 0:
        return rung.number
    return ("int8, sums not looked at" if rung.wrong is None else
            "int8, sums wrong")


def _how_wrong(rung, long: bool = False) -> str:
    """How many of the sums of an int8 product are wrong, to put behind it."""
    if rung.number != "int8" or rung.wrong is None:
        return ""
    if rung.wrong == 0:
        return ", and no sum is wrong" if long else ""
    share = ("every sum is" if rung.wrong == 1 else
             f"{100 * rung.wrong:.5g} % of its sums are")
    return f",{' and' * long} {share} wrong"


def smallest_batch(streams, guess) -> None:
    """Say from which batch on one process per core is shown to give more."""
    more = [batch for batch, runs in zip(streams["metrics.batch"],
                                         streams["metrics.runs"], strict=True)
            if Comparison(runs).verdict("one per core") == "faster"]
    print(f"The smallest batch at which one per core gives more: {min(more)};"
          if more else "At no batch does one per core give more;",
          f"you said {guess}.")


@look.style
def latency(records, guess: float | None = None):
    """Draw how long requests take that come when they like, over how many
    come: by one process with all cores, and by one for each core."""
    part = records[records["metrics.part"] == "arrivals"]
    figure, axes = plt.subplots(figsize=(7.2, 4.6))
    per_s = part["metrics.per_s"].to_numpy(float)
    each = []
    for nth, way in enumerate(("one process", "one per core")):
        own = [[one for one in tried if one["way"] == way]
               for tried in part["metrics.tried"]]
        late = primitives.line(
            axes, per_s, [[one["ms_95"] for one in runs] for runs in own],
            f"{way}: 95 of 100 within", nth)
        usual = primitives.line(
            axes, per_s, [np.median([one["ms_50"] for one in runs])
                          for runs in own],
            f"{way}: half within", nth, linestyle=":", marker="")
        for load, runs, half, most in zip(part["metrics.load"], own, usual,
                                          late, strict=True):
            longest = max(one["longest"] for one in runs)
            each.append(f"{way}, {load:g} %: half within {rounded(half)} ms, "
                        f"95 of 100 within {rounded(most)} ms, longest queue "
                        f"{longest}")
    if guess is not None:
        look.guess_star(axes, per_s[-1], guess, f"{guess:g} ms")
    last = part.iloc[-1]
    found = Comparison(last["metrics.runs"], lower=True, metric="ms")
    says = {"faster": "one per core answers 95 of 100 sooner",
            "slower": "one process answers 95 of 100 sooner"}
    verdict = says.get(found.verdict("one per core"),
                       "neither way is shown to answer 95 of 100 sooner")
    axes.set(yscale="log", xlim=(0, None),
             xlabel="arrivals per second (requests of "
             f"{last['metrics.batch']} images)",
             ylabel="from arrival to answer (ms)")
    axes.yaxis.set_major_locator(mpl.ticker.LogLocator(subs=(1, 2, 5)))
    axes.yaxis.set_major_formatter("{x:,g}")
    axes.yaxis.set_minor_formatter(mpl.ticker.NullFormatter())
    return look.finish(
        figure, f"At {last['metrics.load']:g} % of what the better way can "
        f"answer, {verdict}.", f"{'; '.join(each)}.", legend=2)
