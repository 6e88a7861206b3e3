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
    fewest = {}
    for nth, per in enumerate(("tensor", "channel")):
        own = part[part.index.str.endswith(per)]
        bits = [int(name.split()[0]) for name in own.index]
        percent = 100 * own["metrics.accuracy"].astype(float)
        off = 100 * own["metrics.off"].map(np.mean)
        primitives.line(left, bits, percent, f"per {per}", nth)
        primitives.line(right, bits, off, f"per {per}", nth)
        enough = [b for b, p in zip(bits, percent, strict=True)
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
    ends = " and ".join(f"{n} bits per {per}" for per, n in fewest.items())
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
                     "right. Compared seed by seed, ")
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
    kib = part["metrics.bytes"] / 1024
    percent = {f"{name}\n{size:,.0f} KiB".replace(", ", ",\n"): [100 * share]
               for name, size, share in zip(part["variant"], kib,
                                            part["metrics.accuracy"],
                                            strict=True)}
    figure, axes = plt.subplots(figsize=(7.5, 4))
    grey = {"color": look.GREY, "edgecolor": look.DARK}
    primitives.bars(axes, percent, lambda value, first: f"{value:.1f} %",
                    looks=[grey, *look.FILLS[:1] * (len(percent) - 1)])
    (fp32,) = next(iter(percent.values()))
    axes.axhline(fp32, color=look.GREY, linestyle="--", linewidth=1)
    if guess is not None:
        dark = look.find_name(list(percent), "dark") or 0
        look.guess_star(axes, dark, guess, f"{guess:g} %", color=look.MIDDLE)
    axes.set(ylabel="test accuracy (%)", ylim=(0, 112))
    axes.tick_params(axis="x", labelsize=9)
    images = int(part["metrics.images"].iloc[0])
    title = (f"The int8 files have {kib[1:].min() / kib.iloc[0]:.2f} of the "
             f"size; one image more or less is {100 / images:.2f} points.")
    each = "; ".join(f"{' '.join(name.split())}: {value:.1f} %"
                     for name, (value,) in percent.items())
    return look.finish(figure, title, f"Test images right: {each}.",
                       legend=1 if guess is not None else 0)


@look.style
def ladder(table, units, guess: float | None = None):
    """Draw rates over instruction sets and number formats as a map: white
    where this machine lacks a step."""
    times = table.copy()
    for what in units:
        own = [name for name in table.columns if name.startswith(what)]
        first = table[f"{what} fp32"].dropna()
        times[own] = table[own] / (first.iloc[0] if len(first) else np.nan)
    values = times.to_numpy(float)
    top = max(2.0, float(np.nanmax(values)))
    size = (2.8 + 0.85 * table.shape[1], 1.9 + 0.55 * len(table))
    figure, axes = plt.subplots(figsize=size)
    picture = axes.imshow(
        values, aspect="auto", cmap=mpl.colors.LinearSegmentedColormap
        .from_list("times", [look.PALE, look.LIGHT, look.DARK]),
        norm=mpl.colors.LogNorm(min(1.0, np.nanmin(values)), top))
    steps = []
    for row, step in enumerate(table.index):
        missing = table.loc[step].isna().all()
        steps.append(f"{step} (not measured)" if missing else step)
        for column, value in enumerate(values[row]):
            known = not np.isnan(value)
            text = "" if missing else "no such\nformat"
            if known:
                text = f"{value:.1f}x\n{rounded(table.iloc[row, column])}"
            axes.text(column, row, text, ha="center", va="center", fontsize=9,
                      color="white" if known and value > top**0.65
                      else "black")
    columns = []
    for name in table.columns:
        what, number = name.split()
        unit = units[what]
        if number == "int8":
            unit = unit.replace("FLOP", "OP")
        columns.append(f"{what}\n{number}\n({unit})")
    axes.set_xticks(range(len(columns)), columns, fontsize=9)
    axes.set_yticks(range(len(steps)), steps, fontsize=9)
    axes.invert_yaxis()
    axes.grid(False)
    bar = figure.colorbar(picture, ax=axes,
                          label="times as fast as fp32 on the lowest step")
    plain = mpl.ticker.FuncFormatter(lambda value, _: f"{value:g}")
    bar.ax.yaxis.set_major_formatter(plain)
    bar.ax.yaxis.set_minor_formatter(plain)
    every = times.stack().dropna()
    products = times["GEMM int8"].dropna()
    title = (f"On {products.index[-1]}, the int8 product is "
             f"{products.iloc[-1]:.1f} times as fast as fp32 on the lowest "
             "step")
    if guess is not None:
        title += f" (your guess: {guess:g}x)"
    each = ", ".join(f"{step} {name} {value:.1f}x"
                     for (step, name), value in every.items())
    return look.finish(
        figure, f"{title}.",
        f"Times as fast as fp32 on the lowest step: {each}.")


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
