"""The figures of 12_capstone: the patients, what a network finds in them,
where the time goes, and whether quality has suffered."""

import re

import numpy as np
from matplotlib import patheffects
from matplotlib import pyplot as plt

from scaleout.base.words import count
from scaleout.comparisons.intervals import difference
from scaleout.plots import look, primitives

SIZES = {"up to 150": (1, 150), "151 to 500": (151, 500),
         "501 and more": (501, 10**6)}
SHOWN = (-160, 240)  # Hounsfield units
PARTS = {
    "step": ("training steps", {"color": look.DARK}),
    "input": ("input", {"color": look.LIGHT, "hatch": "//"}),
    "evaluation": ("evaluation", {"color": look.MIDDLE}),
    "keeping": ("keeping", {"facecolor": "white", "edgecolor": look.DARK,
                            "hatch": "xx"}),
    "first step": ("first step", look.WAITING),
}
TRUTH = {"colors": [look.GOLD], "linewidths": 2.4}
FOUND = {"colors": ["black"], "linewidths": 1.2, "linestyles": "--"}
HALO = 2  # of white around a line, so that it is seen on any grey


def outline(axes, pixels, how):
    """The outline of some pixels, (64, 64), if there are any."""
    if pixels.any():
        lines = axes.contour(pixels, [0.5], **how)
        lines.set_path_effects([patheffects.withStroke(
            linewidth=how["linewidths"] + HALO, foreground="white")])


def columns(images, titles):
    """A column for each slice, CT above PET: the figure, and its axes."""
    figure, grid = plt.subplots(2, len(images), squeeze=False,
                                figsize=(1.9 * len(images), 4.6))
    for image, title, (ct, pet) in zip(images, titles, grid.T, strict=True):
        ct.imshow(image[..., 0], cmap="gray", vmin=SHOWN[0], vmax=SHOWN[1],
                  interpolation="nearest")
        pet.imshow(image[..., 1], cmap="gray_r", vmin=0, vmax=1,
                   interpolation="nearest")
        ct.set_title(title, fontsize=10)
        for axes in (ct, pet):
            axes.set_axis_off()
    return figure, grid


@look.style
def patients(slices, numbers):
    """Draw the slice with most tumour of some patients, CT above PET, with
    the true outline below."""
    sizes = slices.masks.sum(axis=(1, 2, 3), dtype=int)
    rows = []
    for number in numbers:
        own = np.flatnonzero(slices.patient == number)
        rows.append(own[np.argmax(sizes[own])])
    figure, grid = columns(slices.images[rows],
                           [f"patient {number}" for number in numbers])
    for axes, row in zip(grid[1], rows, strict=True):
        outline(axes, slices.masks[row, ..., 0], TRUTH)
    return look.finish(
        figure, "CT above, PET with the true outline below.",
        f"Slices of patients {', '.join(map(str, numbers))}.")


def dice_of(record) -> np.ndarray:
    """The Dice of each patient of the test, by the rule of the lab."""
    right, drawn, true = np.transpose(record["metrics"]["by_patient"])
    both = drawn + true
    return np.where(both == 0, 1, 2 * right / np.maximum(both, 1))


def numbers_of(record) -> list[int]:
    """The numbers of the patients of the test, in the same order."""
    return [number for number, _, _ in record["metrics"]["shown"]]


@look.style
def dice_by_patient(record, phantoms, guess: float | None = None):
    """Draw the Dice of each patient of the test, from the lowest, and of whom
    CT shows the tumour."""
    dice, numbers = dice_of(record), numbers_of(record)
    true = np.transpose(record["metrics"]["by_patient"])[2]
    kind = np.where(true == 0, 2, [phantoms.hidden(n) for n in numbers])
    order = np.argsort(dice, kind="stable")
    figure, axes = plt.subplots(figsize=(7.4, 3.8))
    names = ["CT shows the tumour", "CT hides it", "no tumour"]
    for nth, (name, marker) in enumerate(zip(names, "os^", strict=True)):
        own = np.flatnonzero(kind[order] == nth)
        axes.plot(own + 1, dice[order][own], marker, markersize=5, label=name,
                  color=(look.DARK, look.MIDDLE, look.GOLD)[nth])
    look.guess_line(axes, guess)
    axes.set(xlabel="patients of the test, from the lowest Dice (number)",
             ylabel="Dice (1: the same outline)", ylim=(-0.03, 1.05))
    alarms = int((dice[kind == 2] == 0).sum())
    means = ", ".join(f"{name}: {dice[kind == nth].mean():.2f}"
                      for nth, name in enumerate(names[:2]))
    return look.finish(
        figure, f"{count(len(dice), 'patient')}: a mean Dice of "
        f"{dice.mean():.2f}, and {count(alarms, 'false alarm')}.",
        f"On average where {means}.", legend=4)


def lowest_of(record, many: int = 5) -> list[int]:
    """The places of the patients with the lowest Dice among those with a
    tumour."""
    true = np.transpose(record["metrics"]["by_patient"])[2]
    order = np.argsort(dice_of(record), kind="stable")
    return [int(at) for at in order if true[at]][:many]


def of_the_worst(record, phantoms) -> str:
    """Say of the patients with the lowest Dice what they have in common."""
    lowest, numbers = lowest_of(record), numbers_of(record)
    true = np.transpose(record["metrics"]["by_patient"])[2]
    hidden = sum(phantoms.hidden(numbers[at]) for at in lowest)
    small = sum(true[at] <= SIZES["up to 150"][1] for at in lowest)
    first, dice = numbers[lowest[0]], dice_of(record)[lowest[0]]
    return (f"Of the {count(len(lowest), 'worst patient')} of the last seed, "
            f"CT hides the tumour of {hidden}, and in {small} it has at most "
            f"{SIZES['up to 150'][1]} pixels. Patient {first} is the worst, "
            f"with a Dice of {dice:.2f}.")


@look.style
def worst(record, phantoms, many: int = 5):
    """Draw the patients with the lowest Dice among those with a tumour, with
    the outlines of the truth and of the network."""
    dice, numbers = dice_of(record), numbers_of(record)
    lowest = lowest_of(record, many)
    images, masks, found = [], [], []
    for at in lowest:
        number, slice_, drawn = record["metrics"]["shown"][at]
        image, mask = phantoms.patient(number, record["seed"])
        images.append(image[slice_])
        masks.append(mask[slice_, ..., 0])
        pixels = np.zeros(masks[-1].size)
        pixels[np.array(drawn, int)] = 1
        found.append(pixels.reshape(masks[-1].shape))
    titles = [f"patient {numbers[at]}\nDice {dice[at]:.2f}" for at in lowest]
    figure, grid = columns(images, titles)
    for truth, pixels, each in zip(masks, found, grid.T, strict=True):
        for axes in each:
            outline(axes, truth, TRUTH)
            outline(axes, pixels, FOUND)
    grid[0, 0].plot([], [], color=look.GOLD, linewidth=2.4,
                    label="true outline")
    grid[0, 0].plot([], [], color="black", linewidth=1.2, linestyle="--",
                    label="the network's")
    return look.finish(
        figure, f"The {count(len(lowest), 'patient')} with a tumour and the "
        "lowest Dice over all slices; a slice of each, CT above, PET below.",
        f"{', '.join(titles)}.".replace("\n", ": "), legend=2)


def found_of(record) -> tuple[dict[str, float], int]:
    """Which per cent of the tumours' pixels are found, by their size, and how
    many patients without a tumour have a false alarm."""
    right, drawn, true = np.transpose(record["metrics"]["by_patient"])
    shares = {}
    for name, (low, high) in SIZES.items():
        own = (true >= low) & (true <= high)
        if own.any():
            shares[name] = 100 * (right[own] / true[own]).mean()
    return shares, int((drawn[true == 0] > 0).sum())


@look.style
def found_by_size(records, guess: str | None = None):
    """Draw which share of small and of large tumours is found. records: a name
    for each training, and its record or those of several seeds."""
    figure, axes = plt.subplots(figsize=(7.4, 4.0))
    small, stars, said, many = {}, {}, [], {}
    for nth, (name, rows) in enumerate(records.items()):
        each = [found_of(row) for _, row in rows.iterrows()]
        places = [size for size in SIZES if any(size in s for s, _ in each)]
        values = [[shares[size] for shares, _ in each if size in shares]
                  for size in places]
        at = np.arange(len(places)) + 0.05 * nth
        middle = primitives.line(axes, at, values, name, nth)
        small[name] = middle[0]
        stars[name] = at[0], middle[0]
        dice = np.mean([row["metrics"]["dice"] for _, row in rows.iterrows()])
        alarms = sum(alarms for _, alarms in each)
        said.append(f"{name}: {middle[0]:.0f} % of the smallest, Dice "
                    f"{dice:.2f}, {count(alarms, 'false alarm')}")
        many |= sizes_of(rows.iloc[0])
    if guess is not None:
        best = max(small, key=small.get)
        look.guess_star(axes, *stars.get(guess, stars[best]), guess)
    axes.set_xticks(range(len(SIZES)), [
        f"{size}\n({count(many.get(size, 0), 'patient')})" for size in SIZES])
    low = min(70.0, 10 * (min(small.values()) // 10))
    axes.set(xlabel="size of the tumour (pixels in all slices)",
             ylabel="pixels of it that are found (%)", ylim=(low, 101))
    return look.finish(figure, f"{'; '.join(said)}.", legend=3)


def sizes_of(record) -> dict[str, int]:
    """How many patients of the test have a tumour of each size."""
    true = np.transpose(record["metrics"]["by_patient"])[2]
    return {name: int(((true >= low) & (true <= high)).sum())
            for name, (low, high) in SIZES.items()}


def over_seeds(rows, name: str, other: str) -> str:
    """Say what stored trainings tell of two kinds: of the same seeds, the
    difference of the Dice, of what is found of the smallest tumours, and the
    false alarms."""
    common = {*rows[rows.variant == name].seed} & {
        *rows[rows.variant == other].seed}
    if len(common) < 2:
        return f"{other} beside {name}: too few stored seeds to compare."
    of = {kind: rows[(rows.variant == kind) & rows.seed.isin(common)]
          .sort_values("seed") for kind in (name, other)}
    both = [[found_of(row) for _, row in each.iterrows()]
            for each in of.values()]
    dice = zip(*(each["metrics.dice"] for each in of.values()), strict=True)
    small = zip(*([shares["up to 150"] for shares, _ in each]
                  for each in both), strict=True)
    told = []
    for what, pairs, form in (("Dice", dice, "{:+.3f}"),
                              ("of the smallest tumours found", small,
                               "{:+.1f} percentage points")):
        middle, low, high = difference(pairs)
        shown = "" if low > 0 or high < 0 else ": no difference is shown"
        told.append(f"{form.format(middle)} {what} ({low:+.3g} to "
                    f"{high:+.3g}{shown})")
    alarms = [sum(alarms for _, alarms in each) for each in both]
    healthy = sum(true == 0 for each in of[name]["metrics"]
                  for _, _, true in each["by_patient"])
    return (f"{other} beside {name}, {count(len(both[0]), 'stored seed')}: "
            f"{'; '.join(told)}; {count(alarms[1], 'false alarm')} in place "
            f"of {alarms[0]}, in all {healthy} patients without a tumour.")


def shares_of(share) -> dict[str, float]:
    """Where the time of a rank goes, in per cent."""
    spent = share["spent"]
    whole = sum(spent.values())
    return {part: 100 * spent.get(part, 0.0) / whole for part in PARTS}


@look.style
def profile(record, guess: str | None = None):
    """Draw where the time of a training goes, on each rank."""
    figure, axes = plt.subplots(figsize=(7.4, 2.8))
    rows = [shares_of(share) for share in record["metrics"]["shares"]]
    primitives.stacked(axes, rows, PARTS, text="{:.0f} %")
    axes.set_yticks(range(len(rows)),
                    [f"rank {rank}" for rank in range(len(rows))])
    axes.set(xlabel="share of a training (%)", xlim=(0, 100))
    most = max(rows[0], key=rows[0].get)
    said = f" You said {guess}." if guess else ""
    return look.finish(
        figure, f"Most of the time, {rows[0][most]:.0f} %, goes into "
        f"{PARTS[most][0]}.{said}", legend=5)


@look.style
def side_by_side(found, name: str):
    """Draw where the seconds of a comparison's jobs go, on each rank, with its
    baseline and with a variant: medians, without the first step."""
    bars = {}
    for variant in (found.baseline, name):
        for rank, parts in enumerate(seconds_of(found, variant)):
            bars[f"{variant},\nrank {rank}"] = parts
    figure, axes = plt.subplots(figsize=(7.4, 1.4 + 0.7 * len(bars)))
    digits = 2 if sum(bars[f"{name},\nrank 0"].values()) < 3 else 1
    ends = primitives.stacked(axes, list(bars.values()), PARTS,
                              text=f"{{:.{digits}f}} s")
    axes.set_yticks(range(len(bars)), list(bars))
    axes.set(xlabel="time of a job without its first step (s)",
             xlim=(0, 1.03 * max(ends)))
    old, new = (seconds_of(found, v)[0] for v in (found.baseline, name))
    gaps = {part: new.get(part, 0) - old[part] for part in old}
    largest = sorted(gaps, key=lambda part: -abs(gaps[part]))[:2]
    said = "; ".join(
        f"{PARTS[part][0]} {old[part]:.{digits}f}\N{NO-BREAK SPACE}s before, "
        f"{new.get(part, 0):.{digits}f}\N{NO-BREAK SPACE}s with it"
        for part in largest)
    return look.finish(figure, f"{name}, rank 0: {said}.", legend=5)


def seconds_of(found, variant) -> list[dict[str, float]]:
    """The median seconds of each rank of a variant's jobs in each part."""
    jobs = [job["shares"] for job, name in
            zip(found.records.metrics, found.records.variant, strict=True)
            if name == variant]
    return [{part: float(np.median([job[rank]["spent"].get(part, 0)
                                    for job in jobs]))
             for part in PARTS if part != "first step"}
            for rank in range(len(jobs[0]))]


def bounds(record) -> str:
    """For each part, how many times as fast a training would be without it;
    the first step is left out, as images/s leaves it out."""
    spent = record["metrics"]["shares"][0]["spent"]
    spent = {part: spent.get(part, 0.0) for part in PARTS
             if part != "first step"}
    shares = {part: s / sum(spent.values()) for part, s in spent.items()}
    lines = [f"{PARTS[part][0]:<15} {100 * share:3.0f} %   at most "
             f"{1 / (1 - share):.2f} times as fast"
             for part, share in shares.items()]
    return "\n".join(lines)


def pairs_of(records, before, after) -> list[tuple[float, float]]:
    """The Dice of each seed in the test, with one variant and another."""
    one, other = (records[records.variant == name]
                  .drop_duplicates("seed").set_index("seed")["metrics.dice"]
                  for name in (before, after))
    return [(one[seed], other[seed]) for seed in one.index
            if seed in other.index]


def gap(records, before, after) -> tuple[float, float, float]:
    """By how much the Dice of the second is higher, and its interval."""
    return difference(pairs_of(records, before, after))


@look.style
def by_seed(records, before, after, guess: float | None = None):
    """Draw the Dice that each seed reaches with one variant and with another,
    in the patients of the test."""
    pairs = pairs_of(records, before, after)
    figure, axes = plt.subplots(figsize=(6.4, 3.8))
    for nth, pair in enumerate(pairs):
        axes.plot([0, 1], pair, "o-", color=look.DARK, linewidth=1.2,
                  label="" if nth else "a seed")
    axes.set_xticks([0, 1], [before, after])
    low, high = axes.get_ylim()
    least = max(0, 0.05 - (high - low)) / 2  # small differences look small
    axes.set(ylabel="Dice in the test (1: the same outlines)",
             xlim=(-0.4, 1.4), ylim=(low - least, high + least))
    if len(pairs) < 3:
        return look.finish(figure, "So few seeds tell too little.")
    middle, low, high = difference(pairs)
    said = f" You said {guess:+g}." if guess is not None else ""
    return look.finish(
        figure, f"{after}: {middle:+.3f} Dice ({low:+.3f} to {high:+.3f}), "
        f"{count(len(pairs), 'seed')}.{said}", legend=1)


def on_more_cores(others):
    """Draw the tuned training over the ranks of the largest machine that was
    met; where none has more than two cores, say what each has shown."""
    found = {other.name: over_ranks_of(other.found) for other in others}
    most = max(found, key=lambda name: max(found[name]), default="")
    if most and max(found[most]) > 2:
        return over_ranks(most, found[most])
    print("The tuned training, without bf16 and with Horovod's own cycle of "
          "1 ms, against the first version, where we could measure:")
    for name, ratios in found.items():
        each = [f"{ratio.middle:.2f} ({ratio.low:.2f} to {ratio.high:.2f}) on "
                f"{count(ranks, 'rank')}"
                for ranks, ratio in sorted(ratios.items())]
        print(f"- {name}: {' and '.join(each)}")
    return None


def over_ranks_of(found) -> dict:
    """The ratio of the tuned training to the first one, by its ranks."""
    named = {name: re.fullmatch(r"tuned, (\d+) ranks?", name)
             for name in found.variants}
    return {int(at[1]): found.ratio(name) for name, at in named.items() if at}


@look.style
def over_ranks(machine: str, ratios):
    """Draw how many times as fast as first written the tuned training is on
    each number of ranks of a machine."""
    figure, axes = plt.subplots(figsize=(6.4, 3.8))
    for ranks, ratio in sorted(ratios.items()):
        primitives.interval(axes, ranks, ratio.low, ratio.middle, ratio.high,
                            upright=True)
    axes.set_xscale("log", base=2)
    axes.set_xticks(sorted(ratios), [str(ranks) for ranks in sorted(ratios)])
    axes.set(xlabel="ranks (number)",
             ylabel="times as fast as first written")
    best = max(ratios, key=lambda ranks: ratios[ranks].middle)
    told = ", ".join(f"{ratios[ranks].middle:.2f} on {count(ranks, 'rank')}"
                     for ranks in sorted(ratios))
    return look.finish(figure, f"{machine}: the tuned training is fastest on "
                       f"{count(best, 'rank')}.", f"Times as fast: {told}.")


def two_nodes(records) -> str:
    """Say what the stored run on two nodes has shown, from its record."""
    if records.empty:
        return "No run on two nodes is stored yet."
    row = records.iloc[0]
    weights = {share["end"] for share in row["metrics"]["shares"]}
    same = "the same" if len(weights) == 1 else "NOT the same"
    return (f"Stored run, {count(int(row['ranks']), 'rank')} on "
            f"{count(int(row['nodes']), 'node')} of the small Slurm: "
            f"Dice {row['metrics.dice']:.2f} in the test, and {same} weights "
            "on all ranks in the end. (Its nodes are one machine, so its "
            "seconds tell nothing of two.)")
