"""The figures of 00_welcome: the limits of a machine, and who took what; and
in words, what the allreduce costs, and what a whole job gains."""

import matplotlib.pyplot as plt
import numpy as np

from scaleout.base.words import count, percent, rounded
from scaleout.plots import look

SGEMM = 2048 / 6  # operations for each byte of a product of 2048 x 2048
WAITED_S = 1e-5  # of an allreduce, beyond which no cold cache can be the cause


@look.style
def limits(gflops, gb_per_s, guess: float | None = None):
    """Draw the roofline: what is within reach, over how much a program
    computes with each byte that it moves."""
    peak = float(np.median(gflops))
    bandwidth = float(np.median(gb_per_s))
    corner = peak / bandwidth
    per_byte = np.logspace(-2, 3, 300)  # operations for each byte
    reach = np.minimum(peak, bandwidth * per_byte)
    figure, axes = plt.subplots()
    axes.loglog(per_byte, reach, color=look.DARK, linewidth=3)
    axes.scatter([SGEMM] * len(gflops), gflops, s=25, color=look.MIDDLE,
                 zorder=3, label="SGEMM, single runs")
    look.guess_line(axes, guess, unit="GFLOP/s")
    lowest = reach[0]
    programs = {"a + b": 1 / 12, "the corner": corner,
                "SGEMM, n = 2048": SGEMM}
    for name, x in programs.items():
        top = min(peak, bandwidth * x)
        axes.plot([x, x], [lowest, top], "--", color=look.GREY, linewidth=1)
        axes.text(x * 1.12, lowest * 1.3, name, rotation=90, va="bottom",
                  fontsize=10, color=look.INK)
    axes.text(0.011, bandwidth * 0.06, f"copy:\n{bandwidth:.0f} GB/s",
              va="bottom", color=look.DARK)
    axes.text(corner * 1.5, peak * 1.25, f"product: {peak:.0f} GFLOP/s",
              va="bottom", color=look.DARK,
              bbox={"facecolor": "white", "edgecolor": "none", "pad": 1})
    axes.set(xlabel="operations for each byte moved (FLOP/byte)",
             ylabel="within reach (GFLOP/s)",
             ylim=(lowest, max(peak, guess or 0) * 5))
    axes.legend(loc="upper left")
    title = (f"NumPy's product reaches {peak:.0f} GFLOP/s here, and its copy "
             f"{bandwidth:.0f} GB/s: below {corner:.1f} operations for each "
             "byte, memory sets the pace.")
    return look.finish(figure, title)


@look.style
def shares(records):
    """Draw who took which strips: a bar for each rank, from its first strip
    to its last."""
    every = [share for row in records["metrics.shares"] for share in row]
    last = max(share["last"] for share in every)
    figure, axes = plt.subplots(figsize=(7, 2.6))
    for row, share in enumerate(every):
        width = share["last"] - share["first"]
        axes.barh(row, width, left=share["first"], color=look.LIGHT,
                  edgecolor=look.DARK)
        axes.text(share["first"] + width / 2, row,
                  f"{width:,} strips\npart {share['part']:.6f}",
                  ha="center", va="center", fontsize=10)
    axes.set_yticks(range(len(every)),
                    [f"rank {share['rank']}" for share in every])
    axes.set(xlabel="strip (number, counted from x = 0)", xlim=(0, last))
    axes.xaxis.set_major_formatter("{x:,.0f}")
    axes.invert_yaxis()
    axes.grid(False)
    taken = sum(share["last"] - share["first"] for share in every)
    title = (f"{count(len(every), 'rank')} took {taken:,} strips together; "
             f"there are {last:,}.")
    return look.finish(figure, title)


def cost(records) -> str:
    """Say what part of the sum the allreduce takes."""
    row = records.iloc[0]
    whole, part = row["step_median_s"], row["metrics.allreduce_s"]
    return (f"The allreduce takes {rounded(1e6 * part)} of the sum's "
            f"{rounded(1e6 * whole)} microseconds "
            f"({rounded(100 * part / whole)} %).")


def halving(short, long) -> str:
    """Say what halving a short sum's strips saves, beside its allreduce, and
    whether the allreduce of a long sum is mostly waiting; records of both."""
    few, many = short.iloc[0], long.iloc[0]
    own = _most(few)
    left = few["metrics.strips"] - own
    if not left:
        return "Nothing was halved: each rank added all strips."
    whole, part = few["step_median_s"], few["metrics.allreduce_s"]
    long_part = many["metrics.allreduce_s"]
    strip_s = (many["step_median_s"] - long_part) / _most(many)
    way = "more" if left * strip_s > part else "less"
    told = ("At the long sum's pace, halving the strips saves "
            f"{rounded(1e6 * left * strip_s)} microseconds, {way} than the "
            "allreduce takes")
    rest = whole - part - own * strip_s
    if rest > 0.1 * whole:
        told += (f"; {rounded(1e6 * rest)} of the {rounded(1e6 * whole)} are "
                 "neither strips nor allreduce")
    told += "."
    if long_part - part > max(part, WAITED_S):
        told += (f" With {many['metrics.strips']:,.0f} strips the same "
                 f"allreduce took {rounded(1e6 * long_part)} microseconds: "
                 "most of that was waiting for the other rank.")
    return told


def _most(row) -> int:
    """The most strips that a rank of a job adds up."""
    return max(share["last"] - share["first"]
               for share in row["metrics.shares"])


def ideal(gain) -> str:
    """Say whether two ranks are shown to be less than twice as fast."""
    if round(gain.high, 2) >= 2:
        return ("2 would be ideal, and the interval reaches it: nothing is "
                "shown to be missing.")
    return (f"2 would be ideal: at least {percent(1 - gain.high / 2)} of "
            "their time is lost.")


def whole(job, gain: float) -> str:
    """Say what part of a job of two ranks its sums are, and by how much the
    job gains where its sums gain so much."""
    row = job.records.iloc[0]
    sums = int(row["warmup_steps"]) + len(row["step_s"])
    sums_s = sums * row["step_median_s"]
    alone_s = job.wall_s - sums_s + gain * sums_s
    return (f"The whole job takes {job.wall_s:.1f} s, its {sums} sums about "
            f"{sums_s:.2f} s of it. If all else takes one rank as long, the "
            f"job is {alone_s / job.wall_s:.1f} times as fast as on one.")
