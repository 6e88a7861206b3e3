"""The figures of 05_horovod: what ranks learn, at which learning rate, where
the time of a step goes, and what each notebook of the day has brought."""

import re
from textwrap import fill
from types import SimpleNamespace

import matplotlib.pyplot as plt
import numpy as np
from scipy.stats import ttest_ind

from scaleout import ScaleoutError
from scaleout.base.words import count
from scaleout.plots import look
from scaleout.plots import primitives as draw

EDGE = {"edgecolor": "white", "linewidth": 0.4}
PARTS = {
    "alone_s": ("as long as a rank alone", {"color": look.DARK, **EDGE}),
    "longer_s": ("longer than a rank alone", {"color": look.MIDDLE, **EDGE}),
    "waiting_s": ("waits for the slowest",
                  {**look.NOT_ALLOWED, "linewidth": 0.4}),
    "communication_s": ("communicates", {"color": look.LIGHT, **EDGE}),
}
THIN = {"edgecolor": look.INK, "linewidth": 0.3}
PHASES = {
    "NEGOTIATE_ALLREDUCE": ("negotiated", {"color": look.PALE, **THIN}),
    "ALLREDUCE": ("packed and copied", {"color": look.GOLD, **THIN}),
}
# Of the small network: pixels of a layer's output, weights used for each.
LAYERS = [(28 * 28, 25 * 32), (14 * 14, 25 * 32 * 64), (1, 3136 * 128),
          (1, 128 * 10)]
DAY = {"default kernels": "01", "oneDNN": "01", "two ranks": "05",
       "tuned": "05"}
DEFAULT, UNBOUND = "2 ranks, cycle 1 ms", "2 ranks, unbound"
APART, LONGEST = "2 ranks, apart", "2 ranks, cycle 10 ms"
SENT = dict.fromkeys(["MPI_ALLREDUCE", "GLOO_ALLREDUCE"],
                     ("sent and added", {"color": look.LIGHT, **THIN}))


@look.style
def drifting_ranks(records):
    """Draw one weight on each rank, step by step: equal on all ranks, or
    apart for ever."""
    records = {how.replace("-", " "): rows for how, rows in records.items()}
    figure, panels = draw.panels(records, (7, 3.4))
    apart = []
    for title, axes in panels.items():
        weights = records[title]["metrics.weight"].iloc[0]
        for rank, steps in enumerate(weights):
            draw.line(axes, range(len(steps)), steps, f"rank {rank}", rank,
                      markersize=9 - 4 * rank, linewidth=2)
        axes.set_xlabel("steps (count)")
        ends = [steps[-1] for steps in weights]
        apart.append(f"{title} {max(ends) - min(ends):.2f}")
    first = next(iter(panels.values()))
    first.set_ylabel("the first weight (number)")
    first.legend(fontsize=9)
    title = f"How far apart the ranks' weights end: {', '.join(apart)}."
    return look.finish(figure, title)


@look.style
def schedules(record, guess: str | None = None):
    """Draw the learning rate of each schedule over the training, and the
    accuracy that it led to."""
    job = record["metrics"].iloc[0]
    runs = job["runs"]
    percent = {
        name: np.array([100 * run["accuracy"] for run in runs
                        if run["variant"] == name])
        for name in job["rates"]
    }
    told = {name: _mean(seeds) for name, seeds in percent.items()}
    figure, (left, right) = plt.subplots(
        1, 2, sharey=True, figsize=(7.9, 1.6 + 0.42 * len(told)),
        width_ratios=[1, 1.9])
    low = 80 if min(map(np.min, percent.values())) < 90 else 90
    highest = max(max(rates) for rates in job["rates"].values())
    for row, (name, rates) in enumerate(job["rates"].items()):
        floor = row + 0.36
        left.fill_between(np.linspace(0, 100, len(rates)), floor,
                          floor - 0.72 * np.array(rates) / highest,
                          color=look.LIGHT)
        left.axhline(floor, color=look.GREY, linewidth=0.5)
        _seeds(right, row, percent[name], low)
        right.annotate(told[name], (1.01, row), va="center", fontsize=9,
                       xycoords=("axes fraction", "data"))
    if guess is not None:
        row = look.find_name(list(told), guess)
        look.guess_star(right, 0.04, np.nan if row is None else row, guess,
                        transform=right.get_yaxis_transform())
    left.set_title(f"learning rate, up to {highest:g}", fontsize=10,
                   loc="left")
    seeds = count(len(next(iter(percent.values()))), "seed")
    right.set_title(f"{seeds}, {runs[0]['tested']:,} images", fontsize=10,
                    loc="left")
    left.set_yticks(range(len(told)), [fill(name, 26) for name in told],
                    fontsize=9)
    left.set(xlabel="part of the training (%)", xlim=(0, 100),
             ylim=(len(told) - 0.5, -0.5))
    left.grid(False)
    right.set(xlabel="accuracy (%)", xlim=(low, 100))
    large = [name for name in told if not name.startswith("batch")]
    best = max(large, key=lambda name: percent[name].mean())
    batch, _, rate = best.partition(", ")
    title = f"Highest mean with a batch of {batch}: {rate}, {told[best]} %."
    lower = [name.partition(", ")[2] for name in large
             if _apart(percent[name], percent[best])]
    if others := len(large) - 1 - len(lower):
        below = f"Lower is {'; '.join(lower)}, and " if lower else ""
        seeds = count(len(percent[best]), "seed")
        title += f" {below}{seeds} do not tell {others} others from it."
        title = title.replace(" 1 others", " another")
    values = [f"{name}: {text} %." for name, text in told.items()]
    return look.finish(figure, title, " ".join(values), legend=3)


def _mean(percent) -> str:
    """The mean over the seeds and its standard error."""
    if len(percent) < 2:
        return f"{percent.mean():.2f} ± ?"
    return f"{percent.mean():.2f} ± {_error(percent):.2f}"


def _error(percent) -> float:
    return percent.std(ddof=1) / np.sqrt(len(percent))


def _apart(one, other) -> bool:
    """Whether Welch's t-test tells the two means apart, at 5 %."""
    if min(len(one), len(other)) < 2:
        return False
    return ttest_ind(one, other, equal_var=False).pvalue < 0.05


def _seeds(axes, row, percent, low) -> None:
    """The seeds of a schedule, their mean and its error; what lies left of
    the axis stands at its end."""
    rows = row + np.linspace(-0.2, 0.2, len(percent))
    axes.scatter(np.maximum(percent, low), rows, **draw.DOT,
                 label="" if row else "a seed")
    mean = max(percent.mean(), low)
    known = len(percent) > 1 and percent.mean() > low
    error = _error(percent) if known else np.nan
    draw.interval(axes, row, mean - error, mean, mean + error, fmt="s",
                  color=look.MIDDLE, markersize=5, zorder=4,
                  label="" if row else "mean and standard error")


@look.style
def cycle_times(result, goal: float | None = None,
                guess: float | None = None):
    """Draw the parallel efficiency of two ranks over Horovod's cycle
    time."""
    values = result.runs.set_index("round").value
    name_of = result.runs.set_index("round").variant
    logs = np.log(values[name_of == result.baseline])
    alone = np.exp(logs.groupby("round").mean())
    runs = {}
    middle = {}
    left_out = {}
    for column, name in enumerate(result.variants, 2):
        match = re.search(r"cycle ([\d.]+) ms", name)
        if match:
            ms = float(match[1])
            runs[ms] = (values[name_of == name] / alone / 2).dropna()
            ratio = result.ratio(name)
            middle[ms] = ratio.middle / 2
            # A baseline that is far off takes its whole round with it.
            off = {r for r, c, _ in result.found.disturbed
                   if c in (0, 1, column)}
            if ratio.rounds < result.rounds:
                left_out[ms] = runs[ms][runs[ms].index.isin(off)]
    cycles = sorted(middle)
    figure, axes = plt.subplots(figsize=(7, 4.6))
    axes.axhline(1, color=look.GREY, linestyle="--", label="ideal")
    apart = [result.ratio(name).middle / 2 for name in result.variants
             if "apart" in name]
    for limit in apart:
        axes.axhline(limit, color=look.DARK, linestyle="-.",
                     label=f"apart: {limit:.2f}")
    if goal is not None:
        axes.axhline(goal, color=look.INK, linewidth=1.2,
                     label=f"goal: {goal:g}")
    draw.dots(axes, cycles, [runs[ms] for ms in cycles], "a run", marker="o",
              markersize=5, color="white", markeredgecolor=look.DARK, alpha=1)
    if left_out:
        draw.dots(axes, list(left_out), list(left_out.values()),
                  "far off the others: left out", marker="x", markersize=10,
                  color="black", alpha=1)
    together = "without those far off" if left_out else "all rounds together"
    axes.plot(cycles, [middle[ms] for ms in cycles], linestyle="",
              marker="_", markersize=18, markeredgewidth=3,
              color=look.MIDDLE, label=together)
    look.guess_line(axes, guess, upright=True, unit="ms")
    lowest = min(min(values) for values in runs.values())
    axes.set_xticks(cycles, [f"{ms:g}\ndefault" if ms == 1 else f"{ms:g}"
                             for ms in cycles])
    axes.set(xlabel="cycle time (ms)", ylabel="parallel efficiency of 2 ranks",
             ylim=(min(0.4, 0.95 * lowest), 1.08))
    best = max(middle, key=lambda ms: middle[ms])
    title = (f"A cycle of {best:g} ms: an efficiency of {middle[best]:.2f}, "
             "before it is measured again")
    if best != 1 in middle:
        title += f". The default, 1 ms: {middle[1]:.2f}"
    if apart:
        title += f". Ranks that train apart: {apart[0]:.2f}"
    return look.finish(figure, title, legend=3)


def second_look(search, final, tuned, goal: float) -> str:
    """Say what the search promised, what the second measurement gave, and
    whether the goal was reached."""
    first, again = search.ratio(tuned), final.ratio(tuned)
    low, middle, high = (end / 2 for end in
                         (again.low, again.middle, again.high))
    before, after = (found.ratio(APART).middle / 2
                     for found in (search, final))
    left, apart_left = again.middle / first.middle, after / before
    if left >= 1:
        change = "no less than promised"
    elif not again.high < first.low:
        change = ("less than promised, but the two intervals overlap: no "
                  "fall is shown")
    else:
        where = "" if apart_left > left**0.5 else "not "
        change = ("less than promised, and the two intervals do not overlap. "
                  "The ranks that train apart, which nobody chose, have "
                  f"{before:.2f} and then {after:.2f}, so most of the fall is "
                  f"{where}in the exchange. An interval holds for the rounds "
                  "of one job; the next job can lie outside it")
    missed = "missed" if middle < goal else "reached"
    if low < goal < high:
        missed += " in this run, but lies within the interval"
    return (f"{tuned}: the search promised an efficiency of "
            f"{first.middle / 2:.3f} ({first.low / 2:.3f} to "
            f"{first.high / 2:.3f}). Measured again it is {middle:.3f} "
            f"({low:.3f} to {high:.3f}), "
            f"{change}. The goal of {goal:g} is {missed}.")


def lost(final, tuned: str) -> str:
    """Say what two ranks lose against two that train apart, at the default
    cycle and at the tuned one."""
    losses = []
    for name in dict.fromkeys([DEFAULT, tuned]):
        share = 1 - final.between(name, APART).middle
        ms = re.search(r"cycle ([\d.]+) ms", name)[1]
        where = f"at {ms} ms, the default," if name == DEFAULT else (
            f"at {ms} ms")
        less = f"{100 * share:.0f} %" if share > 0.005 else "nothing"
        losses.append((where, less))
    (first, much), *rest = losses
    said = f"{first} two ranks lose {much} against two ranks apart"
    return said + "".join(f"; {where}, {less}" for where, less in rest)


def price(search, final, tuned: str) -> str:
    """Say what two ranks lose, and whether the cycle or the binding has
    changed that."""
    said = lost(final, tuned)
    said = [f"{said[0].upper()}{said[1:]}."]
    if tuned == DEFAULT:
        said.append("Asking less often has not paid here.")
    elif (ratio := _shown(final, tuned, DEFAULT)) > 1:
        said.append(
            f"The longer cycle alone makes {ratio:.2f} times as many "
            "images/s. Horovod asks less often: fewer messages, and fewer "
            "times that the asking thread needs the core. Which of the two "
            "counts, this does not tell.")
    else:
        said.append("This second look does not tell the two cycles apart.")
    if tuned != LONGEST and (ratio := _shown(search, LONGEST, tuned)) < 1:
        said.append(f"In the search, 10 ms was {ratio:.2f} times as fast as "
                    "the best: gradients that are ready wait for the "
                    "question.")
    ratio = _shown(final, DEFAULT, UNBOUND)
    if ratio > 1:
        said.append(f"Binding helps, too: {ratio:.2f} times, at 1 ms.")
    elif ratio < 1:
        said.append(f"Binding costs, {ratio:.2f} times at 1 ms, most likely "
                    "as Horovod's thread cannot move to a core that is free.")
    else:
        said.append("Binding is not shown to change anything.")
    return "\n".join(said)


def _shown(result, one: str, other: str) -> float:
    """How many times as fast as the other, where that is shown; else 1."""
    ratio = result.between(one, other)
    sure = ratio.low > 1 or ratio.high < 1
    return ratio.middle if sure and (
        abs(ratio.middle - 1) > result.noise) else 1.0


def tuned_ranks(versus, tuned: str, guess: float | None = None):
    """Draw two ranks, tuned and not, beside one that has two threads."""
    figure = versus.plot(guess=guess)
    ratio = {name: f"{versus.ratio(variant).middle:.2f}" for name, variant in
             (("tuned", tuned), ("untuned", UNBOUND), ("apart", APART))}
    title = (f"Two tuned ranks: {ratio['tuned']} times the images/s of "
             f"{versus.baseline}. Untuned: {ratio['untuned']}. Without any "
             f"exchange: {ratio['apart']}.")
    return look.finish(figure, title, versus.summary)


def against(result, one: str, other: str) -> str:
    """Say how two variants compare, neither of which is the baseline."""
    ratio = result.between(one, other)
    said = (f"{one}: {ratio.middle:.2f} times as fast as {other} "
            f"({ratio.low:.2f} to {ratio.high:.2f})")
    if ratio.low <= 1 <= ratio.high:
        return f"{said}. The interval contains 1: no difference is shown."
    if abs(ratio.middle - 1) <= result.noise:
        return f"{said}. The noise alone can make as much."
    return f"{said}. That is {'faster' if ratio.middle > 1 else 'slower'}."


def _split(steps, alone_s: float):
    """The steps, with what lies before the last gradient in two parts: as
    long as a rank alone takes for a step, and longer."""
    alone = steps.compute_s.clip(upper=alone_s)
    return steps.assign(alone_s=alone, longer_s=steps.compute_s - alone)


@look.style
def step_timeline(timeline, alone_s: float, steps: int = 2):
    """Draw a few steps as Horovod saw them: how long each rank took, beside
    what a rank alone takes, and below it each phase of each gradient."""
    table = _split(timeline.steps(), alone_s)
    if table.empty:
        raise ScaleoutError("The timeline holds no whole step after the "
                            "first: let the job take more steps.")
    chosen = _usual(table, steps)
    begin = chosen.start_s.min()
    end = (chosen.start_s + chosen[list(PARTS)].sum(axis=1)).max()
    figure, (top, below) = plt.subplots(2, 1, figsize=(7.4, 5), sharex=True,
                                        height_ratios=[1, 2])
    ranks = [_parts(own, begin) for _, own in chosen.groupby("rank")]
    names = [f"rank {rank}" for rank in range(len(ranks))]
    draw.spans(top, ranks, PARTS, names)
    spans = timeline.spans
    inside = spans[(spans.end_s > begin) & (spans.start_s < end)]
    inside = inside.sort_values("start_s")
    gradients = [
        [(span.phase, span.start_s - begin, span.end_s - begin)
         for span in own.itertuples()]
        for _, own in inside.groupby("tensor", sort=False)
    ]
    numbers = [str(n + 1) for n in range(len(gradients))]
    draw.spans(below, gradients, PHASES, numbers, height=0.8)
    draw.spans(below, gradients, SENT, numbers, height=0.4)
    below.tick_params(axis="y", labelsize=8)
    below.set(xlabel="time (ms)", xlim=(0, 1e3 * (end - begin)),
              ylabel="gradients (number)")
    for axes in (top, below):
        axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1), ncols=2,
                    fontsize=9)
    mean = 1e3 * chosen[list(PARTS)].mean()
    ready = mean["alone_s"] + mean["longer_s"]
    sent = 1e3 * _sent_s(inside, chosen)
    title = (f"In these steps the gradients are ready after {ready:.1f} ms "
             f"(a rank alone: {1e3 * alone_s:.1f} for all of it). While the "
             f"ranks compute, gradients are being sent for {sent:.1f} ms a "
             f"step; after that a rank waits {mean['waiting_s']:.1f} ms for "
             "the slowest, and communicates for "
             f"{mean['communication_s']:.1f}.")
    return look.finish(figure, title)


def _sent_s(spans, chosen) -> float:
    """For how long a step gradients are being sent, one or more at a time,
    while a rank still computes."""
    sent = spans[spans.phase.isin(SENT)].sort_values("start_s")
    total = 0.0
    for _, step in chosen.groupby("step"):
        until = step.start_s.min()
        ready = (step.start_s + step.compute_s).max()
        for start, end in zip(sent.start_s, sent.end_s, strict=True):
            end = min(end, ready)
            total += max(0.0, end - max(start, until))
            until = max(until, end)
    return total / chosen.step.nunique()


def while_traced(traced, untraced, variant: str) -> str:
    """Say how long a step took while it was traced, beside the same ranks
    in the second look.

    traced, untraced: the records of the two jobs.
    """
    took_ms = 1e3 * (traced.batch_global / traced.rate).iloc[0]
    rates = [row["value"] for row in untraced["metrics.runs"].iloc[0]
             if row["variant"] == variant]
    plain_ms = 2e3 * untraced.batch_per_rank.iloc[0] / np.median(rates)
    said = (f"{variant}: {took_ms:.0f} ms a step while it is traced, "
            f"{plain_ms:.0f} ms untraced.")
    if took_ms > 1.25 * plain_ms:
        said += (" So much of the picture's time is the tracing's: do not "
                 "compare it with another picture's.")
    return said


def _usual(table, steps: int):
    """So many steps in a row, those that are most like the median."""
    parts = table.pivot(index="step", columns="rank", values=list(PARTS))
    unlike = (parts - parts.median()).abs().sum(axis=1)  # (steps,)
    last = int(unlike.rolling(min(steps, len(parts))).sum().idxmin())
    return table[(table.step > last - steps) & (table.step <= last)]


def _parts(rows, begin: float) -> list:
    """(part, from, to) of every step of one rank."""
    spans = []
    for row in rows.itertuples():
        start = row.start_s - begin
        for part in PARTS:
            end = start + getattr(row, part)
            spans.append((part, start, end))
            start = end
    return spans


def flops_per_image() -> float:
    """Multiplications and additions of a training step, for one image."""
    forward = [2.0 * pixels * weights for pixels, weights in LAYERS]
    # Backward takes two such products; the first layer's input needs none.
    return sum(forward) + sum(forward) + sum(forward[1:])


def day(found, last=None, tuned: str = "") -> dict:
    """The small network's steps of this day that have been measured: the
    rates of each, in images/s, with 64 images in a step of each rank.

    found: all records; those of 01 count. last: the comparison that holds
    two ranks, untuned and tuned.
    """
    wanted = ["lab", "utc", "cpu", "ranks", "rate", "step_s",
              "batch_per_rank", "metrics.network", "metrics.kernels"]
    ones = found.reindex(columns=wanted)
    ones = ones[(ones.lab == "01_onednn") & (ones["metrics.network"] == "cnn")
                & (ones.ranks == 1) & (ones.batch_per_rank == 64)
                & ones.rate.notna()]
    if len(ones):  # of this machine alone, if others wrote here too
        ones = ones[ones.cpu == ones.sort_values("utc").cpu.iloc[-1]]
    kinds = ones["metrics.kernels"]
    steps = {
        "default kernels": _rates(ones[kinds == "default"]),
        "oneDNN": _rates(ones[kinds == "onednn"]),
    }
    if last is not None:
        for name, variant in (("two ranks", UNBOUND), ("tuned", tuned)):
            steps[name] = last.runs.value[last.runs.variant == variant]
    return {name: np.array(rates)
            for name, rates in steps.items() if len(rates)}


def _rates(rows):
    """The rates of the longest jobs: shorter ones only looked at something."""
    steps = rows.step_s.map(len)
    return rows.rate[steps == steps.max()]


@look.style
def your_day(steps: dict, gflops: float, guess: str | None = None):
    """Draw what each step of the day has brought, as far as it is measured,
    and what the rate of 00's multiplication would give.

    steps: as `day` gives them. guess: which step brings the most.
    """
    if not steps:
        raise ScaleoutError("Nothing of this day is measured yet: run a "
                            "comparison of 01, 02 or 05 first.")
    rate = {name: float(np.median(runs)) for name, runs in steps.items()}
    names = list(steps)
    first = rate[names[0]]
    labels = [fill(name, 9) for name in names]
    figure, axes = plt.subplots(figsize=(7.4, 4.4))
    shown = {}
    brought = {}
    for before, name in zip(names, names[1:], strict=False):
        ends = [float(end) / rate[before] for end in
                (steps[name].min(), rate[name], steps[name].max())]
        ratio = SimpleNamespace(low=ends[0], middle=ends[1], high=ends[2])
        # Hours lie between them: a step counts if no runs overlap.
        if steps[name].min() > steps[before].max():
            brought[name] = ratio.middle
        shown[name] = (ratio, f"{rate[name]:,.0f}/s")
    _, top = draw.waterfall(axes, shown)
    axes.annotate(f"{first:,.0f}/s", (0, 1), (0, 5), ha="center",
                  textcoords="offset points", fontsize=9)
    dashed = 1e9 * gflops / flops_per_image()
    axes.axhline(dashed / first, color=look.INK, linestyle="--",
                 label=f"at NumPy's {gflops:,.0f} GFLOP/s, measured now: "
                 f"{dashed:,.0f} images/s")
    look.guess_name(axes, names, guess, 0.05)
    axes.set_xticks(range(len(names)), labels, fontsize=9)
    axes.set(ylabel=f"images/s ({names[0]}: 1)",
             ylim=(0, 1.15 * max(top, dashed / first)))
    best = max(rate, key=lambda name: rate[name])
    title = f"The highest bar: {best}, {rate[best]:,.0f} images/s"
    if len(names) == 1:
        title = f"Your day so far: {best}, {first:,.0f} images/s"
    elif best != "tuned" in rate:
        title += f"; two tuned ranks: {rate['tuned']:,.0f}"
    if brought:
        most = max(brought, key=lambda name: brought[name])
        title += f". The largest step: {most}, {brought[most]:.1f} times"
    elif len(names) > 1:
        title += ". No single step is shown to count"
    missing = [f"{name} ({topic})" for name, topic in DAY.items()
               if name not in steps]
    if missing:
        title += f". Not measured yet: {', '.join(missing)}"
    values = [f"{name}: {rate[name]:,.0f} images/s." for name in names]
    values.append(f"At NumPy's rate: {dashed:,.0f} images/s.")
    return look.finish(figure, title, " ".join(values), legend=1)
