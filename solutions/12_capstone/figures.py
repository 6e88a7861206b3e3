"""The figures of 12_capstone: the patients, what a network finds in them, what
each choice is worth over the seeds, and where the time of the first version
went."""

import math
import statistics
from textwrap import fill

import matplotlib.pyplot as plt
import numpy as np

from scaleout.comparisons.intervals import mean_interval
from scaleout.plots import look, primitives
from scaleout.words import count

SIZES = {"1 to 20": (1, 20), "21 to 60": (21, 60), "61 and more": (61, 10**6)}
LOSSES = ("cross-entropy", "dice", "jaccard", "tversky")
SHOWN = (-160, 240)  # Hounsfield units: what a radiologist looks at
SHARES = {
    "train_s": ("trains", {"color": look.DARK}),
    "input_s": ("gets its input", {"color": look.LIGHT, "hatch": "//"}),
    "evaluation_s": ("evaluates", {"color": look.MIDDLE}),
    "checkpoint_s": ("keeps checkpoints", {"color": look.GOLD}),
    "wait_s": ("waits for others", look.WAITING),
}
TRUTH = {"colors": [look.GOLD], "linewidths": 1.6}
FOUND = {"colors": [look.MIDDLE], "linewidths": 1.6, "linestyles": "--"}


def outline(axes, pixels, how):
    """The outline of some pixels, (64, 64), if there are any."""
    if pixels.any():
        axes.contour(pixels, [0.5], **how)


@look.style
def patients(slices, numbers):
    """Draw the slice with most tumour of some patients, CT above PET, with
    the true outline."""
    figure, grid = plt.subplots(2, len(numbers), squeeze=False,
                                figsize=(1.9 * len(numbers), 4.4))
    sizes = slices.labels.sum(axis=(1, 2, 3), dtype=int)
    for column, number in enumerate(numbers):
        own = np.flatnonzero(slices.patient == number)
        row = own[np.argmax(sizes[own])]
        low, high = SHOWN
        ct, pet = np.moveaxis(slices.images[row], -1, 0)
        grid[0, column].imshow(ct, cmap="gray", vmin=low, vmax=high)
        grid[1, column].imshow(pet, cmap="gray_r", vmin=0, vmax=10)
        grid[0, column].set_title(f"patient {number}", fontsize=10)
        outline(grid[1, column], slices.labels[row, ..., 0], TRUTH)
    for axes in grid.flat:
        axes.set_axis_off()
    return look.finish(
        figure, "CT above, PET with the true outline below.",
        f"Slices of patients {', '.join(map(str, numbers))}.")


@look.style
def worst(record, slices, many: int = 5):
    """Draw the patients with the lowest Dice: CT and PET with the outlines
    of the truth and of the network."""
    metrics = record["metrics"]
    rows = np.array(metrics["validation"])
    dice = dice_of(metrics["counts"], slices.patient[rows])
    order = sorted(dice, key=dice.get)[:many]
    found = {slices.patient[rows[most]]: (rows[most], seen)
             for most, seen in metrics["found"]}
    figure, grid = plt.subplots(2, len(order), squeeze=False,
                                figsize=(1.9 * len(order), 4.6))
    for column, number in enumerate(order):
        row, seen = found[number]
        truth = slices.labels[row, ..., 0]
        guess = np.zeros(truth.size)
        guess[np.array(seen, int)] = 1
        ct, pet = np.moveaxis(slices.images[row], -1, 0)
        low, high = SHOWN
        grid[0, column].imshow(ct, cmap="gray", vmin=low, vmax=high)
        grid[1, column].imshow(pet, cmap="gray_r", vmin=0, vmax=10)
        for axes in grid[:, column]:
            outline(axes, truth, TRUTH)
            outline(axes, guess.reshape(truth.shape), FOUND)
            axes.set_axis_off()
        grid[0, column].set_title(f"patient {number}\nDice {dice[number]:.2f}",
                                  fontsize=10)
    grid[0, 0].plot([], [], color=look.GOLD, label="true outline")
    grid[0, 0].plot([], [], color=look.MIDDLE, linestyle="--",
                    label="the network's")
    said = ", ".join(f"patient {who} {dice[who]:.2f}" for who in order)
    return look.finish(
        figure, f"The {count(len(order), 'patient')} with the lowest Dice, "
        "CT above and PET below.", f"Dice: {said}.", legend=2)


def dice_of(counts, patient) -> dict[int, float]:
    """The Dice of each patient, from the counts of slices, (3, n)."""
    found = {}
    for number in np.unique(patient):
        hits, alarms, misses = np.array(counts)[:, patient == number].sum(1)
        both = 2 * hits + alarms + misses
        found[int(number)] = 2 * hits / both if both else 1.0
    return found


@look.style
def dice_by_patient(record, slices, hidden, guess: float | None = None):
    """Draw the Dice of each validation patient, from the lowest. hidden: the
    function that says of whom CT does not show the tumour."""
    metrics = record["metrics"]
    dice = dice_of(metrics["counts"],
                   slices.patient[np.array(metrics["validation"])])
    order = sorted(dice, key=dice.get)
    figure, axes = plt.subplots(figsize=(7.4, 3.8))
    kinds = {"CT shows the tumour": (False, look.FILLS[1]),
             "CT hides it": (True, look.FILLS[3])}
    for label, (kind, style) in kinds.items():
        places = [place for place, number in enumerate(order)
                  if hidden(number) == kind]
        axes.bar(places, [dice[order[place]] for place in places], 0.7,
                 label=label, **style)
    mean = statistics.fmean(dice.values())
    axes.axhline(mean, color=look.INK, linestyle="--", linewidth=1,
                 label=f"mean: {mean:.2f}")
    look.guess_line(axes, guess)
    axes.set_xticks(range(len(order)), map(str, order), fontsize=8)
    axes.set(xlabel="validation patient (number)",
             ylabel="Dice (1: the same outline)", ylim=(0, 1))
    axes.grid(axis="x", visible=False)
    low = dice[order[0]]
    return look.finish(
        figure, f"{count(len(order), 'patient')}: a mean Dice of {mean:.2f}, "
        f"and {low:.2f} for patient {order[0]}, the lowest.",
        ", ".join(f"Patient {who} {dice[who]:.2f}" for who in order) + ".",
        legend=4)


def interval_of(gains) -> tuple[float, float]:
    """A mean, and half the width of its 95 % interval, after Student."""
    if len(gains) < 3:
        return statistics.fmean(gains), math.inf
    return mean_interval(gains)


def by_seed(records, variant, field="dice") -> dict[int, float]:
    """What each seed of a variant has reached in the end."""
    rows = records[records.variant == variant]
    return {int(row["seed"]): last(row["metrics"][field])
            for _, row in rows.iterrows() if field in row["metrics"]}


def last(value) -> float:
    """The last of a list, or the number itself."""
    return float(value[-1] if isinstance(value, list) else value)


def gains_of(records, before, after, field="dice") -> list[float]:
    """By how much each seed is better with one variant than with another."""
    one, other = (by_seed(records, name, field) for name in (before, after))
    return [other[seed] - one[seed] for seed in one if seed in other]


def difference(records, before, after, field="dice", least=0.0) -> str:
    """Say what a choice is worth, with its 95 % interval over the seeds, and
    what follows. least: a smaller gain would not be worth it."""
    gains = gains_of(records, before, after, field)
    if not gains:
        return f"{after} was not measured beside {before}."
    middle, half = interval_of(gains)
    said = f"{after} over {before}: {middle:+.3f} Dice"
    if math.isinf(half):
        return f"{said}. So few seeds tell too little."
    said += f" ({middle - half:+.3f} to {middle + half:+.3f}), "
    if middle - half > least:
        word = f"more than {least:g}" if least else "better"
    elif middle + half < -least:
        word = "worse"
    elif least:
        word = f"not shown to be more than {least:g}"
    else:
        word = "no difference shown"
    return f"{said}{count(len(gains), 'seed')}: {word}."


@look.style
def seeds(records, before, after, guess: float | None = None, field="dice",
          least: float = 0.0):
    """Draw what each seed reaches with one variant and with another."""
    one, other = (by_seed(records, name, field) for name in (before, after))
    figure, axes = plt.subplots(figsize=(6.4, 4.0))
    pairs = [(one[seed], other[seed]) for seed in one if seed in other]
    for nth, pair in enumerate(pairs):
        axes.plot([0, 1], pair, "o-", color=look.DARK, linewidth=1.2,
                  label="" if nth else "a seed")
    if not pairs:
        return look.finish(figure, difference(records, before, after, field))
    means = [statistics.fmean(each) for each in zip(*pairs, strict=True)]
    for place, mean in enumerate(means):
        axes.plot([place - 0.12, place + 0.12], [mean] * 2, linewidth=4,
                  color=look.MIDDLE, label="" if place else "mean")
        axes.annotate(f"{mean:.3f}", (place, mean), (88 * place - 44, 0),
                      textcoords="offset points", va="center",
                      ha="left" if place else "right")
    if guess is not None:
        axes.plot([0, 1], [means[0], means[0] + guess], color=look.MIDDLE,
                  linestyle=":", linewidth=2,
                  label=f"your guess: {guess:+g} Dice")
    axes.set_xticks([0, 1], [before, after])
    where = "test" if field == "test_dice" else "validation"
    axes.set(ylabel=f"{where} Dice (1: the same outlines)",
             xlim=(-0.55, 1.55))
    return look.finish(
        figure, difference(records, before, after, field, least),
        f"On average {means[0]:.3f} with {before}, {means[1]:.3f} with "
        f"{after}.", legend=3)


def sensitivities(record) -> dict[str, float]:
    """Which share of the tumour's pixels is found, by its size in a slice."""
    metrics = record["metrics"]
    hits, _, misses = np.array(metrics["counts"])
    pixels = hits + misses
    found = {}
    for name, (low, high) in SIZES.items():
        own = (pixels >= low) & (pixels <= high)
        if own.any():
            found[name] = 100 * hits[own].sum() / pixels[own].sum()
    return found


def losses_in_words(records) -> str:
    """Each of the other losses beside Tversky's, a line each."""
    tversky = "ct+pet, tversky"
    others = [f"ct+pet, {loss}" for loss in LOSSES if loss != "tversky"]
    return "\n".join(difference(records, tversky, name) for name in others)


@look.style
def sensitivity(records, guess: str | None = None):
    """Draw which share of small, middle and large tumours each loss finds."""
    figure, axes = plt.subplots(figsize=(7.4, 4.2))
    small = {}
    names = list(SIZES)
    kinds = records[records.variant.isin(f"ct+pet, {loss}" for loss in LOSSES)]
    for nth, (variant, rows) in enumerate(
        kinds.groupby("variant", sort=False)
    ):
        loss = variant.removeprefix("ct+pet, ")
        each = [sensitivities(row) for _, row in rows.iterrows()]
        values = [[run[size] for run in each if size in run]
                  for size in names]
        shift = 0.06 * (nth - 1.5)
        middle = primitives.line(axes, np.arange(len(names)) + shift, values,
                                 loss, nth)
        small[loss] = middle[0]
    if guess is not None:
        best = max(small, key=small.get)
        look.guess_star(axes, 0, small.get(guess, small[best]), guess)
    axes.set_xticks(range(len(names)), names)
    axes.set(xlabel="tumour in a slice (pixels)",
             ylabel="pixels of it that are found (%)", ylim=(0, 105))
    order = sorted(small, key=small.get, reverse=True)
    said = ", ".join(f"{loss} {small[loss]:.0f} %" for loss in order)
    return look.finish(
        figure, f"Of the smallest tumours, the median seed finds: {said}.",
        legend=3)


@look.style
def profile(record, guess: float | None = None):
    """Draw where the time of each epoch goes, on each rank."""
    figure, axes = plt.subplots(figsize=(7.4, 2.8))
    rows = [spent_in(record, share) for share in record["metrics"]["shares"]]
    primitives.stacked(axes, rows, SHARES, text="{:.0f} %")
    axes.set_yticks(range(len(rows)),
                    [f"rank {rank}" for rank in range(len(rows))])
    look.guess_line(axes, guess, upright=True, unit="%")
    axes.set(xlabel="share of an epoch (%)", xlim=(0, 100))
    most = max(SHARES, key=rows[0].get)
    return look.finish(
        figure, f"Rank 0 trains in {rows[0]['train_s']:.0f} % of its time; "
        f"most of it, {rows[0][most]:.0f} %, it {SHARES[most][0]}.", legend=3)


def share_of(record, part: str) -> float:
    """How many per cent of an epoch rank 0 does this."""
    return spent_in(record, record["metrics"]["shares"][0])[part]


def spent_in(record, share) -> dict[str, float]:
    """Where the time of a rank's epochs goes, in per cent."""
    epochs = len(record["metrics"]["dice"])
    spent = {part: share.get(part, 0.0) for part in SHARES}
    for part in ("evaluation_s", "checkpoint_s", "wait_s"):
        # Once an epoch, and the first is not in the record.
        spent[part] *= epochs / max(1, epochs - 1)
    whole = sum(spent.values())
    return {part: 100 * seconds / whole for part, seconds in spent.items()}


def cost_in_words(records, before, after) -> str:
    """The core-seconds to the goal of two versions, in the median."""
    said = []
    for name in (before, after):
        each = [row["metrics"]["reached_s"] * row["ranks"]
                * row["threads_per_rank"] for _, row in records.iterrows()
                if row["variant"] == name and "reached_s" in row["metrics"]]
        cost = f"{statistics.median(each):,.0f} core-seconds" if each else "-"
        said.append(f"{name} {cost}")
    return f"To the goal, in the median: {', '.join(said)}."


def epochs_in_words(records, before, after) -> str:
    """How many epochs each version takes to the goal, and how long one is."""
    said = []
    for name in (before, after):
        jobs = [row["metrics"] for _, row in records.iterrows()
                if row["variant"] == name and "reached_s" in row["metrics"]]
        if not jobs:
            said.append(f"{name} never gets there")
            continue
        epochs = statistics.median(len(job["at_s"]) for job in jobs)
        first_s = statistics.median(job["at_s"][0] for job in jobs)
        each = [end - start for job in jobs for start, end in
                zip(job["at_s"], job["at_s"][1:], strict=False)]
        said.append(f"{name} takes {epochs:g} epochs; the first ends after "
                    f"{first_s:.1f} s")
        if each:
            later_s = statistics.median(each)
            said[-1] += f", and a later one takes {later_s:.1f} s"
    return f"In the median, {'. '.join(said)}."


def sooner(records, before, after) -> str:
    """Say how many times as fast the seeds reach the goal, with the 95 %
    interval of their mean."""
    one, other = (by_seed(records, name, "reached_s")
                  for name in (before, after))
    logs = [math.log(one[seed] / other[seed]) for seed in one if seed in other]
    if not logs:
        return f"With no seed have both {before} and {after} reached the goal."
    middle, half = interval_of(logs)
    ends = [math.exp(end) for end in (middle - half, middle, middle + half)]
    said = (f"{after} reaches the goal {ends[1]:.2f} times as fast as "
            f"{before}")
    if math.isinf(half):
        return f"{said}. So few seeds tell too little."
    return (f"{said} ({ends[0]:.2f} to {ends[2]:.2f}), "
            f"{count(len(logs), 'seed')}.")


@look.style
def time_to_goal(records, before, after, guess: float | None = None):
    """Draw the validation Dice over the seconds, a line for each seed of both
    versions, up to the goal."""
    figure, axes = plt.subplots(figsize=(7.4, 4.2))
    for nth, name in enumerate((before, after)):
        rows = records[records.variant == name]
        for run, job in enumerate(rows["metrics"]):
            primitives.line(axes, job["at_s"], job["dice"],
                            "" if run else name, nth, markersize=3,
                            linewidth=1)
    goal = records["metrics"].iloc[0]["goal"]
    axes.axhline(goal, color=look.INK, linestyle="--", linewidth=1,
                 label=f"goal: {goal:g}")
    first = by_seed(records, before, "reached_s")
    if guess is not None and first:
        middle = statistics.median(first.values())
        axes.axvline(middle / guess, color=look.MIDDLE, linestyle=":",
                     linewidth=2,
                     label=f"your guess: {guess:g} times as fast")
    axes.set(xlabel="time since the start of the training (s)",
             ylabel="validation Dice (1: the same outlines)",
             xlim=(0, None), ylim=(0, 1))
    return look.finish(figure, sooner(records, before, after), legend=4)


def each_step(ladder) -> dict[str, tuple]:
    """For each variant of a ladder, its ratio to the one before."""
    names = [ladder.baseline, *ladder.variants]
    found = {names[1]: ladder.ratio(names[1])}
    for before, name in zip(names[1:], names[2:], strict=False):
        found[name] = ladder.between(name, before)
    return found


def word_of(ratio, noise: float) -> str:
    """What follows for a step from its ratio to the one before."""
    size = max(ratio.middle, 1 / ratio.middle) - 1
    if ratio.low > 1 and size > noise:
        return "helps"
    if ratio.high < 1 and size > noise:
        return "harms"
    return "not shown to help"


@look.style
def waterfall(ladder, guess: str | None = None):
    """Draw what each step of the ladder is worth, beginning where the one
    before has got to; and say what did not help."""
    steps = each_step(ladder)
    names = [ladder.baseline, *steps]
    figure, axes = plt.subplots(figsize=(1.4 + 1.15 * len(names), 4.4))
    shown = {}
    said = []
    idle = []
    for name, ratio in steps.items():
        word = word_of(ratio, ladder.noise)
        shown[name] = (ratio, f"{ratio.middle:.2f}x\n{word}")
        said.append(f"{name}: {ratio.middle:.2f} times the one before "
                    f"({ratio.low:.2f} to {ratio.high:.2f}), {word}.")
        if word != "helps":
            idle.append(name.removeprefix("+ "))
    level, top = primitives.waterfall(axes, shown)
    look.guess_name(axes, names, guess, 0.05)
    axes.set_xticks(range(len(names)),
                    [fill(name.removeprefix("+ "), 11) for name in names])
    axes.set(ylabel="epochs in the same time (first.py: 1)",
             ylim=(0, 1.3 * top))
    nothing = f" Not shown to help: {', '.join(idle)}." if idle else ""
    return look.finish(
        figure, f"In the end, {level:.1f} epochs in the time of one."
        f"{nothing}", " ".join(said), legend=1 if guess is not None else 0)


def steps_in_words(ladder) -> str:
    """The noise, and each step of the ladder against the one before, a line
    each."""
    lines = ["One round tells nothing of the noise."]
    if math.isfinite(ladder.noise):
        lines = ["The noise: two equal epochs may differ by "
                 f"{100 * ladder.noise:.1f} %."]
    for name, ratio in each_step(ladder).items():
        lines.append(
            f"{name}: {ratio.middle:.2f} times as fast as the step before "
            f"({ratio.low:.2f} to {ratio.high:.2f}), "
            f"{word_of(ratio, ladder.noise)}."
        )
    return "\n".join(lines)
