"""The figures of 10_input: the roofline of a step, who waits for images, what
each step is worth, four formats of the same images, and what one server can
give."""

import matplotlib.pyplot as plt
import numpy as np

from scaleout.base.words import count, rounded
from scaleout.comparisons.intervals import (
    LEVEL,
    ROUNDS,
    Ratio,
    between,
    verdict,
)
from scaleout.plots import look, primitives

PARTS = {
    "wait_s": ("waits for images", {"color": look.MIDDLE}),
    "compute_s": ("computes", {"color": look.DARK}),
    "others_s": ("waits for other ranks", look.WAITING),
}
WAYS = {
    "one file per image": ("one file\nper image", 1),
    "from shards": ("shards", 0),
    "staged first": ("a copy\nper node", 4),
    "staged": ("every later\nepoch", 3),
}
FAR = 0.1  # from the line of the roofline; further is said
SERVED_S = 1e-3  # less is no work for the server


@look.style
def input_roofline(records, guess: float | None = None):
    """Draw the time of a step over that of its compute: max(input, compute)
    as a line, jobs as points, and what is far from the line by name."""
    steps: dict[float, list] = {}  # milliseconds of compute: whole steps
    for frame in records:
        for _, row in frame.iterrows():
            steps.setdefault(float(row["metrics"]["step_ms"]), []).extend(
                1e3 * seconds for seconds in row["metrics"]["turns_s"])
    alone = float(np.median(steps.pop(0)))
    figure, axes = plt.subplots(figsize=(7, 4.4))
    ends = [0.7 * min(steps), 1.4 * max(steps)]
    every = np.geomspace(*ends, 100)
    primitives.ideal(axes, every, np.maximum(alone, every),
                     "max(input, compute)")
    computes = sorted(steps)
    middle = primitives.line(
        axes, computes, [steps[compute] for compute in computes],
        "measured with the imitated device (median)", linestyle="")
    off = {compute: step / max(alone, compute) - 1
           for compute, step in zip(computes, middle, strict=True)}
    far = {compute: by for compute, by in off.items() if abs(by) > FAR}
    for compute, step in zip(computes, middle, strict=True):
        if compute in far:
            axes.annotate(f"{far[compute]:+.0%}".replace("%", " %"),
                          (compute, step), (0, 10), ha="center",
                          textcoords="offset points", fontsize=9)
    if guess is not None and ends[0] < guess < ends[1]:
        look.guess_line(axes, guess, upright=True, unit="ms")
    elif guess is not None:
        axes.plot([], [], linestyle="",
                  label=f"your guess: {guess:g} ms (outside the figure)")
    axes.set(xscale="log", yscale="log", xlim=ends,
             xlabel="compute time per step (ms)", ylabel="step time (ms)")
    top = 1.6 * max(alone, *(max(each) for each in steps.values()))
    axes.set_ylim(0.4 * min(alone, *middle), top)
    low = axes.get_ylim()[0]
    for x, limit in ((np.sqrt(ends[0] * alone), "input"),
                     (np.sqrt(alone * ends[1]), "compute")):
        if ends[0] < alone < ends[1]:
            axes.text(x, 1.1 * low, f"{limit} is\nthe limit", ha="center",
                      bbox={"facecolor": "white", "edgecolor": "none"})
    axes.set_xticks(computes, [f"{compute:g}" for compute in computes])
    ticks = [tick for tick in (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)
             if low <= tick <= top]
    axes.set_yticks(ticks, [str(tick) for tick in ticks])
    axes.minorticks_off()
    each = ", ".join(f"{compute:g} ms: {rounded(step)} ms"
                     for compute, step in zip(computes, middle, strict=True))
    said = ("More than 10 % off the line: "
            f"{', '.join(f'{compute:g} ms' for compute in far)}." if far else
            "All points are within 10 % of the line.")
    return look.finish(
        figure, f"The input alone takes {rounded(alone)} ms a step. {said}",
        f"Step time by compute time: {each}.", legend=2)


@look.style
def waits(records, guess: float | None = None):
    """Draw what a step of each rank consists of: it waits for its images, it
    computes, it waits for other ranks."""
    names = []
    rows = []
    for frame in records:
        for _, row in frame.iterrows():
            ranks = row["metrics"]["shares"]
            for rank, seconds in enumerate(ranks):
                several = f"\nrank {rank}" * (len(ranks) > 1)
                names.append(row["variant"] + several)
                whole = sum(seconds[part] for part in PARTS)
                rows.append({part: 100 * seconds[part] / whole
                             for part in PARTS})
    figure, axes = plt.subplots(figsize=(7, 1.9 + 0.42 * len(rows)))
    primitives.stacked(axes, rows, PARTS, width=0.75)
    for place, row in enumerate(rows):
        paper = {"facecolor": "white", "edgecolor": "none", "pad": 1}
        axes.text(1, place, f"{row['wait_s']:.0f} %", va="center", fontsize=9,
                  bbox=paper)
    if guess is not None:
        axes.axvline(guess, color="black", linestyle=":", linewidth=2,
                     label=f"your guess: {guess:g} %")
    axes.set_yticks(range(len(names)), names, fontsize=9)
    axes.set(xlabel="share of a step (%)", xlim=(0, 100))
    each = [f"{name}: {row['wait_s']:.0f} %".replace("\n", ", ")
            for name, row in zip(names, rows, strict=True)]
    without = [row["wait_s"] for name, row in zip(names, rows, strict=True)
               if "one-batch" in name]
    made = [row["wait_s"] for name, row in zip(names, rows, strict=True)
            if "one-batch" not in name]
    return look.finish(
        figure, f"A rank waits for images for {_range(made)} % of a step; "
        f"without making new images, for {_range(without)} %.",
        f"{'; '.join(each)}.", legend=2)


def _range(values) -> str:
    """Say the least and the most of some percentages."""
    low, high = (f"{each(values):.0f}" for each in (min, max))
    return low if low == high else f"{low} to {high}"


def each_step(tuned) -> tuple[list[tuple], Ratio]:
    """Compare each pipeline with the one before it, and the last with the
    first: all from the same rounds, so that the steps multiply to the whole.

    Rounds in which any run was disturbed are left out, where enough remain.
    The intervals of the steps hold together (Bonferroni).
    """
    names = [tuned.baseline, *tuned.variants]
    runs = tuned.runs.assign(value=np.log(tuned.runs["value"]))
    rates = np.exp(runs.pivot_table("value", "round", "variant")[names])
    off = {round_ for round_, _, _ in tuned.found.disturbed}
    clean = [at for at in range(len(rates)) if at not in off]
    if len(clean) >= ROUNDS:
        rates = rates.iloc[clean]
    level = 1 - (1 - LEVEL) / len(tuned.variants)
    steps = [(name, before, between(rates[name], rates[before], level))
             for before, name in zip(names, names[1:], strict=False)]
    return steps, between(rates[names[-1]], rates[names[0]])


def all_steps(tuned) -> str:
    """Say what all steps together are worth."""
    _, total = each_step(tuned)
    if tuned.rounds < ROUNDS:
        return ("All four steps: unclear after "
                f"{count(tuned.rounds, 'round')}; it takes {ROUNDS}.")
    return f"All four steps: {_found(tuned, total, tuned.baseline)}"


def sentences(tuned) -> str:
    """Say of each step what it was worth to the one before it."""
    if tuned.rounds < ROUNDS:
        return (f"What each step is worth: unclear after "
                f"{count(tuned.rounds, 'round')}; it takes {ROUNDS}.")
    steps, _ = each_step(tuned)
    return "\n".join(f"{name}: {_found(tuned, ratio, before)}"
                     for name, before, ratio in steps)


def _found(tuned, ratio: Ratio, before: str) -> str:
    """Say a verdict, and how many times as fast."""
    return (f"{verdict(ratio, tuned.noise)}, "
            f"{ratio.middle:.2f} times as fast as {before.lstrip('+ ')} "
            f"({ratio.low:.2f} to {ratio.high:.2f}).")


@look.style
def step_waterfall(tuned, guess: float | None = None):
    """Draw how many times as fast as the naive pipeline each one is, and what
    each step adds to the one before it, with its 95 % interval."""
    figure, axes = plt.subplots(figsize=(7.4, 4.4))
    steps, total = each_step(tuned)
    shown = {name: (ratio, f"{ratio.middle:.2f} times")
             for name, _, ratio in steps}
    known = tuned.rounds >= ROUNDS
    level, top = primitives.waterfall(
        axes, shown, fmt="none", label="95 % interval of a step" * known)
    last = len(steps) + 1
    axes.bar(last, level, color=look.DARK, **primitives.STEP)
    axes.annotate(f"{total.middle:.2f} times", (last, level), (0, 5),
                  ha="center", textcoords="offset points", fontsize=9)
    look.guess_line(axes, guess, unit="times")
    axes.set_xticks(range(last + 1), [tuned.baseline, *shown, "all four"])
    axes.set(ylabel="speed (naive pipeline = 1)",
             ylim=(0, 1.15 * max(level, top, guess or 0)))
    each = " ".join(sentences(tuned).splitlines())
    return look.finish(figure, all_steps(tuned), each, legend=2)


@look.style
def format_rates(records, guess: str | None = None):
    """Draw how many images are read in a second from each format, cold and
    warm, in order and shuffled."""
    orders = ("in order", "shuffled")
    figure, panels = primitives.panels(orders, (7.4, 4))
    jobs = {(row["metrics"]["order"], row["metrics"]["cache"],
             row["variant"]): row for _, row in records.iterrows()}
    forms = list(dict.fromkeys(records["variant"]))
    names = [f"{form}\n(" + count(
        jobs["in order", "cold", form]["metrics"]["files"], "file") + ")"
        for form in forms]
    said = []
    every = []
    for order, axes in panels.items():
        for nth, (cache, fill) in enumerate((("cold", "white"),
                                             ("warm", look.DARK))):
            middle = []
            for place, form in enumerate(forms):
                row = jobs[order, cache, form]
                rates = [row["metrics"]["images"] / seconds
                         for seconds in row["step_s"]]
                middle.append(float(np.median(rates)))
                every += rates
                primitives.dots(axes, [place + 0.3 * nth - 0.15], [rates],
                                color=look.DARK)
                said.append(f"{form}, {order}, {cache}: {middle[-1]:,.0f}")
            axes.plot(np.arange(len(forms)) + 0.3 * nth - 0.15, middle,
                      linestyle="", marker="so"[nth], markersize=9,
                      markerfacecolor=fill, markeredgecolor=look.DARK,
                      label=f"{cache} (median)")
        axes.set_xticks(range(len(forms)), names, fontsize=8)
        axes.set(yscale="log", xlim=(-0.6, len(forms) - 0.4))
    low, high = min(every) / 2, 1.5 * max(every)
    ticks = [digit * 10**power for power in range(2, 8) for digit in (1, 3)
             if low < digit * 10**power < high]
    panels["in order"].set_ylim(low, high)
    panels["in order"].set_yticks(ticks, [f"{tick:,}" for tick in ticks])
    for axes in panels.values():
        axes.minorticks_off()
    look.guess_name(panels["shuffled"], forms, guess, 0.06)
    panels["in order"].set_ylabel("images read (images/s)")
    return look.finish(figure, _fastest_form(
        {form: jobs["shuffled", "cold", form]["step_s"] for form in forms}),
        f"Images/s: {'; '.join(said)}.", legend=3)


def _fastest_form(seconds: dict[str, list]) -> str:
    """Say which format is read fastest cold and shuffled, if one always is."""
    first, *others = sorted(seconds, key=lambda form: np.median(seconds[form]))
    if others and max(seconds[first]) > min(min(seconds[form])
                                            for form in others):
        return ("Cold and shuffled, none of our readers was fastest in every "
                f"pass; by the median it is that of {first}.")
    return (f"Cold and shuffled, our reader of {first} is the fastest, even "
            "in its slowest pass.")


@look.style
def one_server(records, guess: float | None = None):
    """Draw the seconds of an epoch by way of one metadata server, with one
    data server and with several, and how far the formula is from them."""
    rows = [row for _, row in records.iterrows()]
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 4.8),
                                         width_ratios=(3, 2))
    bars: dict[int, dict] = {}  # data servers: a bar's name: seconds
    middle = {}
    for row in rows:
        job = row["metrics"]
        servers = int(job["data_servers"])
        name = (f"{WAYS[row['variant']][0]}\n"
                f"{count(int(row['ranks']), 'rank')}\n"
                f"{count(int(job['opens']), 'open')}")
        bars.setdefault(servers, {})[name] = list(row["step_s"])
        middle[row["variant"], int(row["ranks"]), servers] = float(
            np.median(row["step_s"]))
    width = 0.8 / len(bars)
    for nth, (servers, seconds) in enumerate(bars.items()):
        primitives.bars(left, seconds, shift=width * (nth - len(bars) / 2
                                                      + 0.5),
                        width=width, label=count(servers, "data server"),
                        looks=look.FILLS[nth:nth + 1])
    left.tick_params(axis="x", labelsize=7)
    ranks = max(int(row["ranks"]) for row in rows)
    few, many = min(bars), max(bars)
    files, shards = ({servers: middle[way, ranks, servers]
                      for servers in bars}
                     for way in ("one file per image", "from shards"))
    if guess is not None:
        left.axhline(files[many] / guess, color=look.MIDDLE, linestyle=":",
                     linewidth=2, label=f"your guess: {guess:g} times")
    left.set(ylabel="time of an epoch (s)",
             ylim=(0, 1.1 * max(max(seconds) for each in bars.values()
                                for seconds in each.values())))
    served = [row for row in rows if row["metrics"]["model_s"] > SERVED_S]
    model = [row["metrics"]["model_s"] for row in served]
    off = max(abs(float(np.median(row["step_s"])) / s - 1)
              for row, s in zip(served, model, strict=True))
    ends = np.array([0.7 * min(model), 1.4 * max(model)])
    right.fill_between(ends, 0.8 * ends, 1.2 * ends, color=look.PALE,
                       label="within 20 %")
    right.plot(ends, ends, "--", color=look.GREY)
    for way, (name, nth) in WAYS.items():
        points = [(s, each) for row, s in zip(served, model, strict=True)
                  for each in row["step_s"] if row["variant"] == way]
        if points:
            own = {**look.LINES[nth], "linestyle": "", "markersize": 6}
            right.plot(*zip(*points, strict=True),
                       label=name.replace("\n", " "), **own)
    right.set(xscale="log", yscale="log", ylabel="measured (s)",
              xlabel="predicted by the formula (s)")
    right.set_title(f"The formula is at most {100 * off:.0f} % off",
                    fontsize=10)
    each = "; ".join(f"{way}, {count(ranks, 'rank')}, "
                     f"{count(servers, 'data server')}: {rounded(s)} s"
                     for (way, ranks, servers), s in middle.items())
    title = (f"With {count(many, 'data server')}, shards are "
             f"{rounded(files[many] / shards[many])} times as fast as one "
             "file per image.")
    if few < many:
        title += (f" From {few} to {many}, files become "
                  f"{rounded(files[few] / files[many])} times as fast, and "
                  f"shards {rounded(shards[few] / shards[many])} times.")
    return look.finish(
        figure, title, f"Seconds of an epoch: {each}. The formula is "
        f"at most {100 * off:.0f} % off.",
        legend=4)
