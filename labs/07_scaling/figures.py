"""The figures of 07_scaling: what a step consists of, the wires, and laws with
their intervals."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from scaleout import scaling
from scaleout.plots import look, primitives

PARTS = {
    "compute": ("compute", {"color": look.DARK}),
    "rest": ("exchange and waiting", look.WAITING),
}


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
                            f"efficiency {guess:g}")
        axes.set_xticks(range(len(counts)), map(str, counts))
        axes.set_xlabel("number of ranks")
        step = sum(bars[-1].values())
        found[mode] = 100 * bars[-1]["rest"] / step, step
    top = np.percentile(1e3 * np.concatenate([row["step_s"] for row in rows]),
                        99)
    stars = [line.get_ydata()[0] for axes in panels.values()
             for line in axes.lines if line.get_marker() == "*"]
    axes.set_ylim(0, 1.1 * max(top, *stars, 0.0))
    next(iter(panels.values())).set_ylabel("step time (ms)")
    (strong, strong_ms), (weak, weak_ms) = found.values()
    return look.finish(
        figure, f"On {counts[-1]} ranks, exchange and waiting take "
        f"{strong:.0f} % of a step in strong scaling ({strong_ms:.0f} ms), "
        f"and {weak:.0f} % in weak ({weak_ms:.0f} ms).", legend=3)


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


@look.style
def amdahl_law(law, measured, most: int = 64, guess: float | None = None):
    """Draw the speed-up over ranks: what was measured, and the law with the
    interval of its serial part."""
    figure, axes = plt.subplots(figsize=(7, 4.6))
    ranks = np.geomspace(1, most, 200)
    high, low = (1 / (serial + (1 - serial) / ranks)
                 for serial in law.serial_range)
    axes.fill_between(ranks, low, high, color=look.LIGHT, alpha=0.5,
                      linewidth=0, label="95 % interval")
    axes.plot(ranks, [law.speed_up(n) for n in ranks], color=look.DARK,
              linewidth=2, label="Amdahl's law")
    primitives.ideal(axes, ranks, ranks)
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
    return look.finish(
        figure, f"If the law holds, {most} ranks are {low[-1]:.0f} to "
        f"{high[-1]:.0f} times as fast as one.", f"Measured: {points}.",
        legend=5)


DRAWS = 4000


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
            "gamma (ns/byte)": 1e9 * gamma,
            "scatter (%)": 100 * line.scatter,
        }
    return pd.DataFrame(found).T


def of_size(n: float, job) -> float:
    """Seconds of a message of n bytes: by the line between the two measured
    sizes next to it, both axes logarithmic."""
    return float(np.exp(np.interp(np.log(n), np.log(job["sizes"]),
                                  np.log(job["messages_s"]))))


def on_wires(records):
    """For each gradient, {wire: (predicted with its interval, measured)}, in
    seconds.

    The prediction is compute, two messages of half the bytes, and the adding
    of half the bytes. For its interval each of the three is drawn many times
    from the rounds.
    """
    draw = np.random.default_rng(0)
    found: dict[int, dict] = {}
    for wire, jobs in records.groupby("variant", sort=False):
        kept = list(jobs["metrics"])
        for same in zip(*(job["steps"] for job in kept), strict=True):
            n = same[0]["bytes"]
            compute, add, step = (
                np.array([np.median(one[what]) for one in same])  # (rounds,)
                for what in ("compute_s", "add_s", "step_s"))
            ring = [2 * of_size(n / 2, job) for job in kept]
            parts = [compute, ring, add]
            drawn = sum(draw.choice(part, DRAWS) for part in parts)
            low, high = np.quantile(drawn, [0.025, 0.975])
            middle = sum(np.median(part) for part in parts)
            found.setdefault(n, {})[wire] = (low, middle, high,
                                             np.median(step))
    return found


def largest_error(records) -> float:
    """By which factor a prediction of the largest gradient was off at most,
    either way."""
    times = on_wires(records)
    return max(max(middle / fact, fact / middle)
               for _, middle, _, fact in times[max(times)].values())


@look.style
def wires(records, names, guess: float | None = None):
    """Draw a step over several wires: predicted from its parts, and measured.
    A panel for each name, with a gradient of its own."""
    figure, panels = primitives.panels(names, (8, 4.4), sharey=False)
    said = []
    each = []
    inside = []
    for axes, name, found in zip(panels.values(), names,
                                 on_wires(records).values(), strict=True):
        off = []
        for place, (wire, times) in enumerate(found.items()):
            low, middle, high, fact = 1e3 * np.array(times)
            primitives.interval(axes, place, low, middle, high,
                                "predicted, 95 %", upright=True, fmt="_",
                                markersize=14)
            axes.plot(place, fact, "o", color=look.MIDDLE, markersize=8,
                      label="measured")
            off.append(100 * (middle / fact - 1))
            inside.append(low <= fact <= high)
            each.append(f"{name}, {wire}: {middle:.3g} ({low:.3g} to "
                        f"{high:.3g}) ms predicted, {fact:.3g} measured")
        said.append(f"{min(off):+.0f} to {max(off):+.0f} % for {name}")
        axes.set_xticks(range(len(found)), found)
        axes.set_xlim(-0.5, len(found) - 0.5)
    first = next(iter(panels.values()))
    first.set_ylabel("time (ms)")
    if guess is not None:
        look.guess_star(first, 1, guess, f"{guess:g}")
    for axes in panels.values():
        axes.margins(y=0.1)
        axes.set_ylim(0, None)
    return look.finish(
        figure, f"{sum(inside)} of {len(inside)} measured times lie in their "
        f"intervals. Predictions were off by {', and '.join(said)}.",
        f"{'; '.join(each)}.", legend=3)


@look.style
def rate_predictions(tables, fits, count_of: str = "nodes",
                     guess: float | None = None):
    """Draw published rates, each divided by its nodes: rows that the fit saw,
    rows held out, and what it predicts for them."""
    figure, panels = primitives.panels([table.name for table in tables],
                                       (8, 4.6))
    each = []
    hits = 0
    hidden = 0
    for axes, table, fit in zip(panels.values(), tables, fits, strict=True):
        every = np.geomspace(1, max(table.nodes), 100)
        axes.plot(every, [fit.rate(n) / n for n in every], color=look.DARK,
                  label="fit")
        axes.axhline(fit.one, linestyle="--", color=look.GREY, label="ideal")
        rates = dict(zip(table.nodes, table.rates, strict=True))
        seen = [n for n in rates if n in fit.nodes]
        axes.plot(seen, [rates[n] / n for n in seen], "o", markersize=8,
                  color=look.MIDDLE, label="rows used for the fit")
        for n in [n for n in rates if n not in fit.nodes]:
            said = fit.predict(n)
            primitives.interval(axes, n, said.low / n, said.rate / n,
                                said.high / n, "predicted, 95 %",
                                upright=True, fmt="_", markersize=12)
            axes.plot(n, rates[n] / n, "o", color=look.MIDDLE, markersize=9,
                      markerfacecolor="white", markeredgewidth=2, zorder=4,
                      label="held-out row")
            hidden += 1
            hits += said.low <= rates[n] <= said.high
            each.append(f"{table.name}, {n} {count_of}: {said.rate:,.0f} "
                        f"({said.low:,.0f} to {said.high:,.0f}), published "
                        f"{rates[n]:,.0f}")
        axes.set(xscale="log", xlabel=f"number of {count_of}")
        axes.set_xticks(table.nodes, table.nodes)
        axes.minorticks_off()
    first = next(iter(panels.values()))
    if guess is not None:
        last = tables[0].nodes[-1]
        look.guess_star(first, last, guess / last, f"{guess:g}")
    first.set(ylabel=f"{tables[0].unit} per {count_of.removesuffix('s')}",
              ylim=(0, None))
    return look.finish(
        figure, f"{hits} of {hidden} intervals contain the held-out row.",
        f"Predicted: {'; '.join(each)}.", legend=5)
