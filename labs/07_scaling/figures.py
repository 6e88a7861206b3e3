"""The figures of 07_scaling: what a step consists of, the wires, and laws with
their intervals."""

from textwrap import fill

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
    said = [f"{mode} scaling, {step:.0f} ms: exchange and waiting are "
            f"{rest:.0f} ms, and computing takes {abs(more):.0f} ms "
            f"{'more' if more > 0 else 'less'} than ideal"
            for mode, (step, rest, more) in found.items()]
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
        f"would be {most:.2f} times as fast: there is no more to gain."])


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
                         label=f"95 % interval of 04 on {name}")
        primitives.interval(axes, n * 1.08 ** (nth + 1), ratio.low,
                            ratio.middle, ratio.high, f"04 on {name}",
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


def wire_parts(records) -> pd.DataFrame:
    """alpha, beta and gamma of each wire; gamma from the largest gradient."""
    found = {}
    for wire, line in lines(records).items():
        jobs = records.loc[records["variant"] == wire, "metrics"]
        added = [max(job["steps"], key=lambda step: step["bytes"])
                 for job in jobs]
        gamma = np.median([np.median(step["add_s"]) / (step["bytes"] / 2)
                           for step in added])
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


def on_wires(records):
    """For each gradient, {wire: (its predictions, measured, rounds)}, in
    seconds; a prediction as the least, the median and the most of its rounds.

    A round's prediction is compute, two messages of half the bytes, and the
    adding of half the bytes.
    """
    found: dict[int, dict] = {}
    for wire, jobs in records.groupby("variant", sort=False):
        kept = list(jobs["metrics"])
        for same in zip(*(job["steps"] for job in kept), strict=True):
            n = same[0]["bytes"]
            compute, add, step = (
                np.array([np.median(one[what]) for one in same])  # (rounds,)
                for what in ("compute_s", "add_s", "step_s"))
            ring = np.array([2 * of_size(n / 2, job) for job in kept])
            said = compute + ring + add  # (rounds,)
            found.setdefault(n, {})[wire] = (
                said.min(), np.median(said), said.max(), np.median(step),
                len(said))
    return found


def exchange_errors(records) -> tuple[float, float]:
    """How many times as long as predicted the exchange of the largest
    gradient took: least and most, of all wires, and 1 among them."""
    times = on_wires(records)
    off = [fact / middle for _, middle, _, fact, _ in
           times[max(times)].values()]
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
        rounds = min(times[-1] for times in found.values())
        for place, (wire, times) in enumerate(found.items()):
            low, middle, high, fact = 1e3 * np.array(times[:4])
            primitives.interval(axes, place, low, middle, high,
                                f"predicted, range over {rounds} rounds",
                                upright=True, fmt="_", markersize=14)
            axes.plot(place, fact, "o", color=look.MIDDLE, markersize=8,
                      label="measured")
            off.append(100 * (middle / fact - 1))
            each.append(f"{name}, {wire}: {middle:.3g} ({low:.3g} to "
                        f"{high:.3g}) ms predicted, {fact:.3g} measured")
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
    fresh = [f" Fresh memory is {1e3 * (times[3] - kept[3]):.0f} of the "
             f"{1e3 * times[3]:.0f} ms of {wire}."
             for wire, times in found.items()
             if (kept := found.get(wire.removesuffix(FRESH))) is not times
             and kept and kept[3] < times[3]]
    return look.finish(
        figure, f"Predictions of {name} are off by {errors}: {leaning(off)}."
        f"{''.join(fresh)}", f"{'; '.join(each)}.", legend=3)


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


def outside_steps(whole) -> dict[str, float]:
    """Of the whole jobs, one rank's and two: the seconds of one rank, those
    outside its timed steps, and how many times as fast Amdahl's law then
    makes two, whose steps are so many times as fast."""
    jobs = whole.records.groupby("ranks")
    all_s = whole.runs.value[whole.runs.variant == whole.baseline].median()
    outside_s = all_s - jobs["step_s"].get_group(1).map(sum).median()
    rates = jobs["rate"].median()
    steps = rates[2] / rates[1]
    serial = outside_s / all_s
    return {"all_s": all_s, "outside_s": outside_s, "steps": steps,
            "promised": 1 / (serial + (1 - serial) / steps)}
