"""The figures of 11_parallelism: a pipeline and its waiting, who talks to
whom, memory, whose step is shorter, and workers that do not wait."""

import math

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.patches import FancyArrowPatch

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
        figure, f"The stages wait for {', '.join(title)} (medians).",
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
    bubbles = [100 * float(np.median(bubble_parts(row))) for row in rows]
    primitives.line(axes, counts, bubbles, "the bubble alone", 1,
                    linestyle="", markerfacecolor="white", markersize=7)
    look.guess_line(axes, guess, unit="%")
    axes.set_xscale("log", base=2)
    axes.set_xticks(counts, [str(count) for count in counts])
    axes.set(xlabel="number of micro-batches M", ylim=(0, None),
             ylabel="time that the stages\nwait (%)")
    return look.finish(
        figure, f"Bubble: {bubbles[0]:.0f} % with M = {counts[0]}, "
        f"{bubbles[-1]:.0f} % with M = {counts[-1]}. All waiting: "
        f"{idle[0]:.0f} % and {idle[-1]:.0f} %.", legend=2)


@look.style
def who_talks(records):
    """Draw who talks to whom in hybrid parallelism: along a row activations,
    along a column gradients of the same layers."""
    row = records.iloc[0]
    found = row["metrics.shares"]
    size = np.dtype(row["metrics.dtype"]).itemsize
    # Of each rank: the stage that it is, and in which copy of the network.
    place = {rank: tuple(circle.index(rank) for circle in each["circles"])
             for rank, each in enumerate(found)}
    figure, axes = plt.subplots(figsize=(6.8, 3.8))
    for rank, (stage, copy) in place.items():
        layers = found[rank]["layers"]
        primitives.box(axes, 3 * stage, -1.6 * copy, 1.3, 0.8,
                       f"rank {rank}\nlayers {layers[0]} to {layers[-1]}",
                       facecolor=look.PALE)
    pipelines, equals = ({tuple(each["circles"][way]) for each in found}
                         for way in (0, 1))
    for circles, nth in ((pipelines, 0), (equals, 1)):
        own = look.LINES[nth]
        for circle in circles:
            for one, other in zip(circle, circle[1:], strict=False):
                ends = []
                for rank, far in ((one, 0), (other, 1)):
                    stage, copy = place[rank]
                    across = (1.3, 0.0)[far] if nth == 0 else 0.65
                    up = 0.4 if nth == 0 else (0.0, 0.8)[far]
                    ends.append((3 * stage + across, up - 1.6 * copy))
                axes.add_patch(FancyArrowPatch(
                    *ends, arrowstyle="<|-|>", mutation_scale=12,
                    linewidth=2, color=own["color"],
                    linestyle=own["linestyle"]))
    copies = len(pipelines)
    width = row["metrics.width"]
    activations = row["metrics.batch"] // copies * width * size / 1024
    gradients = len(found[0]["layers"]) * width**2 * size / 1024
    for nth, label in enumerate((
            f"activations: {activations:,.0f} KiB each way",
            f"gradients: {gradients:,.0f} KiB")):
        axes.plot([], [], label=label, **{**look.LINES[nth], "marker": ""})
    axes.set(xlim=(-0.2, 3 * len(equals) - 1.5),
             ylim=(-1.6 * (copies - 1) - 0.15, 0.95))
    axes.axis("off")
    rows, columns = (", ".join(map(str, sorted(circles)))
                     for circles in (pipelines, equals))
    return look.finish(
        figure, f"In a step each pipeline passes on {activations:,.0f} KiB of "
        "activations, and ranks with the same layers add up "
        f"{gradients:,.0f} KiB of gradients.",
        f"Pipelines {rows} pass on activations; {columns} add up gradients "
        "of the same layers.", legend=2)


@look.style
def rank_memory(records, guess: float | None = None):
    """Draw the most memory that a rank held in each way of splitting, as a
    part of what one rank alone needs."""
    rows = [row for frame in records for _, row in frame.iterrows()]
    alone = {row["variant"]: row["metrics.peak_bytes"] for row in rows
             if row["ranks"] == 1}
    parts = {}
    for row in rows:
        if row["ranks"] > 1:
            adam = row["variant"] in ("adam", "sharded", "dropped")
            whole = alone["adam" if adam else "data"]
            name = f"{row['variant']}\n{row['ranks']} ranks"
            parts[name] = [row["metrics.peak_bytes"] / whole]
    figure, axes = plt.subplots(figsize=(7, 4))
    primitives.bars(axes, parts, lambda part, first: f"{part:.2f}",
                    looks=look.FILLS[:1])
    axes.axhline(1, color=look.GREY, linestyle="--", label="one rank alone")
    look.guess_line(axes, guess)
    axes.set(ylabel="memory of a rank\n(one rank alone = 1)",
             ylim=(0, 1.2 * max(1, guess or 0, *(p for p, in parts.values()))))
    axes.tick_params(axis="x", labelsize=9)
    each = ", ".join(f"{name} {part:.2f}".replace("\n", " on ")
                     for name, (part,) in parts.items())
    said = ", ".join(f"{name.partition(chr(10))[0]} {part:.2f}"
                     for name, (part,) in parts.items()
                     if not name.startswith(("data", "adam")))
    return look.finish(
        figure, f"Compared with one rank alone, a rank needs: {said}.",
        f"Memory of the rank that needs most, one rank alone being 1: "
        f"{each}.", legend=2)


def predicted_s(row) -> float:
    """The seconds of a step: its products, and then its messages."""
    return float(np.median(row["metrics.products_s"])
                 + np.median(row["metrics.messages_s"]))


def errors(rows) -> list[float]:
    """How far the predicted steps are from the measured, as parts of 1."""
    return [abs(predicted_s(row) / float(np.median(row["step_s"])) - 1)
            for _, row in rows.iterrows()]


def ratios(rows) -> tuple[dict, dict]:
    """Divide tensor's step by data's, for each batch / width: measured, with
    its interval, and predicted; the (geometric) mean of the widths."""
    rounds: dict[float, list] = {}
    guessed: dict[float, list] = {}
    for (width, batch), group in rows.groupby(["metrics.width",
                                               "metrics.batch"]):
        way = {row["variant"]: row for _, row in group.iterrows()}
        steps = {name: np.array(row["step_s"]) for name, row in way.items()}
        part = batch / width
        rounds.setdefault(part, []).append(
            np.log(steps["tensor"] / steps["data"]))
        guessed.setdefault(part, []).append(
            np.log(predicted_s(way["tensor"]) / predicted_s(way["data"])))
    measured = {}
    for part in sorted(rounds):
        each = np.exp(np.mean(rounds[part], axis=0))  # (rounds,)
        measured[part] = between(each, np.ones_like(each))
    return measured, {part: float(np.exp(np.mean(guessed[part])))
                      for part in sorted(guessed)}


def crossing(times: dict) -> float:
    """Find the batch / width at which tensor's step begins to take longer
    than data's; nan where it never does."""
    x, y = np.log([list(times), list(times.values())])
    for k in range(len(x) - 1):
        if y[k] <= 0 < y[k + 1]:
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


def _whose_step(measured: dict, predicted: dict) -> str:
    """Say where data parallelism is faster, measured with the interval of
    that place, and predicted."""
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
            f"predicted: {_where(predicted)}.")


def which_when(rows) -> str:
    """Say where a step of data parallelism is the shorter one, measured and
    predicted, and how far the predicted steps were off."""
    measured, predicted = ratios(rows)
    shown = {"data": 0, "tensor": 0}
    for ratio in measured.values():
        shown["data"] += ratio.low > 1
        shown["tensor"] += ratio.high < 1
    off = errors(rows)
    return (f"{_whose_step(measured, predicted)} Of {len(measured)} ratios of "
            "batch to width, data parallelism is shown to be faster at "
            f"{shown['data']}, tensor parallelism at {shown['tensor']}. "
            f"A predicted step is {100 * np.median(off):.0f} % off in the "
            f"median, {100 * max(off):.0f} % at most.")


@look.style
def crossover(records, guess: float | None = None):
    """Draw how long a step of tensor parallelism takes beside one of data
    parallelism, over batch / width: predicted and measured."""
    measured, predicted = ratios(records)
    parts = list(measured)
    figure, axes = plt.subplots(figsize=(7, 4.4))
    primitives.ideal(axes, parts, list(predicted.values()),
                     "predicted: products, then messages")
    ends = []
    for nth, (part, ratio) in enumerate(measured.items()):
        if ratio.low > 0 and ratio.high < 100:
            ends += [ratio.low, ratio.high]
            axes.plot([part] * 2, ends[-2:], color="black", marker="_",
                      label="95 % interval" * (nth == 0))
    middle = {part: ratio.middle for part, ratio in measured.items()}
    primitives.line(axes, parts, list(middle.values()),
                    "measured, mean of the widths", linestyle="")
    axes.axhline(1, color=look.GREY, linewidth=1)
    look.guess_line(axes, guess, upright=True)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log", base=2)
    axes.set_xticks(parts, [f"{part:g}" for part in parts])
    every = [*ends, *middle.values(), *predicted.values()]
    ticks = [tick for tick in (0.25, 0.5, 0.7, 1, 1.4, 2, 4, 8)
             if 0.8 * min(every) < tick < 1.25 * max(every) or tick == 1]
    axes.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.set_ylim(min(0.65, 0.8 * min(every)), max(1.5, 1.25 * max(every)))
    axes.minorticks_off()
    axes.set(xlabel="batch / width",
             ylabel="step time, tensor / data")
    return look.finish(figure, _whose_step(measured, predicted), legend=2)


def _reached(curve, column: int, loss: float) -> float:
    """Find the seconds (column 0) or gradients (1) at which a curve first
    comes down to a loss."""
    k = int(np.argmax(curve[:, 2] <= loss))
    if k == 0:
        return float(curve[0, column])
    (x0, y0), (x1, y1) = curve[k - 1:k + 1, [column, 2]]
    return float(x0 + (x1 - x0) * (y0 - loss) / (y0 - y1))


def _spread(values) -> str:
    """Say the median, and between which two all rounds lie."""
    if len(values) == 1:
        return f"{values[0]:.2f}"
    return (f"{np.median(values):.2f} ({values.min():.2f} to "
            f"{values.max():.2f})")


def _curves(axes, runs, label: str, nth: int) -> None:
    """Draw runs whose points lie at different places as small points, and
    their median where all of them reach."""
    own = {**look.LINES[nth], "marker": ""}
    for x, y in runs:
        axes.plot(x, y, ".", color=own["color"], markersize=2,
                  antialiased=False)
    at = np.linspace(max(x[0] for x, _ in runs), min(x[-1] for x, _ in runs),
                     60)
    middle = np.median([np.interp(at, x, y) for x, y in runs], axis=0)
    axes.plot(at, middle, label=label, linewidth=2.5, **own)


@look.style
def sync_or_async(records, guess: float | None = None):
    """Draw the loss of workers that wait for each other and of workers that
    do not, over time and over gradients."""
    curves = {rule: [np.array(curve, float) for curve in each]  # (points, 3)
              for rule, each in records.groupby("variant")["metrics.curve"]}
    # The lowest that all rounds have come to.
    loss = max(curve[:, 2].min() for each in curves.values()
               for curve in each)
    figure, panels = plt.subplots(1, 2, figsize=(8, 4.4), sharey=True)
    times = []
    names = {"async": "nobody waits", "sync": "all wait"}
    for column, axes in enumerate(panels):
        at = {rule: np.array([_reached(curve, column, loss)
                              for curve in each])
              for rule, each in curves.items()}
        times.append(_spread(at["sync"] / at["async"]))
        for nth, (rule, name) in enumerate(names.items()):
            _curves(axes, [(curve[:, column], curve[:, 2])
                           for curve in curves[rule]], name, nth)
        axes.axhline(loss, color=look.GREY, linewidth=1)
        if column == 0 and guess is not None:
            look.guess_star(axes, guess * float(np.median(at["async"])),
                            loss, f"{guess:g} times as long")
    left, right = panels
    left.set(xlabel="time (s)", ylabel="loss on the test images (log scale)",
             yscale="log", xlim=(0, None))
    ticks = [tick for tick in (0.1, 0.2, 0.3, 0.5, 1, 2)
             if loss <= tick <= left.get_ylim()[1]]
    left.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
    left.minorticks_off()
    right.set(xlabel="number of gradients used", xlim=(0, None))
    return look.finish(
        figure, f"To reach a loss of {loss:.2f}, waiting takes {times[0]} "
        f"times as long, and {times[1]} times the gradients, over "
        f"{len(curves['sync'])} rounds.", legend=3)
