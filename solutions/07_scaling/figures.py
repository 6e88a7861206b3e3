"""The figures of 07_scaling: what a step consists of, the wires, and laws with
their intervals."""

from textwrap import fill
from typing import NamedTuple

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from scaleout import scaling
from scaleout.plots import look, primitives

PARTS = {
    "compute": ("compute", {"color": look.DARK}),
    "rest": ("exchange and waiting", look.WAITING),
}

FRESH = ", as MPICH comes"  # a wire that takes fresh memory each time
# What 04 gave on other machines: hatch, marker and colour.
STORED = [("////", "D", look.GOLD), ("....", "s", look.DARK)]


@look.style
def step_parts(records, guess: float | None = None):
    """Draw what a step consists of, strong and weak: the slowest rank's
    compute, and the rest, which waits."""
    titles = {"strong": "one batch, shared out",
              "weak": "one batch per rank"}
    figure, panels = primitives.panels(titles.values(), (7, 4.4))
    rows = [row for _, row in records.iterrows()]
    found = {}
    for mode, axes in zip(titles, panels.values(), strict=True):
        jobs: dict[int, list] = {}
        for row in rows:
            if row["ranks"] == 1 or row["metrics"]["mode"] == mode:
                jobs.setdefault(int(row["ranks"]), []).append(row)
        counts = sorted(jobs)
        bars = []
        for place, ranks in enumerate(counts):
            own = jobs[ranks]
            step = 1e3 * np.median([row["step_median_s"] for row in own])
            compute = 1e3 * np.median([
                max(share["compute_s"] for share in row["metrics"]["shares"])
                for row in own])
            bars.append({"compute": min(compute, step),
                         "rest": max(0.0, step - compute)})
            if ranks > 1:
                ring = 1e3 * np.median([row["metrics"]["ring_s"]
                                        for row in own])
                axes.plot([place - 0.36, place + 0.36], [compute + ring] * 2,
                          color=look.MIDDLE, linewidth=2.5,
                          label="compute + ring's formula")
            steps = 1e3 * np.concatenate([row["step_s"] for row in own])
            axes.plot(place + np.linspace(-0.2, 0.2, len(steps)), steps, ".",
                      color="black", markersize=2,
                      label="" if place else "each step")
        primitives.stacked(axes, bars, PARTS, flat=False, width=0.6)
        one = sum(bars[0].values())
        ideal = [one / n if mode == "strong" else one for n in counts]
        primitives.ideal(axes, range(len(counts)), ideal)
        if guess and mode == "strong":
            look.guess_star(axes, len(counts) - 1, ideal[-1] / guess,
                            f"efficiency {guess:g}", color="white",
                            markeredgecolor="black", markersize=18)
        axes.set_xticks(range(len(counts)), map(str, counts))
        axes.set_xlabel("number of ranks")
        found[mode] = (sum(bars[-1].values()), bars[-1]["rest"],
                       bars[-1]["compute"] - ideal[-1])
    top = np.percentile(1e3 * np.concatenate([row["step_s"] for row in rows]),
                        99)
    stars = [line.get_ydata()[0] for axes in panels.values()
             for line in axes.lines if line.get_marker() == "*"]
    axes.set_ylim(0, 1.1 * max(top, *stars, 0.0))
    next(iter(panels.values())).set_ylabel("step time (ms)")
    said = []
    for mode, (step, rest, more) in found.items():
        how = (f"{abs(more):.0f} ms {'more' if more > 0 else 'less'} than "
               "ideal" if abs(more) >= 0.05 * step else
               "as long as ideal, within 5 % of the step")
        said.append(f"{mode} scaling, {step:.0f} ms: exchange and waiting "
                    f"are {rest:.0f} ms, and computing takes {how}")
    return look.finish(
        figure, f"A step on {counts[-1]} ranks. {said[0].capitalize()}. "
        f"{said[1].capitalize()}.", legend=3)


def factors(records) -> pd.DataFrame:
    """What an efficiency is lost to, as factors in the words of computing
    centres, and their product; a row for each mode."""
    def parts(rows):
        """Medians of the rows: the step, the slowest rank's compute, the
        mean rank's compute, and the ring's formula, in seconds."""
        each = []
        for _, row in rows.iterrows():
            compute = [share["compute_s"]
                       for share in row["metrics"]["shares"]]
            each.append((row["step_median_s"], max(compute),
                         np.mean(compute), row["metrics"]["ring_s"]))
        return np.median(each, axis=0)

    one = parts(records[records["ranks"] == 1])
    found = {}
    for mode in ("strong", "weak"):
        many = records[(records["ranks"] > 1) & (records["variant"] == mode)]
        step, slowest, mean, ring = parts(many)
        ranks = many["ranks"].iloc[0] if mode == "strong" else 1
        found[mode] = {
            "computation scaling": one[0] / (ranks * mean),
            "load balance": mean / slowest,
            "serialisation": slowest / (step - ring),
            "transfer": (step - ring) / step,
        }
    table = pd.DataFrame(found).T
    return table.assign(product=table.prod(axis=1))


def most_lost(table) -> str:
    """Say where most of each efficiency is lost, and what the messages take;
    and by how much a strong step could gain if the rest of it hid."""
    parts = table.drop(columns="product")
    said = []
    for mode, row in parts.iterrows():
        lost = (100 * (1 - row)).round()
        worst = lost[lost == lost.max()].index
        loses = "loses" if len(worst) == 1 else "lose"
        said.append(f"In {mode} scaling, {' and '.join(worst)} {loses} most, "
                    f"{lost.max():.0f} %{' each' * (len(worst) > 1)}. By the "
                    f"formula, the messages cost {lost.transfer:.0f} %.")
    left = table.loc["strong"]
    most = 1 / (left.serialisation * left.transfer)
    return "\n".join([
        *said, "If all exchange and waiting of a strong step were hidden, it "
        f"would be {most:.2f} times as fast: hiding cannot gain more."])


def stored_speed_ups(others) -> dict:
    """{machine: (ranks, its speed-up over one rank)}, of a comparison that
    other machines kept: each one's largest number of ranks."""
    found = {}
    for other in others:
        counts = {int(name.split()[0]): name for name in other.found.variants
                  if name.endswith(" ranks")}
        if counts:
            most = max(counts)
            found[other.name] = most, other.found.ratio(counts[most])
    return found


@look.style
def amdahl_law(law, measured, most: int = 64, guess: float | None = None,
               stored=None):
    """Draw the speed-up over ranks: what was measured, and the law with the
    interval of its serial part. Stored ones, {name: (ranks, ratio)}, get a
    law of their own each."""
    figure, axes = plt.subplots(figsize=(7, 4.9))
    ranks = np.geomspace(1, most, 200)

    def band(its, **fill) -> np.ndarray:
        """Draw what lies between the ends of a serial part; both at most."""
        high, low = (1 / (serial + (1 - serial) / ranks)
                     for serial in its.serial_range)
        axes.fill_between(ranks, low, high, linewidth=0, **fill)
        return np.array([low[-1], high[-1]])

    ends = band(law, color=look.LIGHT, alpha=0.5, label="95 % interval")
    axes.plot(ranks, [law.speed_up(n) for n in ranks], color=look.DARK,
              linewidth=2, label="Amdahl's law")
    primitives.ideal(axes, ranks, ranks)
    said = []
    for nth, (name, (n, ratio)) in enumerate((stored or {}).items()):
        its = scaling.Amdahl.assumed(n, ratio)
        hatch, marker, color = STORED[nth % len(STORED)]
        low, high = band(its, facecolor="none", hatch=hatch, edgecolor=color,
                         label=f"band: 04 on {name}")
        primitives.interval(axes, n * 1.08 ** (nth + 1), ratio.low,
                            ratio.middle, ratio.high, "",
                            upright=True, fmt=marker, color=color, capsize=4)
        said.append(f"04's {ratio.middle:.2f} times on {n} ranks ({name}) "
                    f"would give {low:.0f} to {high:.0f} times")
    for nth, (n, ratio) in enumerate(measured.items()):
        primitives.interval(axes, n, ratio.low, ratio.middle, ratio.high,
                            "" if nth else "measured", upright=True,
                            color=look.MIDDLE, capsize=4)
    if guess is not None:
        look.guess_star(axes, most, guess, f"{guess:g}")
    axes.set(xscale="log", yscale="log", xlabel="number of ranks",
             ylabel="speed-up over 1 rank")
    ticks = [2**k for k in range(int(np.log2(most)) + 1)]
    axes.set_xticks(ticks, ticks)
    axes.set_yticks(ticks, ticks)
    axes.minorticks_off()
    points = ", ".join(f"{n} ranks: {ratio.middle:.2f} times"
                       for n, ratio in measured.items())
    beside = f" By the same law, {'; '.join(said)}." if said else ""
    return look.finish(
        figure, f"If the law holds, {most} ranks are {ends[0]:.0f} to "
        f"{ends[1]:.0f} times as fast as one.{beside}",
        f"Measured: {points}.", legend=2)


def lines(records):
    """What was fitted to the messages of each wire: alpha and beta."""
    found = {}
    for wire, jobs in records.groupby("variant", sort=False):
        kept = list(jobs["metrics"])
        found[wire] = scaling.fit_alpha_beta(
            [n for job in kept for n in job["sizes"]],
            [s for job in kept for s in job["messages_s"]])
    return found


def gamma_s(jobs) -> float:
    """Seconds for each byte that MPI adds, from the largest gradient."""
    added = [max(job["steps"], key=lambda step: step["bytes"]) for job in jobs]
    return float(np.median([np.median(step["add_s"]) / (step["bytes"] / 2)
                            for step in added]))


def wire_parts(records) -> pd.DataFrame:
    """alpha, beta and gamma of each wire; gamma from the largest gradient."""
    found = {}
    for wire, line in lines(records).items():
        gamma = gamma_s(records.loc[records["variant"] == wire, "metrics"])
        found[wire] = {
            "alpha (us)": 1e6 * line.alpha_s,
            "beta (ns/byte)": 1e9 * line.beta_s,
            "Gb/s": 8e-9 / line.beta_s,
            "gamma (ns/byte)": 1e9 * gamma,
            "scatter (%)": 100 * line.scatter,
        }
    return pd.DataFrame(found).T


def beside_names(parts, names) -> str:
    """Say which networks promise more than TCP gave here, by the better of
    two libraries."""
    tcp = parts.loc[["TCP", "sockets"], "Gb/s"]
    faster = [name for name in names
              if 8e-9 / scaling.NETWORKS[name].beta_s > tcp.max()]
    above = ("Of the networks in the next figure, these promise more than "
             f"was seen here: {', '.join(faster)}" if faster else
             "No network in the next figure promises more")
    return (f"TCP within this machine moves {tcp.max():.1f} Gb/s "
            f"({tcp.idxmax()}). {above}.")


def of_size(n: float, job) -> float:
    """Seconds of a message of n bytes: by the line between the two measured
    sizes next to it, both axes logarithmic."""
    return float(np.exp(np.interp(np.log(n), np.log(job["sizes"]),
                                  np.log(job["messages_s"]))))


class OnWire(NamedTuple):
    """A step over a wire, in seconds: as the least, the median and the most
    of its jobs predict it, and as they measure it."""

    said: tuple
    took: tuple
    jobs: int


def on_wires(records) -> dict[int, dict[str, OnWire]]:
    """For each gradient, its step over each wire.

    A job's prediction is compute, two messages of half the bytes, and the
    adding of half the bytes.
    """
    found: dict[int, dict] = {}
    for wire, jobs in records.groupby("variant", sort=False):
        kept = list(jobs["metrics"])
        for same in zip(*(job["steps"] for job in kept), strict=True):
            n = same[0]["bytes"]
            compute, add, step = (
                np.array([np.median(one[what]) for one in same])  # (jobs,)
                for what in ("compute_s", "add_s", "step_s"))
            ring = np.array([2 * of_size(n / 2, job) for job in kept])
            both = (tuple(np.percentile(each, [0, 50, 100]))
                    for each in (compute + ring + add, step))
            found.setdefault(n, {})[wire] = OnWire(*both, len(step))
    return found


def places(records) -> None:
    """Say of the largest gradient's exchange over each wire how it stands to
    what was predicted, and how much that tells."""
    found = on_wires(records)
    for wire, step in found[max(found)].items():
        (low, middle, high), (_, took, _) = step.said, step.took
        where = ("above" if took > high else "below" if took < low
                 else "within")
        print(f"{wire}: {took / middle:.2f} times as long as predicted, "
              f"{where} the range, whose ends are {high / low:.1f} times "
              "apart.")


def exchange_errors(records) -> tuple[float, float]:
    """How many times as long as predicted the exchange of the largest
    gradient took: least and most, of all wires, and 1 among them."""
    times = on_wires(records)
    off = [step.took[1] / step.said[1] for step in times[max(times)].values()]
    return min(1.0, *off), max(1.0, *off)


def leaning(off) -> str:
    """Say whether all errors, in %, lie on one side."""
    if max(off) < 0:
        return f"all {len(off)} came out too short"
    if min(off) > 0:
        return f"all {len(off)} came out too long"
    return f"{sum(np.array(off) < 0)} of {len(off)} came out too short"


@look.style
def wires(records, names, guess: float | None = None):
    """Draw a step over several wires: predicted from its parts, and measured.
    A panel for each name, with a gradient of its own; the last, which should
    have no compute, gives the title."""
    figure, panels = primitives.panels(names, (8.5, 4.6), sharey=False)
    each = []
    for axes, name, found in zip(panels.values(), names,
                                 on_wires(records).values(), strict=True):
        off = []
        for place, (wire, step) in enumerate(found.items()):
            said, took = (1e3 * np.array(each) for each in step[:2])
            primitives.interval(axes, place - 0.12, *said,
                                "predicted, range of its jobs",
                                upright=True, fmt="_", markersize=14)
            primitives.interval(axes, place + 0.12, *took,
                                "measured, range of its jobs", upright=True,
                                fmt="o", color=look.MIDDLE, capsize=4)
            off.append(100 * (said[1] / took[1] - 1))
            low, middle, high = said
            each.append(f"{name}, {wire}: {middle:.3g} ({low:.3g} to "
                        f"{high:.3g}) ms predicted, {took[1]:.3g} "
                        f"({took[0]:.3g} to {took[2]:.3g}) measured")
        axes.set_xticks(range(len(found)), [fill(wire, 10) for wire in found])
        axes.set_xlim(-0.5, len(found) - 0.5)
    first = next(iter(panels.values()))
    first.set_ylabel("time (ms)")
    if guess is not None:
        look.guess_star(first, [*found].index("TCP"), guess, f"{guess:g}")
    for axes in panels.values():
        axes.margins(y=0.1)
        axes.set_ylim(0, None)
    errors = ", ".join(f"{one:+.0f} % ({wire})"
                       for one, wire in zip(off, found, strict=True))
    fresh = ""
    for wire, step in found.items():
        kept = found.get(wire.removesuffix(FRESH), step)
        if kept.took[2] < step.took[0]:  # the ranges do not meet
            less, more = 1e3 * kept.took[1], 1e3 * step.took[1]
            fresh = (f" Without `keep`, fresh memory takes {more - less:.0f} "
                     f"of the {more:.0f} ms in {wire.removesuffix(FRESH)}.")
    return look.finish(
        figure, f"Predictions of {name} are off by {errors}: {leaning(off)}."
        f"{fresh}", f"{'; '.join(each)}.", legend=3)


@look.style
def rate_predictions(tables, fits, count_of: str = "nodes",
                     guess: float | None = None):
    """Draw published rates, each divided by its nodes: rows that the fit saw,
    the next one, held out, and what it predicts for that."""
    figure, panels = primitives.panels([table.name for table in tables],
                                       (8, 4.6))
    each = []
    hits = []
    off = []
    least = []
    for axes, table, fit in zip(panels.values(), tables, fits, strict=True):
        rates = dict(zip(table.nodes, table.rates, strict=True))
        seen = [n for n in rates if n in fit.nodes]
        n = min(n for n in rates if n > max(seen))
        every = np.geomspace(1, n, 100)
        axes.plot(every, [fit.rate(n) / n for n in every], color=look.DARK,
                  label="fit")
        axes.axhline(fit.one, linestyle="--", color=look.GREY, label="ideal")
        axes.plot(seen, [rates[n] / n for n in seen], "o", markersize=8,
                  color=look.MIDDLE, label="rows used for the fit")
        said = fit.predict(n)
        primitives.interval(axes, n, said.low / n, said.rate / n,
                            said.high / n, "predicted, 95 %", upright=True,
                            fmt="_", markersize=12)
        axes.plot(n, rates[n] / n, "o", color=look.MIDDLE, markersize=9,
                  markerfacecolor="white", markeredgewidth=2, zorder=4,
                  label="held-out row")
        least.append(min(said.low, rates[n]) / n)
        hits.append(said.low <= rates[n] <= said.high)
        off.append(f"{100 * (said.rate / rates[n] - 1):+.0f} % "
                   f"({table.name}, {n} {count_of})")
        each.append(f"{table.name}, {n} {count_of}: {said.rate:,.0f} "
                    f"({said.low:,.0f} to {said.high:,.0f}), published "
                    f"{rates[n]:,.0f}")
        axes.set(xscale="log", xlabel=f"number of {count_of}")
        axes.set_xticks([*seen, n], [*seen, n])
        axes.minorticks_off()
    first = next(iter(panels.values()))
    if guess is not None:
        last = max(first.get_xticks())
        look.guess_star(first, last, guess / last, f"{guess:g}",
                        markerfacecolor="none", markeredgecolor="black")
    first.set(ylabel=f"{tables[0].unit} per {count_of.removesuffix('s')}",
              ylim=(0.8 * min(least), None))
    if len(hits) > 1:
        about = "predictions are"
        held = f"{sum(hits)} of {len(hits)} intervals contain"
    else:
        about = "prediction is"
        held = f"the interval {'contains' if all(hits) else 'misses'}"
    return look.finish(
        figure, f"The {about} off by {', '.join(off)}; {held} the held-out "
        "row.",
        f"Predicted: {'; '.join(each)}.", legend=3)


def second_rank(found, records, every: int) -> str:
    """Predict what a second rank brings the job of 06, from the profile of
    one rank, which tests after so many steps, and from messages in shared
    memory; and say what came."""
    one = found.records[found.records["ranks"] == 1]
    step, test = [], []  # seconds of each run
    for metrics in one["metrics"]:
        share = metrics["shares"][0]
        step.append((share["train_s"] + share["input_s"])
                    / (share["steps"] - 1))
        test.append(share["evaluation_s"] / (len(metrics["accuracy"]) - 1))
    step_s, test_s = np.median(step), np.median(test) / every
    n = float(one["metrics"].iloc[0]["gradient_bytes"])
    wire = records.loc[records["variant"].str.endswith(FRESH), "metrics"]
    ring_s = np.median([2 * of_size(n / 2, job) for job in wire])
    add_s = gamma_s(wire) * n / 2
    alone, both = step_s + test_s, step_s + test_s / 2 + ring_s + add_s
    ratio = found.ratio(found.variants[-1])
    late_ms = 1e3 * (2 * alone / ratio.middle - both)
    said = (f"One rank: {1e3 * step_s:.1f} ms a step, and {1e3 * test_s:.1f} "
            f"for the tests. The exchange of {n / 1e6:.1f} MB: "
            f"{1e3 * (ring_s + add_s):.1f} ms.\n"
            f"Predicted: {2 * alone / both:.2f} times as fast. Measured: "
            f"{ratio.middle:.2f} ({ratio.low:.2f} to {ratio.high:.2f}).\n")
    if ratio.low <= 2 * alone / both <= ratio.high:
        return said + "The prediction lies within that interval."
    more = "longer" if late_ms > 0 else "shorter"
    return (f"{said}A step of two ranks takes {abs(late_ms):.1f} ms {more} "
            "than the formula says.")
