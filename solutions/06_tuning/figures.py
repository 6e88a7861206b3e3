"""The figures of 06_tuning: where the time goes, what each step gained, and
how accuracy and memory went on."""

import math
import statistics
from textwrap import fill

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.ticker import LogLocator, NullLocator

from scaleout.base.words import count, rounded
from scaleout.comparisons.intervals import mean_interval, verdict
from scaleout.plots import look, primitives

ENOUGH = 12  # evaluations, to tell how memory goes on
SHARES = {
    "train_s": ("trains", {"color": look.DARK}),
    "input_s": ("gets its input", {"color": look.LIGHT, "hatch": "//"}),
    "evaluation_s": ("evaluates", {"color": look.MIDDLE}),
    "wait_s": ("waits for others", look.WAITING),
}


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
    axes.set(xlabel="share of the time after the first step (%)",
             xlim=(0, 100))
    return look.finish(figure, f"{'. '.join(found)}.", legend=5)


def trained(records) -> float:
    """The share of rank 0's time in which it trains."""
    share = records["metrics.shares"].iloc[0][0]
    return share["train_s"] / sum(share[part] for part in SHARES)


def most_to_gain(records) -> str:
    """Say what a profile allows: all but training may go."""
    share = trained(records)
    return (f"Rank 0 trains in {100 * share:.0f} % of its time, so without "
            f"all the rest the job is 1 / {share:.2f} = {1 / share:.1f} times "
            "as fast, at most, by this one run.")


def beside_the_bound(records, found) -> str:
    """Say how the fastest variant stands to what the profile allowed."""
    most, best = 1 / trained(records), found.best
    if best == found.baseline or found.rounds < 3:
        return f"The profile allowed {most:.1f} times; nothing is shown."
    ratio = found.ratio(best)
    got = f"{ratio.middle:.2f} times ({ratio.low:.2f} to {ratio.high:.2f})"
    said = "that is all of it, as far as these rounds tell."
    if ratio.high < most:
        said = "the rest of that time is still not spent on training."
    elif ratio.low > most:
        said = "more than that, but it is of short runs, not of a whole job."
    return (f"The profile allowed {most:.1f} times. {best} gives {got}: "
            f"{said}")


def what_gaps_brought(found) -> str:
    """Say what each gap of step 1 brought, and why where it is nothing."""
    def compared(variant: str, other: str) -> tuple[str, str]:
        ratio = found.between(variant, other)
        times = f"{ratio.middle:.2f} times as fast as {other[2:]}"
        if np.isfinite(ratio.high):
            times += f" ({ratio.low:.2f} to {ratio.high:.2f})"
        return verdict(ratio, found.noise), times

    word, times = compared("+ compiled", "+ on batch")
    graph = f"Your first gap is {times}"
    if word not in ("faster", "slower"):
        graph += (", not shown to be faster: today's predict_on_batch runs "
                  "a graph, too")
    graph += f". It is {compared('+ compiled', '+ eager')[1]}."
    word, times = compared("+ shared", "+ compiled")
    share = f"Your second gap is {times}"
    if word not in ("faster", "slower"):
        share += (", not shown to be faster: the ranks share only what a "
                  "graph's evaluation still takes")
    return f"{graph}\n{share}."


@look.style
def ranks_threads(grid, guess: str | None = None):
    """Draw a sweep over ranks and threads as a map of images/s; what failed
    is white. guess: a pair, such as "2 x 1"."""
    frame = grid.frame
    cells = {(int(ranks), int(threads)): rate for ranks, threads, rate in
             zip(frame.ranks, frame.threads, frame.rate, strict=True)}
    known = {pair: rate for pair, rate in cells.items() if rate == rate}
    said = "No setting gave a rate."
    if known:
        best = [max((pair for pair in known if pair[0] == ranks),
                    key=known.get) for ranks in sorted({r for r, _ in known})]
        each = [f"{ranks} x {threads} with {rounded(known[ranks, threads])}"
                for ranks, threads in best]
        said = ("The best of single runs, for each number of ranks: "
                f"{', '.join(each)} images/s.")
    failed = len(cells) - len(known)
    said += f" {failed} of {len(cells)} settings failed." * bool(failed)
    return pairs_map(cells, ("ranks (count)",
                             "threads of each rank (count)"),
                     "images/s", said, guess)


def pairs_map(cells, labels, unit: str, said: str, guess: str | None):
    """Draw a value for each pair of numbers: {(row, column): value}."""
    rows = sorted({row for row, _ in cells})
    columns = sorted({column for _, column in cells})
    values = np.full((len(rows), len(columns)), np.nan)
    for (row, column), value in cells.items():
        values[rows.index(row), columns.index(column)] = value
    figure, axes = plt.subplots(figsize=(6, 1.8 + 0.8 * len(rows)))
    missing = [["fails"] * len(columns)] * len(rows)
    primitives.heat(figure, axes, values, list(map(str, rows)),
                    list(map(str, columns)), unit, missing=missing)
    axes.set(xlabel=labels[1], ylabel=labels[0])
    spots = {f"{row} x {column}": (x + 0.3, y + 0.25)
             for y, row in enumerate(rows) for x, column in enumerate(columns)}
    if guess is not None:
        look.guess_star(axes, *spots.get(guess, (np.nan, np.nan)), guess)
    each = [f"{row} x {column}: "
            f"{'fails' if np.isnan(value) else rounded(value)}"
            for (row, column), value in cells.items()]
    return look.finish(figure, said, f"{'; '.join(each)}.", legend=1)


@look.style
def kept_steps(tuning, guess: str | None = None,
               guess_whole: float | None = None):
    """Draw what each step of a tuning was worth, each beginning where the
    ones before have got to; then what they promise together, and what whole
    jobs gave."""
    steps, chosen = tuning.steps, tuning.choices
    names = ["first written", *steps, "promised", "whole job"]
    figure, axes = plt.subplots(figsize=(1.6 + 1.1 * len(names), 4.8))
    shown = {}
    dropped = []
    each = []
    level = 1.0
    ends = {"first written": 1.0}  # where the words of each begin
    for name, found in steps.items():
        best = chosen[name]
        if best == found.baseline:
            best = max(found.variants, key=lambda x: found.ratio(x).middle)
            dropped.append(name)
        ratio = found.ratio(best)
        kept = f"{ratio.middle:.2f}x" + ",\nnot kept" * (name in dropped)
        shown[name] = (ratio, f"{fill(best, 14)}\n{kept}")
        high = ratio.high if math.isfinite(ratio.high) else ratio.middle
        ends[name] = level * max(1.0, high)
        level *= 1 if name in dropped else ratio.middle
        each.append(f"{name}: {found.sentence(best)}")
    _, top = primitives.waterfall(axes, shown, dropped)
    axes.annotate("1.0x", (0, 1), (0, 4), ha="center",
                  textcoords="offset points")
    for place, ratio in enumerate((tuning.promised, tuning.measured),
                                  len(names) - 2):
        axes.bar(place, ratio.middle, color=look.DARK, **primitives.STEP)
        primitives.interval(axes, place, ratio.low, ratio.middle, ratio.high,
                            upright=True, color=look.INK,
                            markerfacecolor="white")
        end = ratio.high if math.isfinite(ratio.high) else ratio.middle
        axes.annotate(f"{ratio.middle:.1f}x", (place, end), (0, 5),
                      ha="center", textcoords="offset points")
        top = max(top, end)
    if guess_whole is not None:
        top = max(top, guess_whole)
        look.guess_star(axes, len(names) - 1.32, guess_whole,
                        f"{guess_whole:g} times, whole job")
    at = look.find_name([*ends], guess) if guess is not None else None
    height = [*ends.values()][at] / top if at is not None else 0.95
    look.guess_name(axes, names, guess, min(0.95, height / 1.45 + 0.2))
    axes.set_xticks(range(len(names)), [fill(name, 12) for name in names])
    axes.set(ylabel="times as fast as first written", ylim=(0, 1.45 * top))
    count_kept = len(steps) - len(dropped)
    return look.finish(
        figure, f"{count_kept} of {count(len(steps), 'step')} kept. "
        f"{promise(tuning.promised, tuning.measured)}", " ".join(each),
        legend=sum(one is not None for one in (guess, guess_whole)))


def promise(promised, measured) -> str:
    """Say whether whole jobs gave what the steps promised together."""
    def of(ratio) -> str:
        if not math.isfinite(ratio.high):
            return f"{ratio.middle:.1f}x"
        return f"{ratio.middle:.1f}x ({ratio.low:.1f} to {ratio.high:.1f})"

    apart = math.log(promised.middle / measured.middle)
    doubt = math.hypot(math.log(promised.high / promised.middle),
                       math.log(measured.high / measured.middle))
    said = "the two are not told apart."
    if not math.isfinite(doubt):
        said = "too few rounds to tell."
    elif abs(apart) > doubt:
        said = f"the steps promised too {'much' if apart > 0 else 'little'}."
    return f"Promised {of(promised)}, measured {of(measured)}: {said}"


def stored_elsewhere(others) -> str:
    """Say how many times as fast tuning made the job in stored runs."""
    said = []
    for other in others:
        ratio = other.found.ratio("tuned")
        said.append(f"{ratio.middle:.1f} times as fast as first written "
                    f"({ratio.low:.1f} to {ratio.high:.1f}) on {other.name}")
    if not said:
        return "Stored runs: none."
    return ("Stored runs, one bound rank on each core, a cycle of 4 ms, "
            f"evaluation shared: {'; '.join(said)}.")


@look.style
def accuracy_over_time(records, goal: float):
    """Draw the accuracy on the test images over the seconds of the whole
    job, thin for each run and thick for their median, and say when each job
    reached a goal in %."""
    figure, axes = plt.subplots(figsize=(7.4, 4.4))
    reached = {}
    ends = []
    for nth, (name, frame) in enumerate(records.items()):
        runs = [(job["at_s"], [100 * share for share in job["accuracy"]])
                for job in frame["metrics"]]
        for at_s, percent in runs:
            own = look.LINES[nth % len(look.LINES)]
            axes.plot(at_s, percent, color=own["color"], linewidth=0.5,
                      linestyle=own["linestyle"], alpha=0.5)
        both = [np.median(each, axis=0) for each in zip(*runs, strict=True)]
        primitives.line(axes, *both, name, nth, linewidth=1.8)
        reached[name] = [
            next((second for second, value in zip(*run, strict=True)
                  if value >= goal), math.inf) for run in runs
        ]
        last = statistics.median(percent[-1] for _, percent in runs)
        ends.append(f"{name} ends at {last:.1f} %, in the median.")
    axes.axhline(goal, color=look.INK, linestyle="--", linewidth=1,
                 label=f"goal: {goal:g} %")
    axes.set(xlabel="time since the start of the training (s)",
             xscale="log", ylabel="accuracy on the test images (%)")
    axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.xaxis.set_major_formatter("{x:g}")
    axes.xaxis.set_minor_locator(NullLocator())
    return look.finish(figure, first_to_reach(reached, goal),
                       " ".join(ends), legend=4)


def first_to_reach(reached, goal: float) -> str:
    """Say when each job reached a goal, and which was first, if no run of
    another was as early as its latest; else which was last."""
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
    rank = "No job is shown to be the first or the last"
    ends = {name: max(own) for name, own in reached.items()}
    late = max(reached, key=lambda name: min(reached[name]))
    if known and max(reached[order[0]]) < min(others):
        rank = f"{order[0][0].upper()}{order[0][1:]} is the first"
    elif known and min(reached[late]) > max(
            end for name, end in ends.items() if name != late):
        rank = f"{late[0].upper()}{late[1:]} is the last"
    return f"{rank} to reach {goal:g} %: {'; '.join(said)}."


def images_to_reach(records, goal: float) -> str:
    """Say how many images each job took to reach a goal in %, and how many
    it trained on in a second until then, in which graphs are built too: the
    time is the one over the other."""
    said = []
    for name, frame in records.items():
        images = []
        rates = []
        for _, row in frame.iterrows():
            job = row["metrics"]
            done = [row["batch_global"] * step for step in job["at_step"]]
            there = [100 * share >= goal for share in job["accuracy"]]
            at = there.index(True) if any(there) else -1
            images.append(done[at] if any(there) else math.inf)
            rates.append(done[at] / job["at_s"][at])
        rate = f"{statistics.median(rates):,.0f} images/s"
        middle = statistics.median(images)
        needs = f"{middle:,.0f} images"
        if math.isinf(middle):
            needs = "more images than most of its runs had"
        said.append(f"{name} needs {needs}, at {rate}")
    return (f"To reach {goal:g} %: {'; '.join(said)}, with the building of "
            "the graphs counted.")


def doubt_in_words(records) -> str:
    """Say how uncertain an accuracy is by the choice of test images alone."""
    job = next(iter(records.values()))["metrics"].iloc[0]
    tested = sum(share["tested"] for share in job["shares"])
    p = job["accuracy"][-1]
    points = 100 * 1.96 * math.sqrt(p * (1 - p) / tested)
    return (f"With {tested:,} test images, an accuracy is uncertain by "
            f"{points:.1f} points (95 %).")


@look.style
def memory_over_time(records):
    """Draw the resident memory of each rank, from one evaluation to the
    next, and say whether that of rank 0 grows more than that of ranks that
    test nothing. A panel for each job, of which there are several runs."""
    figure, panels = primitives.panels(records, (7.4, 3.8))
    found = []
    for (name, axes), runs in zip(panels.items(), records.values(),
                                  strict=True):
        gains = []  # of rank 0 in each run, less that of the others
        jobs = [job for frame in runs for job in frame["metrics"]]
        for run, job in enumerate(jobs):
            own = []  # of each rank
            for rank, share in enumerate(job["shares"]):
                mib = np.array(share["rss_mib"], float)[:, 1]
                label = "rank 0" if rank == 0 else "the other ranks"
                first = run == 0 and axes is next(iter(panels.values()))
                means = pairs_of(mib)
                primitives.line(axes, 2 * np.arange(len(means)) + 3.5, means,
                                label if first and rank < 2 else "",
                                min(rank, 1), markersize=3, linewidth=1)
                own.append(gain(mib) if len(mib) >= ENOUGH else math.nan)
            if len(own) > 1 and math.isfinite(sum(own)):
                gains.append(own[0] - statistics.fmean(own[1:]))
        found.append(f"{name}: {growth_in_words(gains)}")
        axes.set(xlabel="evaluation (number; mean of two)")
        axes.locator_params(axis="x", integer=True)
    next(iter(panels.values())).set_ylabel("resident memory (MiB)")
    shown = "Growth" if any("GiB" in one for one in found) else "No growth"
    return look.finish(
        figure, f"{shown} is shown. What rank 0 gains with each evaluation, "
        f"more than ranks that test nothing: {'; '.join(found)}.", legend=4)


def pairs_of(mib) -> np.ndarray:
    """The means of two neighbours, after the first two evaluations, in which
    graphs and buffers come.

    Memory that is taken by one evaluation and given back by the next is no
    gain.
    """
    later = np.asarray(mib)[2:]
    return later[:len(later) // 2 * 2].reshape(-1, 2).mean(axis=1)


def gain(mib) -> float:
    """Find the MiB that are gained with an evaluation."""
    pairs = pairs_of(mib)
    return float(np.polyfit(2 * np.arange(len(pairs)), pairs, 1)[0])


def growth_in_words(gains) -> str:
    """Say what each run gains with an evaluation, in MiB, and how much that
    is in a thousand if it is shown to grow."""
    if len(gains) < 3:
        return "too few runs to tell"
    middle, half = mean_interval(gains)
    said = f"{middle:.2f} MiB ({middle - half:.2f} to {middle + half:.2f})"
    if middle > half:
        return f"{said}, {middle * 1000 / 1024:.1f} GiB in a thousand"
    return said


def ranks_that_fit(records, gib: float) -> str:
    """Say what a rank took at most, and how many such ranks fit in so many
    GiB: a tenth of it is left to the system."""
    job = records["metrics"].iloc[0]
    peak = max(share["peak_mib"] for share in job["shares"]) / 1024
    return (f"At {job['side']} x {job['side']} pixels a rank took up to "
            f"{peak:.2f} GiB: {int(0.9 * gib / peak)} of them fit in nine "
            f"tenths of this machine's {gib:.0f} GiB.")


@look.style
def with_and_without(jobs, guess: float | None = None):
    """Draw the accuracy of each seed, from the labelled images alone and with
    all images. jobs: {(seed, labels alone): records}."""
    ends = {key: 100 * frame["metrics"].iloc[0]["accuracy"][-1]
            for key, frame in jobs.items()}
    pairs = [(ends[seed, True], ends[seed, False])
             for seed, alone in ends if alone]
    figure, axes = plt.subplots(figsize=(6.4, 3.8))
    for nth, pair in enumerate(pairs):
        axes.plot([0, 1], pair, "o-", color=look.DARK, linewidth=1.2,
                  label="a seed" if nth == 0 else "")
    means = [statistics.fmean(each) for each in zip(*pairs, strict=True)]
    for place, mean in enumerate(means):
        axes.plot([place - 0.12, place + 0.12], [mean] * 2, linewidth=4,
                  color=look.MIDDLE, label="mean" if place == 0 else "")
    if guess is not None:
        axes.plot([0, 1], [means[0], means[0] + guess], ":", linewidth=2,
                  color=look.MIDDLE, label=f"your guess: {guess:g} points")
    labels = len(next(iter(jobs.values()))["metrics"].iloc[0]["labelled"])
    axes.set_xticks([0, 1], [f"{labels} labels alone",
                            f"{labels} labels and all other images"])
    axes.set(ylabel="accuracy on the test images (%)", xlim=(-0.4, 1.4))
    said = f"{means[1] - means[0]:+.1f} points"
    if len(pairs) < 3:
        said += ": too few seeds to tell."
    else:
        middle, half = mean_interval([there - here for here, there in pairs])
        said += f" ({middle - half:+.1f} to {middle + half:+.1f}), "
        said += ("so images without a label help." if middle > half else
                 "so no gain is shown." if middle > -half else
                 "so images without a label harm.")
    return look.finish(
        figure, f"{count(len(pairs), 'seed')}, {labels} labels: {said}",
        f"{means[0]:.1f} % from the labels alone, {means[1]:.1f} % with all "
        "images, on average.", legend=3)
