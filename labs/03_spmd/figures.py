"""The figures of 03_spmd: who holds what, what messages and collective
calls cost, servers, and what a straggler costs."""

from functools import partial

import matplotlib.pyplot as plt
import numpy as np

from scaleout.plots import look
from scaleout.plots import primitives as draw
from scaleout.words import rounded

RANKS = (look.DARK, look.LIGHT, look.MIDDLE, "#c9b458", "#8a8a8a", "#5b8c5a",
         "#d9a5b3", "#3d3d3d")
# Of each way of an allreduce: which look of all lines, and its name.
WAYS = {
    "ring": (0, "ring"),
    "gather-broadcast": (1, "gather and broadcast"),
    "tree": (2, "binary tree"),
    "mpi": (3, "MPI's own"),
}
DOES = {"compute": ("computes", {"color": look.DARK, "edgecolor": "white"}),
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
        counted = [max(row["metrics.sent_bytes"]) / row["metrics.bytes"]
                   for row in rows]
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
              s=f" {corner:,.0f} bytes:\n half waiting, half moving")
    if guess is not None:
        look.guess_star(axes, min(sizes), guess, f"{guess:g} us")
    axes.set(**SIZES | {"xlabel": "size of the message (bytes)"},
             ylabel="time, one way (us)")
    axes.legend(loc="upper left")
    title = (f"A message takes {rounded(alpha_us)} us, and "
             f"{rounded(1e9 * fit.beta_s)} ns more for each byte.")
    return look.finish(figure, title)


@look.style
def allreduce_time(records, expected=None):
    """Draw the time of an allreduce over the size of the array, a line for
    each way; what alpha and beta say is dashed."""
    figure, axes = plt.subplots()
    for way, rows in records.groupby("variant", sort=False):
        nth, name = WAYS[way]
        x = rows["metrics.bytes"]
        draw.line(axes, x, us(rows.step_s), name, nth, linestyle="-")
        if way in (expected or {}):
            axes.plot(x, us(map(expected[way], x)), "--", linewidth=1.2,
                      color=look.LINES[nth]["color"])
    if expected:
        draw.ideal(axes, [], [], "by alpha and beta")
    axes.set(**SIZES, ylabel=f"time on {records.ranks.iloc[0]} ranks (us)")
    axes.legend(loc="upper left", fontsize=9)
    first = []
    for size in (min(records["metrics.bytes"]),
                 max(records["metrics.bytes"])):
        rows = records[records["metrics.bytes"] == size]
        row = rows.loc[rows.step_median_s.idxmin()]
        first.append(f"{size:,.0f} bytes: {WAYS[row.variant][1]} "
                     f"{rounded(1e6 * row.step_median_s)} us")
    title = f"Lowest median for {'; for '.join(first)}."
    return look.finish(figure, title)


@look.style
def mpi_libraries(records, published: float | None = None):
    """Draw MPI's own allreduce in each library, and Open MPI's time in
    Intel MPI's, where both are."""
    both = {"Intel MPI", "Open MPI"} <= set(records)
    figure, panels = plt.subplots(1, 1 + both, figsize=(7 + both, 4),
                                  squeeze=False)
    axes = panels[0, 0]
    slowest = []
    for nth, (name, rows) in enumerate(records.items()):
        middle = draw.line(axes, rows["metrics.bytes"], us(rows.step_s),
                           name, nth)
        slowest.append(f"{name} {rounded(middle[-1])} us")
    ranks = rows.ranks.iloc[0]
    axes.set(**SIZES, ylabel=f"allreduce on {ranks} ranks (us)")
    title = (f"{rows['metrics.bytes'].max():,.0f} bytes: "
             f"{', '.join(slowest)}.")
    if both:
        intel = records["Intel MPI"]
        other = records["Open MPI"].step_median_s.to_numpy()
        ratio = other / intel.step_median_s.to_numpy()  # (sizes,)
        axes = panels[0, 1]
        axes.plot(intel["metrics.bytes"], ratio, "o-", color=look.INK,
                  label="here, allreduce alone")
        axes.axhline(1, color=look.GREY, linestyle="--", linewidth=1)
        if published is not None:
            axes.axhline(published, color=look.MIDDLE, linestyle=":",
                         linewidth=2, label="published, training")
        axes.set(**SIZES, ylabel="Open MPI's time / Intel MPI's")
        title = (f"Open MPI takes {min(ratio):.2g} to {max(ratio):.2g} times "
                 f"as long as Intel MPI, depending on the size. {title}")
    return look.finish(figure, title, legend=5)


@look.style
def servers_or_ring(records, cores: int, guess: float | None = None):
    """Draw parameter servers and the ring as the ranks grow: bytes that the
    busiest rank sends, and the time of an update."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(8, 4.2))
    every = [row for frame in records for _, row in frame.iterrows()]
    kinds = {"ring": 0, "1 server": 1, "2 servers": 2,
             "a server on every rank": None}
    for nth, (name, servers) in enumerate(kinds.items()):
        rows = [row for row in every if row["metrics.servers"] == (
            row.ranks if servers is None else servers)]
        rows.sort(key=lambda row: row.ranks)
        ranks = [row.ranks for row in rows]
        size = 9 if servers is None else 6
        draw.line(left, ranks, map(_sent_mib, rows), name, nth,
                  markersize=size)
        draw.line(right, ranks, [1e3 * np.array(row.step_s) for row in rows],
                  name, nth, markersize=size)
    ticks = sorted({row.ranks for row in every})
    most = ticks[-1]
    if most > cores:
        right.axvspan(cores + 0.5, most + 0.3, color=look.PALE, zorder=0)
        right.text(most, 0.02, "ranks share cores", ha="right", fontsize=9,
                   color=look.INK, transform=right.get_xaxis_transform())
    sent = {row["metrics.servers"]: _sent_mib(row)
            for row in every if row.ranks == most}
    if guess is not None:
        look.guess_star(left, most, guess * sent[0], f"{guess:g} x the ring")
    for axes in (left, right):
        axes.set(xlabel="ranks (count)", xticks=ticks, ylim=(0, None))
    left.set_ylabel("sent by the busiest rank (MiB)")
    right.set_ylabel("time of an update (ms)")
    title = (f"On {most} ranks a single server sends {sent[1] / sent[0]:.2g} "
             "times as much as a rank of a ring.")
    return look.finish(figure, title, legend=5)


def _sent_mib(row) -> float:
    return max(row["metrics.sent_bytes"]) / 2**20


@look.style
def straggler_timeline(records, until_s: float = 0.12):
    """Draw what each worker did in the first moments: it computed, or it
    waited."""
    figure, panels = draw.panels(records, (7, 1.4 + 1.25 * len(records)),
                                 down=True)
    waited = []
    for title, axes in panels.items():
        log = np.array(records[title]["metrics.timeline"].iloc[0])
        _, starts, readies, ends = log.T  # each (gradients,)
        share = np.sum(ends - readies) / np.sum(ends - starts)
        waited.append(f"{100 * share:.0f} % ({title})")
        workers = range(1, int(records[title].ranks.iloc[0]))
        rows = [[] for _ in workers]
        for rank, start, ready, done in log[starts < until_s]:
            rows[int(rank) - 1] += [("compute", start, ready),
                                    ("wait", ready, done)]
        draw.spans(axes, rows, DOES, [f"rank {rank}" for rank in workers])
        axes.set_xlim(0, 1e3 * until_s)
    axes.set_xlabel("time since the start (ms)")
    title = ("The share of their time in which the workers wait: "
             f"{', '.join(waited)}.")
    return look.finish(figure, title, legend=2)


@look.style
def stale_losses(records):
    """Draw the test loss over seconds and over gradients: points are single
    runs, lines their median."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(8, 4.2), sharey=True)
    ends = []
    for nth, (name, frames) in enumerate(records.items()):
        # Each (points, 3): seconds, gradients, loss.
        runs = [np.array(frame["metrics.curve"].iloc[0]) for frame in frames]
        seconds, gradients, loss = np.median([run[-1] for run in runs],
                                             axis=0)
        ends.append(f"{name}: a loss of {loss:.2g} after {seconds:.2g} s")
        over = partial(draw.curves, label=name, nth=nth)
        over(left, [(run[::2, 0], run[::2, 2]) for run in runs])
        over(right, [(run[::2, 1], run[::2, 2]) for run in runs])
    left.set(xlabel="time (s)", ylabel="loss on the test images (number)",
             yscale="log")
    right.set_xlabel("gradients used (count)")
    title = (f"After {gradients:.0f} gradients, in the median: "
             f"{'; '.join(ends)}.")
    return look.finish(figure, title, legend=2)
