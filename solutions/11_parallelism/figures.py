"""The figures of 11_parallelism: a pipeline and its waiting, memory, whose
step is shorter, and workers that do not wait."""

import math

import matplotlib.pyplot as plt
import numpy as np

from scaleout.comparisons.intervals import Ratio, between, paired, verdict
from scaleout.plots import look, primitives

WORK = {
    "forward": ("forward", {"facecolor": look.DARK, "edgecolor": "white"}),
    "backward": ("backward", {"facecolor": look.LIGHT,
                              "edgecolor": "white"}),
}


def idle_parts(row) -> list[float]:
    """Find the part of each step in which the stages of a pipeline wait."""
    logs = [stage["logs"] for stage in row["metrics.shares"]]
    parts = []
    for step, seconds in enumerate(row["step_s"]):
        busy = sum(end - start for log in logs
                   for _, _, start, end, _ in log[step])
        parts.append(1 - busy / (len(logs) * seconds))
    return parts


def bubble_parts(row) -> list[float]:
    """Find the part of each step in which stages wait because the pipeline
    fills, turns round and empties.

    That is before a stage's first micro-batch, between its last forward and
    its first backward, and after its last backward. What else it waits,
    between two micro-batches, is left out.
    """
    logs = [stage["logs"] for stage in row["metrics.shares"]]
    parts = []
    for step, seconds in enumerate(row["step_s"]):
        waited = 0.0
        for log in logs:
            forward = [line for line in log[step] if line[0] == "forward"]
            backward = [line for line in log[step] if line[0] == "backward"]
            fills = forward[0][2]
            turns = backward[0][2] - forward[-1][3]
            empties = seconds - backward[-1][3]
            waited += fills + turns + empties
        parts.append(waited / (len(logs) * seconds))
    return parts


def bubble(stages: int, micro_batches: float) -> float:
    """Compute the part of the time that stages of equal length must wait."""
    return (stages - 1) / (micro_batches + stages - 1)


def _and(words: list) -> str:
    """Write down some words, or numbers, as one says them."""
    said = [word if isinstance(word, str) else f"{word:g}" for word in words]
    return " and ".join([", ".join(said[:-1])] * (len(said) > 1) + said[-1:])


def not_whole(rows) -> str:
    """Say so where a pipeline lacks what TODO 2 brings: gradients that come
    back to each stage. Else an empty text."""
    logs = [stage["logs"] for row in rows for stage in row["metrics.shares"]]
    if all("backward" in {line[0] for line in log[0]} for log in logs):
        return ""
    return ("This is no pipeline yet: not every stage works backward, so its "
            "times say nothing. TODO 2 comes first.")


@look.style
def pipeline_timeline(records):
    """Draw what each stage did in one step: forward and backward, each with
    its micro-batch. White is waiting. A panel for each job."""
    jobs = {name: frame.iloc[0] for name, frame in records.items()}
    ranks = max(int(row["ranks"]) for row in jobs.values())
    size = (7.4, 1.6 + (0.7 + 0.42 * ranks) * len(jobs))
    figure, panels = primitives.panels(jobs, size, down=True)
    title = []
    each = []
    for (name, axes), row in zip(panels.items(), jobs.values(), strict=True):
        order = np.argsort(row["step_s"])
        typical = order[(len(order) - 1) // 2]  # its time is the median
        stages = [stage["logs"][typical] for stage in row["metrics.shares"]]
        primitives.spans(
            axes, [[(what, start, end) for what, _, start, end, _ in log]
                   for log in stages],
            WORK, [f"rank {rank}" for rank in range(len(stages))], 0.8)
        for rank, log in enumerate(stages):
            for what, number, start, end, _ in log:
                axes.text(1e3 * (start + end) / 2, rank, str(number),
                          ha="center", va="center", fontsize=8, clip_on=True,
                          color="white" if what == "forward" else "black")
        axes.set_xlim(0, 1e3 * row["step_s"][typical])
        kept = ", ".join(str(max(line[4] for line in log)) for log in stages)
        idle = 100 * float(np.median(idle_parts(row)))
        axes.set_title(f"{name}: most micro-batches kept at once, "
                       f"rank by rank: {kept}",
                       fontsize=10, loc="left")
        title.append(f"{idle:.0f} %{'' if title else ' of the time'} "
                     f"with {name}")
        each.append(f"{name}: at most {kept} micro-batches kept")
    axes.set_xlabel("time since the start of a step (ms)")
    return look.finish(
        figure, not_whole(jobs.values())
        or f"The stages wait for {', '.join(title)} (medians).",
        f"What each stage did in one step. {'; '.join(each)}.", legend=2)


def uneven(records) -> str:
    """Say how equal two stages are, which the formula takes them to be, and
    by how much a bubble lies below it."""
    rows = sorted((frame.iloc[0] for frame in records),
                  key=lambda row: row["metrics.micro_batches"])
    if said := not_whole(rows):
        return said
    times = []
    below = []
    for row in rows:
        busy = [sum(end - start for step in stage["logs"]
                    for _, _, start, end, _ in step)
                for stage in row["metrics.shares"]]
        times.append(max(busy) / min(busy))
        count = int(row["metrics.micro_batches"])
        found = 100 * float(np.median(bubble_parts(row)))
        other = 100 * float(np.median(idle_parts(row))) - found
        gap = 100 * bubble(int(row["ranks"]), count) - found
        if gap > 1:
            below.append(f"{gap:.0f} points with M = {count}, where one "
                         f"computed {times[-1]:.2f} times as long as the "
                         f"other and other waits were {other:.0f} %")
    said = ("The formula takes both stages, and all micro-batches, to be "
            f"equally long. Here one stage computed {min(times):.2f} to "
            f"{max(times):.2f} times as long as the other")
    if below:
        return said + (f", so a bubble can lie below it: {'; '.join(below)}.")
    return said + ", and no bubble lies more than a point below it."


@look.style
def idle_over_micro_batches(records, guess: float | None = None):
    """Draw how much of the time stages wait, over the number of
    micro-batches, and which part of it is the bubble, beside the formula."""
    rows = sorted((frame.iloc[0] for frame in records),
                  key=lambda row: row["metrics.micro_batches"])
    stages = int(rows[0]["ranks"])
    counts = [int(row["metrics.micro_batches"]) for row in rows]
    figure, axes = plt.subplots(figsize=(6.8, 4.4))
    every = np.geomspace(counts[0], counts[-1], 100)
    primitives.ideal(axes, every, 100 * bubble(stages, every),
                     "by the formula: (S - 1) / (M + S - 1)")
    idle = primitives.line(
        axes, counts, [100 * np.array(idle_parts(row)) for row in rows],
        "all waiting (median)")
    bubbles = [100 * float(np.median(bubble_parts(row))) for row in rows
               if not not_whole([row])]
    if len(bubbles) == len(counts):
        primitives.line(axes, counts, bubbles, "the bubble alone", 1,
                        linestyle="", markerfacecolor="white", markersize=7)
    if guess is not None and 4 in counts:
        look.guess_star(axes, 4, guess, f"{guess:g} % with M = 4")
    axes.set_xscale("log", base=2)
    axes.set_xticks(counts, [str(count) for count in counts])
    axes.set(xlabel="number of micro-batches M", ylim=(0, None),
             ylabel="time that the stages\nwait (%)")
    return look.finish(
        figure, not_whole(rows)
        or f"Bubble: {bubbles[0]:.0f} % with M = {counts[0]}, "
        f"{bubbles[-1]:.0f} % with M = {counts[-1]}. All waiting: "
        f"{idle[0]:.0f} % and {idle[-1]:.0f} %.", legend=2)


@look.style
def rank_memory(records, guess: float | None = None):
    """Draw the most memory that a rank held in each way of splitting, as a
    part of what one rank alone needs: without an optimizer, and with Adam."""
    rows = [row for frame in records for _, row in frame.iterrows()]
    peaks = {(row["variant"], row["ranks"]): row["metrics.peak_bytes"]
             for row in rows}
    ranks = max(count for _, count in peaks)
    panels = {"without an optimizer": ("data", "tensor", "pipeline"),
              "data parallelism with Adam": ("adam", "sharded", "dropped")}
    figure, axes_of = primitives.panels(panels, (7.4, 3.9))
    parts = {}
    for title, ways in panels.items():
        axes = axes_of[title]
        alone = peaks[ways[0], 1]
        here = {way: [peaks[way, ranks] / alone] for way in ways}
        parts |= {way: part for way, (part,) in here.items()}
        primitives.bars(axes, here, lambda part, first: f"{part:.2f}",
                        looks=look.FILLS[:1])
        axes.axhline(1, color=look.GREY, linestyle="--", zorder=0,
                     label="one rank alone")
    first = axes_of["without an optimizer"]
    if guess is not None:
        look.guess_star(first, 2, guess, f"{guess:g} (pipeline)")
    first.set(ylabel="memory of a rank\n(one rank alone = 1)",
              ylim=(0, 1.25 * max(1, guess or 0, *parts.values())))
    return look.finish(
        figure, f"With a pipeline of {ranks} stages, a rank needs "
        f"{parts['pipeline']:.2f} of the memory of one rank alone.",
        f"Memory of the rank that needs most, on {ranks} ranks: "
        f"{', '.join(f'{way} {part:.2f}' for way, part in parts.items())}.",
        legend=2)


def ratios(rows) -> tuple[dict, dict, dict]:
    """For each batch / width: tensor's step divided by data's, measured with
    its interval and forecast, and by what share two equal steps could differ.

    The rule is that of `scaleout compare`: data's two steps of a round are
    taken together, and what they differ by is the noise.
    """
    measured = {}
    predicted = {}
    noise = {}
    for part, group in rows.groupby("metrics.ratio"):
        way = {row["variant"]: row for _, row in group.iterrows()}
        twice = np.column_stack([way["data"]["step_s"],
                                 way["data again"]["step_s"]])  # (rounds, 2)
        found = paired(twice, {"tensor": way["tensor"]["step_s"]})
        measured[part] = found.ratios["tensor"]
        noise[part] = found.noise
        predicted[part] = (way["tensor"]["metrics.predicted_ms"]
                           / way["data"]["metrics.predicted_ms"])
    return measured, predicted, noise


SHORTER = {"faster": "data", "slower": "tensor"}  # a ratio of times above 1


def shown(measured: dict, noise: dict) -> dict:
    """For each batch / width: which way is shown to have the shorter step,
    or an empty text."""
    return {part: SHORTER.get(verdict(ratio, noise[part]), "")
            for part, ratio in measured.items()}


def crossing(times: dict) -> float:
    """Find the batch / width at which tensor's step begins to take longer
    than data's, and does so from there on; nan where it never does."""
    if min(times.values()) <= 0:
        return float("nan")  # a forecast from parts that were disturbed
    x, y = np.log([list(times), list(times.values())])
    for k in reversed(range(len(x) - 1)):
        if y[k + 1] <= 0:
            break
        if y[k] <= 0:
            share = -y[k] / (y[k + 1] - y[k])
            return float(np.exp(x[k] + share * (x[k + 1] - x[k])))
    return float("nan")


def which_when(rows) -> str:
    """Say at which batch / width which way is shown to be faster, and where
    the forecast has them equal."""
    measured, predicted, noise = ratios(rows)
    at = {way: [] for way in ("tensor", "data", "")}
    for part, way in shown(measured, noise).items():
        at[way].append(part)
    said = [f"{way} parallelism at {_and(at[way])}"
            for way in ("tensor", "data") if at[way]]
    if said:
        said[0] = said[0].replace(" at ", " is shown to be faster at ", 1)
    said = [", ".join(said)] * bool(said)
    if at[""]:
        said.append(f"no difference is shown at {_and(at[''])}")
    equal = crossing(predicted)
    forecast = (f"had both equal at {equal:.2g}" if math.isfinite(equal)
                else "had them equal nowhere")
    start = "Batch divided by width: "
    return f"{start}{'; '.join(said)}. The forecast {forecast}."


def by_bytes(rows) -> str:
    """Say whether the differences that are shown follow the bytes that each
    way sends, and how far the faster one is ahead in products and messages."""
    measured, _, noise = ratios(rows)
    winners = {at: way for at, way in shown(measured, noise).items() if way}
    if not winners:
        return "No difference is shown, so none speaks against the bytes."
    follow, leads = [], []
    for at, way in winners.items():
        found = {row["variant"]: row["metrics.parts"][-1] for _, row in
                 rows[rows["metrics.ratio"] == at].iterrows()}
        (other,) = {"data", "tensor"} - {way}
        ahead = [found[other][k] - found[way][k] for k in (0, 1)]
        follow.append(found[way][2] < found[other][2])
        leads.append(f"at {at:g} {way} parallelism leads by {ahead[0]:.1f} ms "
                     f"in the products and {ahead[1]:.1f} ms in the messages")
    said = ("Where a difference is shown, the way that sends fewer bytes is "
            "faster" if all(follow) else
            "Not everywhere is the way faster that sends fewer bytes")
    return f"{said}: {'; '.join(leads)}."


def equal_steps(rows) -> str:
    """Say by how much two equal steps could differ, over all batches."""
    noise = ratios(rows)[2].values()
    if not np.isfinite(list(noise)).all():
        return "Too few rounds tell how far two equal steps differ."
    return (f"Two equal steps could differ by {100 * min(noise):.0f} to "
            f"{100 * max(noise):.0f} %.")


# What a part of a forecast that is too long, or too short, comes from.
CAUSES = {
    "products": ("what is not sent grew by less than the cube of the width",
                 "what is not sent grew by more than the cube of the width"),
    "messages": ("messages took less time for a byte than in narrower layers",
                 "messages took more time for a byte than in narrower layers"),
    "rest": ("a step takes less time than its parts, each measured alone",
             "a step takes more time than its parts, each measured alone"),
}


def how_far(rows) -> str:
    """Say how far the forecast steps are from the measured ones, and which
    part of the one that is furthest off is to blame."""
    off = []
    for _, row in rows[rows["variant"] != "data again"].iterrows():
        step = 1e3 * float(np.median(row["step_s"]))
        expected = np.array(row["metrics.predicted_parts"])
        here = np.array(row["metrics.parts"][-1][:2])
        gaps = dict(zip(CAUSES, [*(expected - here), here.sum() - step],
                        strict=True))
        off.append((expected.sum() / step - 1, row, step, gaps))
    shares = [100 * each[0] for each in off]
    far, row, step, gaps = max(off, key=lambda each: abs(each[0]))
    # Which of the three goes furthest in the direction of the whole?
    part = max(gaps, key=lambda name: gaps[name] * (1 if far > 0 else -1))
    gaps = {name: round(ms, 1) + 0 for name, ms in gaps.items()}  # no -0.0
    told = (f"{gaps['products']:+.1f} ms in the products, "
            f"{gaps['messages']:+.1f} in the messages, {gaps['rest']:+.1f} "
            "between these and the step")
    return (f"The forecast is {min(shares):+.0f} to {max(shares):+.0f} % off, "
            f"in the median {np.median(np.abs(shares)):.0f} %. Furthest off "
            f"is {row['variant']} parallelism at {row['metrics.ratio']:g}: "
            f"forecast {step * (1 + far):.1f} ms, measured {step:.1f} ms. "
            f"The difference is {told}. The largest part of it: "
            f"{CAUSES[part][int(far < 0)]}.")


@look.style
def crossover(records, guess: float | None = None):
    """Draw how long a step of tensor parallelism takes beside one of data
    parallelism, over batch / width: forecast and measured, and how far equal
    steps may differ."""
    measured, predicted, noise = ratios(records)
    winner = shown(measured, noise)
    parts = list(measured)
    figure, axes = plt.subplots(figsize=(7.4, 4.6))
    ends = []
    for part, ratio in measured.items():
        if not ratio.low > 0:
            continue  # too few rounds for an interval
        reach = 1 + noise[part]
        axes.plot([part] * 2, [1 / reach, reach], color="#cfcfcf",
                  linewidth=16, solid_capstyle="butt", zorder=1,
                  label="two equal steps may differ by this" * (not ends))
        axes.errorbar(part, ratio.middle, capsize=6, color="black",
                      linewidth=2, capthick=2, zorder=3,
                      yerr=[[ratio.middle - ratio.low],
                            [ratio.high - ratio.middle]])
        ends += [1 / reach, reach, ratio.low, ratio.high]
    axes.axhline(1, color=look.INK, linewidth=1, zorder=2)
    line = [ratio if ratio > 0 else math.nan for ratio in predicted.values()]
    primitives.ideal(axes, parts, line, "forecast, from two narrower widths")
    for some, label, fill in (
        ([part for part in parts if winner[part]],
         "measured (95 % interval), difference shown", look.DARK),
        ([part for part in parts if not winner[part]],
         "measured, no difference shown", "white"),
    ):
        if some:
            axes.plot(some, [measured[part].middle for part in some], "o",
                      color="black", markerfacecolor=fill, markersize=8,
                      zorder=4, label=label)
    look.guess_line(axes, guess, upright=True)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log", base=2)
    axes.set_xticks(parts, [f"{part:g}" for part in parts])
    every = [*ends, *(ratio.middle for ratio in measured.values()),
             *(np.clip(ratio, 0.5, 2) for ratio in line if ratio > 0)]
    low, high = 0.93 * min([0.9, *every]), 1.07 * max([1.1, *every])
    ticks = [tick for tick in ((0.25, 0.5, 0.7, 1, 1.4, 2, 4)
                               if high > 3 * low else
                               (0.6, 0.7, 0.8, 0.9, 1, 1.1, 1.2, 1.4, 1.6))
             if low < tick < high]
    axes.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.set_ylim(low, high)
    axes.minorticks_off()
    axes.set(xlabel="batch / width",
             ylabel="step of tensor parallelism\n(data parallelism = 1)")
    return look.finish(figure, which_when(records), legend=2)


def _reached(curve, loss: float) -> float:
    """Find the seconds after which a curve stays below a loss."""
    above = np.flatnonzero(curve[:, 2] > loss)
    k = above[-1] + 1 if len(above) else 0
    if k == len(curve):
        return math.inf
    return float(curve[k, 0])


# What lies between the lowest and the highest run of each of two rules.
BANDS = ({"facecolor": look.LIGHT, "edgecolor": look.DARK, "alpha": 0.6},
         {"facecolor": "white", "edgecolor": look.MIDDLE, "alpha": 0.7})


def _curves(axes, runs, label: str, nth: int) -> float:
    """Draw the median of runs whose points lie at different places, where all
    of them reach, and how far they lie apart; give its largest value."""
    own = {**look.LINES[nth], "marker": ""}
    at = np.linspace(max(x[0] for x, _ in runs), min(x[-1] for x, _ in runs),
                     60)
    all_ = np.array([np.interp(at, x, y) for x, y in runs])  # (runs, 60)
    axes.fill_between(at, all_.min(axis=0), all_.max(axis=0), linewidth=0.5,
                      **BANDS[nth])
    middle = np.median(all_, axis=0)
    axes.plot(at, middle, label=label, linewidth=2.5, **own)
    return float(middle.max())


def _longer(at: dict) -> str:
    """Say how many times as long the first rule takes as the second, or how
    many of its runs come to the loss at all."""
    (one, first), (other, second) = at.items()
    if np.isfinite([*first, *second]).all():
        ratio = between(first, second)
        return (f"if {one}, it takes {ratio.middle:.1f} times as long "
                f"({ratio.low:.1f} to {ratio.high:.1f})")
    said = [f"{np.isfinite(each).sum()} of {len(each)} runs if {rule}"
            for rule, each in at.items()]
    return f"it is reached by {' and by '.join(said)}"


@look.style
def sync_or_async(jobs, goal: float, guess: float | None = None):
    """Draw the loss over time of workers that wait for each other and of
    workers that do not, in a panel for each learning rate: the median, and
    between the lowest and the highest run. Say how long they take until they
    stay below a loss.

    jobs: {panel: {rule: records}}, with the same two rules in each.
    """
    figure, panels = primitives.panels(jobs, (8, 4.4))
    found = []
    tops = []
    for title, axes in panels.items():
        at = {}
        for nth, (rule, frame) in enumerate(jobs[title].items()):
            curves = [np.array(each, float) for each in
                      frame["metrics.curve"]]  # (points, 3)
            tops.append(_curves(
                axes, [(curve[:, 0], curve[:, 2]) for curve in curves], rule,
                nth))
            at[rule] = np.array([_reached(curve, goal) for curve in curves])
        axes.axhline(goal, color=look.INK, linestyle="--", linewidth=1,
                     label=f"loss of {goal:g}")
        if guess is not None and not found:
            look.guess_star(axes, guess * float(np.median(at[rule])), goal,
                            f"{guess:g} times as long")
        axes.set(xlabel="time (s)", yscale="log")
        axes.minorticks_off()
        found.append(f"{title}: {_longer(at)}")
    first = next(iter(panels.values()))
    low, high = first.get_ylim()[0], 1.1 * max(tops)
    ticks = [tick for tick in (0.2, 0.3, 0.4, 0.5, 0.7, 1, 2, 4, 8)
             if low <= tick <= high]
    first.set_ylim(low, high)
    first.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
    first.set_ylabel("loss on the test images (log scale)")
    return look.finish(figure, f"To a loss of {goal:g}. {'. '.join(found)}.",
                       legend=4)


def times_as_long(jobs, goal: float) -> float:
    """Compute how many times as long the first rule takes to a loss as the
    second, in the first panel; nan where a run does not come to it."""
    return (math.nan if (longer := _times(jobs, goal)) is None
            else longer.middle)


def _times(jobs, goal: float) -> Ratio | None:
    waiting, free = [
        [_reached(np.array(each, float), goal)
         for each in frame["metrics.curve"]]
        for frame in next(iter(jobs.values())).values()]
    if not np.isfinite([*waiting, *free]).all():
        return None
    return between(waiting, free)


def updates(jobs, goal: float) -> str:
    """Say how many more updates there were where nobody waits, and how much
    longer the same loss takes if all do, of the first panel's jobs."""
    (one, waiting), (other, free) = next(iter(jobs.values())).items()
    workers = int(waiting["ranks"].iloc[0]) - 1
    slow, quick = [
        np.array([each[-1][1] / each[-1][0] for each in
                  frame["metrics.curve"]])  # (runs,) gradients a second
        for frame in (waiting, free)]
    more = float(np.median(workers * quick / slow))
    said = (f"In the same time there were {more:.1f} times as many updates "
            f"if {other}.")
    longer = _times(jobs, goal)
    if longer is None:
        return said
    said += (f" If {one}, a loss of {goal:g} took {longer.middle:.1f} times "
             f"as long ({longer.low:.1f} to {longer.high:.1f})")
    if longer.low <= more <= longer.high:
        return (f"{said}, so these runs do not show whether an update by one "
                "gradient brings less than one by the mean of all.")
    brings = "less" if longer.high < more else "more"
    return (f"{said}: an update by one gradient, often a stale one, brought "
            f"{brings} than one by the mean of all.")
