"""The figures of 03_spmd: who holds what, what messages and collective
calls cost, and what a straggler costs."""

import matplotlib.pyplot as plt
import numpy as np

from scaleout import scaling
from scaleout.base.words import rounded
from scaleout.plots import look
from scaleout.plots import primitives as draw

RANKS = (look.DARK, look.LIGHT, look.MIDDLE, "#c9b458", "#8a8a8a", "#5b8c5a",
         "#d9a5b3", "#3d3d3d")
# Of each way of an allreduce: which look of all lines, and its name.
WAYS = {
    "ring": (0, "ring"),
    "gather-broadcast": (1, "gather and broadcast"),
    "tree": (2, "binomial tree"),
    "mpi": (3, "MPI's own"),
}
DOES = {"compute": ("computes, then sleeps",
                    {"color": look.DARK, "edgecolor": "white"}),
        "wait": ("waits", look.WAITING)}
SHORT, LONG = 4**6, 4**10  # bytes: arrays up to the one, and from the other on


def us(seconds):
    """Microseconds: of one number, of an array, or of a list of arrays."""
    return [1e6 * np.asarray(each) for each in seconds]


@look.style
def who_holds(held):
    """Draw who holds what before and after each collective call, from what
    the ranks really held: {rank: [(call, before, after)]}."""
    ranks = len(held)
    calls = [name for name, _, _ in held[0]]
    rows = -(-len(calls) // 2)
    figure, grid = plt.subplots(
        rows, 2, figsize=(7.4, (0.42 * ranks + 0.55) * rows + 0.3),
        squeeze=False)
    ends = []
    for call, axes in enumerate(grid.flat):
        axes.set_axis_off()
        if call == len(calls):
            break
        axes.set_title(calls[call], fontsize=10, loc="left")
        axes.set(xlim=(-1.4, 2 * ranks + 1.5), ylim=(ranks + 0.05, -0.05))
        axes.annotate("", (ranks + 1.1, ranks / 2), (ranks + 0.3, ranks / 2),
                      arrowprops={"arrowstyle": "-|>", "color": look.INK})
        for rank, mine in enumerate(held):
            axes.text(-0.2, rank + 0.5, f"rank {rank}", fontsize=8,
                      ha="right", va="center")
            _, before, after = mine[call]
            _holding(axes, 0.0, rank, before)
            _holding(axes, ranks + 1.4, rank, after)
        after = [f"rank {rank} {_names(mine[call][2])}"
                 for rank, mine in enumerate(held)]
        ends.append(f"{calls[call]}: in the end {', '.join(after)}.")
    title = "What each rank holds before a call, and after it."
    return look.finish(figure, title, " ".join(ends))


def _holding(axes, left, rank, values) -> None:
    """The elements of one rank, side by side."""
    if values is None:
        axes.text(left, rank + 0.5, "nothing", fontsize=8, color=look.GREY,
                  va="center")
        return
    for place, value in enumerate(np.atleast_1d(values)):
        _pieces(axes, left + place, rank, int(value))


def _pieces(axes, x, y, value: int) -> None:
    """One element: stripes in the colours of all ranks whose pieces are in
    it."""
    bits = _bits(value)
    height = 0.84 / max(1, len(bits))
    for number, bit in enumerate(bits):
        colour = RANKS[bit // 8]
        draw.box(axes, x, y + 0.08 + number * height, 0.94, height,
                 _name(bit), size=9 if len(bits) == 1 else 7,
                 facecolor=colour, linewidth=0)
    draw.box(axes, x, y + 0.08, 0.94, 0.84, fill=False)


def _bits(value: int) -> list[int]:
    return [bit for bit in range(value.bit_length()) if value >> bit & 1]


def _name(bit: int) -> str:
    return f"{'abcdefgh'[bit // 8]}{bit % 8}"


def _names(values) -> str:
    """What a rank holds, such as a0+b0 a1+b1."""
    if values is None:
        return "nothing"
    return " ".join("+".join(map(_name, _bits(int(value))))
                    for value in np.atleast_1d(values))


@look.style
def bytes_sent(records, guess: float | None = None):
    """Draw what the busiest rank sends, in arrays: counted by the program,
    and by the formula, dashed."""
    figure, axes = plt.subplots()
    ranks = sorted(int(frame.ranks.iloc[0]) for frame in records)
    p = np.arange(1, ranks[-1] + 1)
    formulas = {"gather-broadcast": p - 1, "tree": np.ceil(np.log2(p)),
                "ring": 2 * (p - 1) / p}
    most = []
    for way, formula in formulas.items():
        nth, name = WAYS[way]
        colour = look.LINES[nth]["color"]
        axes.plot(p, formula, "--", color=colour, linewidth=1.2)
        rows = [frame[frame.variant == way].iloc[-1] for frame in records]
        rows.sort(key=lambda row: row.ranks)
        counted = [max(share["sent_bytes"] for share in row["metrics.shares"])
                   / row["metrics.bytes"] for row in rows]
        draw.line(axes, ranks, counted, f"{name}, counted", nth,
                  linestyle="", markersize=8)
        most.append(f"{name} {counted[-1]:.3g}")
    draw.ideal(axes, [], [], "by the formula")
    if guess is not None:
        look.guess_star(axes, ranks[-1], guess, f"{guess:g}, for the ring")
    axes.set(xlabel="ranks (count)", xticks=p,
             ylabel="sent by the busiest rank (arrays)")
    axes.legend(loc="upper left")
    title = (f"Arrays that the busiest of {ranks[-1]} ranks sends: "
             f"{', '.join(most)}.")
    return look.finish(figure, title)


@look.style
def message_time(pings, fit, guess_us: float | None = None):
    """Draw the time of one message over its size: single ones, their
    median, the line fitted up to LONG, and where it goes from there."""
    figure, axes = plt.subplots()
    sizes = pings["metrics.bytes"].to_numpy()
    median = pings.step_median_s.to_numpy()  # (sizes,)
    last = sizes[-1]
    draw.dots(axes, sizes, us(pings.step_s), "single messages",
              color=look.LIGHT, markersize=4, alpha=1)
    axes.plot(sizes, 1e6 * median, "s", color=look.DARK, label="median")
    for ends, dashes, label in (((sizes[0], LONG), "-", "alpha + n beta"),
                                ((LONG, last), "--", "")):
        n = np.geomspace(*ends, 100)
        axes.plot(n, us(map(fit.seconds, n)), dashes, color=look.MIDDLE,
                  linewidth=2, label=label)
    alpha_us = 1e6 * fit.alpha_s
    corner = fit.alpha_s / fit.beta_s
    axes.plot([corner, corner], [alpha_us / 3, 2 * alpha_us], ":",
              color=look.GREY, linewidth=1.5)
    axes.text(corner, alpha_us / 3, fontsize=9, va="bottom", color=look.INK,
              s=f" {corner:,.0f} bytes:\n alpha = n beta")
    if guess_us is not None:
        # Hollow: the median may lie behind it.
        look.guess_star(axes, last, guess_us, f"{guess_us:g} us",
                        markerfacecolor="none", markeredgecolor="black")
    axes.set(xscale="log", yscale="log", ylabel="time, one way (us)",
             xlabel="size of the message (bytes)")
    axes.legend(loc="upper left")
    speed = sizes / median / 1e9  # (sizes,), GB/s
    best = int(np.argmax(speed))
    title = (f"{_size(last)} take {rounded(1e6 * median[-1])} us, "
             f"{median[-1] / fit.seconds(last):.1f} times as long as alpha "
             f"and beta say. That is {speed[-1]:.2g} GB/s; the most is "
             f"{speed[best]:.2g}, at {_size(sizes[best])}.")
    return look.finish(figure, title)


def one_call(asking, alone) -> str:
    """Say how long an allreduce of one number takes with too many ranks, and
    beside it one of two ranks with a core each.

    alone: the records of these two.
    """
    runs = asking.runs
    ms = 1e3 * runs.value[runs.variant == asking.baseline]
    let_go = runs.value[runs.variant == asking.variants[0]]
    let_go_us = 1e6 * let_go.median()
    mine = alone[alone.variant == "mpi"].set_index("metrics.bytes")
    size = mine.index.min()
    return (f"One allreduce takes {rounded(ms.min())} to {rounded(ms.max())} "
            "ms if waiting ranks keep asking, depending on the run. If they "
            f"let go, it still takes {rounded(let_go_us)} us; two ranks with "
            "a core each took "
            f"{rounded(1e6 * mine.step_median_s[size])}, for {_size(size)}.")


def explained(taken, adding) -> str:
    """Say how much of what recursive doubling takes longer than the ring's
    way is the adding of the other half."""
    whole, half = 1e3 * taken.table["median"].iloc[[0, 2]]
    once = 1e3 * adding.table["median"].iloc[0]
    longer = whole - half
    too = ("the other half of the numbers, which it adds too, takes MPI "
           f"{once:.2f} ms.")
    if longer <= 0 or taken.verdict("ring's way") != "faster":
        return f"Recursive doubling is not shown to take longer, though {too}"
    more = ("explains no more than that" if longer > once else
            "can explain all of it")
    return (f"Recursive doubling took {longer:.2f} ms longer; {too} "
            f"Adding alone {more}.")


@look.style
def ring_by_size(records, fit):
    """Draw how many times as long as gather and broadcast the ring and MPI's
    own take on two ranks, over the size of the array; dashed, what alpha and
    beta say of the ring."""
    figure, axes = plt.subplots()
    times = records.pivot(index="metrics.bytes", columns="variant",
                          values="step_median_s")
    sizes = times.index.to_numpy()
    first = times["gather-broadcast"]
    for way in ("ring", "mpi"):
        nth, name = WAYS[way]
        draw.line(axes, sizes, times[way] / first, name, nth)
    n = np.geomspace(sizes[0], sizes[-1], 100)
    two = fit.alpha_s, fit.beta_s
    says = [scaling.ring_allreduce_s(size, 2, *two)
            / scaling.gather_broadcast_s(size, 2, *two) for size in n]
    draw.ideal(axes, n, says, "the ring, by alpha and beta")
    axes.axhline(1, color=look.INK, linewidth=1)
    axes.set_xscale("log")
    axes.set_yscale("log", base=2)
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.set(xlabel="size of the array (bytes)",
             ylabel="times as long as\ngather and broadcast")
    ring = times["ring"] / first
    large = ring[sizes >= LONG]
    title = (f"In this one job, up to {_size(SHORT)} the ring takes "
             f"{np.median(ring[sizes <= SHORT]):.1f} times as long as gather "
             f"and broadcast; from {_size(LONG)} on, {min(large):.2f} to "
             f"{max(large):.2f} times. Alpha and beta say {says[0]:.1f} and "
             f"{says[-1]:.1f} times.")
    return look.finish(figure, title, legend=3)


def _size(count: int) -> str:
    """A number of bytes in words: 16 B, 256 KiB, 16 MiB."""
    for unit in ("B", "KiB", "MiB"):
        if count < 1024 or unit == "MiB":
            return f"{count:,.4g} {unit}"
        count /= 1024


@look.style
def straggler_timeline(runs, guess: float | None = None,
                       until_s: float = 0.12):
    """Draw what each worker did in the first moments of the first run: it
    computed, or it waited. `runs` has the records of those who wait, and then
    of those who do not; what they took is the median of the runs."""
    figure, panels = draw.panels(runs, (7, 1.4 + 1.25 * len(runs)), down=True)
    waited = []
    for name, axes in panels.items():
        log = np.array(runs[name]["metrics.timeline"].iloc[0])
        _, starts, readies, ends = log.T  # each (gradients,)
        share = np.sum(ends - readies) / np.sum(ends - starts)
        waited.append(f"{100 * share:.0f} %")
        workers = range(1, int(runs[name].ranks.iloc[0]))
        rows = [[] for _ in workers]
        for rank, start, ready, done in log[starts < until_s]:
            rows[int(rank) - 1] += [("compute", start, ready),
                                    ("wait", ready, done)]
        draw.spans(axes, rows, DOES, [f"rank {rank}" for rank in workers])
        axes.set_xlim(0, 1e3 * until_s)
    axes.set_xlabel("time since the start (ms)")
    all_s, none_s = (each["metrics.seconds"].median()
                     for each in runs.values())
    stale = [each["metrics.stale_updates"] for each in runs.values()]
    fresh, old = (f"{each.map(np.mean).median():.1f} (at most "
                  f"{each.map(max).max()})" for each in stale)
    said = "" if guess is None else f" (you said {guess:g})"
    gradients = len(stale[0].iloc[0])
    title = (f"If all wait, {gradients} gradients take "
             f"{all_s / none_s:.1f} times as long{said}. "
             f"Workers wait for {' and '.join(waited)} of their time; "
             f"gradients are {fresh} and {old} updates old.")
    return look.finish(figure, title, legend=2)
