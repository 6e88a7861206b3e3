"""The figures of 11_parallelism: a pipeline and its waiting, memory, whose
step is shorter, and workers that do not wait."""

import math

import matplotlib.pyplot as plt
import numpy as np

from scaleout.comparisons.intervals import between
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
    its interval and forecast, and data's step divided by data's again."""
    measured = {}
    predicted = {}
    equal = {}
    for part, group in rows.groupby("metrics.ratio"):
        way = {row["variant"]: row for _, row in group.iterrows()}
        steps = {name: np.array(row["step_s"]) for name, row in way.items()}
        measured[part] = between(steps["tensor"], steps["data"])
        equal[part] = between(steps["data again"], steps["data"])
        predicted[part] = (way["tensor"]["metrics.predicted_ms"]
                           / way["data"]["metrics.predicted_ms"])
    return measured, predicted, equal


def crossing(times: dict) -> float:
    """Find the batch / width at which tensor's step begins to take longer
    than data's, and does so from there on; nan where it never does."""
    x, y = np.log([list(times), list(times.values())])
    for k in reversed(range(len(x) - 1)):
        if y[k + 1] <= 0:
            break
        if y[k] <= 0:
            share = -y[k] / (y[k + 1] - y[k])
            return float(np.exp(x[k] + share * (x[k + 1] - x[k])))
    return float("nan")


def _where(times: dict) -> str:
    """Say where data parallelism becomes the faster one."""
    at = crossing(times)
    if math.isfinite(at):
        return f"from batch / width = {at:.2f} on"
    if min(times.values()) > 1:
        return "at every size tried"
    return "at no size tried" if max(times.values()) <= 1 else "at some sizes"


def which_when(rows) -> str:
    """Say where data parallelism has the shorter step, measured with the
    interval of that place, and forecast."""
    measured, predicted, _ = ratios(rows)
    middle = {part: ratio.middle for part, ratio in measured.items()}
    said = _where(middle)
    if all(ratio.low > 0 for ratio in measured.values()):
        # Where the upper ends cross 1 it may be, where the lower do it is.
        first, last = (crossing({part: getattr(ratio, end)
                                 for part, ratio in measured.items()})
                       for end in ("high", "low"))
        if math.isfinite(crossing(middle) + first + last):
            said += f" ({first:.2f} to {last:.2f})"
    return (f"Data parallelism has the shorter step {said}; "
            f"forecast: {_where(predicted)}.")


def how_far(rows) -> str:
    """Say how far the forecast steps are from the measured ones, at how many
    sizes a difference is shown, and how far equal steps differ."""
    measured, _, equal = ratios(rows)
    off = [row["metrics.predicted_ms"] / 1e3 / np.median(row["step_s"]) - 1
           for _, row in rows[rows["variant"] != "data again"].iterrows()]
    noise = max(max(ratio.middle, 1 / ratio.middle) for ratio in
                equal.values()) - 1
    data = sum(ratio.low > 1 for ratio in measured.values())
    tensor = sum(ratio.high < 1 for ratio in measured.values())
    return (f"The forecast steps are {100 * min(off):+.0f} to "
            f"{100 * max(off):+.0f} % off, in the median "
            f"{100 * np.median(np.abs(off)):.0f} %. Of {len(measured)} ratios "
            "of batch to width, data parallelism is shown to be faster at "
            f"{data} of them, tensor parallelism at {tensor}. Two equal steps "
            f"differed by up to {100 * noise:.0f} %.")


@look.style
def crossover(records, guess: float | None = None):
    """Draw how long a step of tensor parallelism takes beside one of data
    parallelism, over batch / width: forecast and measured."""
    measured, predicted, equal = ratios(records)
    parts = list(measured)
    figure, axes = plt.subplots(figsize=(7, 4.4))
    primitives.ideal(axes, parts, list(predicted.values()),
                     "forecast, from two narrower widths")
    ends = []
    for nth, (part, ratio) in enumerate(measured.items()):
        if ratio.low > 0 and ratio.high < 100:
            ends += [ratio.low, ratio.high]
            axes.plot([part] * 2, ends[-2:], color="black", marker="_",
                      label="95 % interval" * (nth == 0))
    middle = {part: ratio.middle for part, ratio in measured.items()}
    primitives.line(axes, parts, list(middle.values()), "measured",
                    linestyle="")
    same = [ratio.middle for ratio in equal.values()]
    primitives.line(axes, parts, same, "two equal steps", 1, linestyle="",
                    markerfacecolor="white")
    axes.axhline(1, color=look.GREY, linewidth=1)
    look.guess_line(axes, guess, upright=True)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log", base=2)
    axes.set_xticks(parts, [f"{part:g}" for part in parts])
    every = [*ends, *middle.values(), *predicted.values(), *same]
    ticks = [tick for tick in (0.25, 0.5, 0.7, 1, 1.4, 2, 4, 8)
             if 0.8 * min(every) < tick < 1.25 * max(every) or tick == 1]
    axes.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.set_ylim(min(0.65, 0.8 * min(every)), max(1.5, 1.25 * max(every)))
    axes.minorticks_off()
    axes.set(xlabel="batch / width",
             ylabel="step time, tensor / data")
    return look.finish(figure, which_when(records), legend=2)


def _reached(curve, loss: float) -> float:
    """Find the seconds after which a curve stays below a loss."""
    above = np.flatnonzero(curve[:, 2] > loss)
    k = above[-1] + 1 if len(above) else 0
    if k == len(curve):
        return math.inf
    return float(curve[k, 0])


def _curves(axes, runs, label: str, nth: int) -> None:
    """Draw runs whose points lie at different places as thin lines, and
    their median where all of them reach."""
    own = {**look.LINES[nth], "marker": ""}
    for x, y in runs:
        axes.plot(x, y, color=own["color"], linewidth=0.5)
    at = np.linspace(max(x[0] for x, _ in runs), min(x[-1] for x, _ in runs),
                     60)
    middle = np.median([np.interp(at, x, y) for x, y in runs], axis=0)
    axes.plot(at, middle, label=label, linewidth=2.5, **own)


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
    workers that do not, in a panel for each learning rate, and say how long
    they take to a loss, and stay below it.

    jobs: {panel: {rule: records}}, with the same two rules in each.
    """
    figure, panels = primitives.panels(jobs, (8, 4.2))
    found = []
    for title, axes in panels.items():
        at = {}
        for nth, (rule, frame) in enumerate(jobs[title].items()):
            curves = [np.array(each, float) for each in
                      frame["metrics.curve"]]  # (points, 3)
            _curves(axes, [(curve[:, 0], curve[:, 2]) for curve in curves],
                    rule, nth)
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
    low, high = first.get_ylim()
    ticks = [tick for tick in (0.2, 0.3, 0.4, 0.5, 0.7, 1, 2, 4, 8)
             if low <= tick <= high]
    first.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
    first.set_ylabel("loss on the test images (log scale)")
    return look.finish(figure, f"To a loss of {goal:g}. {'. '.join(found)}.",
                       legend=4)
