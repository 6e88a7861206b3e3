"""The figures of 10_input: the roofline of a step, who waits for images, four
forms of the same pictures, and what one server can give."""

import matplotlib.pyplot as plt
import numpy as np

from scaleout.plots import look, primitives
from scaleout.words import count, rounded

PARTS = {
    "wait_s": ("waits for images", {"color": look.MIDDLE}),
    "compute_s": ("computes", {"color": look.DARK}),
    "others_s": ("waits for other ranks", look.WAITING),
}
WAYS = {
    "one file an image": ("one file\nan image", 1),
    "from shards": ("shards", 0),
    "staged first": ("a copy\nper node", 4),
    "staged": ("every later\nepoch", 3),
}
SERVED_S = 1e-3  # less is no work for the server


@look.style
def input_roofline(records, guess: float | None = None):
    """Draw the time of a step over that of its compute: max(input, compute)
    as a line, jobs as points."""
    steps: dict[float, list] = {}  # milliseconds of compute: whole steps
    for frame in records:
        for _, row in frame.iterrows():
            steps.setdefault(float(row["metrics"]["step_ms"]), []).extend(
                1e3 * seconds for seconds in row["metrics"]["turns_s"])
    alone = float(np.median(steps[0]))
    told = {compute: steps[compute] for compute in steps if compute > 0}
    off = max(abs(float(np.median(each)) / max(alone, compute) - 1)
              for compute, each in told.items())
    figure, axes = plt.subplots(figsize=(7, 4.4))
    far = 1.08 * max(told)
    primitives.ideal(axes, [0, alone, far], [alone, alone, far],
                     "max(input, compute)")
    axes.axvline(alone, color=look.PALE, linewidth=6, zorder=0)
    for label, own, colour in (
            ("input alone: it makes the line", {0: steps[0]}, look.LIGHT),
            ("with a device", told, look.DARK)):
        points = [(compute, step) for compute in own for step in own[compute]]
        axes.scatter(*zip(*points, strict=True), color=colour,
                     edgecolor=look.DARK, zorder=3, label=label)
    look.guess_line(axes, guess, upright=True, unit="ms")
    top = max(max(each) for each in steps.values())
    for x, limit in ((alone / 2, "input"), ((alone + far) / 2, "compute")):
        axes.text(x, 0.05 * top, f"{limit} is\nthe limit", ha="center")
    axes.set(xlabel="compute of a step (ms)", ylabel="a whole step (ms)",
             ylim=(0, 1.15 * top))
    each = ", ".join(f"{compute:g} ms: {rounded(float(np.median(turns)))} ms"
                     for compute, turns in sorted(told.items()))
    return look.finish(
        figure, f"Input alone takes {rounded(alone)} ms a step. The line is "
        f"{100 * off:.0f} % off at most.",
        f"A whole step by its compute: {each}.",
        legend=2)


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
    most = max(row["wait_s"] for row in rows)
    least = min(row["wait_s"] for row in rows)
    return look.finish(
        figure, f"A rank waits for images in {least:.0f} to {most:.0f} % of "
        "a step.", f"{'; '.join(each)}.",
        legend=4)


@look.style
def format_rates(records, guess: str | None = None):
    """Draw how many images are read in a second from each form, cold and
    warm, in order and shuffled."""
    orders = ("in order", "shuffled")
    figure, panels = primitives.panels(orders, (7.4, 4.4))
    jobs = {(row["metrics"]["order"], row["metrics"]["cache"],
             row["variant"]): row for _, row in records.iterrows()}
    forms = list(dict.fromkeys(records["variant"]))
    names = [f"{form}\n{jobs['in order', 'cold', form]['metrics']['opens']:,}"
             for form in forms]
    for order, axes in panels.items():
        for nth, cache in enumerate(("cold", "warm")):
            rates = {}
            for name, form in zip(names, forms, strict=True):
                row = jobs[order, cache, form]
                rates[name] = [row["metrics"]["images"] / seconds
                               for seconds in row["step_s"]]
            look_of = look.FILLS[2 * (1 - nth):][:1]  # cold is hatched
            primitives.bars(axes, rates, shift=0.4 * nth - 0.2, width=0.38,
                            label=cache, looks=look_of)
        axes.tick_params(axis="x", labelsize=9)
        axes.set_yscale("log")
        axes.set_xlabel("form, and how many files it opened")
    look.guess_name(panels["shuffled"], forms, guess, 0.04)
    panels["in order"].set_ylabel("images read (images/s)")
    best = max(forms, key=lambda form: jobs["shuffled", "cold", form]["rate"])
    rate = jobs["shuffled", "cold", best]["rate"]
    return look.finish(
        figure, f"Cold and shuffled, {best} gives the most: {rate:,.0f} "
        "images/s.", legend=3)


@look.style
def one_server(records, guess: float | None = None):
    """Draw the seconds of an epoch by way of one server, and how far the
    formula opens x delay + bytes / bandwidth is from them."""
    rows = [row for _, row in records.iterrows()]
    last = rows[-1]["metrics"]
    figure, (left, right) = plt.subplots(1, 2, figsize=(8.2, 4.6),
                                         width_ratios=(3, 2))
    seconds = {}
    opens = []
    for row in rows:
        job = row["metrics"]
        if all(job[speed] == last[speed] for speed in ("delay_ms",
                                                       "mb_per_s")):
            name = WAYS[row["variant"]][0]
            if row["variant"] == "one file an image":
                name += f"\n{count(int(row['ranks']), 'rank')}"
            seconds[name] = list(row["step_s"])
            opens.append(f"{job['opens']:,}")
    written = iter(opens)
    primitives.bars(left, seconds, lambda value, first: next(written),
                    looks=look.FILLS[:1])
    left.tick_params(axis="x", labelsize=8)
    most = max(int(row["ranks"]) for row in rows)
    middle = {(row["variant"], int(row["ranks"])):
              float(np.median(row["step_s"])) for row in rows
              if row["metrics"]["delay_ms"] == last["delay_ms"]
              and row["metrics"]["mb_per_s"] == last["mb_per_s"]}
    files = middle["one file an image", most]
    shards = middle["from shards", most]
    if guess is not None:
        left.axhline(files / guess, color=look.MIDDLE, linestyle=":",
                     linewidth=2, label=f"your guess: {guess:g} times")
    left.set(ylabel="an epoch (s)",
             ylim=(0, 1.3 * max(map(max, seconds.values()))))
    left.set_title(f"{last['delay_ms']:g} ms an open, {last['mb_per_s']:g} "
                   "MB/s; above the bars: opens", fontsize=10)
    served = [row for row in rows if row["metrics"]["model_s"] > SERVED_S]
    model = [row["metrics"]["model_s"] for row in served]
    off = max(abs(float(np.median(row["step_s"])) / s - 1)
              for row, s in zip(served, model, strict=True))
    ends = np.array([0.7 * min(model), 1.4 * max(model)])
    right.fill_between(ends, 0.8 * ends, 1.2 * ends, color=look.PALE,
                       label="within 20 %")
    right.plot(ends, ends, "--", color=look.GREY)
    for way, (name, nth) in WAYS.items():
        points = [(s, each) for row, s in zip(served, model, strict=True)
                  for each in row["step_s"] if row["variant"] == way]
        if points:
            own = {**look.LINES[nth], "linestyle": "", "markersize": 6}
            right.plot(*zip(*points, strict=True),
                       label=name.replace("\n", " "), **own)
    right.set(xscale="log", yscale="log", ylabel="measured (s)",
              xlabel="opens x delay + bytes / bandwidth (s)")
    right.set_title(f"The formula: {100 * off:.0f} % off at most",
                    fontsize=10)
    each = "; ".join(f"{way}, {count(ranks, 'rank')}: {rounded(s)} s"
                     for (way, ranks), s in middle.items())
    return look.finish(
        figure, f"Shards are {rounded(files / shards)} times as fast as one "
        "file an image.", f"Seconds of an epoch: {each}. The formula is "
        f"{100 * off:.0f} % off at most.",
        legend=6)


@look.style
def server_load(opens_per_s, mb_per_s, delay_ms, server_mb_per_s, nodes,
                guess: float | None = None):
    """Draw how long one server works for a second of training, over the
    number of nodes."""
    figure, axes = plt.subplots(figsize=(7, 4.4))
    many = np.geomspace(1, 4 * nodes, 100)
    enough = {}
    each = []
    for nth, (name, opens) in enumerate(opens_per_s.items()):
        one = opens * delay_ms / 1e3 + mb_per_s / server_mb_per_s  # seconds
        enough[name] = int(1 / one)
        primitives.line(axes, many, one * many, name, nth, marker="")
        axes.plot([nodes], [one * nodes], "o",
                  color=look.LINES[nth]["color"])
        axes.annotate(f"{rounded(one * nodes)} s", (nodes, one * nodes),
                      (8, -12), textcoords="offset points")
        each.append(f"{name}: {rounded(one * nodes)} s for {nodes} nodes, "
                    f"enough for {1 / one:,.0f} nodes")
    axes.axhline(1, color=look.GREY, linestyle="--",
                 label="all that it has: 1 s in each second")
    look.guess_line(axes, guess, upright=True, unit="nodes")
    axes.set(xscale="log", yscale="log", xlabel="nodes (number)",
             ylabel="work of the server for\na second of training (s)")
    name, most = next(iter(enough.items()))
    return look.finish(
        figure, f"{name[:1].upper()}{name[1:]}: the server is enough for "
        f"{count(most, 'node')}.", f"{'; '.join(each)}.",
        legend=2)
