"""The figures of 12_capstone: the patients, what a network finds in them,
where the time goes, and whether quality has suffered."""

import numpy as np
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
    "keeping": ("keeping", {"color": look.GOLD}),
    "first step": ("first step", look.WAITING),
}
TRUTH = {"colors": [look.GOLD], "linewidths": 1.6}
FOUND = {"colors": [look.MIDDLE], "linewidths": 1.6, "linestyles": "--"}


def outline(axes, pixels, how):
    """The outline of some pixels, (64, 64), if there are any."""
    if pixels.any():
        axes.contour(pixels, [0.5], **how)


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


@look.style
def worst(record, phantoms, many: int = 5):
    """Draw the patients with the lowest Dice among those with a tumour, with
    the outlines of the truth and of the network."""
    dice, numbers = dice_of(record), numbers_of(record)
    true = np.transpose(record["metrics"]["by_patient"])[2]
    lowest = [at for at in np.argsort(dice, kind="stable") if true[at]][:many]
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
    grid[0, 0].plot([], [], color=look.GOLD, label="true outline")
    grid[0, 0].plot([], [], color=look.MIDDLE, linestyle="--",
                    label="the network's")
    return look.finish(
        figure, f"The {count(len(lowest), 'patient')} with a tumour and the "
        "lowest Dice, CT above and PET below.",
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
    small, said = {}, []
    for nth, (name, rows) in enumerate(records.items()):
        each = [found_of(row) for _, row in rows.iterrows()]
        places = [size for size in SIZES if any(size in s for s, _ in each)]
        values = [[shares[size] for shares, _ in each if size in shares]
                  for size in places]
        middle = primitives.line(
            axes, np.arange(len(places)) + 0.05 * nth, values, name, nth)
        small[name] = middle[0]
        dice = np.mean([row["metrics"]["dice"] for _, row in rows.iterrows()])
        alarms = sum(alarms for _, alarms in each)
        said.append(f"{name}: Dice {dice:.2f}, "
                    f"{count(alarms, 'false alarm')}")
    if guess is not None:
        look.guess_star(axes, 0, small.get(guess, max(small.values())), guess)
    axes.set_xticks(range(len(SIZES)), SIZES)
    axes.set(xlabel="size of the tumour (pixels in all slices)",
             ylabel="pixels of it that are found (%)", ylim=(0, 105))
    return look.finish(figure, f"{'; '.join(said)}.", legend=3)


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


def bounds(record) -> str:
    """For each part, how many times as fast a training would be without it."""
    shares = shares_of(record["metrics"]["shares"][0])
    lines = [f"{PARTS[part][0]:<15} {share:3.0f} %   at most "
             f"{100 / (100 - share):.2f} times as fast"
             for part, share in shares.items()]
    return "\n".join(lines)


@look.style
def by_seed(records, before, after, guess: float | None = None):
    """Draw the Dice that each seed reaches with one variant and with another,
    in the patients of the test."""
    one, other = (records[records.variant == name]
                  .drop_duplicates("seed").set_index("seed")["metrics.dice"]
                  for name in (before, after))
    seeds = [seed for seed in one.index if seed in other.index]
    pairs = [(one[seed], other[seed]) for seed in seeds]
    figure, axes = plt.subplots(figsize=(6.4, 3.8))
    for nth, pair in enumerate(pairs):
        axes.plot([0, 1], pair, "o-", color=look.DARK, linewidth=1.2,
                  label="" if nth else "a seed")
    axes.set_xticks([0, 1], [before, after])
    axes.set(ylabel="Dice in the test (1: the same outlines)",
             xlim=(-0.4, 1.4))
    if len(pairs) < 3:
        return look.finish(figure, "So few seeds tell too little.")
    middle, low, high = difference(pairs)
    said = f" You said {guess:+g}." if guess is not None else ""
    return look.finish(
        figure, f"{after}: {middle:+.3f} Dice ({low:+.3f} to {high:+.3f}), "
        f"{count(len(pairs), 'seed')}.{said}", legend=1)
