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
    "one file per image": "one file per image",
    "from shards": "shards",
    "staged first": "first a copy to each node",
    "staged": "later, from that copy",
}
REASONS = {  # why a step helps, where it is shown to
    "+ parallel": "Images are decoded two at a time, and also while another "
                  "is augmented.",
    "+ batch": "Each operation is called once for 64 images, not 64 times.",
    "+ cache": "No image is read or decoded any more.",
    "+ prefetch": "The next batch is made while the step computes.",
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
    turns = steps.pop(0)
    alone = float(np.median(turns))
    figure, axes = plt.subplots(figsize=(7, 4.4))
    ends = [0.7 * min(steps), 1.4 * max(steps)]
    every = np.geomspace(*ends, 100)
    primitives.ideal(axes, every, np.maximum(alone, every),
                     "max(input, compute)")
    axes.fill_between(every, np.maximum(min(turns), every),
                      np.maximum(max(turns), every), color=look.PALE,
                      zorder=0, label="the same by the fastest and by the "
                      "slowest turn of the input")
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
    named = ", ".join(f"{compute:g}\N{NO-BREAK SPACE}ms" for compute in far)
    said = (f"More than 10 % off the line: {named}." if far else
            "All points are within 10 % of the line.")
    return look.finish(
        figure, f"The input alone takes {rounded(alone)} ms a step. {said}",
        f"The input alone took {rounded(min(turns))} to {rounded(max(turns))} "
        f"ms. Step time by compute time: {each}.", legend=1)


def both_parts(whole, device) -> str:
    """Say how long the input and the computation of a batch take, each as the
    jobs before have measured it."""
    first = whole.iloc[0]
    ranks = first["metrics"]["shares"]
    computes = np.mean([each["compute_s"] / sum(each[part] for part in PARTS)
                        for each in ranks]) * np.median(first["step_s"])
    alone = [turn for job in device["metrics"] if job["step_ms"] == 0
             for turn in job["turns_s"]]
    return (f"The input of a batch takes {1e3 * np.median(alone):.0f} ms on "
            "two threads.\nThe network computes for "
            f"{1e3 * computes:.0f} ms on one core.")


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


def without_waiting(records) -> float:
    """Bound what any input can bring: the speed of the naive pipeline if its
    step had no wait for images, and computed as long as it does."""
    naive = records[records["variant"] == "naive"].iloc[0]
    seconds = naive["metrics"]["shares"][0]
    return 1 / (1 - seconds["wait_s"] / sum(seconds[part] for part in PARTS))


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


def sentences(tuned, most: float | None = None) -> str:
    """Say of each step what it was worth to the one before it, with the reason
    where it is shown to be faster; how large the noise is; and how much of
    the most that any input can bring has been reached."""
    if tuned.rounds < ROUNDS:
        return (f"What each step is worth: unclear after "
                f"{count(tuned.rounds, 'round')}; it takes {ROUNDS}.")
    steps, total = each_step(tuned)
    said = []
    for name, before, ratio in steps:
        said.append(f"{name}: {_found(tuned, ratio, before)}")
        if verdict(ratio, tuned.noise) == "faster":
            said.append(f"    {REASONS[name]}")
    said.append("Two equal pipelines could differ by as much as "
                f"{100 * tuned.noise:.0f} % in {tuned.rounds} rounds.")
    if most is not None:
        said.append(f"All four: {total.middle:.2f} times, {_of(total, most)}.")
    return "\n".join(said)


def _of(total: Ratio, most: float) -> str:
    """Hold a gain against its bound, which comes from another job."""
    if total.middle <= most:
        return f"of at most {most:.2f} without any wait"
    more = f"more than the bound of {most:.2f} from the job before. "
    if total.low <= most:
        return f"{more}Its interval holds the bound"
    return f"{more}The naive pipeline waited longer here than there"


def _found(tuned, ratio: Ratio, before: str) -> str:
    """Say a verdict, and how many times as fast."""
    return (f"{verdict(ratio, tuned.noise)}, "
            f"{ratio.middle:.2f} times as fast as {before.lstrip('+ ')} "
            f"({ratio.low:.2f} to {ratio.high:.2f}).")


@look.style
def step_waterfall(tuned, guess: float | None = None,
                   most: float | None = None):
    """Draw how many times as fast as the naive pipeline each one is, what
    each step adds to the one before it, with its 95 % interval and the noise,
    and the most that any input can bring."""
    figure, axes = plt.subplots(figsize=(7.4, 4.6))
    steps, total = each_step(tuned)
    known = tuned.rounds >= ROUNDS
    judged = {name: verdict(ratio, tuned.noise) if known else "unclear"
              for name, _, ratio in steps}
    shown = {name: (ratio, f"{ratio.middle:.2f} times")
             for name, _, ratio in steps}
    before = 1.0
    for place, (_, _, ratio) in enumerate(steps, 1):
        if known:
            low, high = before / (1 + tuned.noise), before * (1 + tuned.noise)
            axes.bar(place, high - low, bottom=low, width=0.94,
                     color=look.PALE, zorder=0, label="noise: two equal "
                     f"pipelines, {100 * tuned.noise:.0f} % apart"
                     if place == 1 else "")
        before *= ratio.middle
    level, top = primitives.waterfall(
        axes, shown, fmt="none",
        label="95 % interval (all four together)" * known)
    last = len(steps) + 1
    axes.bar(last, level, color=look.DARK, **primitives.STEP)
    axes.annotate(f"{total.middle:.2f} times", (last, level), (0, 5),
                  ha="center", textcoords="offset points", fontsize=9)
    for text in axes.texts:
        text.set_bbox({"facecolor": "white", "edgecolor": "none", "pad": 1})
    look.guess_line(axes, guess, unit="times")
    if most is not None:
        axes.axhline(most, color=look.GREY, linestyle="-.",
                     label=f"without any wait: {most:.2f} times")
    whole = verdict(total, tuned.noise) if known else "unclear"
    under = [f"{name}\n{said.replace(' shown', chr(10) + 'shown')}"
             for name, said in judged.items()]
    axes.set_xticks(range(last + 1), [tuned.baseline, *under,
                                      f"all four\n{whole}"], fontsize=10)
    axes.set(ylabel="speed (naive pipeline = 1)",
             ylim=(0, 1.15 * max(level, top, guess or 0, most or 0)))
    alone = [name.lstrip("+ ") for name, said in judged.items()
             if said == "faster"]
    title = all_steps(tuned)
    if known:
        title += (f" Shown to help where it was added: {', '.join(alone)}."
                  if alone else
                  " No step is shown to help where it was added.")
    each = " ".join(line.strip() for line in sentences(tuned).splitlines())
    return look.finish(figure, title, each, legend=2)


@look.style
def format_rates(records, guess: str | None = None):
    """Draw how many images are read in a second from each format, cold and
    warm, in order and shuffled."""
    orders = ("in order", "shuffled")
    figure, panels = primitives.panels(orders, (7, 5.6), down=True,
                                       sharey=True)
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
        axes.set_xticks(range(len(forms)), names)
        axes.set(yscale="log", xlim=(-0.6, len(forms) - 0.4),
                 ylabel="images/s")
    low, high = min(every) / 3, 1.5 * max(every)
    ticks = [10**power for power in range(2, 8) if low < 10**power < high]
    panels["in order"].set_ylim(low, high)
    panels["in order"].set_yticks(ticks, [f"{tick:,}" for tick in ticks])
    for axes in panels.values():
        axes.minorticks_off()
    look.guess_name(panels["shuffled"], forms, guess, 0.1)
    return look.finish(figure, _fastest_form(
        {form: jobs["shuffled", "cold", form]["step_s"] for form in forms}),
        f"Images/s: {'; '.join(said)}.", legend=3)


def starts(records) -> str:
    """Say which share of a pass goes by before its first image is there."""
    shares = []
    for _, row in records.iterrows():
        job = row["metrics"]
        if (job["order"], job["cache"]) == ("in order", "warm"):
            share = np.median(np.divide(job["first_s"], row["step_s"]))
            shares.append(f"{row['variant']} {100 * share:.0f} %")
    return ("In order and warm, so much of a pass went by before the first "
            f"image:\n{', '.join(shares)}.")


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
    data server and with several, beside what the formula says."""
    rows = [row for _, row in records.iterrows()]
    figure, axes = plt.subplots(figsize=(7.4, 5.2))
    middle = {(row["variant"], int(row["ranks"]),
               int(row["metrics"]["data_servers"])): float(
                   np.median(row["step_s"])) for row in rows}
    ways = list(dict.fromkeys((way, ranks) for way, ranks, _ in middle))
    servers = sorted({many for *_, many in middle})
    off = 0.0
    names = {}
    for row in rows:
        job = row["metrics"]
        ranks, many = int(row["ranks"]), int(job["data_servers"])
        place = ways.index((row["variant"], ranks))
        nth = servers.index(many)
        y = place + 0.34 * (nth - (len(servers) - 1) / 2)
        seconds = middle[row["variant"], ranks, many]
        names[place] = (f"{WAYS[row['variant']]}\n{count(ranks, 'rank')}, "
                        f"{count(int(job['opens']), 'open')}")
        label = count(many, "data server") if place == 0 else ""
        axes.plot(row["step_s"], [y] * len(row["step_s"]), ".",
                  color=look.DARK, markersize=3)
        axes.plot([seconds], [y], linestyle="", marker="os^Dv"[nth],
                  markersize=8, markeredgecolor=look.DARK, label=label,
                  markerfacecolor="white" if nth else look.DARK)
        axes.annotate(f"{rounded(seconds)} s", (max(row["step_s"]), y),
                      (11, 0), va="center", textcoords="offset points",
                      fontsize=9)
        if job["model_s"] > SERVED_S:
            off = max(off, abs(seconds / job["model_s"] - 1))
            axes.plot([job["model_s"]], [y], marker="|", linestyle="",
                      color="black", markersize=15, markeredgewidth=2,
                      label="the formula" if row is rows[0] else "")
    ranks = max(int(row["ranks"]) for row in rows)
    few, many = min(servers), max(servers)
    files, shards = ({each: middle[way, ranks, each] for each in servers}
                     for way in ("one file per image", "from shards"))
    if guess is not None:
        look.guess_star(
            axes, files[many] / guess, ways.index(("from shards", ranks))
            + 0.45,
            f"shards {guess:g} times as fast as files", markersize=13)
    axes.set_yticks(range(len(ways)), [names[at] for at in range(len(ways))],
                    fontsize=9)
    axes.set(xscale="log", xlabel="time of an epoch (s)",
             xlim=(min(middle.values()) / 2, 4 * max(middle.values())),
             ylim=(len(ways) - 0.5, -0.5))
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    each = "; ".join(f"{way}, {count(ranks, 'rank')}, "
                     f"{count(servers, 'data server')}: {rounded(s)} s"
                     for (way, ranks, servers), s in middle.items())
    title = (f"With {count(many, 'data server')}, shards are "
             f"{rounded(files[many] / shards[many])} times as fast as one "
             "file per image.")
    if few < many:
        title += (f" With {many} in place of {few}, shards are "
                  f"{_changed(shards[few] / shards[many])}, and files are "
                  f"{_changed(files[few] / files[many])}.")
    return look.finish(
        figure, title, f"Seconds of an epoch: {each}. The formula is "
        f"at most {100 * off:.0f} % off.", legend=2)


def _changed(times: float) -> str:
    """Say what more servers brought; no more than a tenth is not told."""
    if abs(times - 1) < FAR:
        return "about as fast as before"
    return f"{rounded(times)} times as fast"


def at_work(records) -> str:
    """Say for which share of an epoch the busier kind of server works, by the
    number of ranks that ask it for files."""
    rows = [row for _, row in records.iterrows()
            if row["variant"] == "one file per image"]
    many = max(int(row["metrics"]["data_servers"]) for row in rows)
    rows = [row for row in rows if row["metrics"]["data_servers"] == many]
    # Of several ranks the formula is what this kind of server needs.
    busy_s = max(rows, key=lambda row: row["ranks"])["metrics"]["model_s"]
    shares = [f"{100 * busy_s / np.median(row['step_s']):.0f} % with "
              f"{count(int(row['ranks']), 'rank')}" for row in rows]
    return ("A file for each image, " + count(many, "data server")
            + f": the busier kind of server works for {busy_s:.2f} s.\n"
            f"Of an epoch that is {', '.join(shares)}.")
