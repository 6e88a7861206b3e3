"""`scaleout scaling TABLE.csv --predict 64,128`: your own table, fitted, predicted, and its cost."""

import json
import math
from collections.abc import Callable, Sequence
from pathlib import Path

from ..errors import ScaleoutError
from .experiment import next_experiment
from .measured import RATE, Measured, read_measured
from .rates import FARTHEST, WILDEST, RateFit, fit_rates

NARROWER = 0.98  # an experiment that promises less is not worth a line


def reaching(fit: RateFit, target: float) -> dict[str, int | None]:
    """The fewest nodes with a rate."""
    found: dict[str, int | None] = {"likely": None, "safe": None}
    most = int(FARTHEST * fit.nodes[-1])
    steps = sorted({round(2 ** (k / 8)) for k in range(int(8 * math.log2(most)) + 1)})
    for nodes in steps:
        try:
            said = fit.predict(nodes)
        except ScaleoutError:
            continue
        for name, rate in (("likely", said.rate), ("safe", said.low)):
            if found[name] is None and rate >= target:
                found[name] = nodes
        if found["safe"] is not None:
            break
    return found


def _as_dict(
    table: Measured, fit: RateFit, predict: Sequence[int], work: float, target: float | None
) -> dict[str, object]:
    rows = []
    for nodes in predict:
        try:
            found = fit.predict(nodes)
        except ScaleoutError as error:
            rows.append({"nodes": nodes, "refused": str(error)})
        else:
            cost = {"node_hours": found.node_hours(work), "hours": found.node_hours(work) / nodes}
            row = {**vars(found), **cost}
            if table.what != RATE:
                row["seconds"] = table.seconds(nodes, found.rate)
            rows.append(row)
    goal = max(predict)
    said: dict[str, object] = {
        "points": fit.points,
        "one_node": fit.one,
        "scatter": fit.scatter,
        "laws": fit.weights,
        "predictions": rows,
        "next": [vars(trial) for trial in next_experiment(fit, goal)],
    }
    if target is not None:
        said["target"] = {"rate": target, **reaching(fit, target)}
    return said


def _short(rate: float) -> str:
    return f"{rate:,.0f}" if rate >= 1000 else f"{rate:.4g}"


def main(
    path: Path,
    predict: Sequence[int],
    work: float,
    as_json: bool,
    say: Callable[[str], None] = print,
    target: float | None = None,
) -> int:
    """Prints the fit, and a row for each number of nodes."""
    if target is not None and not 0 < target < math.inf:
        raise ScaleoutError("--target takes a rate above 0, such as 5000.")
    table = read_measured(path)
    fit = fit_rates(table.nodes, table.rates)
    found = _as_dict(table, fit, predict or [int(2 * fit.nodes[-1])], work, target)
    rows: list[dict[str, float]] = found["predictions"]  # type: ignore[assignment]
    if as_json:
        say(json.dumps(found, indent=1))
    else:
        _print(table, fit, found, work, say)
    return 1 if any("refused" in row for row in rows) else 0


def _print(
    table: Measured, fit: RateFit, found: dict[str, object], work: float, say: Callable[[str], None]
) -> None:
    rows: list[dict[str, float]] = found["predictions"]  # type: ignore[assignment]
    counts = ", ".join(f"{n:g}" for n in fit.nodes)
    say(f"{fit.points} points on {counts} {table.count}; one alone {_short(fit.one)}/s;"
        f" scatter {100 * fit.scatter:.1f} %")  # fmt: skip
    order = sorted(fit.weights, key=lambda name: -fit.weights[name])
    weights = ", ".join(f"{name} {100 * fit.weights[name]:.0f} %" for name in order)
    say(f"What holds it back, by what each law foretold: {weights}")
    columns = f"{table.count:>8} {'rate':>10} {'95 % interval':>22} {'efficiency':>11}"
    timed = table.what != RATE
    cost = f"{'seconds' if timed else f'node hours for {work:.3g}':>24}"
    say(columns + " " + cost)
    for row in rows:
        if "refused" in row:
            say(f"{row['nodes']:>8} {row['refused']}")
            continue
        between = f"{_short(row['low'])} to {_short(row['high'])}"
        last = row["seconds"] if timed else row["node_hours"]
        say(f"{row['nodes']:>8} {_short(row['rate']):>10} {between:>22} {row['efficiency']:>11.2f}"
            f" {last:>24.4g}   low if: {row['low_law']}")  # fmt: skip
    if "target" in found:
        goal: dict[str, float] = found["target"]  # type: ignore[assignment]
        say(
            f"{_short(goal['rate'])}/s: likely from {goal['likely'] or 'nowhere'} {table.count} on, "
            f"safely (the interval's low end) from {goal['safe'] or 'nowhere'}"
        )
    trials: list[dict[str, float]] = found["next"]  # type: ignore[assignment]
    worth = trials and trials[0]["width"] < NARROWER * trials[0]["width_now"]
    if worth and fit.scatter <= WILDEST:
        best = trials[0]
        times = "once" if best["repeats"] == 1 else f"{best['repeats']} times"
        name = table.count if best["nodes"] > 1 else table.count.removesuffix("s")
        say(
            f"Measure next: {best['nodes']} {name}, {times}: the interval on "
            f"{max(row['nodes'] for row in rows)} should narrow from {best['width_now']:.2f}x to "
            f"about {best['width']:.2f}x"
        )
