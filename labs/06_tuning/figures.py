"""The figures of 06_tuning: what the made digits are worth, where the time
goes, what each step gained, and how accuracy and memory went on."""

import math
import statistics
from textwrap import fill

import matplotlib.pyplot as plt
import numpy as np
from scipy.special import stdtrit

from scaleout.plots import look, primitives
from scaleout.words import count

SHARES = {
    "train_s": ("trains", {"color": look.DARK}),
    "input_s": ("gets its input", {"color": look.LIGHT, "hatch": "//"}),
    "evaluation_s": ("evaluates", {"color": look.MIDDLE}),
    "wait_s": ("waits for others", look.WAITING),
}
BAR = {"width": 0.62, "edgecolor": look.INK}


@look.style
def with_and_without(records, guess: float | None = None):
    """Draw the accuracy that each seed reaches, from the labelled images
    alone and with the GAN."""
    found: dict[int, dict] = {}
    for _, row in records.iterrows():
        percent = 100 * row["metrics"]["accuracy"][-1]
        found.setdefault(row["seed"], {})[row["variant"]] = percent
    pairs = []  # (seeds, 2): alone, with the GAN
    for accuracy in found.values():
        alone = accuracy.pop("supervised", None)
        if alone is not None and accuracy:
            pairs.append((alone, *accuracy.values()))
    labels = len(records["metrics"].iloc[0]["labelled"])
    figure, axes = plt.subplots(figsize=(6.8, 4.2))
    for nth, pair in enumerate(pairs):
        axes.plot([0, 1], pair, "o-", color=look.DARK, linewidth=1.2,
                  label="" if nth else "a seed")
    means = [statistics.fmean(each) for each in zip(*pairs, strict=True)]
    for place, mean in enumerate(means):
        axes.plot([place - 0.12, place + 0.12], [mean] * 2, linewidth=4,
                  color=look.MIDDLE, label="" if place else "mean")
        axes.annotate(f"{mean:.1f} %", (place, mean), (88 * place - 44, 0),
                      textcoords="offset points", va="center",
                      ha="left" if place else "right")
    if guess is not None:
        axes.plot([0, 1], [means[0], means[0] + guess], color=look.MIDDLE,
                  linestyle=":", linewidth=2,
                  label=f"your guess: {guess:g} points more")
    axes.set_xticks([0, 1], [f"{labels} labels alone",
                             f"{labels} labels and the GAN"])
    axes.set(ylabel="accuracy on the test images (%)", xlim=(-0.55, 1.55))
    gains = [both - alone for alone, both in pairs]
    return look.finish(
        figure, f"{labels} labels, {count(len(gains), 'seed')}: "
        f"{gain_in_words(gains)}", f"On average {means[0]:.1f} % alone, and "
        f"{means[1]:.1f} % with the GAN.", legend=3)


def gain_in_words(gains) -> str:
    """Say what the GAN adds to each seed's accuracy, with its 95 % interval,
    and what follows."""
    middle = statistics.fmean(gains)
    if len(gains) < 3:
        return f"{middle:+.1f} points with the GAN. So few tell too little."
    error = statistics.stdev(gains) / math.sqrt(len(gains))
    half = float(stdtrit(len(gains) - 1, 0.975)) * error
    follows = "no gain is shown."
    if middle > half:
        follows = "it earns its place."
    if middle < -half:
        follows = "it does harm."
    return (f"{middle:+.1f} points with the GAN ({middle - half:+.1f} to "
            f"{middle + half:+.1f}), so {follows}")


@look.style
def made_digits(records):
    """Draw what the generator makes of the same noise as it learns, from left
    to right."""
    job = records["metrics"].iloc[0]
    pictures = {f"after {at_s:.0f} s": 1 - np.array(picture) / 255
                for picture, at_s in zip(job["samples"], job["samples_at_s"],
                                         strict=True)}
    figure = primitives.images(pictures, 3 * len(pictures))
    return look.finish(
        figure, "What the generator makes of the same noise.", "From left "
        f"to right: {', '.join(pictures)}.")


@look.style
def time_shares(records, guess: float | None = None):
    """Draw where the time of each rank goes. A panel for each job."""
    size = (7.4, 2 + 1.15 * len(records))
    figure, panels = primitives.panels(records, size, down=True)
    found = []
    for (name, axes), frame in zip(panels.items(), records.values(),
                                   strict=True):
        rows = []
        for share in frame["metrics.shares"].iloc[0]:
            whole = sum(share[part] for part in SHARES)
            rows.append({part: 100 * share[part] / whole for part in SHARES})
        primitives.stacked(axes, rows, SHARES, text="{:.0f} %")
        axes.set_yticks(range(len(rows)),
                        [f"rank {rank}" for rank in range(len(rows))])
        most = max(range(len(rows)), key=lambda rank: rows[rank]["wait_s"])
        found.append(f"{name}: rank 0 trains in {rows[0]['train_s']:.0f} % of "
                     f"its time, rank {most} waits in "
                     f"{rows[most]['wait_s']:.0f} %")
    look.guess_line(next(iter(panels.values())), guess, upright=True,
                    unit="%")
    axes.set(xlabel="share of the whole time (%)", xlim=(0, 100))
    return look.finish(figure, f"{'. '.join(found)}.", legend=5)


@look.style
def kept_steps(steps, guess: str | None = None):
    """Draw what each step of a tuning was worth, each beginning where the
    ones before have got to."""
    names = ["first written", *steps, "all kept"]
    last = len(names) - 1
    figure, axes = plt.subplots(figsize=(1.6 + 1.25 * len(names), 4.4))
    level = 1.0
    top = 1.0
    kept = 0
    each = []
    for place, (name, found) in enumerate(steps.items(), 1):
        axes.plot([place - 0.69, place + 0.31], [level] * 2, color=look.GREY,
                  linewidth=0.8)
        better = found.best != found.baseline
        best = found.best if better else max(
            found.variants, key=lambda name: found.ratio(name).middle)
        ratio = found.ratio(best)
        low, middle, high = (level * end for end in
                             (ratio.low, ratio.middle, ratio.high))
        if better:
            axes.bar(place, middle - level, bottom=level, color=look.LIGHT,
                     **BAR)
        primitives.interval(axes, place, low, middle, high, upright=True,
                            color="black", linewidth=1.5,
                            markerfacecolor=look.DARK if better else "white")
        end = high if math.isfinite(high) else middle
        verdict = f"{ratio.middle:.2f}x" + ",\nnot kept" * (not better)
        axes.annotate(f"{fill(best, 16)}\n{verdict}", (place, end), (0, 5),
                      ha="center", textcoords="offset points", fontsize=9)
        each.append(f"{name}: {found.sentence(best)}")
        if better:
            level = middle
            kept += 1
        top = max(top, end)
    for place, height in ((0, 1.0), (last, level)):
        axes.bar(place, height, color=look.DARK, **BAR)
        axes.annotate(f"{height:.1f}x", (place, height), (0, 4), ha="center",
                      textcoords="offset points")
    look.guess_name(axes, names, guess, 0.05)
    axes.set_xticks(range(len(names)), [fill(name, 12) for name in names])
    axes.set(ylabel="times as fast as first written", ylim=(0, 1.3 * top))
    axes.grid(axis="x", visible=False)
    return look.finish(
        figure, f"{kept} of {count(len(steps), 'step')} kept; together they "
        f"promise {level:.1f}x.", " ".join(each),
        legend=1 if guess is not None else 0)


@look.style
def accuracy_over_time(records, goal: float):
    """Draw the accuracy on the test images over the seconds of the whole
    job, a line for each run, and say when each job reached a goal in %."""
    figure, axes = plt.subplots(figsize=(7.4, 4.4))
    reached = {}
    ends = []
    for nth, (name, frame) in enumerate(records.items()):
        runs = [(job["at_s"], [100 * share for share in job["accuracy"]])
                for job in frame["metrics"]]
        for run, (at_s, percent) in enumerate(runs):
            primitives.line(axes, at_s, percent, "" if run else name, nth,
                            markersize=3, linewidth=1)
        reached[name] = [
            next((second for second, value in zip(*run, strict=True)
                  if value >= goal), math.inf) for run in runs
        ]
        last = statistics.median(percent[-1] for _, percent in runs)
        ends.append(f"{name} ends at {last:.1f} %, in the median.")
    axes.axhline(goal, color=look.INK, linestyle="--", linewidth=1,
                 label=f"goal: {goal:g} %")
    axes.set(xlabel="time since the start of the training (s)",
             xlim=(0, None), ylabel="accuracy on the test images (%)")
    return look.finish(figure, first_to_reach(reached, goal),
                       " ".join(ends), legend=4)


def first_to_reach(reached, goal: float) -> str:
    """Say when each job reached a goal, and which was first, if no run of
    another was as early as its latest."""
    said = []
    for name, seconds in sorted(reached.items(), key=lambda pair:
                                statistics.median(pair[1])):
        middle = statistics.median(seconds)
        if math.isinf(middle):
            said.append(f"{name} not in most runs")
        else:
            ends = [f"{end:.1f}" if math.isfinite(end) else "never"
                    for end in (min(seconds), max(seconds))]
            said.append(f"{name} after {middle:.1f} s ({' to '.join(ends)})")
    order = sorted(reached, key=lambda name: max(reached[name]))
    others = [min(reached[name]) for name in order[1:]]
    known = len(reached[order[0]]) >= 3 and others
    first = "No job is shown to be the first"
    if known and max(reached[order[0]]) < min(others):
        first = f"{order[0][0].upper()}{order[0][1:]} is the first"
    return f"{first} to reach {goal:g} %: {'; '.join(said)}."


def images_to_reach(records, goal: float) -> str:
    """Say how many images each job took to reach a goal in %, and how many
    it trained on in a second of the whole job, in which graphs are built
    too: the time is the one over the other."""
    said = []
    for name, frame in records.items():
        images = []
        rates = []
        for _, row in frame.iterrows():
            job = row["metrics"]
            each = row["batch_global"]
            rates.append(each * job["at_step"][-1] / job["at_s"][-1])
            images.append(next(
                (each * step for step, share in
                 zip(job["at_step"], job["accuracy"], strict=True)
                 if 100 * share >= goal), math.inf))
        rate = f"{statistics.median(rates):,.0f} images/s"
        middle = statistics.median(images)
        needs = f"{middle:,.0f} images"
        if math.isinf(middle):
            needs = "more images than most of its runs had"
        said.append(f"{name} needs {needs}, at {rate}")
    return (f"To reach {goal:g} %: {'; '.join(said)}, with the building of "
            "the graphs counted.")


def doubt_in_words(records) -> str:
    """Say how far two jobs may differ by the choice of test images alone."""
    job = next(iter(records.values()))["metrics"].iloc[0]
    tested = sum(share["tested"] for share in job["shares"])
    p = job["accuracy"][-1]
    points = 100 * 1.96 * math.sqrt(2 * p * (1 - p) / tested)
    return (f"With {tested:,} test images, two jobs as good as each other may "
            f"end up to {points:.1f} points apart (95 %).")


@look.style
def memory_over_time(records):
    """Draw the resident memory of each rank, from one evaluation to the
    next, and say whether it grows. Rank 0 has the thick line."""
    figure, axes = plt.subplots(figsize=(7.4, 4.2))
    found = []
    for nth, (name, frame) in enumerate(records.items()):
        gains = []  # of rank 0 in each run
        for run, job in enumerate(frame["metrics"]):
            for rank, share in enumerate(job["shares"]):
                mib = np.array(share["rss_mib"], float)[:, 1]
                label = name if run == rank == 0 else ""
                primitives.line(axes, np.arange(1, len(mib) + 1), mib, label,
                                nth, markersize=3,
                                linewidth=0.8 if rank else 2)
                later = mib[len(mib) // 2:]  # first come graphs and buffers
                if rank == 0 and len(later) > 1:
                    steps = np.arange(len(later))
                    gains.append(np.polyfit(steps, later, 1)[0])
        found.append(f"{name}: {growth_in_words(gains)}")
    # From zero, so that what looks like a climb is one.
    axes.set(xlabel="evaluation (number)",
             ylabel="resident memory of a rank (MiB)",
             ylim=(0, 1.15 * axes.get_ylim()[1]))
    axes.locator_params(axis="x", integer=True)
    return look.finish(
        figure, "What rank 0 gains with each evaluation, in the later half "
        f"of the job. {' '.join(found)}", legend=4)


def growth_in_words(gains) -> str:
    """Say whether the memory grows, from the MiB that each run gains with
    an evaluation."""
    if len(gains) < 3:
        return "too few runs to tell."
    middle = statistics.fmean(gains)
    error = statistics.stdev(gains) / math.sqrt(len(gains))
    half = float(stdtrit(len(gains) - 1, 0.975)) * error
    said = f"{middle:.2f} MiB ({middle - half:.2f} to {middle + half:.2f})"
    if middle > half:
        return f"{said}, so it grows."
    return f"{said}, so no growth is shown."
