"""The figures of 03_spmd: who holds what, what messages and collective
calls cost, which way the library takes, and what a straggler costs."""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.ticker import LogLocator, NullLocator

from scaleout import Comparison
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
SIZES = {"xscale": "log", "yscale": "log",
         "xlabel": "size of the array (bytes)"}


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
def message_time(sizes, seconds, fit, guess: float | None = None):
    """Draw the time of one message over its size: single ones, their
    median, the fitted line."""
    figure, axes = plt.subplots()
    draw.dots(axes, sizes, us(seconds), "single messages", color=look.LIGHT,
              markersize=4, alpha=1)
    axes.plot(sizes, [np.median(each) for each in us(seconds)], "s",
              color=look.DARK, label="median")
    n = np.geomspace(min(sizes), max(sizes), 200)
    axes.plot(n, us(map(fit.seconds, n)), color=look.MIDDLE, linewidth=2,
              label="alpha + beta n, fitted")
    alpha_us = 1e6 * fit.alpha_s
    corner = fit.alpha_s / fit.beta_s
    axes.axhline(alpha_us, color=look.GREY, linestyle="--", linewidth=1)
    axes.text(max(sizes), alpha_us, f"alpha: {alpha_us:.2g} us", va="bottom",
              ha="right", color=look.INK)
    axes.plot([corner, corner], [alpha_us / 3, 2 * alpha_us], ":",
              color=look.GREY, linewidth=1.5)
    axes.text(corner, alpha_us / 3, fontsize=9, va="bottom", color=look.INK,
              s=f" {corner:,.0f} bytes:\n latency = transfer")
    if guess is not None:
        look.guess_star(axes, min(sizes), guess, f"{guess:g} us")
    axes.set(**SIZES | {"xlabel": "size of the message (bytes)"},
             ylabel="time, one way (us)")
    axes.legend(loc="upper left")
    off = [np.median(each) / fit.seconds(size)
           for size, each in zip(sizes, seconds, strict=True)]
    title = (f"A message takes {rounded(alpha_us)} us, and "
             f"{rounded(1e9 * fit.beta_s)} ns more for each byte. The medians "
             f"are {min(off):.2g} to {max(off):.2g} times what this line "
             "says.")
    return look.finish(figure, title)


@look.style
def allreduce_time(records, expected):
    """Draw the time of an allreduce on two ranks over the size of the array,
    a line for each way, and how many times as long it takes as alpha and
    beta say."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(8, 4))
    off = []
    for way, rows in records.groupby("variant", sort=False):
        nth, name = WAYS[way]
        x = rows["metrics.bytes"].to_numpy()
        middle = draw.line(left, x, us(rows.step_s), name, nth, linestyle="-")
        if way in expected:
            said = us(map(expected[way], x))
            times = np.array(middle) / said  # (sizes,)
            off.append(f"{name} {rounded(min(times))} to "
                       f"{rounded(max(times))}")
            draw.line(right, x, times, name, nth, linestyle="-")
    left.plot([], [], ".", color=look.GREY, label="single calls")
    draw.ideal(right, right.get_xlim(), [1, 1], "as predicted")
    left.set(**SIZES, ylabel="time on 2 ranks (us)")
    right.set(**SIZES, ylabel="times as long as predicted")
    _few_ticks(right)
    title = ("How many times as long as alpha and beta predict an allreduce "
             f"took: {', '.join(off)}.")
    return look.finish(figure, title, legend=5)


def _few_ticks(axes) -> None:
    """Ratios on a logarithmic axis: 0.2, 0.5, 1, 2, 5 and so on."""
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.yaxis.set_minor_locator(NullLocator())
    # So many at least, also where all ratios are near 1
    low, high = axes.get_ylim()
    axes.set_ylim(min(low, 0.45), max(high, 2.2))


def at_each_size(found):
    """A comparison of jobs that each measured several sizes, as one for each
    size: {bytes: Comparison}."""
    runs = found.runs.drop(columns="value")
    table = found.records[["run_id", "metrics.bytes", "step_median_s"]]
    sizes = {}
    for size, rows in table.groupby("metrics.bytes"):
        of_run = dict(zip(rows.run_id, rows.step_median_s, strict=True))
        rows = runs.assign(value=runs.run_id.map(of_run), unit="s")
        sizes[int(size)] = Comparison(rows.to_dict("records"), lower=True)
    return sizes


@look.style
def by_size(found, law=None, guess: float | None = None):
    """Draw how many times as fast as the baseline each variant is, over the
    size of the array; dashed, what a law says of the first variant."""
    sizes = at_each_size(found)
    figure, axes = plt.subplots()
    said = []
    for nth, variant in enumerate(found.variants):
        own = look.LINES[nth]
        ratios = [each.ratio(variant) for each in sizes.values()]
        draw.line(axes, list(sizes), [ratio.middle for ratio in ratios],
                  variant, nth)
        for size, ratio in zip(sizes, ratios, strict=True):
            draw.interval(axes, size, ratio.low, ratio.middle, ratio.high,
                          upright=True, fmt="", color=own["color"],
                          linewidth=1.5)
        words = {}
        for size, each in sizes.items():
            word = each.verdict(variant).replace("no difference shown",
                                                 "not shown to differ")
            words.setdefault(word, []).append(_size(size))
        found_here = [
            f"{word} at {'all sizes' if len(words) == 1 else _and(where)}"
            for word, where in words.items()]
        said.append(f"{variant} is {', '.join(found_here)}")
    if law:
        n = np.geomspace(min(sizes), max(sizes), 100)
        draw.ideal(axes, n, list(map(law, n)),
                   "the ring's way, by alpha and beta")
    axes.axhline(1, color=look.GREY, linewidth=1)
    look.guess_line(axes, guess, upright=True, unit="bytes")
    axes.set(**SIZES, ylabel=f"times as fast as\n{found.baseline}")
    _few_ticks(axes)
    title = f"Compared with {found.baseline}, {'; '.join(said)}."
    return look.finish(figure, title, legend=2)


def _and(words) -> str:
    """16 B, 1 KiB and 16 MiB."""
    *others, last = words
    return f"{', '.join(others)} and {last}" if others else last


def _size(count: int) -> str:
    """A number of bytes in words: 16 B, 256 KiB, 16 MiB."""
    for unit in ("B", "KiB", "MiB"):
        if count < 1024 or unit == "MiB":
            return f"{count:,.4g} {unit}"
        count /= 1024


@look.style
def straggler_timeline(records, until_s: float = 0.12):
    """Draw what each worker did in the first moments: it computed, or it
    waited."""
    figure, panels = draw.panels(records, (7, 1.4 + 1.25 * len(records)),
                                 down=True)
    done_early = []
    waited = []
    for title, axes in panels.items():
        log = np.array(records[title]["metrics.timeline"].iloc[0])
        _, starts, readies, ends = log.T  # each (gradients,)
        share = np.sum(ends - readies) / np.sum(ends - starts)
        waited.append(f"{100 * share:.0f} %")
        done_early.append(f"{np.sum(readies < until_s)} if {title}")
        workers = range(1, int(records[title].ranks.iloc[0]))
        rows = [[] for _ in workers]
        for rank, start, ready, done in log[starts < until_s]:
            rows[int(rank) - 1] += [("compute", start, ready),
                                    ("wait", ready, done)]
        draw.spans(axes, rows, DOES, [f"rank {rank}" for rank in workers])
        axes.set_xlim(0, 1e3 * until_s)
    axes.set_xlabel("time since the start (ms)")
    title = (f"In the first {1e3 * until_s:.0f} ms the workers finish "
             f"gradients: {' and '.join(done_early)}. They wait for "
             f"{' and '.join(waited)} of their time.")
    return look.finish(figure, title, legend=2)
