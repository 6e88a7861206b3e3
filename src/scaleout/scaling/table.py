"""`scaleout scaling TABLE.csv --predict 64,128`: your own table of nodes and rates, fitted, predicted, and its cost."""

import csv
import json
from collections.abc import Callable, Sequence
from pathlib import Path

from ..errors import ScaleoutError
from .rates import LAWS, RateFit, fit_rates

__all__ = ["main", "read_table"]


def read_table(path: Path | str) -> tuple[list[float], list[float]]:
    """The columns `nodes` and `rate` of a CSV file; lines that begin with # are its own notes.

    ScaleoutError names the line that holds no two numbers.
    """
    try:
        with open(path, encoding="utf-8", newline="") as file:
            lines = [(number, line) for number, line in enumerate(file, 1) if line.strip() and not line.startswith("#")]
    except (OSError, UnicodeDecodeError) as error:
        raise ScaleoutError(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}.") from None
    head = [name.strip() for name in next(csv.reader([lines[0][1]]))] if lines else []
    if not {"nodes", "rate"} <= set(head):
        raise ScaleoutError(f"{path} needs a first line that names the columns nodes and rate, such as  nodes,rate")
    nodes, rates = [], []
    for number, line in lines[1:]:
        row = dict(zip(head, next(csv.reader([line])), strict=False))
        try:
            nodes.append(float(row["nodes"]))
            rates.append(float(row["rate"]))
        except (KeyError, ValueError):
            raise ScaleoutError(f"{path}, line {number}: {line.strip()!r} holds no two numbers.") from None
    return nodes, rates


def _as_dict(fit: RateFit, predict: Sequence[int], work: float) -> dict[str, object]:
    rows = []
    for nodes in predict:
        try:
            found = fit.predict(nodes)
        except ScaleoutError as error:
            rows.append({"nodes": nodes, "refused": str(error)})
        else:
            cost = {"node_hours": found.node_hours(work), "hours": found.node_hours(work) / nodes}
            rows.append({**vars(found), **cost})
    laws = {law.name: {"weight": law.weight, "coefficients": law.coefficients} for law in fit.laws}
    return {"points": fit.points, "one_node": fit.one, "scatter": fit.scatter, "laws": laws, "predictions": rows}


def _short(rate: float) -> str:
    return f"{rate:,.0f}" if rate >= 1000 else f"{rate:.4g}"


def main(path: Path, predict: Sequence[int], work: float, as_json: bool, say: Callable[[str], None] = print) -> int:
    """Prints the fit, and a row for each number of nodes (none: twice the most measured).

    Returns 1 when one of them had to be refused.

    work: units (images) whose cost is given, in node hours.
    """
    fit = fit_rates(*read_table(path))
    found = _as_dict(fit, predict or [int(2 * fit.nodes[-1])], work)
    rows: list[dict[str, float]] = found["predictions"]  # type: ignore[assignment]
    if as_json:
        say(json.dumps(found, indent=1))
    else:
        counts = ", ".join(f"{n:g}" for n in fit.nodes)
        say(f"{fit.points} points on {counts} nodes; one node {fit.one:.4g}/s; scatter {100 * fit.scatter:.1f} %")
        weights = ", ".join(f"{name} {100 * fit.weights[name]:.0f} %" for name in LAWS)
        say(f"What holds it back, by likelihood: {weights}")
        say(f"{'nodes':>8} {'rate':>10} {'95 % interval':>22} {'efficiency':>11} {f'node hours for {work:.3g}':>24}")
        for row in rows:
            if "refused" in row:
                say(f"{row['nodes']:>8} {row['refused']}")
                continue
            between = f"{_short(row['low'])} to {_short(row['high'])}"
            rest = f"{row['efficiency']:>11.2f} {row['node_hours']:>24.4g}"
            say(f"{row['nodes']:>8} {_short(row['rate']):>10} {between:>22} {rest}")
    return 1 if any("refused" in row for row in rows) else 0
